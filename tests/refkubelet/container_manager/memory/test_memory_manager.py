"""Policy Static of the memory manager: reservations, hints, groups of nodes, what is used again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pods import container, make_pod, named
from resource_world import GI, MI, Around, machine, sure

from fakecri import HugePages as Pages
from kubeobjects.quantity import NANO
from refkubelet.checkpoints.content import StateFileError
from refkubelet.container_manager.memory.manager import MemoryManager
from refkubelet.container_manager.memory.requests import pinned_memory, pod_pinned_memory
from refkubelet.container_manager.memory.reserved import Reservation, machine_memory
from refkubelet.container_manager.memory.state import (
    Block,
    MemoryState,
    MemoryTable,
    NodeMemory,
    given_back,
    taken,
)
from refkubelet.container_manager.memory.static import (
    checked,
    chosen_nodes,
    hints_for_requests,
    hints_of_blocks,
    memory_hints,
)
from refkubelet.container_manager.providers.hints import AllocationError, TopologyHint, nodes_of
from refkubelet.model.objects import Pod

SHAPE = {"sockets": 2, "cores": 2, "nodes_per_socket": 2, "memory_bytes": 4 * GI}


def node(free: int, *, of: int = 1000, group: tuple[int, ...] = (), used: int = 0) -> NodeMemory:
    table = MemoryTable(
        total=of + 24, system_reserved=24, allocatable=of, reserved=of - free, free=free
    )
    return NodeMemory(used, {"memory": table}, group)


def nodes(*free: int) -> dict[int, NodeMemory]:
    """Unused nodes with so many of 1000 bytes free."""
    return {number: node(size, group=(number,)) for number, size in enumerate(free)}


def shown(hints: tuple[TopologyHint, ...]) -> list[tuple[tuple[int, ...], bool]]:
    return [(nodes_of(hint.affinity or 0), hint.preferred) for hint in hints]


# -- requests and reservations --------------------------------------------------------------------


def test_memory_and_huge_pages_of_guaranteed_pods_are_pinned_CG_082() -> None:
    huge = {"hugepages-2Mi": "4Mi"}
    web = make_pod(container(cpu="1/1", memory="1Gi/1Gi", requests=huge, limits=huge), uid="u")
    assert pinned_memory(web, named(web, "main")) == {"memory": GI, "hugepages-2Mi": 4 * MI}
    loose = make_pod(container(memory="1Gi/1Gi"), uid="u")
    assert pinned_memory(loose, named(loose, "main")) == {}
    assert pod_pinned_memory(loose) == {}
    level = {"requests": {"memory": "1Gi"}}
    level_pod = make_pod(sure("main", "1"), resources=level, uid="u")
    assert pinned_memory(level_pod, named(level_pod, "main")) == {}


def test_pages_of_one_container_alone_count_once_and_in_whole_bytes_CG_082() -> None:
    huge = {"hugepages-1Gi": "1Gi", "hugepages-2Mi": "4Mi"}
    first = container("main", cpu="1/1", memory="1500m/1500m", requests=huge, limits=huge)
    web = make_pod(first, sure("more", "1", "1Gi"), uid="u")
    found = pinned_memory(web, named(web, "main"))
    assert list(found.items()) == [
        ("memory", 1),
        ("hugepages-2Mi", 4 * MI),
        ("hugepages-1Gi", GI),
    ]
    assert isinstance(found["memory"], int)
    assert pod_pinned_memory(web) == {
        "memory": GI + 1,
        "hugepages-2Mi": 4 * MI,
        "hugepages-1Gi": GI,
    }


def test_a_pods_memory_is_what_it_has_at_once() -> None:
    init = [sure("side", "1", restartPolicy="Always"), sure("first", "1", "5Gi")]
    web = make_pod(sure("main", "1"), sure("more", "1", "2Gi"), init=init, uid="u")
    assert pod_pinned_memory(web) == {"memory": 6 * GI}


def reserved(**limits: int) -> list[Reservation]:
    return [Reservation(int(name[-1]), {"memory": size * NANO}) for name, size in limits.items()]


def test_reservations_are_taken_from_their_nodes_CG_082() -> None:
    parts = machine(**SHAPE, hugepages=(Pages(2 * MI, 8),)).nodes
    entries = [
        *reserved(n0=MI),
        Reservation(1, {"memory": MI * NANO, "hugepages-2Mi": 4 * MI * NANO}),
    ]
    kept = {"memory": 2 * MI * NANO, "hugepages-2Mi": 4 * MI * NANO, "cpu": NANO}
    made = machine_memory(parts, entries, kept)
    assert list(made) == [0, 1, 2, 3]
    assert made[0].of("memory") == MemoryTable(
        total=GI, system_reserved=MI, allocatable=GI - 17 * MI, reserved=0, free=GI - 17 * MI
    )
    assert made[1].of("hugepages-2Mi") == MemoryTable(
        total=16 * MI, system_reserved=4 * MI, allocatable=12 * MI, reserved=0, free=12 * MI
    )
    assert made[2].of("memory") == MemoryTable(
        total=GI, system_reserved=0, allocatable=GI - 16 * MI, reserved=0, free=GI - 16 * MI
    )
    assert made[3].cells == (3,)
    assert made[0].of("hugepages-1Gi") == MemoryTable()


@pytest.mark.parametrize(
    ("entries", "kept_mi", "words"),
    [
        (
            reserved(n9=MI),
            1,
            "the reserved memory configuration references a NUMA node 9 that does not exist on "
            "this machine",
        ),
        (
            reserved(n0=GI),
            101,
            'the total amount "1Gi" of type "memory" is not equal to the value "101Mi" determined '
            "by Node Allocatable feature",
        ),
        (
            [],
            1,
            'the total amount "0" of type "memory" is not equal to the value "1Mi" determined by '
            "Node Allocatable feature",
        ),
        (
            [Reservation(0, {"hugepages-2Mi": 2 * MI * NANO})],
            0,
            'the total amount "2Mi" of type "hugepages-2Mi" is not equal to the value "0" '
            "determined by Node Allocatable feature",
        ),
        ([], 0, "[memorymanager] you should specify the system reserved memory"),
    ],
)
def test_reservations_must_add_up_CG_082(
    entries: list[Reservation], kept_mi: int, words: str
) -> None:
    kept = {"memory": kept_mi * MI * NANO} if kept_mi else {}
    with pytest.raises(ValueError, match=r".") as raised:
        machine_memory(machine(**SHAPE).nodes, entries, kept)
    assert str(raised.value) == words


# -- hints ----------------------------------------------------------------------------------------


def test_hints_are_all_sets_that_have_enough_CG_082() -> None:
    assert shown(memory_hints(nodes(1000, 1000), {"memory": 600})) == [
        ((0,), True),
        ((1,), True),
        ((0, 1), False),
    ]
    assert shown(memory_hints(nodes(500, 1000), {"memory": 600})) == [
        ((1,), True),
        ((0, 1), False),
    ]
    assert shown(memory_hints(nodes(500, 500), {"memory": 600})) == [((0, 1), False)]
    assert shown(memory_hints(nodes(1000, 1000), {"memory": 1500})) == [((0, 1), True)]
    assert memory_hints(nodes(1000, 1000), {"memory": 2001}) == ()
    assert memory_hints(nodes(1000), {"hugepages-2Mi": 1}) == ()


def test_a_node_gives_alone_or_in_one_group_CG_082() -> None:
    alone = nodes(1000, 1000, 1000) | {0: node(900, group=(0,), used=1)}
    assert shown(memory_hints(alone, {"memory": 1500})) == [((1, 2), True)]
    grouped = nodes(1000, 1000, 1000) | {n: node(900, group=(0, 1), used=1) for n in (0, 1)}
    assert shown(memory_hints(grouped, {"memory": 500})) == [
        ((2,), True),
        ((0, 1), False),
    ]
    assert shown(memory_hints(grouped, {"memory": 1500})) == [((0, 1), True)]


def test_reusable_memory_counts_for_its_own_nodes_only() -> None:
    used = nodes(100, 100)
    hints = memory_hints(used, {"memory": 500}, lambda mask, name: 400 if mask == 0b01 else 0)
    assert shown(hints) == [((0,), True)]


def test_no_hints_are_no_preference_CG_082() -> None:
    assert hints_for_requests((), {"memory": 1}) == {}
    one = (TopologyHint(1, preferred=True),)
    assert hints_for_requests(one, {"memory": 1, "hugepages-2Mi": 1}) == {
        "memory": one,
        "hugepages-2Mi": one,
    }


def test_hints_of_what_is_allocated_already() -> None:
    blocks = (Block((0, 1), "memory", 5),)
    wanted = {"memory": (TopologyHint(0b11, preferred=True),)}
    assert hints_of_blocks(blocks, {"memory": 5}) == wanted
    assert hints_of_blocks(blocks, {"memory": 6}) == {}
    assert hints_of_blocks(blocks, {"memory": 5, "hugepages-2Mi": 1}) == {}


# -- the nodes of an allocation -------------------------------------------------------------------


def hint(*chosen: int, preferred: bool = True) -> TopologyHint:
    return TopologyHint(sum(1 << n for n in chosen), preferred)


def test_the_hints_nodes_are_taken_or_the_best_there_are() -> None:
    four = nodes(300, 1000, 1000, 1000)
    assert chosen_nodes(four, {"memory": 500}, TopologyHint()) == (1,)
    assert chosen_nodes(four, {"memory": 500}, hint(3)) == (3,)


@pytest.mark.parametrize(
    ("free", "size", "near", "chosen"),
    [
        ((1000, 1000, 1000), 1500, hint(2, preferred=False), (0, 2)),
        ((1000, 1000, 1000), 1500, hint(1), (0, 1)),
        ((200, 1000, 1000), 1500, hint(1), (1, 2)),
        ((1000, 1000, 1000), 2500, hint(1), (0, 1, 2)),
    ],
)
def test_a_hint_without_room_is_extended_CG_082(
    free: tuple[int, ...], size: int, near: TopologyHint, chosen: tuple[int, ...]
) -> None:
    assert chosen_nodes(nodes(*free), {"memory": size}, near) == chosen


@pytest.mark.parametrize(
    ("machine", "size", "near", "words"),
    [
        (
            nodes(100, 100),
            500,
            TopologyHint(),
            "failed to get the default NUMA affinity, no NUMA nodes with enough memory is "
            "available",
        ),
        (
            nodes(400, 400),
            500,
            TopologyHint(None, preferred=True),
            "failed to find the default preferred hint",
        ),
        (
            nodes(100, 100),
            500,
            hint(0),
            "failed to find NUMA nodes to extend the current topology hint",
        ),
        (nodes(400, 400), 500, hint(0), "failed to find the extended preferred hint"),
        (
            nodes(1000, 1000) | {0: node(900, group=(0,), used=1)},
            500,
            hint(0, 1),
            "preferred hint violates NUMA node allocation",
        ),
        (
            nodes(1000, 1000, 1000) | {n: node(900, group=(0, 1), used=1) for n in (0, 1)},
            500,
            hint(1, 2),
            "preferred hint violates NUMA node allocation",
        ),
    ],
)
def test_failures_have_upstreams_words_CG_082(
    machine: dict[int, NodeMemory], size: int, near: TopologyHint, words: str
) -> None:
    with pytest.raises(AllocationError) as raised:
        chosen_nodes(machine, {"memory": size}, near)
    assert str(raised.value) == f"[memorymanager] {words}"
    assert raised.value.reason == "UnexpectedAdmissionError"


# -- tables ---------------------------------------------------------------------------------------


def test_a_block_takes_from_one_node_after_the_other() -> None:
    after = taken(nodes(300, 1000), Block((0, 1), "memory", 500))
    assert [after[n].of("memory").free for n in (0, 1)] == [0, 800]
    assert [after[n].of("memory").reserved for n in (0, 1)] == [1000, 200]
    assert [(after[n].cells, after[n].assignments) for n in (0, 1)] == [((0, 1), 1)] * 2


BLOCKS = st.lists(
    st.builds(
        Block,
        st.sampled_from([(0,), (1,), (0, 1)]),
        st.just("memory"),
        st.integers(0, 400),
    ),
    max_size=4,
)


@given(BLOCKS)
def test_what_is_given_back_is_free_again(blocks: list[Block]) -> None:
    before = nodes(1000, 1000)
    after = before
    for block in blocks:
        after = taken(after, block)
    for number in (0, 1):
        table = after[number].of("memory")
        assert table.reserved + table.free == table.allocatable
    for block in blocks:
        after = given_back(after, block)
    assert sum(after[n].of("memory").free for n in (0, 1)) == 2000
    assert [after[n].assignments for n in (0, 1)] == [0, 0]
    assert [after[n].cells for n in (0, 1)] == [(0,), (1,)]


# -- the manager ----------------------------------------------------------------------------------


def manager(around: Around) -> tuple[MemoryManager, list[MemoryState]]:
    stored: list[MemoryState] = []
    fresh = machine_memory(machine(**SHAPE).nodes, reserved(n0=GI // 4), {"memory": GI // 4 * NANO})
    state = checked(MemoryState(), fresh)
    return MemoryManager(state, stored.append, around, around.active), stored


async def allocate(memory: MemoryManager, web: Pod, *names: str) -> None:
    for name in names:
        await memory.allocate(web, named(web, name))


async def test_memory_is_given_and_taken_back_CG_082() -> None:
    around = Around()
    memory, stored = manager(around)
    first = memory.state
    web = make_pod(sure("main", "1", "900Mi"), uid="u")
    await allocate(memory, web, "main")
    assert memory.nodes_of("u", "main") == (1,)  # node 0 has 768Mi
    assert memory.blocks("u", "main") == (Block((1,), "memory", 900 * MI),)
    assert memory.state.nodes[1].of("memory").reserved == 900 * MI
    await allocate(memory, web, "main")
    assert len(stored) == 1
    around.ready = False
    memory.drop_stale()
    assert memory.nodes_of("u", "main") == (1,)
    around.ready = True
    memory.drop_stale()
    assert memory.nodes_of("u", "main") == ()
    assert memory.state.nodes == first.nodes
    assert [block.size for block in memory.allocatable()] == [768 * MI, GI, GI, GI]


async def test_a_large_container_makes_a_group_CG_082() -> None:
    memory, _ = manager(Around(ready=False))
    large, small = (
        make_pod(sure("main", "1", "1500Mi"), uid="u"),
        make_pod(sure("m", "1", "1Mi"), uid="v"),
    )
    await allocate(memory, large, "main")
    assert memory.nodes_of("u", "main") == (0, 1)
    await allocate(memory, small, "m")
    assert memory.nodes_of("v", "m") == (2,)
    hints = memory.topology_hints(small, named(small, "m"))
    assert hints == {"memory": (TopologyHint(0b100, preferred=True),)}


async def test_memory_of_init_containers_is_used_again_CG_082() -> None:
    """As kubelet 1.36.2: the blocks of the pod add up to what the node gave, the init container's
    shrink; when the regular container starts they are gone."""
    memory, _ = manager(Around(ready=False))
    web = make_pod(sure("main", "1", "64Mi"), init=[sure("first", "1", "100Mi")], uid="u")
    await allocate(memory, web, "first", "main")
    sizes = {name: memory.state.of("u", name) for name in ("first", "main")}
    assert sizes == {
        "first": (Block((0,), "memory", 36 * MI),),
        "main": (Block((0,), "memory", 64 * MI),),
    }
    assert memory.state.nodes[0].of("memory").reserved == 100 * MI
    assert memory.state.nodes[0].assignments == 2
    memory.starting(web, named(web, "first"))
    assert memory.state.of("u", "first")
    memory.starting(web, named(web, "main"))
    assert memory.state.of("u", "first") is None
    assert memory.state.nodes[0].of("memory").reserved == 64 * MI


async def test_sidecars_keep_their_memory_CG_082() -> None:
    memory, _ = manager(Around(ready=False))
    init = [sure("side", "1", "32Mi", restartPolicy="Always"), sure("first", "1", "16Mi")]
    web = make_pod(sure("main", "1", "64Mi"), init=init, uid="u")
    await allocate(memory, web, "side", "first", "main")
    assert memory.state.nodes[0].of("memory").reserved == (32 + 64) * MI
    memory.starting(web, named(web, "main"))
    assert memory.state.of("u", "side") == (Block((0,), "memory", 32 * MI),)
    assert memory.state.of("u", "first") is None


async def test_hints_of_the_manager() -> None:
    memory, _ = manager(Around(ready=False))
    web = make_pod(sure("main", "1", "800Mi"), uid="u")
    before = memory.topology_hints(web, named(web, "main"))["memory"]
    assert before is not None
    assert [h.affinity for h in before if h.preferred] == [2, 4, 8]
    assert memory.pod_topology_hints(web) == {"memory": before}
    await allocate(memory, web, "main")
    its_own = {"memory": (TopologyHint(2, preferred=True),)}
    assert memory.topology_hints(web, named(web, "main")) == its_own
    assert memory.pod_topology_hints(web) == its_own
    loose = make_pod(container(memory="1Gi/1Gi"), uid="v")
    assert memory.topology_hints(loose, named(loose, "main")) == {}
    assert memory.pod_topology_hints(loose) == {}


# -- restored states ------------------------------------------------------------------------------


def test_a_state_that_fits_is_kept_CG_082() -> None:
    fresh = nodes(1000, 1000)
    block = Block((0, 1), "memory", 500)
    state = MemoryState(taken(fresh, block), {"u": {"main": (block,)}})
    assert checked(state, fresh) is state
    assert checked(MemoryState(), fresh) == MemoryState(fresh)
    given = {0: taken(fresh, block)[0].tables, 1: taken(fresh, block)[1].tables}
    swapped = {n: NodeMemory(1, given[1 - n], (0, 1)) for n in (0, 1)}  # node 1 gave it
    other = MemoryState(swapped, state.entries)
    assert checked(other, fresh) is other


DIFFERENT = "[memorymanager] the expected machine state is different from the real one"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (
            MemoryState({}, {"u": {"main": ()}}),
            "[memorymanager] machine state can not be empty when it has memory assignments",
        ),
        (MemoryState(nodes(1000)), DIFFERENT),
        (MemoryState(nodes(1000, 900)), DIFFERENT),
        (MemoryState(nodes(1000, 1000) | {1: node(1000, group=(1,), used=1)}), DIFFERENT),
        (MemoryState(nodes(1000, 1000) | {1: node(1000, group=(0, 1))}), DIFFERENT),
        (MemoryState(nodes(1000, 1000) | {1: node(2000, of=2000, group=(1,))}), DIFFERENT),
        (
            MemoryState(nodes(1000, 1000), {"u": {"main": (Block((7,), "memory", 1),)}}),
            "[memorymanager] (pod: u, container: main) the memory assignment uses the NUMA that "
            "does not exist",
        ),
        (
            MemoryState(nodes(1000, 1000), {"u": {"main": (Block((0,), "hugepages-2Mi", 1),)}}),
            "[memorymanager] (pod: u, container: main) the memory assignment uses memory resource "
            "that does not exist",
        ),
    ],
)
def test_a_state_that_does_not_fit_is_refused_CG_082(state: MemoryState, words: str) -> None:
    with pytest.raises(StateFileError) as raised:
        checked(state, nodes(1000, 1000))
    assert str(raised.value) == words
