"""CPU assignment: as the kubelet's allocator does it, and laws that hold for every machine.

`tests/data/resources/cpu_assignment.json`: machine, way, free CPUs, number, and what the allocator
of kubelet 1.36.2 took or said.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import DATA
from resource_world import SERVER, cpus_of

from refkubelet.container_manager.cpu.assignment import (
    NotEnoughCpus,
    Packing,
    ordered_units,
    take_distributed,
    take_packed,
)
from refkubelet.container_manager.cpu.topology import CpuPlace, CpuTopology
from refkubelet.model.cpuset import CpuSet, format_cpuset, parse_cpuset

RECORDED = json.loads((DATA / "resources/cpu_assignment.json").read_text())
SHAPES: list[dict[str, Any]] = [
    {"sockets": 1, "cores": 4},
    {"sockets": 2, "cores": 4, "threads": 2},
    {"sockets": 2, "cores": 4, "threads": 2, "nodes_per_socket": 2},
    {"sockets": 1, "cores": 8, "threads": 2, "caches_per_node": 4},
]


def taken(topology: CpuTopology, way: str, free: CpuSet, count: int) -> CpuSet:
    if way.startswith("distributed"):
        group = topology.usual_size("core") if way == "distributed cores" else 1
        return take_distributed(topology, free, count, group)
    return take_packed(topology, free, count, Packing(way == "spread", way == "caches"))


@pytest.mark.parametrize(("shape", "way", "free", "count", "wanted"), RECORDED)
def test_it_takes_what_the_kubelet_takes_CG_081(
    shape: dict[str, Any], way: str, free: str, count: int, wanted: str
) -> None:
    try:
        seen = format_cpuset(taken(cpus_of(**shape), way, parse_cpuset(free), count))
    except NotEnoughCpus as error:
        seen = str(error)
    assert seen == wanted


WAYS = ("packed", "spread", "caches", "distributed", "distributed cores")


@st.composite
def requests(draw: st.DrawFn) -> tuple[CpuTopology, CpuSet, int]:
    topology = cpus_of(**draw(st.sampled_from(SHAPES)))
    free = draw(st.frozensets(st.sampled_from(sorted(topology.cpus))))
    return topology, free, draw(st.integers(0, len(free)))


@given(requests(), st.sampled_from(WAYS))
def test_exactly_so_many_of_the_free_cpus_are_taken(
    request: tuple[CpuTopology, CpuSet, int], way: str
) -> None:
    topology, free, count = request
    seen = taken(topology, way, free, count)
    assert seen <= free
    assert len(seen) == count


@given(requests())
def test_a_packed_request_breaks_up_no_more_cores_than_it_must(
    request: tuple[CpuTopology, CpuSet, int],
) -> None:
    """Whole cores are taken first: of all that it leaves half used there is at most one."""
    topology, free, count = request
    seen = taken(topology, "packed", free, count)
    broken = [
        core
        for core, cpus in topology.units["core"].items()
        if cpus <= free and cpus & seen and not cpus <= seen
    ]
    assert len(broken) <= 1


@given(requests())
def test_distribution_is_even_where_two_nodes_are_free(
    request: tuple[CpuTopology, CpuSet, int],
) -> None:
    """On a free machine no two used nodes differ by more than one CPU."""
    topology, _, count = request
    seen = taken(topology, "distributed", topology.cpus, count)
    used = [len(cpus & seen) for cpus in topology.units["node"].values() if cpus & seen]
    assert max(used, default=0) - min(used, default=0) <= 1


def test_more_than_there_are_is_an_error_CG_081() -> None:
    topology = cpus_of(**SERVER)
    words = "not enough cpus available to satisfy request: requested=3, available=2"
    for way in WAYS:
        with pytest.raises(NotEnoughCpus) as raised:
            taken(topology, "packed" if way == "distributed cores" else way, frozenset({1, 2}), 3)
        assert str(raised.value) == words


def test_units_are_used_up_where_the_least_is_free() -> None:
    topology = cpus_of(**SERVER)
    free = topology.cpus - {17, 18, 49}  # socket 1 has less
    assert ordered_units(topology, free, "socket") == [1, 0]
    assert ordered_units(topology, free, "core")[:2] == [18, 16]


def test_cores_of_another_size_are_never_whole() -> None:
    """A machine of big cores with two threads and small ones with one: an average of one."""
    places = [
        CpuPlace(cpu=cpu, core=cpu // 2 * 2 if cpu < 4 else cpu, cache=0, node=0, socket=0)
        for cpu in range(10)
    ]
    topology = CpuTopology(places)
    assert topology.usual_size("core") == 1
    assert take_packed(topology, topology.cpus, 2) == {4, 5}


def test_part_of_a_cache_is_taken_only_if_it_is_all_of_the_rest() -> None:
    """Cores of four threads, two to a cache: six CPUs are no part of seven free ones, seven are."""
    places = [
        CpuPlace(cpu=cpu, core=cpu // 4 * 4, cache=cpu // 8, node=0, socket=0) for cpu in range(16)
    ]
    topology = CpuTopology(places)
    free = topology.cpus - {0, 8}
    assert take_packed(topology, free, 7, Packing(by_cache=True)) == {1, 2, 3, 4, 5, 6, 7}
    assert take_packed(topology, free, 6, Packing(by_cache=True)) == {1, 2, 4, 5, 6, 7}
    assert take_packed(topology, free, 3, Packing(by_cache=True)) == {1, 2, 3}


def test_groups_that_two_nodes_cannot_give_are_given_by_others_CG_081() -> None:
    """Two nodes with three CPUs left have enough CPUs for three cores, but not enough cores; the
    kubelet's allocator never ends here."""
    topology = cpus_of(sockets=4, cores=8, threads=2)
    seen = take_distributed(topology, topology.cpus - {0, 8}, 54, 2)
    assert [len(cpus & seen) for cpus in topology.units["node"].values()] == [14, 12, 14, 14]


def test_a_node_may_be_larger_than_a_socket() -> None:
    places = [
        CpuPlace(cpu=cpu, core=cpu, cache=cpu // 2, node=0, socket=cpu // 2) for cpu in range(4)
    ]
    assert CpuTopology(places).hierarchy == ("node", "socket")
    assert cpus_of(sockets=1, cores=4, nodes_per_socket=2).hierarchy == ("socket", "node")


def test_what_cannot_be_given_in_groups_is_packed() -> None:
    topology = cpus_of(sockets=2, cores=4, threads=2)
    assert take_distributed(topology, topology.cpus, 9, 2) == take_packed(
        topology, topology.cpus, 9
    )
    halves = frozenset({0, 1, 2, 4, 5, 6})  # single threads of cores
    assert take_distributed(topology, halves, 6, 2) == halves
