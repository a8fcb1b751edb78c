"""Policy static: which containers get CPUs of their own, hints, alignment, impossible states."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pods import container, make_pod, named
from resource_world import SERVER, Around, cpus_of, sure

from kubeobjects.quantity import NANO
from kubeobjects.structs import replace
from refkubelet.checkpoints.content import StateFileError
from refkubelet.container_manager.cpu.manager import CpuManager
from refkubelet.container_manager.cpu.policy_options import (
    StaticOptions,
)
from refkubelet.container_manager.cpu.state import CpuState
from refkubelet.container_manager.cpu.static import (
    StaticPolicy,
    exclusive_cpus,
    pod_exclusive_cpus,
    static_policy,
)
from refkubelet.container_manager.cpu.topology import CpuTopology
from refkubelet.container_manager.providers.hints import AllocationError, TopologyHint, nodes_of
from refkubelet.model.cpuset import parse_cpuset

TOO_FEW = "[cpumanager] unable to reserve the required amount of CPUs"
SMALL = {"sockets": 2, "cores": 2, "threads": 2}  # CPUs 0, 1, 4, 5 and 2, 3, 6, 7


def policy(
    topology: CpuTopology | None = None, reserved: str = "0", **options: bool
) -> StaticPolicy:
    topology = topology or cpus_of(**SMALL)
    named = parse_cpuset(reserved)
    return static_policy(topology, StaticOptions(**options), len(named) * NANO, named)


def manager(rules: StaticPolicy, around: Around) -> tuple[CpuManager, list[CpuState]]:
    stored: list[CpuState] = []
    state = rules.checked(CpuState())
    return CpuManager(
        rules, state=state, store=stored.append, affinities=around, active=around.active
    ), stored


# -- requests -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cpu", "memory", "count"),
    [("2", "1Gi", 2), ("2000m", "1Gi", 2), ("1500m", "1Gi", 0), ("2", "", 0), ("", "", 0)],
)
def test_whole_cpus_of_guaranteed_pods_are_exclusive_CG_081(
    cpu: str, memory: str, count: int
) -> None:
    web = make_pod(sure("main", cpu, memory), uid="u")
    assert exclusive_cpus(web, named(web, "main")) == count


def test_one_container_that_is_not_guaranteed_spoils_the_pod() -> None:
    web = make_pod(sure("main", "2"), container("other"), uid="u")
    assert exclusive_cpus(web, named(web, "main")) == 0
    assert pod_exclusive_cpus(web) == 0


@pytest.mark.parametrize("which", [("requests",), ("limits",), ("requests", "limits")])
def test_pod_level_resources_pin_nothing_CG_081(which: tuple[str, ...]) -> None:
    level = {key: {"cpu": "2", "memory": "1Gi"} for key in which}
    web = make_pod(sure("main", "2"), resources=level, uid="u")
    assert exclusive_cpus(web, named(web, "main")) == 0
    assert pod_exclusive_cpus(web) == 0


@pytest.mark.parametrize(
    ("init", "main", "most"),
    [
        ([("a", 3, False)], [1, 1], 3),
        ([("a", 1, False)], [1, 1], 2),
        ([("s", 1, True), ("a", 3, False)], [1], 4),
        ([("a", 3, False), ("s", 2, True)], [2], 4),
        ([("r", 1, True), ("s", 2, True), ("a", 3, False)], [1], 6),
        ([], [1, 2], 3),
    ],
)
def test_a_pods_cpus_are_those_it_has_at_once(
    init: list[tuple[str, int, bool]], main: list[int], most: int
) -> None:
    web = make_pod(
        *(sure(f"m{n}", str(cpu)) for n, cpu in enumerate(main)),
        init=[
            sure(n, str(cpu), restartPolicy="Always" if sidecar else None)
            for n, cpu, sidecar in init
        ],
        uid="u",
    )
    assert pod_exclusive_cpus(web) == most


# -- allocation -----------------------------------------------------------------------------------


async def allocate(cpus: CpuManager, uid: str, count: int, name: str = "main") -> frozenset[int]:
    web = make_pod(sure(name, str(count)), uid=uid)
    await cpus.allocate(web, named(web, name))
    return cpus.own_cpus(uid, name)


async def test_cpus_leave_the_shared_pool_and_come_back_CG_081() -> None:
    around = Around()
    cpus, stored = manager(policy(), around)
    own = await allocate(cpus, "u", 2)
    assert own == {1, 5}
    assert cpus.cpus_of("u", "main") == own
    assert cpus.cpus_of("other", "main") == {0, 2, 3, 4, 6, 7}
    assert stored == [cpus.state]
    assert await allocate(cpus, "u", 2) == own  # asked again, after a restart
    assert len(stored) == 1
    cpus.drop_stale()
    assert not cpus.own_cpus("u", "main")
    assert cpus.state == CpuState(frozenset(range(8)))
    assert cpus.allocatable() == frozenset(range(1, 8))


async def test_nothing_is_taken_back_before_all_pods_are_known_CG_081() -> None:
    around = Around(ready=False)
    cpus, _ = manager(policy(), around)
    await allocate(cpus, "u", 2)
    cpus.drop_stale()
    assert cpus.own_cpus("u", "main")


async def test_hints_lead_to_the_node_and_a_shortage_is_an_error_CG_080() -> None:
    around = Around()
    cpus, _ = manager(policy(), around)
    around.near(0b10)
    around.pods = [make_pod(container(), uid="u")]
    assert await allocate(cpus, "u", 3) == {2, 3, 6}
    around.pods.append(make_pod(container(), uid="v"))
    assert await allocate(cpus, "v", 2) == {7, 4}  # one near, one elsewhere
    with pytest.raises(AllocationError) as raised:
        await allocate(cpus, "w", 9)
    assert raised.value.reason == "UnexpectedAdmissionError"
    assert (
        raised.value.message
        == (
            "Allocate failed due to not enough cpus available to satisfy request: "
            "requested=8, available=2, which is unexpected"
        )
        or "requested=9, available=2" in raised.value.message
    )


async def test_cpus_of_init_containers_are_used_again_CG_081() -> None:
    around = Around()
    cpus, _ = manager(policy(), around)
    web = make_pod(
        sure("main", "2"),
        sure("more", "1"),
        init=[sure("first", "3"), sure("side", "1", restartPolicy="Always"), sure("second", "2")],
        uid="u",
    )
    for each in ("first", "side", "second", "main", "more"):
        await cpus.allocate(web, named(web, each))
    own = {each: cpus.own_cpus("u", each) for each in ("first", "side", "second", "main", "more")}
    assert own["side"] <= own["first"]  # the sidecar starts when the first has ended
    assert own["second"] <= own["first"] - own["side"]
    assert own["main"] == own["first"] - own["side"]
    running = [own["side"], own["main"], own["more"]]
    assert len(frozenset().union(*running)) == 4
    assert len(cpus.state.shared) == 8 - 4
    state = cpus.state.released("u", "main")
    assert state.shared == cpus.state.shared  # the init containers still name these CPUs
    cpus.drop_stale()
    assert cpus.state.shared == frozenset(range(8))


async def test_another_pod_cannot_use_what_an_init_container_left() -> None:
    cpus, _ = manager(policy(), Around(ready=False))
    guaranteed = make_pod(sure("main", "1"), init=[sure("first", "2")], uid="u")
    await cpus.allocate(guaranteed, named(guaranteed, "first"))
    assert not await allocate(cpus, "v", 2) & cpus.own_cpus("u", "first")


def test_full_pcpus_only_wants_whole_cores_CG_081() -> None:
    rules = policy(full_pcpus_only=True)
    state = rules.checked(CpuState())
    rules.check_alignment(state, 6)
    with pytest.raises(AllocationError) as raised:
        rules.check_alignment(state, 3)
    assert raised.value.reason == "SMTAlignmentError"
    text = "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"
    assert raised.value.message == text
    with pytest.raises(AllocationError) as raised:
        rules.check_alignment(state, 8)
    assert raised.value.message == (
        "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 6, "
        "requested CPUs = 8, CPUs per core = 2"
    )
    policy().check_alignment(state, 3)


@pytest.mark.parametrize(
    ("options", "cpus"),
    [
        ({}, {1, 2, 3, 5, 6, 7}),
        ({"distribute_cpus_across_numa": True}, {1, 2, 3, 4, 5, 6}),
        ({"distribute_cpus_across_cores": True}, {1, 2, 3, 4, 6, 7}),
    ],
)
def test_options_choose_the_way(options: dict[str, bool], cpus: set[int]) -> None:
    rules = policy(**options)
    assert rules.choose(rules.checked(CpuState()), 6, None) == cpus


def test_whole_cores_are_distributed_with_both_options_CG_081() -> None:
    four = cpus_of(sockets=2, cores=4, threads=2)
    both = policy(four, "0,8", distribute_cpus_across_numa=True, full_pcpus_only=True)
    cpus = both.choose(both.checked(CpuState()), 10, None)
    assert {cpu % 8 for cpu in cpus if cpu < 8} == {cpu % 8 for cpu in cpus if cpu >= 8}
    split = policy(four, "0,8", distribute_cpus_across_numa=True)
    assert (
        len(split.choose(split.checked(CpuState()), 10, None) & {4, 5, 6, 7, 12, 13, 14, 15}) == 5
    )


def test_last_level_caches_are_preferred_where_wanted_CG_081() -> None:
    cached = cpus_of(sockets=1, cores=8, caches_per_node=2)  # CPUs 0-3, 4-7
    state = CpuState(cached.cpus - {1})
    plain, by_cache = policy(cached), policy(cached, prefer_align_cpus_by_uncorecache=True)
    assert plain.choose(state, 4, None) == {2, 3, 4, 5}
    assert by_cache.choose(state, 4, None) == {4, 5, 6, 7}


# -- hints ----------------------------------------------------------------------------------------


def shown(hints: tuple[TopologyHint, ...]) -> list[tuple[int | None, bool]]:
    return [(hint.affinity, hint.preferred) for hint in hints]


def test_hints_are_all_sets_with_room_CG_083() -> None:
    rules = policy()
    free = rules.assignable(rules.checked(CpuState()))
    assert shown(rules.hints(free, 2)) == [(0b01, True), (0b10, True), (0b11, False)]
    assert shown(rules.hints(free, 4)) == [(0b10, True), (0b11, False)]
    assert shown(rules.hints(free, 5)) == [(0b11, True)]
    assert shown(rules.hints(free - {6}, 4)) == [(0b11, False)]  # one node could once
    assert rules.hints(free, 8) == ()
    assert shown(rules.hints(frozenset(), 1, frozenset({2}))) == [(0b10, True), (0b11, False)]


@given(st.frozensets(st.integers(0, 15)), st.frozensets(st.integers(0, 15)), st.integers(1, 16))
def test_a_hint_has_room_and_includes_what_is_used_again(
    free: frozenset[int], again: frozenset[int], count: int
) -> None:
    rules = policy(cpus_of(sockets=4, cores=4))
    again -= free
    for hint in rules.hints(free, count, again):
        cpus = rules.topology.of_units("node", nodes_of(hint.affinity or 0))
        assert len(cpus & (free | again)) >= count
        assert again <= cpus
        assert hint.preferred == ((hint.affinity or 0).bit_count() == -(-count // 4))


def test_sockets_count_with_align_by_socket_CG_081() -> None:
    halved = cpus_of(sockets=2, cores=4, nodes_per_socket=2)
    rules = policy(halved, align_by_socket=True)
    free = rules.assignable(rules.checked(CpuState()))
    preferred = [hint.affinity for hint in rules.hints(free, 2) if hint.preferred]
    assert preferred == [0b0010, 0b0100, 0b1000, 0b0011, 0b1100]
    few = CpuState(frozenset({0, 1, 2, 3, 4}))
    assert rules.choose(few, 2, 0b0001) == {2, 3}
    assert policy(halved).choose(few, 2, 0b0001) == {1, 4}


async def test_hints_of_a_manager_CG_083() -> None:
    around = Around(ready=False)
    cpus, _ = manager(policy(), around)
    web = make_pod(sure("main", "2"), uid="u")
    main = named(web, "main")
    all_sets = {"cpu": tuple(TopologyHint(m, p) for m, p in ((1, True), (2, True), (3, False)))}
    assert cpus.topology_hints(web, main) == all_sets
    assert cpus.pod_topology_hints(web) == all_sets
    await cpus.allocate(web, main)
    its_own = {"cpu": (TopologyHint(1, preferred=True), TopologyHint(3))}
    assert cpus.topology_hints(web, main) == its_own
    assert cpus.pod_topology_hints(web) == its_own
    changed = make_pod(sure("main", "3"), uid="u")
    assert cpus.topology_hints(changed, named(changed, "main")) == {"cpu": ()}
    assert cpus.pod_topology_hints(changed) == {"cpu": ()}
    small = make_pod(sure("main", "500m"), uid="v")
    assert cpus.topology_hints(small, named(small, "main")) == {}
    assert cpus.pod_topology_hints(small) == {}
    grown = make_pod(sure("main", "2"), sure("more", "1"), uid="u")
    assert cpus.pod_topology_hints(grown) == its_own


# -- the policy and its options -------------------------------------------------------------------


def test_reserved_cpus_are_those_taken_first_CG_081() -> None:
    topology = cpus_of(**SERVER)
    assert static_policy(topology, StaticOptions(), 2 * NANO).reserved == {0, 32}
    assert static_policy(topology, StaticOptions(), NANO // 2).reserved == {0}
    named = parse_cpuset("5,7")
    assert static_policy(topology, StaticOptions(), 2 * NANO, named).reserved == named


@pytest.mark.parametrize(
    ("reserved", "named", "words"),
    [
        (65 * NANO, "", f"{TOO_FEW} (size of  did not equal 65)"),
        (3 * NANO, "5,7", f"{TOO_FEW} (size of 5,7 did not equal 3)"),
        (
            2 * NANO,
            "98-99",
            "[cpumanager] unable to build the reserved physical CPUs from the reserved set: "
            "unknown CPU ID: 98",
        ),
    ],
)
def test_impossible_reservations_CG_081(reserved: int, named: str, words: str) -> None:
    with pytest.raises(ValueError) as refused:
        static_policy(cpus_of(**SERVER), StaticOptions(), reserved, parse_cpuset(named))
    assert str(refused.value) == words


def test_all_cpus_may_be_reserved_CG_081() -> None:
    topology = cpus_of(**SMALL)
    assert static_policy(topology, StaticOptions(), 8 * NANO).reserved == topology.cpus


def test_sockets_within_a_node_cannot_be_aligned_CG_081() -> None:
    two = cpus_of(**SMALL)
    static_policy(two, StaticOptions(align_by_socket=True), NANO)
    one = CpuTopology(replace(place, node=0) for place in two.places.values())
    static_policy(one, StaticOptions(), NANO)
    with pytest.raises(ValueError) as refused:
        static_policy(one, StaticOptions(align_by_socket=True), NANO)
    assert str(refused.value) == (
        "Align by socket is not compatible with hardware where number of sockets are more than "
        "number of NUMA"
    )


# -- states ---------------------------------------------------------------------------------------


def state(shared: str, **own: str) -> CpuState:
    entries = {"u": {name: parse_cpuset(cpus) for name, cpus in own.items()}} if own else {}
    return CpuState(parse_cpuset(shared), entries)


@pytest.mark.parametrize(
    ("restored", "words"),
    [
        (state("", main="1"), "default cpuset cannot be empty"),
        (
            state("1-7"),
            'not all reserved cpus: "0" are present in defaultCpuSet: "1-7"',
        ),
        (
            state("0-7", main="1"),
            'pod: u, container: main cpuset: "1" overlaps with default cpuset "0-7"',
        ),
        (
            state("0-3", main="4"),
            'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-4"',
        ),
        (
            state("0-8"),
            'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-8"',
        ),
    ],
)
def test_states_that_do_not_fit_are_refused_CG_081(restored: CpuState, words: str) -> None:
    with pytest.raises(StateFileError) as raised:
        policy().checked(restored)
    assert str(raised.value) == words


def test_states_that_fit_are_kept_CG_081() -> None:
    for fits in (state("0-7"), state("0-3,6-7", main="4-5"), state("0-5", a="6-7", b="7")):
        assert policy().checked(fits) is fits
    assert policy().checked(CpuState()) == state("0-7")


def test_strictly_reserved_cpus_are_in_no_pool_CG_081() -> None:
    rules = policy(strict_cpu_reservation=True)
    first = rules.checked(CpuState())
    assert first == state("1-7")
    assert rules.checked(first) is first
    with pytest.raises(StateFileError) as raised:
        rules.checked(state("0-7"))
    words = 'some of strictly reserved cpus: "0" are present in defaultCpuSet: "0-7"'
    assert str(raised.value) == words


STEPS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 5)), max_size=12)


@given(STEPS)
async def test_every_cpu_is_in_one_place(steps: list[tuple[str, int]]) -> None:
    """Whatever is allocated and released, every CPU is shared or one container's, the reserved one
    always shared."""
    around = Around()
    cpus, _ = manager(policy(), around)
    for uid, count in steps:
        around.pods = [p for p in around.pods if p.metadata and p.metadata.uid != uid]
        if count:
            web: Any = make_pod(sure("main", str(count)), uid=uid)
            around.pods.append(web)
            cpus.drop_stale()
            try:
                await cpus.allocate(web, named(web, "main"))
            except AllocationError:
                around.pods.pop()
        cpus.drop_stale()
        own = [c for entry in cpus.state.entries.values() for c in entry.values()]
        assert sum(map(len, own)) + len(cpus.state.shared) == 8
        assert cpus.state.own_cpus() | cpus.state.shared == frozenset(range(8))
        assert 0 in cpus.state.shared
