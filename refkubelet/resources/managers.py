"""The managers of exclusive resources, made from the configuration and put together.

With the default policies nothing is made but the two small state files, which say which policy
wrote them. What must never happen here: a state file of another policy that is written over.

Rules: CG-031, CG-050, CG-080..083, LIFE-223. Upstream: pkg/kubelet/cm/container_manager_linux.go:
NewContainerManager, Start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from refkubelet.cgroups.allocatable import eviction_reservation, parsed, reservation
from refkubelet.config.errors import ConfigError
from refkubelet.config.kubelet_config import KubeletConfiguration
from refkubelet.model.objects import Container, Pod, PodStatus, uid
from refkubelet.node.capacity import internal_capacity
from refkubelet.node.machine import Machine
from refkubelet.resources.active import ActiveContainers
from refkubelet.resources.containers import in_order
from refkubelet.resources.cpu.manager import STATIC, CpuManager
from refkubelet.resources.cpu.options import check_no_options, static_options
from refkubelet.resources.cpu.reconcile import ContainerUpdater, CpuReconciler, ReconcileDeps
from refkubelet.resources.cpu.state import FILE_NAME as CPU_FILE
from refkubelet.resources.cpu.state import CpuState, CpuStateFile, from_file, to_file
from refkubelet.resources.cpu.static import StaticPolicy, static_policy
from refkubelet.resources.cpu.topology import cpu_topology
from refkubelet.resources.cpuset import format_cpuset, parse_cpuset
from refkubelet.resources.errors import StateFileError
from refkubelet.resources.golang import quoted
from refkubelet.resources.placement import ANYWHERE, Placement
from refkubelet.resources.state_files import create_state, read_state, store_state
from refkubelet.resources.topology.hints import HintProvider
from refkubelet.resources.topology.manager import TopologyManager
from refkubelet.resources.topology.numa import NumaInfo
from refkubelet.resources.topology.policies import topology_policy
from simtime import Clock

QUOTA_GATE: Final = "DisableCPUQuotaWithExclusiveCPUs"  # on unless said otherwise (CG-031)


@dataclass(frozen=True, slots=True)
class ResourceDeps:
    """`active`: the pods that count. `status`: what the status manager has for a pod's UID."""

    clock: Clock
    machine: Machine
    root_dir: Path
    runtime: ContainerUpdater
    active: ActiveContainers
    status: Callable[[str], PodStatus | None]


class ResourceManagers:
    """One per kubelet; `devices` is the first provider, if there are device plugins (CG-080)."""

    def __init__(
        self, config: KubeletConfiguration, deps: ResourceDeps, devices: HintProvider | None = None
    ) -> None:
        """Reads the state files, or makes them. Raises `ConfigError`: the start failure."""
        self._config = config
        self._deps = deps
        try:
            self.topology = self._topology_manager()
            self.cpus = self._cpu_manager()
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self._reconciler = self._cpu_reconciler(self.cpus) if self.cpus is not None else None
        providers = (devices, self.cpus)
        self.topology.providers = tuple(p for p in providers if p is not None)

    # What the kubelet asks

    def placement(self, pod: Pod, container: Container) -> Placement:
        """What CreateContainer is told (CG-050)."""
        if self.cpus is None:
            return ANYWHERE
        cpus = self.cpus.cpus_of(uid(pod), container.name)
        return Placement(cpus=format_cpuset(cpus), own_cpus=self._is_alone(pod, container))

    def has_exclusive_cpus(self, pod: Pod) -> bool:
        """Some container of the pod has CPUs of its own: no CFS quota for the pod (CG-031)."""
        if self.cpus is None:
            return False
        return any(self._is_alone(pod, container) for container in in_order(pod))

    def _is_alone(self, pod: Pod, container: Container) -> bool:
        if self.cpus is None or not self._config.feature_gates.get(QUOTA_GATE, True):
            return False
        return bool(self.cpus.own_cpus(uid(pod), container.name))

    def starting(self, pod: Pod, container: Container) -> None:
        """The container was created and starts now."""
        if self._reconciler is not None:
            self._reconciler.starting(uid(pod), container.name)

    @property
    def reconciles(self) -> bool:
        """`run` has something to do."""
        return self._reconciler is not None

    async def run(self) -> None:
        """Keep the CPUs of running containers right, until cancelled."""
        if self._reconciler is not None:
            await self._reconciler.run()

    # Making them

    def _topology_manager(self) -> TopologyManager:
        config = self._config
        name = config.topology_manager_policy
        if name == "none":
            return TopologyManager(None)
        nodes = self._deps.machine.topology().nodes
        numa = NumaInfo(tuple(n.id for n in nodes), {n.id: n.distances for n in nodes})
        policy = topology_policy(name, numa, config.topology_manager_policy_options)
        return TopologyManager(policy, config.topology_manager_scope)

    def _cpu_manager(self) -> CpuManager | None:
        name, texts = self._config.cpu_manager_policy, self._config.cpu_manager_policy_options
        if name == "none":
            try:
                check_no_options(texts)
            except ValueError as error:
                raise ValueError(f"new none policy error: {error}") from None
            self._restored_cpu_state(name)
            return None
        if name != STATIC:
            raise ValueError(f"unknown policy: {quoted(name)}")
        policy = self._static_policy()
        state = self._restored_cpu_state(name)
        try:
            checked = policy.checked(state)
        except StateFileError as error:
            path = self._deps.root_dir / CPU_FILE
            raise ValueError(
                f"start cpu manager error: {error}, please drain this node and delete the "
                f"CPU manager checkpoint file {quoted(str(path))} before restarting Kubelet"
            ) from None
        store = partial(self._store_cpu_state, name)
        if checked is not state:
            store(checked)
        return CpuManager(policy, checked, store, self.topology, self._deps.active)

    def _static_policy(self) -> StaticPolicy:
        config = self._config
        topology = cpu_topology(self._deps.machine.topology())
        try:
            options = static_options(config.cpu_manager_policy_options, config.feature_gates)
        except ValueError as error:
            raise ValueError(f"new static policy error: {error}") from None
        if options.align_by_socket and config.topology_manager_policy == "single-numa-node":
            raise ValueError(
                "new static policy error: Topolgy manager single-numa-node policy is incompatible "
                "with CPUManager align-by-socket policy option"
            )
        named = parse_cpuset(config.reserved_system_cpus)
        if not named <= topology.cpus:
            raise ValueError(
                f"reserved-cpus: {config.reserved_system_cpus} is not a subset of "
                f"online-cpus: {format_cpuset(topology.cpus)}"
            )
        return static_policy(topology, options, self._reserved().get("cpu", 0), named)

    def _reserved(self) -> dict[str, int]:
        """All that pods cannot have, in nano units (CG-034)."""
        config = self._config
        capacity = internal_capacity(self._deps.machine)
        return reservation(
            capacity,
            (
                parsed(config.kube_reserved),
                parsed(config.system_reserved),
                eviction_reservation(capacity, config.eviction_hard or {}),
            ),
        )

    def _restored_cpu_state(self, policy: str) -> CpuState:
        path = self._deps.root_dir / CPU_FILE
        try:
            file = read_state(path, CpuStateFile)
            if file is not None:
                return from_file(file, policy)
            create_state(path, to_file(policy, CpuState()))
        except StateFileError as error:
            raise ValueError(
                "start cpu manager error: could not restore state from checkpoint: "
                f"{error}, please drain this node and delete the CPU manager checkpoint file "
                f"{quoted(str(path))} before restarting Kubelet"
            ) from None
        return CpuState()

    def _store_cpu_state(self, policy: str, state: CpuState) -> None:
        store_state(self._deps.root_dir / CPU_FILE, to_file(policy, state))

    def _cpu_reconciler(self, manager: CpuManager) -> CpuReconciler:
        deps = self._deps
        return CpuReconciler(
            manager,
            ReconcileDeps(
                deps.clock,
                deps.runtime,
                deps.active,
                deps.status,
                self._config.cpu_manager_reconcile_period_s,
            ),
        )
