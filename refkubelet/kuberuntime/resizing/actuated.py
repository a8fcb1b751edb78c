"""The actuated resources: the CPU and memory last set for containers and pods.

They are kept in a checkpoint (CG-060), so that a restarted kubelet knows the resources of running
containers. A container that is not in it was started by a kubelet without a checkpoint: it is
assumed to have the resources of its last status, or else of its spec, so that it is not resized or
restarted only because the kubelet restarted.
What must never happen: a container runs with resources that are not recorded yet.
Rules: CG-060, CG-064, CG-065. Upstream: kuberuntime_container.go: setActuatedContainerResources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lightkube.models.core_v1 import ResourceRequirements

from kubeobjects.quantity import parse_nano
from kubeobjects.resource_names import COMPUTE
from kubeobjects.structs import replace
from refkubelet.allocation.resources import PodResources, canonical_resources
from refkubelet.allocation.state import ResourceState
from refkubelet.cri.records import ContainerRecord, RuntimePodStatus
from refkubelet.kuberuntime.decisions.resize_actions import ComputeAmounts, amounts_of
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import bare_container_id, containers, uid


class ActuatedResources:
    """The actuated resources of all pods; one per kubelet. What is set is on disk after `saved`,
    in a file as large as no ordinary node has a second after it (`ResourceState.saved`).
    `resizes_pods` False: resources of pods as a whole are not resized, and containers have only
    limits of their own (CG-061.7)."""

    def __init__(self, state: ResourceState, *, resizes_pods: bool = True) -> None:
        self._state = state
        self._resizes_pods = resizes_pods
        self._adopted: dict[str, dict[str, ComputeAmounts]] = {}

    def of(self, pod: Pod, status: RuntimePodStatus) -> dict[str, ComputeAmounts]:
        """The actuated resources by container name, of containers that are in the checkpoint or
        run."""
        resources = self._state.pod(uid(pod)) or PodResources()
        actuated: dict[str, ComputeAmounts] = {}
        for container in containers(pod):
            recorded = resources.containers.get(container.name)
            if recorded is not None:
                of_pod = resources.pod_level if self._resizes_pods else None
                actuated[container.name] = amounts_of(recorded, of_pod)
                continue
            running = (r for r in status.running() if r.name == container.name)
            if (record := next(running, None)) is not None:
                actuated[container.name] = self._adopt(container, pod, record)
        return actuated

    def _adopt(self, container: Container, pod: Pod, record: ContainerRecord) -> ComputeAmounts:
        """`adopted_resources`, computed once: a later change of the spec must count as a resize."""
        adopted = self._adopted.setdefault(uid(pod), {})
        if container.name not in adopted:
            of_pod = pod.spec.resources if self._resizes_pods else None
            adopted[container.name] = adopted_resources(container, pod, record, of_pod)
        return adopted[container.name]

    def pod_level(self, pod_uid: str) -> ResourceRequirements | None:
        """The pod-level resources last set for the pod's cgroup; empty if it was given none; None:
        nothing is known of the pod, or such resources are not resized."""
        resources = self._state.pod(pod_uid) if self._resizes_pods else None
        return (resources.pod_level or ResourceRequirements()) if resources is not None else None

    def container(self, pod_uid: str, name: str) -> ResourceRequirements | None:
        """The resources of a container in the checkpoint; None: it is not there."""
        return self._state.container(pod_uid, name)

    def set(self, pod: Pod, container: Container) -> None:
        """Record the resources of `container` before it starts."""
        resources = self._with_pod_limits(pod, canonical_resources(container.resources))
        self._state.set_container(uid(pod), container.name, canonical_resources(resources))

    def set_updated(self, pod: Pod, container: Container) -> None:
        """Record the resources of `container` after they were updated, in the texts that it has:
        memory stays in the binary family (`200000000`), which the status shows (CG-063)."""
        resources = container.resources or ResourceRequirements()
        self._state.set_container(uid(pod), container.name, self._with_pod_limits(pod, resources))

    def _with_pod_limits(self, pod: Pod, resources: ResourceRequirements) -> ResourceRequirements:
        if not self._resizes_pods:
            return resources
        limits = effective_limits(pod, resources.limits or {})
        return replace(resources, limits=limits or None)

    def set_pod_level(self, pod: Pod, resources: tuple[str, ...] = COMPUTE) -> None:
        """Record that the pod's cgroup has the pod-level `resources`; the others stay."""
        pod_level = pod.spec.resources
        if pod_level is None or not (pod_level.requests or pod_level.limits):
            return
        recorded = self._state.pod(uid(pod))
        before = (recorded.pod_level if recorded is not None else None) or ResourceRequirements()
        both = ResourceRequirements(
            limits=_with(before.limits, pod_level.limits, resources),
            requests=_with(before.requests, pod_level.requests, resources),
        )
        self._state.set_pod_level(uid(pod), canonical_resources(both))

    async def saved(self) -> None:
        """Write what was set, as `ResourceState.saved` does, and wait for that. Raises OSError."""
        await self._state.saved()

    def save_soon(self) -> None:
        """Write it without waiting; a failure is logged."""
        self._state.save_soon()

    def forget_unless(self, kept: Callable[[str], bool]) -> None:
        """Forget pods whose content may be removed (GC-001)."""
        for pod_uid in (*self._state.pod_uids(), *self._adopted):
            if not kept(pod_uid):
                self._state.remove(pod_uid)
        self._adopted = {u: own for u, own in self._adopted.items() if kept(u)}


def _with(
    before: Mapping[str, str] | None, pod_level: Mapping[str, str] | None, names: tuple[str, ...]
) -> dict[str, str]:
    new = {name: text for name, text in (pod_level or {}).items() if name in names}
    return {**(before or {}), **new}


def effective_limits(pod: Pod, limits: Mapping[str, str]) -> dict[str, str]:
    """A container's limits; a missing CPU or memory limit is the pod-level one (CG-050)."""
    pod_level = (pod.spec.resources.limits if pod.spec.resources else None) or {}
    result = dict(limits)
    for name in COMPUTE:
        if (
            name in pod_level
            and not parse_nano(result.get(name, "0"))
            and parse_nano(pod_level[name])
        ):
            result[name] = pod_level[name]
    return result


def adopted_resources(
    container: Container,
    pod: Pod,
    record: ContainerRecord,
    pod_level: ResourceRequirements | None,
) -> ComputeAmounts:
    """The assumed resources of a container that an earlier kubelet started: those of its last
    status, else of its spec, with the limits of `pod_level`."""
    last = pod.status
    statuses = (
        *((last.containerStatuses if last else None) or ()),
        *((last.initContainerStatuses if last else None) or ()),
    )
    for status in statuses:
        same = bare_container_id(status.containerID) == record.id
        if status.name == container.name and same and status.resources is not None:
            return amounts_of(status.resources, pod_level)
    return amounts_of(container.resources, pod_level)
