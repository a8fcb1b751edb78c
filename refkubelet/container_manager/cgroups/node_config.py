"""Makes the container manager's settings from the configuration and the machine.

Rules: CG-011, CG-031..035. Upstream: cmd/kubelet/app/server.go: run (NodeConfig).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field

from kubeobjects.topology import MachineTopology
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.container_manager.cgroups.allocatable import (
    Amounts,
    eviction_reservation,
    parsed,
)
from refkubelet.host.machine import page_sizes
from refkubelet.model.cgroups.limits import Version
from refkubelet.model.cgroups.names import SYSTEMD, CgroupName, cgroup_path, node_cgroup, pod_cgroup
from refkubelet.model.cgroups.values import PodCgroupSettings
from refkubelet.model.cpuset import format_cpuset
from refkubelet.model.objects import Pod

POLICY_NONE: Final = "none"
TIERED: Final = "TieredReservation"
_COMPRESSIBLE: Final = "-compressible"


class ReservedCgroup(Struct, frozen=True):
    """An existing cgroup that the kubelet only limits (CG-035). `title`: e.g. `System Reserved`;
    `limits`: resource -> nano units; `cpu_only`: configured as `-compressible`."""

    title: str
    path: str
    limits: Amounts
    cpu_only: bool


class NodeCgroups(Struct, frozen=True):
    """The settings of the container manager (upstream: NodeConfig)."""

    root: CgroupName
    """The cgroup of all pods."""
    capacity: Amounts
    """The node's capacity: resource -> nano units."""
    reserved: tuple[Amounts, ...] = ()
    """The reservations, without the eviction thresholds: resource -> nano units."""
    enforce_pods: bool = True
    """Whether reservations limit the cgroup of all pods."""
    reserved_cgroups: tuple[ReservedCgroup, ...] = ()
    """In the order in which they are limited."""
    all_cpus: str = ""
    """All CPUs of the machine; "" with a CPU manager, which assigns CPUs (CG-032)."""
    page_sizes: tuple[int, ...] = ()
    """The sizes of huge pages, in bytes."""
    pods: PodCgroupSettings = field(default_factory=PodCgroupSettings)
    """The settings for the limits of pods' cgroups."""
    memory_qos: bool = False
    """Whether memory is protected by class (gate MemoryQoS, v2 only)."""


def node_cgroups(
    config: KubeletConfiguration,
    capacity: Amounts,
    topology: MachineTopology,
    version: Version,
) -> NodeCgroups:
    """The settings for this node. `capacity`: of CPU, memory, huge pages and pids. Raises
    `QuantityError`."""
    kube, system = parsed(config.kube_reserved), parsed(config.system_reserved)
    memory_qos = version == 2 and config.feature_gates.get("MemoryQoS", False)
    return NodeCgroups(
        root=node_cgroup(config.cgroup_root),
        capacity=capacity,
        reserved=(system, kube),
        enforce_pods="pods" in config.enforce_node_allocatable,
        reserved_cgroups=tuple(_reserved_cgroups(config, kube, system)),
        all_cpus=format_cpuset(c.cpu for c in topology.cpus)
        if config.cpu_manager_policy == POLICY_NONE
        else "",
        page_sizes=page_sizes(topology),
        pods=PodCgroupSettings(
            cpu_cfs_quota=config.cpu_cfs_quota,
            cpu_period_us=round(config.cpu_cfs_quota_period_s * 1_000_000),
            pids_limit=config.pod_pids_limit,
            systemd=config.cgroup_driver == SYSTEMD,
            reserve_memory=memory_qos and config.memory_reservation_policy == TIERED,
        ),
        memory_qos=memory_qos,
    )


def _reserved_cgroups(
    config: KubeletConfiguration, kube: Amounts, system: Amounts
) -> list[ReservedCgroup]:
    """The reserved cgroups, in the order in which they are limited (CG-035)."""
    rows = (
        ("system-reserved", "System Reserved", config.system_reserved_cgroup, system),
        ("kube-reserved", "Kube Reserved", config.kube_reserved_cgroup, kube),
    )
    return [
        ReservedCgroup(title, path, limits, cpu_only=bool(suffix))
        for suffix in ("", _COMPRESSIBLE)
        for word, title, path, limits in rows
        if word + suffix in config.enforce_node_allocatable
    ]


def reservations_of(
    config: KubeletConfiguration, capacity: Amounts
) -> tuple[Mapping[str, int], ...]:
    """All reservations, those of the hard eviction thresholds last (CG-034).

    Raises `QuantityError`, `ThresholdError`.
    """
    return (
        parsed(config.system_reserved),
        parsed(config.kube_reserved),
        eviction_reservation(capacity, config.eviction_hard or {}),
    )


def pods_cgroup(config: KubeletConfiguration) -> str:
    """The path of the cgroup above all pods; "": pods have no cgroups."""
    if not config.cgroups_per_qos:
        return ""
    return cgroup_path(node_cgroup(config.cgroup_root), config.cgroup_driver)


def pod_cgroup_of(config: KubeletConfiguration) -> Callable[[Pod], str] | None:
    """A function that returns the path of a pod's cgroup; None: pods have no cgroups."""
    if not config.cgroups_per_qos:
        return None
    root = node_cgroup(config.cgroup_root)
    return lambda pod: cgroup_path(pod_cgroup(root, pod), config.cgroup_driver)
