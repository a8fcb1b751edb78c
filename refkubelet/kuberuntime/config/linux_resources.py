"""CPU and memory of a container or sandbox as CRI messages (LIFE-139, LIFE-140). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri

from kubeobjects.quantity import parse_nano
from kubeobjects.topology import page_size_name
from refkubelet.kuberuntime.common.runtime_options import ResourceOptions
from refkubelet.kuberuntime.config.memory import SWAP_FILE, protection, swap_allowance_bytes
from refkubelet.model.cgroups.cpu_shares import cpu_quota_us, cpu_shares, in_bytes, millicores
from refkubelet.model.cgroups.limits import page_bytes
from refkubelet.model.cpuset import ANYWHERE, Placement
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import containers, is_critical, is_sidecar
from refkubelet.model.qos import qos_class
from refkubelet.model.resources import (
    container_limits,
    container_requests,
    container_total,
    pod_level,
    pod_limits,
    pod_requests,
)

NODE_CRITICAL_CLASS: Final = "system-node-critical"
NO_QUOTA: Final = -1
GUARANTEED_SCORE: Final = -997
BEST_EFFORT_SCORE: Final = 1000


def container_resources(
    container: Container, pod: Pod, options: ResourceOptions, placement: Placement = ANYWHERE
) -> Any:
    """The LinuxContainerResources of a container (upstream: generateLinuxContainerResources). A
    missing limit is the pod-level one (spec.resources), for the shares, too."""
    own = {name: amount for name, amount in container_limits(container).items() if amount}
    limits = {**pod_level(pod, "limits"), **own}
    resources = compute_resources(container_requests(container).get("cpu"), limits, options)
    if placement.own_cpus:
        _without_quota(resources, options)
    resources.cpuset_cpus, resources.cpuset_mems = placement.cpus, placement.memory_nodes
    resources.oom_score_adj = oom_score_adj(container, pod, options.memory.capacity_bytes)
    pages = {**_hugepages(pod_level(pod, "limits")), **_hugepages(container_limits(container))}
    for size in options.hugepage_sizes:
        resources.hugepage_limits.add(page_size=size, limit=pages.get(size, 0))
    _limit_swap(resources, container, pod, options)
    if options.cgroup_v2:
        resources.unified.update(protection(container, pod, options.memory))
        if not options.single_process_oom_kill:
            resources.unified["memory.oom.group"] = "1"
    return resources


def _limit_swap(resources: Any, container: Container, pod: Pod, options: ResourceOptions) -> None:
    """Set the swap limit (CG-050). With v1 it is the limit of memory and swap together, equal to
    that of memory, so the container cannot swap."""
    if not options.memory.swap_controller:
        return
    if options.cgroup_v2:
        resources.unified[SWAP_FILE] = str(swap_allowance_bytes(container, pod, options.memory))
    else:
        resources.memory_swap_limit_in_bytes = resources.memory_limit_in_bytes


def _without_quota(resources: Any, options: ResourceOptions) -> None:
    """Remove the quota, because a container with exclusive CPUs is not throttled (CG-031)."""
    if options.cpu_cfs_quota:
        resources.cpu_quota = NO_QUOTA


def sandbox_resources(pod: Pod, options: ResourceOptions, *, own_cpus: bool = False) -> Any:
    """The LinuxContainerResources of the whole pod without overhead. `own_cpus`: a container of the
    pod has exclusive CPUs."""
    request = pod_requests(pod, with_overhead=False).get("cpu")
    resources = compute_resources(request, pod_limits(pod, with_overhead=False), options)
    if own_cpus:
        _without_quota(resources, options)
    return resources


def overhead_resources(pod: Pod, options: ResourceOptions) -> Any:
    """The LinuxContainerResources of spec.overhead, which is request and limit at once."""
    overhead = pod.spec.overhead or {}
    if not overhead:
        return cri.LinuxContainerResources()
    amounts = {name: parse_nano(text) for name, text in overhead.items()}
    return compute_resources(amounts.get("cpu", 0), amounts, options)


def compute_resources(
    cpu_request: int | None, limits: Mapping[str, int], options: ResourceOptions
) -> Any:
    """The resources for these amounts (nano units): shares from the request, or else from the
    limit; period and quota only if cpuCFSQuota is on."""
    limit = limits.get("cpu", 0)
    resources = cri.LinuxContainerResources(
        cpu_shares=cpu_shares(millicores(limit if cpu_request is None else cpu_request)),
        memory_limit_in_bytes=in_bytes(limits.get("memory", 0)),
    )
    if options.cpu_cfs_quota:
        resources.cpu_period = options.cpu_cfs_quota_period_us
        resources.cpu_quota = cpu_quota_us(millicores(limit), options.cpu_cfs_quota_period_us)
    return resources


def oom_score_adj(container: Container, pod: Pod, memory_capacity_bytes: int) -> int:
    """How soon the kernel kills the container when memory runs out: 1000 first, -997 last
    (LIFE-140)."""
    if is_node_critical(pod):
        return GUARANTEED_SCORE
    qos = qos_class(pod)
    if qos == "Guaranteed":
        return GUARANTEED_SCORE
    if qos == "BestEffort" or memory_capacity_bytes <= 0:
        return BEST_EFFORT_SCORE
    request = _memory_request(container)
    if is_init_sidecar(container, pod):
        regular = (_memory_request(c) for c in pod.spec.containers)
        request = max(request, min(regular, default=request))
    request += _unclaimed_memory(pod)
    score = 1000 - 1000 * request // memory_capacity_bytes
    # 3..999: killed after BestEffort containers (1000), and before Guaranteed ones (-997).
    return min(max(score, 1000 + GUARANTEED_SCORE), BEST_EFFORT_SCORE - 1)


def _memory_request(container: Container) -> int:
    return in_bytes(container_requests(container).get("memory", 0))


def _unclaimed_memory(pod: Pod) -> int:
    """The pod-level request without the containers' requests, divided by their number; in bytes."""
    own = in_bytes(pod_level(pod, "requests").get("memory", 0))
    if not own:
        return 0
    claimed = in_bytes(container_total(pod, "requests").get("memory", 0))
    return (own - claimed) // len(containers(pod))


def is_node_critical(pod: Pod) -> bool:
    """Whether the pod is critical and of the class system-node-critical."""
    name = pod.spec.priorityClassName
    return is_critical(pod) and name == NODE_CRITICAL_CLASS


def is_init_sidecar(container: Container, pod: Pod) -> bool:
    inits = pod.spec.initContainers or []
    return any(c.name == container.name and is_sidecar(c) for c in inits)


def _hugepages(limits: Mapping[str, int]) -> dict[str, int]:
    """The runtime's name of a page size (2MB for hugepages-2Mi) -> bytes."""
    sizes = {name: size for name in limits if (size := page_bytes(name)) is not None}
    return {page_size_name(size): in_bytes(limits[name]) for name, size in sizes.items()}
