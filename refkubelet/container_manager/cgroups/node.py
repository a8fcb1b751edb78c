"""What the container manager is told about its node: values, nothing else. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from refkubelet.container_manager.cgroups.allocatable import Amounts
from refkubelet.model.cgroups.names import CgroupName
from refkubelet.model.cgroups.values import PodCgroupSettings


@dataclass(frozen=True, slots=True)
class ReservedGroup:
    """A group that stays as it is but for its limits (CG-035). `title`: `System Reserved`;
    `limits`: resource -> nano units; `cpu_only`: the `-compressible` kind."""

    title: str
    path: str
    limits: Amounts
    cpu_only: bool


@dataclass(frozen=True, slots=True)
class NodeCgroups:
    """What the node has and how it is shared out. `root`: the group of all pods. `capacity`,
    `reserved`: resource -> nano units; `enforce_pods`: reservations limit the pods. `all_cpus`: of
    the machine, while no CPU manager gives any away (CG-032)."""

    root: CgroupName
    capacity: Amounts
    reserved: tuple[Amounts, ...] = ()
    enforce_pods: bool = True
    reserved_groups: tuple[ReservedGroup, ...] = ()
    all_cpus: str = ""
    page_sizes: tuple[int, ...] = ()
    pods: PodCgroupSettings = field(default_factory=PodCgroupSettings)
    memory_qos: bool = False
