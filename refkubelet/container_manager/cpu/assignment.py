"""Chooses the CPUs for a request: close together, and so that whole units stay free. Pure.

Packed (the default): as many whole large units as fit into the request, then whole cores, then
single threads; always from the unit with the fewest free CPUs. Distributed (option
distribute-cpus-across-numa): evenly on as few NUMA nodes as possible, so that the free CPUs are
left as even as possible. What must never happen here: a CPU that was not free; more or fewer CPUs
than requested.

Rules: CG-081. Upstream: pkg/kubelet/cm/cpumanager/cpu_assignment.go: takeByTopologyNUMAPacked,
takeByTopologyNUMADistributed (KEP-2902 describes the latter).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from math import floor, sqrt

from msgspec import Struct

from refkubelet.container_manager.cpu.topology import CpuTopology, Level
from refkubelet.model.cpuset import EMPTY, CpuSet


class NotEnoughCpus(ValueError):
    """The request cannot be met."""


class Packing(Struct, frozen=True):
    """How CPUs are packed. `spread`: threads of different cores first, no whole cores. `by_cache`:
    whole last-level caches, or as few as possible, before whole cores."""

    spread: bool = False
    by_cache: bool = False


PACKED = Packing()


def take_packed(
    topology: CpuTopology, free: CpuSet, count: int, packing: Packing = PACKED
) -> CpuSet:
    """Take `count` of the free CPUs, packed. Raises `NotEnoughCpus`."""
    _check(free, count)
    hand = _Hand(topology, free, count)
    for level in topology.hierarchy:
        hand.take_whole(level)
    if packing.by_cache:
        hand.take_caches()
    if not packing.spread:
        hand.take_whole("core")
    hand.take_threads("socket" if packing.spread else "core")
    return frozenset(hand.taken)


def _check(free: CpuSet, count: int) -> None:
    if count > len(free):
        raise NotEnoughCpus(
            "not enough cpus available to satisfy request: "
            f"requested={count}, available={len(free)}"
        )


def ordered_units(topology: CpuTopology, free: Iterable[int], level: Level) -> list[int]:
    """The units of a level that have free CPUs, in the order of their use: sorted by their larger
    units first, at each level by the fewest free CPUs, then by number."""
    return [number for number, _ in _by_least_free(topology, free, _path(topology, level))]


def _path(topology: CpuTopology, level: Level) -> tuple[Level, ...]:
    """The levels above `level`, the largest first, and `level` itself. Above caches are nodes."""
    hierarchy = topology.hierarchy
    above = hierarchy[: hierarchy.index("node") + 1] if level == "cache" else hierarchy
    return above[: above.index(level) + 1] if level in above else (*above, level)


def _by_least_free(
    topology: CpuTopology, free: Iterable[int], path: tuple[Level, ...]
) -> Iterator[tuple[int, CpuSet]]:
    units = topology.split(free, path[0])
    for number, cpus in sorted(units.items(), key=lambda unit: (len(unit[1]), unit[0])):
        if path[1:]:
            yield from _by_least_free(topology, cpus, path[1:])
        else:
            yield number, cpus


class _Hand:
    """The CPUs that one request has taken so far; used for one call."""

    def __init__(self, topology: CpuTopology, free: CpuSet, count: int) -> None:
        self._topology = topology
        self._free = set(free)
        self._wanted = count
        self.taken: set[int] = set()

    @property
    def needed(self) -> int:
        return self._wanted - len(self.taken)

    def _take(self, cpus: Iterable[int]) -> None:
        self.taken.update(cpus)
        self._free -= self.taken

    def _is_whole(self, number: int, level: Level) -> bool:
        """Whether all of the unit is free. Sockets and cores of an unusual size never count as
        whole."""
        unit = self._topology.units[level][number]
        odd = level in ("socket", "core") and len(unit) != self._topology.usual_size(level)
        return unit <= self._free and not odd

    def take_whole(self, level: Level) -> None:
        """Take every whole unit that is not larger than the rest of the request."""
        for number in ordered_units(self._topology, self._free, level):
            unit = self._topology.units[level][number]
            if len(unit) <= self.needed and self._is_whole(number, level):
                self._take(unit)

    def take_caches(self) -> None:
        """Take whole caches, then the part of one cache that covers the whole rest."""
        for number in ordered_units(self._topology, self._free, "cache"):
            if self.needed >= self._topology.usual_size("cache"):
                self.take_whole("cache")
            if self.needed:
                self._take(self._part_of_cache(number))

    def _part_of_cache(self, number: int) -> list[int]:
        """CPUs of the first cores of a cache, if they cover exactly the rest; else none."""
        threads = self._topology.usual_size("core")
        in_cache = self._free & self._topology.units["cache"][number]
        cores = self._topology.split(in_cache, "core")
        chosen = list(cores.values())[: -(-self.needed // threads)]
        cpus = sorted(cpu for core in chosen for cpu in core)
        if self.needed % 2 and threads > 1 and len(cpus) > self.needed:
            cpus.pop()
        return cpus if len(cpus) == self.needed else []

    def take_threads(self, level: Level) -> None:
        """Take single CPUs, from the units with the fewest free CPUs first."""
        units = _by_least_free(self._topology, self._free, _path(self._topology, level))
        cpus = [cpu for _, unit in units for cpu in sorted(unit)]
        self._take(cpus[: self.needed])


class _Plan(Struct, frozen=True):
    """A way to distribute: `each` CPUs from every one of `nodes`, then the rest in groups from
    `extra`, in turn. `balance`: the deviation of the free CPUs left on the nodes."""

    balance: float
    nodes: tuple[int, ...]
    each: int
    extra: tuple[int, ...] = ()


def take_distributed(
    topology: CpuTopology, free: CpuSet, count: int, group: int, packing: Packing = PACKED
) -> CpuSet:
    """Take `count` of the free CPUs, evenly from as few NUMA nodes as possible, in groups of
    `group` (the threads of a core, or 1); packed if that is impossible. Raises `NotEnoughCpus`."""
    packing = Packing(packing.spread)
    if count % group:
        return take_packed(topology, free, count, packing)
    _check(free, count)
    if count == 0:
        return EMPTY
    for width in _widths(topology, free, count // group, group):
        plans = _plans(topology, free, count=count, group=group, width=width)
        best = min(plans, key=lambda plan: plan.balance, default=None)
        if best is not None:
            return _carried_out(
                topology, free, count=count, group=group, plan=best, packing=packing
            )
    return take_packed(topology, free, count, packing)


def _widths(topology: CpuTopology, free: CpuSet, groups: int, group: int) -> range:
    """The possible numbers of nodes: from as few as would be enough if all CPUs were free, to one
    for each group."""
    all_groups = -(-len(topology.cpus) // group)
    on_a_node = -(-all_groups // len(topology.units["node"]))
    available = len(topology.split(free, "node"))
    return range(-(-groups // on_a_node), min(groups, available) + 1)


def _plans(
    topology: CpuTopology, free: CpuSet, count: int, group: int, width: int
) -> Iterator[_Plan]:
    """Every plan with this many nodes."""
    sizes = {number: len(cpus) for number, cpus in topology.split(free, "node").items()}
    each = count // width // group * group
    for nodes in combinations(ordered_units(topology, free, "node"), width):
        if sum(sizes[n] // group for n in nodes) * group < count:
            continue
        if min(sizes[n] for n in nodes) < each:
            continue
        sizes_after = {n: size - (each if n in nodes else 0) for n, size in sizes.items()}
        rest = count - each * width
        if rest == 0:
            yield _Plan(_deviation(sizes_after.values()), nodes, each)
        else:
            yield from _with_extra(_Plan(0, nodes, each), sizes_after, rest, group)


def _with_extra(plan: _Plan, left: dict[int, int], rest: int, group: int) -> Iterator[_Plan]:
    """The plan with every possible choice of the nodes for the rest, the most nodes first."""
    able = [n for n in plan.nodes if left[n] >= group]
    for size in range(len(able), 0, -1):
        for extra in combinations(able, size):
            after = dict(left)
            for node in _turns(extra, dict(left), rest, group):
                after[node] -= group
            if sum(left.values()) - sum(after.values()) == rest:
                yield _Plan(_deviation(after.values()), plan.nodes, plan.each, extra)


def _turns(nodes: tuple[int, ...], left: dict[int, int], rest: int, group: int) -> Iterator[int]:
    """The nodes in turn, once for each group of CPUs taken, until the rest is taken or no node has
    a group left. Changes `left`."""
    while rest > 0 and any(left[n] >= group for n in nodes):
        for node in nodes:
            if rest > 0 and left[node] >= group:
                left[node] -= group
                rest -= group
                yield node


def _carried_out(
    topology: CpuTopology, free: CpuSet, count: int, group: int, plan: _Plan, packing: Packing
) -> CpuSet:
    cpus: CpuSet = EMPTY
    by_node = topology.split(free, "node")
    for node in plan.nodes:
        cpus |= take_packed(topology, by_node[node], plan.each, packing)
    free_counts = {n: len(by_node[n] - cpus) for n in plan.nodes}
    for node in _turns(plan.extra, free_counts, count - len(cpus), group):
        cpus |= take_packed(topology, by_node[node] - cpus, group, packing)
    return cpus


def _deviation(values: Iterable[int]) -> float:
    """The standard deviation from the mean; both are rounded to three decimals, as in upstream."""
    numbers = list(values)
    mean = _rounded(sum(numbers) / len(numbers))
    return _rounded(sqrt(sum((n - mean) ** 2 for n in numbers) / len(numbers)))


def _rounded(value: float) -> float:
    return floor(value * 1000 + 0.5) / 1000
