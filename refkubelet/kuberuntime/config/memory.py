"""Swap and protection of a container's memory, for the runtime (CG-033, CG-050). Pure.

Upstream: pkg/kubelet/kuberuntime/kuberuntime_container_linux.go: configureContainerSwapResources,
GetContainerSwapBehavior, generateLinuxContainerResources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from refkubelet.kuberuntime.common.runtime_options import MemoryOptions
from refkubelet.model.cgroups.cpu_shares import in_bytes
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import is_critical
from refkubelet.model.qos import qos_class
from refkubelet.model.resources import container_limits, container_requests

PAGE_BYTES: Final = 4096
SWAP_FILE: Final = "memory.swap.max"


def swap_allowance_bytes(container: Container, pod: Pod, options: MemoryOptions) -> int:
    """The swap that the container may use, in bytes, with cgroup v2.

    With LimitedSwap, a container of a Burstable pod that is not critical may use that share of the
    swap that its request is of the node's memory; none if request and limit are equal.
    """
    request, limit = _memory(container)
    may_swap = options.limited_swap and qos_class(pod) == "Burstable" and not is_critical(pod)
    if not may_swap or not request or request == limit or not options.capacity_bytes:
        return 0
    if request > options.capacity_bytes:
        return 0
    return int(request / options.capacity_bytes * options.swap_bytes)


def protection(container: Container, pod: Pod, options: MemoryOptions) -> Mapping[str, str]:
    """The cgroup v2 files of MemoryQoS and their values: memory reserved for the container, and the
    usage from which it is throttled."""
    if not options.memory_qos:
        return {}
    request, limit = _memory(container)
    files = {"memory.min": "0", "memory.low": "0"}
    if request and options.reserve:
        kind = "memory.min" if qos_class(pod) == "Guaranteed" else "memory.low"
        files = {kind: str(request)}
    high = _high_bytes(request, limit or options.allocatable_bytes, options.throttling_factor)
    if request != limit and high > request:
        files["memory.high"] = str(high)
    return files


def _high_bytes(request: int, most: int, factor: float) -> int:
    return int((request + (most - request) * factor) // PAGE_BYTES) * PAGE_BYTES if most else 0


def _memory(container: Container) -> tuple[int, int]:
    """The memory request and limit, in bytes."""
    request = container_requests(container).get("memory", 0)
    return in_bytes(request), in_bytes(container_limits(container).get("memory", 0))
