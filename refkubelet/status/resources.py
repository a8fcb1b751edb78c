"""The resources in a status: what containers and the pod have, beside what was allocated. Pure.

What the runtime and the kernel say is shown where they say anything, else what was shown before.
The kernel knows no CPU below its own smallest amounts; there the allocated amounts are shown.
Rules: CG-063, CG-067. Upstream: pkg/kubelet/kubelet_pods.go: convertContainerStatusResources,
convertToAPIPodLevelResourcesStatus; kuberuntime_container.go: toKubeContainerStatus.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lightkube.models.core_v1 import ResourceRequirements
from msgspec.structs import replace

from refkubelet.allocation.resources import canonical_resources
from refkubelet.cri.records import ContainerRecord, ContainerState, RuntimeResources
from refkubelet.model.cgroups.cpu_shares import MIN_SHARES, SHARES_PER_CPU
from refkubelet.model.cgroups.limits import ResourceConfig
from refkubelet.model.objects import Container, ContainerStatus, Pod, PodStatus
from refkubelet.model.quantity import (
    NANO,
    Quantity,
    canonical,
    format_binary,
    format_decimal_nano,
    parse_nano,
)
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
    """`container`: as allocated; `previous`: the last status, if it is of this very instance and
    shows it running; `actuated`: what it was given last."""
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
        given = (actuated.requests if actuated is not None else None) or {}
        if memory and MEMORY in given:  # as it was asked for: no runtime tells it
            memory = canonical(given[MEMORY])
        requests = _shown(requests, {CPU: cpu, MEMORY: memory}, old.requests)
    return replace(allocated, limits=limits, requests=requests)


def _completed(
    told: RuntimeResources | None, actuated: ResourceRequirements | None
) -> RuntimeResources:
    """The runtime tells no memory request, and older ones nothing at all."""
    if actuated is None:
        return told or RuntimeResources()
    requests, limits = actuated.requests or {}, actuated.limits or {}
    memory_request_bytes = _bytes(requests)
    if told is not None:
        return told.with_memory_request(memory_request_bytes or None)
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
"""What is allocated stays."""


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
    """Allocated amounts, over them the actual ones; None: those shown before."""
    shown = dict(allocated)
    for name, text in actual.items():
        if text:
            shown[name] = text
        elif text is None and old and name in old:
            shown[name] = old[name]
    return shown


def pod_resources_shown(
    pod: Pod, previous: PodStatus | None, cgroup: ResourceConfig | None
) -> ResourceRequirements:
    """`pod`: as allocated. `cgroup`: the limits of its cgroup; None: they are not known. While its
    object says that it runs, the cgroup counts; else what is allocated."""
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
    asked = request_quantities(pod).get(MEMORY)
    if asked is not None and MEMORY not in requests:
        requests = {**requests, MEMORY: str(asked)}
    shown_limits = {CPU: cpu_limit, MEMORY: _memory(memory if memory > 0 else None)}
    return ResourceRequirements(
        limits=_shown(limits, shown_limits, before.limits) or None,
        # No cgroup holds the memory request: it stays what was shown first.
        requests=_shown(requests, {CPU: cpu_request, MEMORY: None}, before.requests) or None,
    )


def _request_of_shares(cgroup: ResourceConfig) -> int | None:
    """A cgroup can have 2 shares or more."""
    shares = cgroup.cpu_shares or 0
    return -(-shares * 1000 // SHARES_PER_CPU) if shares >= MIN_SHARES else None


def _limit_of_quota(cgroup: ResourceConfig) -> int | None:
    quota, period = cgroup.cpu_quota_us or -1, cgroup.cpu_period_us or 0
    if quota <= 0 or period <= 0:
        return None
    return quota * 1000 // period or None


def own_resources(amounts: Mapping[str, Quantity]) -> dict[str, str] | None:
    """All resources of the whole pod, in canonical form."""
    return {name: str(amount) for name, amount in amounts.items()} or None
