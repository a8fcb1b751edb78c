"""Policy static of the CPU manager: decides about exclusive CPUs. Pure.

Every CPU is either exclusive to a container or in the shared pool of all other containers. Reserved
CPUs stay in the shared pool (with option strict-cpu-reservation: in none). What must never happen
here: a reserved CPU becomes exclusive; the shared pool becomes empty.

Rules: CG-081: containers of Guaranteed pods that request whole CPUs get exclusive ones, but not in
pods with pod-level resources (gate PodLevelResourceManagers, alpha, off). Upstream:
pkg/kubelet/cm/cpumanager/policy_static.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from kubeobjects.golang.strconv import quoted
from kubeobjects.quantity import NANO
from refkubelet.checkpoints.content import StateFileError
from refkubelet.container_manager.cpu.assignment import (
    NotEnoughCpus,
    Packing,
    take_distributed,
    take_packed,
)
from refkubelet.container_manager.cpu.policy_options import StaticOptions
from refkubelet.container_manager.cpu.state import CpuState
from refkubelet.container_manager.cpu.topology import CpuTopology
from refkubelet.container_manager.providers.hints import (
    AllocationError,
    NumaMask,
    TopologyHint,
    all_masks,
    mask_of,
    nodes_of,
)
from refkubelet.model.cpuset import EMPTY, CpuSet, format_cpuset
from refkubelet.model.objects import Container, Pod
from refkubelet.model.qos import qos_class
from refkubelet.model.resources import container_requests, has_pod_level_resources, peak

SMT_ALIGNMENT: Final = "SMTAlignmentError"  # CG-081, LIFE-223
SMT_TEXT: Final = "SMT Alignment Error: "


class StaticPolicy(Struct, frozen=True):
    """The policy for one machine. `reserved`: CPUs that never become exclusive."""

    topology: CpuTopology
    options: StaticOptions
    reserved: CpuSet

    def assignable(self, state: CpuState) -> CpuSet:
        """The CPUs that can become exclusive now."""
        return state.shared - self.reserved

    def take(self, free: CpuSet, count: int) -> CpuSet:
        """Take `count` of the free CPUs, as the options say. Raises `NotEnoughCpus`."""
        options = self.options
        packing = Packing(
            options.distribute_cpus_across_cores, options.prefer_align_cpus_by_uncorecache
        )
        if not options.distribute_cpus_across_numa:
            return take_packed(self.topology, free, count, packing)
        group = self.topology.usual_size("core") if options.full_pcpus_only else 1
        return take_distributed(self.topology, free, count=count, group=group, packing=packing)

    def choose(
        self, state: CpuState, count: int, affinity: NumaMask | None, reusable: CpuSet = EMPTY
    ) -> CpuSet:
        """Choose CPUs for a container: first on the NUMA nodes of its hint, then anywhere.
        `reusable`: those of the pod's init containers. Raises `AllocationError`."""
        free = self.assignable(state) | reusable
        try:
            near = free & self._near(affinity) if affinity is not None else EMPTY
            first = self.take(near, min(count, len(near)))
            return first | self.take(free - first, count - len(first))
        except NotEnoughCpus as error:
            raise AllocationError(str(error)) from None

    def is_in_one_cache(self, cpus: CpuSet) -> bool:
        """Whether the CPUs share one last-level cache."""
        return len(self.topology.split(cpus, "cache")) == 1

    def _near(self, affinity: NumaMask) -> CpuSet:
        cpus = self.topology.of_units("node", nodes_of(affinity))
        if not self.options.align_by_socket:
            return cpus
        return self.topology.of_units("socket", self.topology.split(cpus, "socket"))

    def check_alignment(self, state: CpuState, count: int) -> None:
        """With option full-pcpus-only, refuse a request that is not for whole cores, or for more
        than are free on cores without reserved CPUs. Raises `AllocationError`. As in upstream this
        also applies to containers that have their CPUs already, after a restart of the kubelet."""
        if not self.options.full_pcpus_only:
            return
        threads = self.topology.usual_size("core")
        if count % threads:
            text = f"requested {count} cpus not multiple cpus per core = {threads}"
            raise AllocationError(SMT_TEXT + text, SMT_ALIGNMENT)
        cores = self.topology.of_units("core", self.topology.split(self.reserved, "core"))
        available = len(state.shared - cores)
        if count > available:
            text = (
                f"not enough free physical CPUs: available physical CPUs = {available}, "
                f"requested CPUs = {count}, CPUs per core = {threads}"
            )
            raise AllocationError(SMT_TEXT + text, SMT_ALIGNMENT)

    def hints(self, free: CpuSet, count: int, reusable: CpuSet = EMPTY) -> tuple[TopologyHint, ...]:
        """The sets of NUMA nodes that have enough free CPUs and include all reusable ones.
        Preferred are the sets of the smallest size that would be enough if all CPUs were free."""
        nodes = self.topology.units["node"]
        sizes = {node: len(cpus & free) for node, cpus in nodes.items()}
        again = {node: len(cpus & reusable) for node, cpus in nodes.items()}
        needed = mask_of(node for node, cpus in again.items() if cpus)
        least, masks = len(nodes), list[NumaMask]()
        for mask in all_masks(nodes):
            chosen = nodes_of(mask)
            if sum(len(nodes[n]) for n in chosen) >= count:
                least = min(least, len(chosen))
            enough = sum(sizes[n] + again[n] for n in chosen) >= count
            if enough and not needed & ~mask:
                masks.append(mask)
        return tuple(TopologyHint(mask, self._preferred(mask, least)) for mask in masks)

    def _preferred(self, mask: NumaMask, least: int) -> bool:
        if mask.bit_count() == least:
            return True
        if not self.options.align_by_socket:
            return False
        units = self.topology.units
        in_socket = len(units["node"]) // len(units["socket"])
        sockets = self.topology.split(self._near(mask), "socket")
        return bool(in_socket) and len(sockets) == -(-least // in_socket)

    def checked(self, state: CpuState) -> CpuState:
        """The restored state, or the first one if it is empty. Raises `StateFileError` if it does
        not fit the machine or the configuration."""
        reserved, shared = self.reserved, state.shared
        strict = self.options.strict_cpu_reservation
        pools = self.topology.cpus - reserved if strict else self.topology.cpus
        if not shared:
            if state.entries:
                raise StateFileError("default cpuset cannot be empty")
            return CpuState(pools)
        if strict and reserved & shared:
            raise StateFileError(
                f"some of strictly reserved cpus: {_shown(reserved & shared)} are present in "
                f"defaultCpuSet: {_shown(shared)}"
            )
        if not strict and not reserved <= shared:
            raise StateFileError(
                f"not all reserved cpus: {_shown(reserved)} are present in "
                f"defaultCpuSet: {_shown(shared)}"
            )
        _check_overlaps(state)
        if (all_cpus := shared | state.own_cpus()) != pools:
            raise StateFileError(
                f"current set of available CPUs {_shown(pools)} doesn't match with "
                f"CPUs in state {_shown(all_cpus)}"
            )
        return state


def _check_overlaps(state: CpuState) -> None:
    for uid, pod in state.entries.items():
        for name, cpus in pod.items():
            if cpus & state.shared:
                raise StateFileError(
                    f"pod: {uid}, container: {name} cpuset: {_shown(cpus)} overlaps with "
                    f"default cpuset {_shown(state.shared)}"
                )


def _shown(cpus: CpuSet) -> str:
    return quoted(format_cpuset(cpus))


def static_policy(
    topology: CpuTopology, options: StaticOptions, reserved_nano_cpus: int, named: CpuSet = EMPTY
) -> StaticPolicy:
    """The policy for a reservation, which must not be 0, because exclusive CPUs could then empty
    the shared pool. `named`: the configured reserved CPUs; if empty, those that would be taken
    first. Raises ValueError, which stops the start."""
    if options.align_by_socket and len(topology.units["socket"]) > len(topology.units["node"]):
        raise ValueError(
            "Align by socket is not compatible with hardware where "
            "number of sockets are more than number of NUMA"
        )
    count = -(-reserved_nano_cpus // NANO)
    unbound = StaticPolicy(topology, options, EMPTY)
    reserved = named or unbound.take(topology.cpus, count if count <= len(topology.cpus) else 0)
    if len(reserved) != count:
        raise ValueError(
            "[cpumanager] unable to reserve the required amount of CPUs "
            f"(size of {format_cpuset(reserved)} did not equal {count})"
        )
    unknown: Sequence[int] = sorted(reserved - topology.cpus)
    if unknown:
        raise ValueError(
            "[cpumanager] unable to build the reserved physical CPUs "
            f"from the reserved set: unknown CPU ID: {unknown[0]}"
        )
    return StaticPolicy(topology, options, reserved)


def exclusive_cpus(pod: Pod, container: Container) -> int:
    """How many exclusive CPUs the container gets; 0: it shares CPUs with others."""
    if qos_class(pod) != "Guaranteed" or has_pod_level_resources(pod):
        return 0
    return _whole_cpus(container)


def pod_exclusive_cpus(pod: Pod) -> int:
    """The greatest number of exclusive CPUs that the pod's containers have at the same time."""
    if qos_class(pod) != "Guaranteed" or has_pod_level_resources(pod):
        return 0
    return peak(pod, _whole_cpus)


def _whole_cpus(container: Container) -> int:
    nano_cores = container_requests(container).get("cpu", 0)
    return 0 if nano_cores % NANO else nano_cores // NANO
