"""The ledger: which container has which devices. The checkpoint file stores it.
Upstream: pkg/kubelet/cm/devicemanager/pod_devices.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView, Mapping

from refkubelet.container_manager.devices.types import Allotment

Entry = tuple[str, str, str, Allotment]
"""Pod UID, container name, resource name, devices."""


class Ledger:
    """Allotments by pod, container and resource, in the order of their insertion."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, dict[str, Allotment]]] = {}

    def insert(self, pod_uid: str, container: str, resource: str, allotment: Allotment) -> None:
        """Record an allotment; replaces an earlier one."""
        self._pods.setdefault(pod_uid, {}).setdefault(container, {})[resource] = allotment

    def remove(self, pod_uids: Iterable[str]) -> None:
        """Forget all allotments of these pods."""
        for pod_uid in pod_uids:
            self._pods.pop(pod_uid, None)

    @property
    def pods(self) -> KeysView[str]:
        """The UIDs of the pods with devices."""
        return self._pods.keys()

    def of_container(self, pod_uid: str, container: str) -> Mapping[str, Allotment]:
        """The container's allotments by resource."""
        return self._pods.get(pod_uid, {}).get(container, {})

    def ids(self, pod_uid: str, container: str, resource: str) -> frozenset[str] | None:
        """The container's devices of a resource; None: none were ever allocated."""
        allotment = self.of_container(pod_uid, container).get(resource)
        return None if allotment is None else allotment.ids

    def pod_ids(self, pod_uid: str, resource: str) -> frozenset[str]:
        """The devices of all containers of the pod; those reused count once."""
        of_containers = self._pods.get(pod_uid, {}).values()
        return frozenset().union(*(c[resource].ids for c in of_containers if resource in c))

    def in_use(self) -> dict[str, set[str]]:
        """The devices in use, by resource."""
        used: dict[str, set[str]] = {}
        for _, _, resource, allotment in self.entries():
            used.setdefault(resource, set()).update(allotment.ids)
        return used

    def entries(self) -> Iterator[Entry]:
        for pod_uid, containers in self._pods.items():
            for container, resources in containers.items():
                for resource, allotment in resources.items():
                    yield pod_uid, container, resource, allotment

    def holders(self, resource: str, device_id: str) -> tuple[str, ...]:
        """The UIDs of the pods that have the device."""
        return tuple(
            dict.fromkeys(
                pod_uid
                for pod_uid, _, name, allotment in self.entries()
                if name == resource and device_id in allotment.ids
            )
        )
