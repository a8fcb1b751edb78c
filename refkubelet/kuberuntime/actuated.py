"""CPU and memory that containers were last given, by pod and container name: what was actuated.

Kept in a checkpoint (CG-060): a restarted kubelet knows what the containers it finds have. Of a
container that is not in it (it was started by a kubelet without one), the last status counts;
without a status, the spec: such a container is not resized, let alone restarted.
What must never happen: a container runs with resources that are not noted yet.
Rules: CG-060, CG-064, CG-065. Upstream: kuberuntime_container.go: setActuatedContainerResources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from lightkube.models.core_v1 import ResourceRequirements
from msgspec.structs import replace

from refkubelet.allocation.resources import PodResources, canonical_resources
from refkubelet.allocation.state import ACTUATED_FILE, ResourceState
from refkubelet.cri.records import ContainerRecord, RuntimePodStatus
from refkubelet.kuberuntime.decisions.resize_actions import GivenResources, amounts_of
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import bare_container_id, containers, uid
from refkubelet.model.quantity import parse_nano
from refkubelet.model.resources import COMPUTE


class ActuatedResources:
    """One per kubelet. What is set is on disk after `saved`."""

    def __init__(self, state: ResourceState) -> None:
        self._state = state
        self._adopted: dict[str, dict[str, GivenResources]] = {}

    @classmethod
    def below(cls, root_dir: Path) -> ActuatedResources:
        """Raises `StateFileError`."""
        return cls(ResourceState(root_dir / ACTUATED_FILE))

    def of(self, pod: Pod, status: RuntimePodStatus) -> dict[str, GivenResources]:
        """What the containers of the pod were given last, and what running ones must have."""
        known = self._state.pod(uid(pod)) or PodResources()
        given: dict[str, GivenResources] = {}
        for container in containers(pod):
            noted = known.containers.get(container.name)
            if noted is not None:
                given[container.name] = amounts_of(noted, known.pod_level)
                continue
            running = (r for r in status.running() if r.name == container.name)
            if (record := next(running, None)) is not None:
                given[container.name] = self._adopt(container, pod, record)
        return given

    def _adopt(self, container: Container, pod: Pod, record: ContainerRecord) -> GivenResources:
        """Once: what the spec says later is a resize."""
        known = self._adopted.setdefault(uid(pod), {})
        if container.name not in known:
            known[container.name] = adopted_resources(container, pod, record)
        return known[container.name]

    def pod_level(self, pod_uid: str) -> ResourceRequirements | None:
        """What the pod's group has of the pod's own resources; None: not known."""
        known = self._state.pod(pod_uid)
        return known.pod_level if known is not None else None

    def container(self, pod_uid: str, name: str) -> ResourceRequirements | None:
        return self._state.container(pod_uid, name)

    def set(self, pod: Pod, container: Container) -> None:
        """The container is about to run with these, or the runtime has accepted them."""
        resources = canonical_resources(container.resources)
        limits = effective_limits(pod, resources.limits or {})
        resources = canonical_resources(replace(resources, limits=limits or None))
        self._state.set_container(uid(pod), container.name, resources)

    def set_pod_level(self, pod: Pod, resources: tuple[str, ...] = COMPUTE) -> None:
        """The pod's group has these of the pod's own resources."""
        own = pod.spec.resources
        if own is None or not (own.requests or own.limits):
            return
        before = self.pod_level(uid(pod)) or ResourceRequirements()
        both = ResourceRequirements(
            limits=_with(before.limits, own.limits, resources),
            requests=_with(before.requests, own.requests, resources),
        )
        self._state.set_pod_level(uid(pod), canonical_resources(both))

    async def saved(self) -> None:
        """Return when all that was set is on disk. Raises OSError."""
        await self._state.saved()

    def save_soon(self) -> None:
        """The same without waiting; a failure is logged."""
        self._state.save_soon()

    def forget_unless(self, kept: Callable[[str], bool]) -> None:
        """Forget pods whose content may be removed (GC-001)."""
        for pod_uid in (*self._state.pod_uids(), *self._adopted):
            if not kept(pod_uid):
                self._state.remove(pod_uid)
        self._adopted = {u: known for u, known in self._adopted.items() if kept(u)}


def _with(
    before: Mapping[str, str] | None, own: Mapping[str, str] | None, names: tuple[str, ...]
) -> dict[str, str]:
    new = {name: text for name, text in (own or {}).items() if name in names}
    return {**(before or {}), **new}


def effective_limits(pod: Pod, limits: Mapping[str, str]) -> dict[str, str]:
    """A limit of CPU or memory that the container lacks is the pod's own (CG-050)."""
    own = (pod.spec.resources.limits if pod.spec.resources else None) or {}
    found = dict(limits)
    for name in COMPUTE:
        if name in own and not parse_nano(found.get(name, "0")) and parse_nano(own[name]):
            found[name] = own[name]
    return found


def adopted_resources(container: Container, pod: Pod, record: ContainerRecord) -> GivenResources:
    """What a running container of an earlier kubelet is taken to have."""
    told = pod.status
    own = pod.spec.resources
    statuses = (
        *((told.containerStatuses if told else None) or ()),
        *((told.initContainerStatuses if told else None) or ()),
    )
    for status in statuses:
        same = bare_container_id(status.containerID) == record.id
        if status.name == container.name and same and status.resources is not None:
            return amounts_of(status.resources, own)
    return amounts_of(container.resources, own)
