"""The resources in a status: those that containers and the pod really have. Pure.

An amount comes from the runtime or the cgroup if they report it, else from the previous status. CPU
amounts below the smallest that the kernel can hold are shown as allocated.
Rules: CG-063, CG-067. Upstream: pkg/kubelet/kubelet_pods.go: convertContainerStatusResources,
convertToAPIPodLevelResourcesStatus; kuberuntime_container.go: toKubeContainerStatus.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lightkube.models.core_v1 import ResourceRequirements

from kubeobjects.quantity import (
    NANO,
    Quantity,
    format_binary,
    format_decimal_nano,
    parse_nano,
)
from kubeobjects.structs import replace
from refkubelet.allocation.resources import canonical_resources
from refkubelet.cri.records import ContainerRecord, ContainerState, RuntimeResources
from refkubelet.model.cgroups.cpu_shares import MIN_SHARES, SHARES_PER_CPU
from refkubelet.model.cgroups.limits import ResourceConfig
from refkubelet.model.objects import Container, ContainerStatus, Pod, PodStatus
from refkubelet.model.resources import limit_quantities, request_quantities

CPU: Final = "cpu"
MEMORY: Final = "memory"
MIN_REQUEST_MILLICORES: Final = 2  # of shares
MIN_LIMIT_MILLICORES: Final = 10  # of the smallest quota in the usual period
_NANO_PER_MILLI: Final = NANO // 1000

Actuated = Callable[[str], ResourceRequirements | None]


def container_resources_shown(
    container: Container,
    record: ContainerRecord,
    previous: ContainerStatus | None,
    actuated: ResourceRequirements | None,
) -> ResourceRequirements:
    """The resources of a container's status. `container`: with its allocated resources; `record`:
    of the runtime; `previous`: the last status, if it shows this same instance running; `actuated`:
    the resources last sent to the runtime."""
    allocated = canonical_resources(container.resources)
    if record.state is not ContainerState.RUNNING:
        return allocated
    actual = _completed(record.resources, actuated)
    old = (previous.resources if previous is not None else None) or ResourceRequirements()
    limits, requests = allocated.limits, allocated.requests
    if limits is not None:
        cpu = _cpu(actual.cpu_limit_millicores, limits, MIN_LIMIT_MILLICORES)
        memory = _memory(actual.memory_limit_bytes)
        limits = _shown(limits, {CPU: cpu, MEMORY: memory}, old.limits)
    if requests is not None:
        cpu = _cpu(actual.cpu_request_millicores, requests, MIN_REQUEST_MILLICORES)
        memory = _memory(actual.memory_request_bytes)
        requests_set = (actuated.requests if actuated is not None else None) or {}
        if memory and MEMORY in requests_set:  # no runtime reports a memory request
            memory = requests_set[MEMORY]
        requests = _shown(requests, {CPU: cpu, MEMORY: memory}, old.requests)
    return replace(allocated, limits=limits, requests=requests)


def _completed(
    reported: RuntimeResources | None, actuated: ResourceRequirements | None
) -> RuntimeResources:
    """The runtime's report, completed with the actuated resources: it has no memory request, and
    older runtimes report nothing."""
    if actuated is None:
        return reported or RuntimeResources()
    requests, limits = actuated.requests or {}, actuated.limits or {}
    memory_request_bytes = _bytes(requests)
    if reported is not None:
        return reported.with_memory_request(memory_request_bytes or None)
    return RuntimeResources(
        cpu_request_millicores=_millicores(requests),
        cpu_limit_millicores=_millicores(limits),
        memory_limit_bytes=_bytes(limits),
        memory_request_bytes=memory_request_bytes,
    )


def _millicores(amounts: Mapping[str, str]) -> int:
    return -(-parse_nano(amounts.get(CPU, "0")) // _NANO_PER_MILLI)


def _bytes(amounts: Mapping[str, str]) -> int:
    return -(-parse_nano(amounts.get(MEMORY, "0")) // NANO)


_ALLOCATED: Final = ""
"""Instead of an amount: show the allocated one."""


def _cpu(millicores: int | None, allocated: Mapping[str, str], minimum: int) -> str | None:
    if millicores is None:
        return None
    if millicores > minimum or _millicores(allocated) > minimum:
        return format_decimal_nano(millicores * _NANO_PER_MILLI)
    return _ALLOCATED


def _memory(amount: int | None) -> str | None:
    return None if amount is None else format_binary(amount)


def _shown(
    allocated: Mapping[str, str], actual: Mapping[str, str | None], old: Mapping[str, str] | None
) -> dict[str, str]:
    """`allocated`, replaced by the amounts of `actual`; where `actual` has None, by those of
    `old`."""
    merged = dict(allocated)
    for name, text in actual.items():
        if text:
            merged[name] = text
        elif text is None and old and name in old:
            merged[name] = old[name]
    return merged


def pod_resources_shown(
    pod: Pod, previous: PodStatus | None, cgroup: ResourceConfig | None
) -> ResourceRequirements:
    """The resources of a pod's status: those of its cgroup while the object's phase is Running,
    else the allocated ones. `pod`: with its allocated resources; `cgroup`: the limits of its
    cgroup, None if unknown."""
    if pod.status is None or pod.status.phase != "Running":
        return ResourceRequirements(
            limits=own_resources(limit_quantities(pod)),
            requests=own_resources(request_quantities(pod)),
        )
    own = pod.spec.resources or ResourceRequirements()
    requests, limits = own.requests or {}, own.limits or {}
    was_running = previous is not None and previous.phase == "Running"
    old = previous.resources if previous is not None and was_running else None
    before = old or ResourceRequirements()
    cgroup = cgroup or ResourceConfig()
    cpu_request = _cpu(_request_of_shares(cgroup), requests, MIN_REQUEST_MILLICORES)
    cpu_limit = _cpu(_limit_of_quota(cgroup), limits, MIN_LIMIT_MILLICORES)
    memory = cgroup.memory_limit_bytes or 0
    memory_request = request_quantities(pod).get(MEMORY)
    if memory_request is not None and MEMORY not in requests:
        requests = {**requests, MEMORY: str(memory_request)}
    shown_limits = {CPU: cpu_limit, MEMORY: _memory(memory if memory > 0 else None)}
    return ResourceRequirements(
        limits=_shown(limits, shown_limits, before.limits) or None,
        # No cgroup holds the memory request, so the previous one is kept.
        requests=_shown(requests, {CPU: cpu_request, MEMORY: None}, before.requests) or None,
    )


def _request_of_shares(cgroup: ResourceConfig) -> int | None:
    """The CPU request in millicores that the cgroup's shares stand for; None below 2 shares."""
    shares = cgroup.cpu_shares or 0
    return -(-shares * 1000 // SHARES_PER_CPU) if shares >= MIN_SHARES else None


def _limit_of_quota(cgroup: ResourceConfig) -> int | None:
    """The CPU limit in millicores; None: the cgroup has no quota."""
    quota, period = cgroup.cpu_quota_us or -1, cgroup.cpu_period_us or 0
    if quota <= 0 or period <= 0:
        return None
    return quota * 1000 // period or None


def own_resources(amounts: Mapping[str, Quantity]) -> dict[str, str] | None:
    """`amounts` as canonical texts; None if there are none."""
    return {name: str(amount) for name, amount in amounts.items()} or None
