"""Makes the managers of exclusive resources from the configuration, and puts them together.

With the default policies there are only two small state files, which name the policy. What must
never happen here: a state file of another policy is overwritten.

Rules: CG-031, CG-050, CG-080..083, LIFE-223. Upstream: pkg/kubelet/cm/container_manager_linux.go:
NewContainerManager, Start; internal_container_lifecycle_linux.go.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from refkubelet.config import ConfigError
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.container_manager.cgroups.allocatable import reservation
from refkubelet.container_manager.cgroups.node_config import reservations_of
from refkubelet.container_manager.cpu.build import NONE, cpu_manager, named_cpus, no_cpu_manager
from refkubelet.container_manager.cpu.manager import CpuManager
from refkubelet.container_manager.cpu.reconcile import (
    ContainerUpdater,
    CpuReconciler,
    ReconcileDeps,
)
from refkubelet.container_manager.cpu.topology import cpu_topology
from refkubelet.container_manager.memory import build as memory_build
from refkubelet.container_manager.memory.manager import MemoryManager
from refkubelet.container_manager.providers.active import ActiveContainers
from refkubelet.container_manager.providers.hints import HintProvider
from refkubelet.container_manager.topology.manager import TopologyManager
from refkubelet.container_manager.topology.merge import NumaInfo
from refkubelet.container_manager.topology.policies import topology_policy
from refkubelet.host.machine import Machine, internal_capacity
from refkubelet.model.cpuset import ANYWHERE, Placement, format_cpuset
from refkubelet.model.objects import Container, Pod, PodStatus
from refkubelet.model.pod import containers, uid
from refkubelet.telemetry.node_metrics import ExclusiveMetrics
from simclock import Clock

QUOTA_GATE: Final = "DisableCPUQuotaWithExclusiveCPUs"  # on by default (CG-031)


class ResourceDeps(Struct, frozen=True):
    """What the managers work with. `active`: the containers of active pods; `status`: the cached
    status by pod UID."""

    clock: Clock
    machine: Machine
    root_dir: Path
    runtime: ContainerUpdater
    active: ActiveContainers
    status: Callable[[str], PodStatus | None]
    metrics: ExclusiveMetrics = field(default_factory=ExclusiveMetrics)


class ResourceManagers:
    """The CPU, memory and topology managers. `devices`: the device manager, the first hint
    provider; None: there are no device plugins (CG-080)."""

    def __init__(
        self, config: KubeletConfiguration, deps: ResourceDeps, devices: HintProvider | None = None
    ) -> None:
        """Reads or makes the state files. Raises `ConfigError`, which stops the kubelet's start."""
        self._config = config
        self._deps = deps
        try:
            self.topology = self._topology_manager()
            self.cpus = self._cpu_manager()
            self.memory = self._memory_manager()
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self._reconciler = self._cpu_reconciler(self.cpus) if self.cpus is not None else None
        providers = (devices, self.cpus, self.memory)
        self.topology.providers = tuple(p for p in providers if p is not None)

    def placement(self, pod: Pod, container: Container) -> Placement:
        """The CPUs and memory nodes of a container, for CreateContainer (CG-050)."""
        if self.cpus is None and self.memory is None:
            return ANYWHERE
        key = (uid(pod), container.name)
        return Placement(
            format_cpuset(self.cpus.cpus_of(*key)) if self.cpus is not None else "",
            ",".join(map(str, self.memory.nodes_of(*key))) if self.memory is not None else "",
            self._is_alone(pod, container),
        )

    def has_exclusive_cpus(self, pod: Pod) -> bool:
        """Whether a container of the pod has exclusive CPUs; then the pod has no CFS quota
        (CG-031)."""
        if self.cpus is None:
            return False
        return any(self._is_alone(pod, container) for container in containers(pod))

    def _is_alone(self, pod: Pod, container: Container) -> bool:
        if self.cpus is None or not self._config.feature_gates.get(QUOTA_GATE, True):
            return False
        return bool(self.cpus.own_cpus(uid(pod), container.name))

    def starting(self, pod: Pod, container: Container) -> None:
        """Called when the container was created, before it starts."""
        if self._reconciler is not None:
            self._reconciler.starting(uid(pod), container.name)
        if self.memory is not None:
            self.memory.starting(pod, container)

    @property
    def reconciles(self) -> bool:
        """Whether `run` has anything to do."""
        return self._reconciler is not None

    async def run(self) -> None:
        """Update the CPUs of running containers, until cancelled."""
        if self._reconciler is not None:
            await self._reconciler.run()

    # Making them

    def _topology_manager(self) -> TopologyManager:
        config = self._config
        name = config.topology_manager_policy
        clock, metrics = self._deps.clock, self._deps.metrics
        if name == NONE:
            return TopologyManager(None, clock=clock, metrics=metrics)
        nodes = self._deps.machine.topology().nodes
        numa = NumaInfo(tuple(n.id for n in nodes), {n.id: n.distances for n in nodes})
        policy = topology_policy(name, numa, config.topology_manager_policy_options)
        scope = config.topology_manager_scope
        return TopologyManager(policy, scope, clock=clock, metrics=metrics)

    def _cpu_manager(self) -> CpuManager | None:
        """The CPU manager; None with policy none. Raises ValueError."""
        config, deps = self._config, self._deps
        if config.reserved_system_cpus:
            named_cpus(config, cpu_topology(deps.machine.topology()))
        if config.cpu_manager_policy == NONE:
            no_cpu_manager(config, deps.root_dir)
            return None
        return cpu_manager(
            config=config,
            machine=deps.machine.topology(),
            reserved=self._reserved(),
            root_dir=deps.root_dir,
            affinities=self.topology,
            active=deps.active,
            metrics=deps.metrics,
        )

    def _memory_manager(self) -> MemoryManager | None:
        config, deps = self._config, self._deps
        if config.memory_manager_policy == memory_build.NONE:
            memory_build.no_memory_manager(deps.root_dir)
            return None
        return memory_build.memory_manager(
            config=config,
            machine=deps.machine.topology(),
            reserved=self._reserved(),
            root_dir=deps.root_dir,
            affinities=self.topology,
            active=deps.active,
            metrics=deps.metrics,
        )

    def _reserved(self) -> dict[str, int]:
        """All reservations, in nano units (CG-034)."""
        capacity = internal_capacity(self._deps.machine)
        return reservation(capacity, reservations_of(self._config, capacity))

    def _cpu_reconciler(self, manager: CpuManager) -> CpuReconciler:
        deps = self._deps
        return CpuReconciler(
            manager,
            ReconcileDeps(
                clock=deps.clock,
                runtime=deps.runtime,
                active=deps.active,
                status=deps.status,
                period_s=self._config.cpu_manager_reconcile_period_s,
            ),
        )
