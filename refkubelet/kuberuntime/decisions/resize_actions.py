"""In-place resize: decides which running containers to update and which to restart. Pure.

A container's allocated resources are compared with the actuated ones, those last sent to the
runtime. If a changed resource has the resizePolicy RestartContainer, the container is restarted;
else it is updated while it runs, memory before CPU, decreases before increases.
Rules: CG-064, CG-065, LIFE-115. Upstream: kuberuntime_manager.go: computePodResizeAction,
computePodLevelResourcesResizeAction, IsPodResizeInProgress.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from lightkube.models.core_v1 import ResourceRequirements
from msgspec import Struct

from kubeobjects.quantity import NANO, format_binary, format_decimal_nano, parse_nano
from kubeobjects.resource_names import COMPUTE
from kubeobjects.structs import replace
from refkubelet.cri.records import ContainerState, RuntimePodStatus
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import is_sidecar

MEMORY: Final = "memory"
CPU: Final = "cpu"
RESTART: Final = "RestartContainer"


class ComputeAmounts(Struct, frozen=True):
    """CPU and memory of a container or of a pod; 0: none."""

    cpu_request_millicores: int = 0
    cpu_limit_millicores: int = 0
    memory_request_bytes: int = 0
    memory_limit_bytes: int = 0

    def with_memory_of(self, other: ComputeAmounts) -> ComputeAmounts:
        """This CPU with the memory of `other`."""
        return replace(
            self,
            memory_request_bytes=other.memory_request_bytes,
            memory_limit_bytes=other.memory_limit_bytes,
        )


class ContainerUpdate(Struct, frozen=True):
    """One call of UpdateContainerResources: sets `resource` of the container to that of `after`."""

    container_id: str
    container: Container
    resource: str  # MEMORY or CPU
    before: ComputeAmounts
    after: ComputeAmounts

    @property
    def is_decrease(self) -> bool:
        """Whether the limit of `resource` becomes lower, or at the same limit the request."""
        if self.resource == MEMORY:
            old = (self.before.memory_limit_bytes, self.before.memory_request_bytes)
            new = (self.after.memory_limit_bytes, self.after.memory_request_bytes)
        else:
            old = (self.before.cpu_limit_millicores, self.before.cpu_request_millicores)
            new = (self.after.cpu_limit_millicores, self.after.cpu_request_millicores)
        return new[0] < old[0] if new[0] != old[0] else new[1] < old[1]


class ResizeDecision(Struct, frozen=True):
    """Restart the container, or update it; neither when nothing changed."""

    restart: bool = False
    updates: tuple[ContainerUpdate, ...] = ()


NO_AMOUNTS: Final = ComputeAmounts()
NOTHING: Final = ResizeDecision()


def wanted_resources(container: Container, pod: Pod) -> ComputeAmounts:
    """The container's resources in the spec; a missing limit is the pod-level one."""
    return amounts_of(container.resources, pod.spec.resources)


def amounts_of(
    resources: ResourceRequirements | None, pod_level: ResourceRequirements | None = None
) -> ComputeAmounts:
    """The amounts of a container, or of a pod as a whole. `pod_level`: the pod-level resources;
    their limits are used where the container has none."""
    if not (_has_amounts(resources) or _has_amounts(pod_level)):
        return NO_AMOUNTS
    resources, pod_level = resources or ResourceRequirements(), pod_level or ResourceRequirements()
    requests = {name: _nano(resources.requests, name) for name in COMPUTE}
    limits = {n: _nano(resources.limits, n) or _nano(pod_level.limits, n) for n in COMPUTE}
    return ComputeAmounts(
        cpu_request_millicores=_milli(requests[CPU]),
        cpu_limit_millicores=_milli(limits[CPU]),
        memory_request_bytes=_whole(requests[MEMORY]),
        memory_limit_bytes=_whole(limits[MEMORY]),
    )


def _has_amounts(resources: ResourceRequirements | None) -> bool:
    return resources is not None and bool(resources.requests or resources.limits)


def resizes_pod_level(pod: Pod, pod_level: ResourceRequirements | None) -> bool:
    """Whether the pod-level resources of the spec differ from those that the pod's cgroup has.
    `pod_level` None: these are unknown, and count as none: what the cgroup has already is not
    written again (CG-064)."""
    return amounts_of(pod_level) != amounts_of(pod.spec.resources)


def resize_in_progress(
    pod: Pod,
    status: RuntimePodStatus,
    actuated: Mapping[str, ComputeAmounts],
    pod_level: ResourceRequirements | None,
) -> bool:
    """Whether a running container, or the pod's cgroup, does not have its allocated resources yet.
    Plain init containers do not count, nor do unknown pod-level resources (CG-063)."""
    spec = pod.spec
    sidecars = [c for c in spec.initContainers or () if is_sidecar(c)]
    for container in (*sidecars, *spec.containers):
        record = status.newest(container.name)
        if record is None or record.state is not ContainerState.RUNNING:
            continue
        resources = actuated.get(container.name)
        if resources is not None and resources != wanted_resources(container, pod):
            return True
    return pod_level is not None and resizes_pod_level(pod, pod_level)


def resize_decision(
    container: Container, container_id: str, pod: Pod, actuated: ComputeAmounts | None
) -> ResizeDecision:
    """How to resize a running container. `actuated` None: its resources are unknown, and it is not
    resized. A static pod is resized where its manifest keeps a UID of its own (CG-064)."""
    expected_amounts = wanted_resources(container, pod)
    if actuated is None or actuated == expected_amounts:
        return NOTHING
    changed = []
    if actuated.with_memory_of(expected_amounts) != actuated:
        changed.append(MEMORY)
    if expected_amounts.with_memory_of(actuated) != actuated:
        changed.append(CPU)
    policies = {p.resourceName: p.restartPolicy for p in container.resizePolicy or ()}
    if any(policies.get(resource) == RESTART for resource in changed):
        return ResizeDecision(restart=True)
    return ResizeDecision(
        updates=tuple(
            ContainerUpdate(container_id, container, r, before=actuated, after=expected_amounts)
            for r in changed
        )
    )


def in_order(updates: Iterable[ContainerUpdate]) -> tuple[ContainerUpdate, ...]:
    """The updates in the order of execution: memory, then CPU; of each the decreases first, in
    reverse order (CG-065)."""
    updates = list(updates)
    ordered: list[ContainerUpdate] = []
    for resource in (MEMORY, CPU):
        these = [u for u in updates if u.resource == resource]
        ordered += reversed([u for u in these if u.is_decrease])
        ordered += [u for u in these if not u.is_decrease]
    return tuple(ordered)


def next_step(current: ComputeAmounts, update: ContainerUpdate) -> ComputeAmounts:
    """The container's resources after the update."""
    if update.resource == MEMORY:
        return current.with_memory_of(update.after)
    return update.after.with_memory_of(current)


def with_resources(container: Container, actuated: ComputeAmounts) -> Container:
    """The container with these requests and limits as the checkpoint has them, for making the
    message of an update."""

    def texts(cpu_millicores: int, memory_bytes: int) -> dict[str, str]:
        cpu = format_decimal_nano(cpu_millicores * (NANO // 1000))
        return {CPU: cpu, MEMORY: format_binary(memory_bytes)}

    resources = ResourceRequirements(
        claims=container.resources.claims if container.resources is not None else None,
        requests=texts(actuated.cpu_request_millicores, actuated.memory_request_bytes),
        limits=texts(actuated.cpu_limit_millicores, actuated.memory_limit_bytes),
    )
    return replace(container, resources=resources)


def _nano(amounts: Mapping[str, str] | None, name: str) -> int:
    text = (amounts or {}).get(name)
    return parse_nano(text) if text else 0


def _milli(nano_cores: int) -> int:
    return -(-nano_cores // (NANO // 1000))


def _whole(nano_bytes: int) -> int:
    return -(-nano_bytes // NANO)
