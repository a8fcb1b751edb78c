"""The limits of the cgroups of pods, of QoS classes and of the node. Pure.

Rules: CG-023..034. Upstream: pkg/kubelet/cm/helpers_linux.go: ResourceConfigForPod;
qos_container_manager_linux.go: UpdateCgroups; node_container_manager_linux.go: getCgroupConfig.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from kubeobjects.pods.qos import QosClass
from kubeobjects.resource_names import COMPUTE
from refkubelet.model.cgroups.cpu_shares import (
    MIN_SHARES,
    NO_QUOTA,
    cpu_quota_us,
    cpu_shares,
    in_bytes,
    millicores,
    systemd_quota_us,
)
from refkubelet.model.cgroups.limits import UNBOUNDED_HUGEPAGES, ResourceConfig, hugepages_of
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import is_sidecar
from refkubelet.model.qos import qos_class
from refkubelet.model.resources import container_limits, pod_level, pod_limits, pod_requests


class PodCgroupSettings(Struct, frozen=True):
    """The part of the configuration that concerns the cgroups of pods."""

    cpu_cfs_quota: bool = True
    """Limits of CPU become quotas (cpuCFSQuota)."""
    cpu_period_us: int = 100_000
    """cpuCFSQuotaPeriod."""
    pids_limit: int = -1
    """podPidsLimit; 0 and below: no limit."""
    systemd: bool = False
    """The cgroup driver is systemd, which rounds quotas (CG-031)."""
    reserve_memory: bool = False
    """MemoryQoS with the policy TieredReservation, on cgroup v2 (CG-033)."""


DEFAULTS: Final = PodCgroupSettings()


def resource_config_for_pod(
    pod: Pod, settings: PodCgroupSettings = DEFAULTS, *, exclusive_cpus: bool = False
) -> ResourceConfig:
    """The limits of a pod's cgroup, from its allocated spec (CG-027..029).

    `exclusive_cpus`: a container of the pod has exclusive CPUs, so the pod gets no quota
    (CG-031)."""
    requests, limits = pod_requests(pod), pod_limits(pod)
    qos = qos_class(pod)
    cpu, memory = (name in _limited(pod, qos) for name in COMPUTE)
    shares = cpu_shares(millicores(requests.get("cpu", 0)))
    capped = settings.cpu_cfs_quota and not exclusive_cpus
    return ResourceConfig(
        cpu_shares=MIN_SHARES if qos == "BestEffort" else shares,
        cpu_quota_us=_quota_us(limits.get("cpu", 0), settings, capped) if cpu else None,
        cpu_period_us=settings.cpu_period_us if cpu else None,
        memory_limit_bytes=in_bytes(limits.get("memory", 0)) if memory else None,
        pids_limit=settings.pids_limit if settings.pids_limit > 0 else None,
        hugepages=hugepages_of(requests),
        unified=_protection(qos, requests) if settings.reserve_memory else None,
    )


def _quota_us(limit: int, settings: PodCgroupSettings, capped: bool) -> int:
    if not capped:
        return NO_QUOTA
    quota_us = cpu_quota_us(millicores(limit), settings.cpu_period_us)
    return systemd_quota_us(quota_us, settings.cpu_period_us) if settings.systemd else quota_us


def _limited(pod: Pod, qos: QosClass) -> Sequence[str]:
    """The resources that get a limit in the pod's cgroup (CG-027, CG-028)."""
    if qos == "BestEffort":
        return ()
    if qos == "Guaranteed":
        return COMPUTE
    return [name for name in COMPUTE if declares_limit(pod, name)]


def declares_limit(pod: Pod, name: str) -> bool:
    """Whether the pod itself or all of its containers have a limit of the resource. An init
    container without one counts as limited if a sidecar before it has one (CG-028)."""
    spec = pod.spec
    if pod_level(pod, "limits").get(name):
        return True
    if not all(_limit(c, name) for c in spec.containers or ()):
        return False
    sidecars = 0
    for container in spec.initContainers or ():
        own = _limit(container, name)
        if not own + sidecars:
            return False
        sidecars += own if is_sidecar(container) else 0
    return True


def _limit(container: Container, name: str) -> int:
    return container_limits(container).get(name, 0)


def _protection(qos: QosClass, requests: Mapping[str, int]) -> dict[str, str] | None:
    """The v2 file that protects the pod's memory: memory.min for Guaranteed pods, the weaker
    memory.low for others (CG-033); None without a request."""
    request = in_bytes(requests.get("memory", 0))
    if not request:
        return None
    return {"memory.min" if qos == "Guaranteed" else "memory.low": str(request)}


def node_config(
    amounts: Mapping[str, int], cpus: str = "", *, cpu_only: bool = False
) -> ResourceConfig:
    """The limits of `kubepods` or of a reserved cgroup (CG-024, CG-035).

    `amounts`: resource -> nano units. `cpus`: all CPUs of the machine, while no CPU manager assigns
    any (CG-032). `cpu_only`: limit only CPU, which can be reclaimed at any time."""
    shares = cpu_shares(millicores(amounts["cpu"])) if "cpu" in amounts else None
    if cpu_only:
        return ResourceConfig(cpu_shares=shares, cpus=cpus)
    return ResourceConfig(
        cpu_shares=shares,
        memory_limit_bytes=in_bytes(amounts["memory"]) if "memory" in amounts else None,
        pids_limit=in_bytes(amounts["pid"]) if "pid" in amounts else None,
        hugepages=hugepages_of(amounts),
        cpus=cpus,
    )


class PodRequest(Struct, frozen=True):
    """A pod's part of the sums of its QoS class."""

    qos: QosClass
    cpu_millicores: int
    memory_bytes: int


def pod_request(pod: Pod) -> PodRequest:
    """A pod's part of the sums of its QoS class, from its allocated spec."""
    requests = pod_requests(pod)
    return PodRequest(
        qos_class(pod), millicores(requests.get("cpu", 0)), in_bytes(requests.get("memory", 0))
    )


def qos_configs(
    requests: Iterable[PodRequest],
    page_sizes: Sequence[int],
    *,
    memory_qos: bool = False,
    reserve_memory: bool = False,
) -> dict[QosClass, ResourceConfig]:
    """The limits of the node's cgroup (as that of class Guaranteed) and of the other two classes
    (CG-025, CG-026). `page_sizes`: of the machine, in bytes; without any, huge pages stay as they
    are.

    `memory_qos`: the gate MemoryQoS is on, on v2; `reserve_memory`: its policy TieredReservation.
    """
    rows = tuple(requests)
    cpu = sum(r.cpu_millicores for r in rows if r.qos == "Burstable")
    unbounded = dict.fromkeys(page_sizes, UNBOUNDED_HUGEPAGES) or None
    node_unified = burstable_unified = None
    if memory_qos:
        burstable, guaranteed = (
            sum(r.memory_bytes for r in rows if r.qos == qos and reserve_memory)
            for qos in ("Burstable", "Guaranteed")
        )
        node_unified = {"memory.min": str(guaranteed + burstable)}
        burstable_unified = {"memory.low": str(burstable)}
    return {
        "Guaranteed": ResourceConfig(hugepages=unbounded, unified=node_unified),
        "Burstable": ResourceConfig(
            cpu_shares=cpu_shares(cpu), hugepages=unbounded, unified=burstable_unified
        ),
        "BestEffort": ResourceConfig(cpu_shares=MIN_SHARES, hugepages=unbounded),
    }
