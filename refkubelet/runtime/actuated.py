"""CPU and memory that containers were last given, by pod and container name.

Kept in memory. After a restart of the kubelet a running container is taken to have what its last
status says; without a status, what its spec asks for. Pure, apart from being a store.
Rules: CG-064, CG-065. Upstream: pkg/kubelet/allocation/state (there a checkpoint file).
"""

from __future__ import annotations

from collections.abc import Mapping

from lightkube.models.core_v1 import ResourceRequirements

from refkubelet.model.objects import Container, Pod, uid
from refkubelet.runtime.decisions.resize_actions import GivenResources, wanted_resources
from refkubelet.runtime.records import ContainerRecord, RuntimePodStatus


class ActuatedResources:
    """One per kubelet."""

    def __init__(self) -> None:
        self._given: dict[str, dict[str, GivenResources]] = {}

    def of(self, pod: Pod, status: RuntimePodStatus) -> Mapping[str, GivenResources]:
        """By container name; running containers that are new to the store are adopted."""
        given = self._given.setdefault(uid(pod), {})
        spec = pod.spec
        for container in (*spec.containers, *(spec.initContainers or ())) if spec else ():
            if container.name in given:
                continue
            running = (r for r in status.running() if r.name == container.name)
            if (record := next(running, None)) is not None:
                given[container.name] = adopted_resources(container, pod, record)
        return given

    def set(self, pod_uid: str, container_name: str, given: GivenResources) -> None:
        """The runtime has accepted these."""
        self._given.setdefault(pod_uid, {})[container_name] = given

    def forget(self, pod_uid: str) -> None:
        """The pod is stopped for good."""
        self._given.pop(pod_uid, None)


def adopted_resources(container: Container, pod: Pod, record: ContainerRecord) -> GivenResources:
    """What a running container of an earlier kubelet is taken to have."""
    told = pod.status
    statuses = (
        *((told.containerStatuses if told else None) or ()),
        *((told.initContainerStatuses if told else None) or ()),
    )
    for status in statuses:
        same = (status.containerID or "").rpartition("://")[2] == record.id
        if status.name == container.name and same and status.resources is not None:
            return wanted_resources(_with(container, status.resources), pod)
    return wanted_resources(container, pod)


def _with(container: Container, resources: ResourceRequirements) -> Container:
    return Container(container.name, resources=resources)
