"""Merging hints: as the kubelet does it, and the laws of a merged hint.

`tests/data/resources/merged_hints.json`: policy, distances, prefer-closest, the providers' hints as
(mask, preferred), and the merged hint and verdict of kubelet 1.36.2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import DATA
from pods import container, make_pod

from refkubelet.container_manager.providers.hints import (
    AllocationError,
    Hints,
    TopologyHint,
    all_masks,
)
from refkubelet.container_manager.topology.manager import TopologyManager
from refkubelet.container_manager.topology.merge import (
    NumaInfo,
    hint_lists,
    merge_hints,
    single_node_hints,
)
from refkubelet.container_manager.topology.policies import TopologyPolicy, topology_policy
from refkubelet.container_manager.topology.policy_options import TopologyOptions, topology_options
from refkubelet.model.objects import Container, Pod

RECORDED = json.loads((DATA / "resources/merged_hints.json").read_text())
FOUR = NumaInfo((0, 1, 2, 3), dict.fromkeys(range(4), (20, 20, 20, 20)))
ANYWHERE = TopologyHint(None, preferred=True)


def as_hints(short: Mapping[str, Sequence[Sequence[Any]] | None]) -> Hints:
    return {
        name: None if hints is None else tuple(TopologyHint(*hint) for hint in hints)
        for name, hints in short.items()
    }


@pytest.mark.parametrize(("policy", "distances", "closest", "provided", "wanted"), RECORDED)
def test_hints_are_merged_as_the_kubelet_merges_them_CG_083(
    policy: str, distances: list[list[int]], closest: bool, provided: list[Any], wanted: list[Any]
) -> None:
    nodes = tuple(range(len(distances)))
    numa = NumaInfo(nodes, {n: tuple(row) for n, row in enumerate(distances)})
    merged, admitted = TopologyPolicy(policy, numa, TopologyOptions(closest)).merge(
        [as_hints(short) for short in provided]
    )
    assert [merged.affinity, merged.preferred, admitted] == wanted


hints = st.builds(TopologyHint, st.none() | st.integers(1, 15), st.booleans())
lists = st.lists(st.lists(hints, min_size=1, max_size=4), max_size=4)


@given(lists, st.booleans())
def test_the_merged_mask_is_what_one_hint_of_each_has_in_common(
    given_lists: list[list[TopologyHint]], closest: bool
) -> None:
    """CG-083: the AND of one hint each, or all nodes if no choice has a node in common; preferred
    only if all of some choice are, and name the same nodes."""
    best = merge_hints(given_lists, FOUR, closest=closest)
    choices = []
    for chosen in product(*given_lists):
        mask, named = 15, {h.affinity for h in chosen if h.affinity is not None}
        for each in named:
            mask &= each
        choices.append((mask, all(h.preferred for h in chosen) and len(named) <= 1))
    possible = [choice for choice in choices if choice[0]]
    if possible:
        assert (best.affinity, best.preferred) in possible
        assert best.preferred == any(preferred for _, preferred in possible)
    else:
        assert best == TopologyHint(15, preferred=False)


@given(lists, st.data())
def test_the_order_of_providers_does_not_matter(
    given_lists: list[list[TopologyHint]], data: st.DataObject
) -> None:
    shuffled = [data.draw(st.permutations(hints)) for hints in given_lists]
    mixed = data.draw(st.permutations(shuffled))
    assert merge_hints(mixed, FOUR) == merge_hints(given_lists, FOUR)


@given(lists)
def test_single_numa_node_admits_one_node_or_any(given_lists: list[list[TopologyHint]]) -> None:
    provided = [{"r": tuple(one)} for one in given_lists]
    policy = TopologyPolicy("single-numa-node", FOUR, TopologyOptions())
    merged, admitted = policy.merge(provided)
    assert admitted == merged.preferred
    if admitted:
        assert merged.affinity is None or merged.affinity.bit_count() == 1
    else:
        assert merged.affinity is None


def test_silence_fits_anywhere_and_an_empty_list_nowhere() -> None:
    assert hint_lists([{}, {"a": None, "b": ()}]) == [
        (ANYWHERE,),
        (ANYWHERE,),
        (TopologyHint(None, preferred=False),),
    ]
    assert hint_lists([{}]) == [(ANYWHERE,)]
    assert hint_lists([{"a": ()}]) == [(TopologyHint(),)]
    two = (TopologyHint(1, preferred=True), TopologyHint(2), TopologyHint(3, preferred=True))
    assert single_node_hints([two, (ANYWHERE, TopologyHint())]) == [two[:1], (ANYWHERE,)]


def test_close_nodes_win_only_where_that_is_wanted_CG_083() -> None:
    far = NumaInfo((0, 1, 2), {0: (10, 30, 20), 1: (30, 10, 20), 2: (20, 20, 10)})
    pairs = [[TopologyHint(mask, preferred=True) for mask in (0b011, 0b101, 0b111)]]
    assert merge_hints(pairs, far).affinity == 0b011
    assert merge_hints(pairs, far, closest=True).affinity == 0b101
    wide = [[TopologyHint(0b111, preferred=True)]]
    assert merge_hints(wide, far, closest=True).affinity == 0b111


def test_all_masks_come_narrow_first() -> None:
    counts = [mask.bit_count() for mask in all_masks(range(4))]
    assert counts == sorted(counts)
    assert len(counts) == 15


# -- options and policies -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"nearest": "true"}, 'unknown Topology Manager Policy option: "nearest"'),
        (
            {"prefer-closest-numa-nodes": "yes"},
            'bad value for option "prefer-closest-numa-nodes": '
            'strconv.ParseBool: parsing "yes": invalid syntax',
        ),
        (
            {"max-allowable-numa-nodes": "many"},
            'unable to convert policy option to integer "max-allowable-numa-nodes": '
            'strconv.Atoi: parsing "many": invalid syntax',
        ),
        (
            {"max-allowable-numa-nodes": "7"},
            'the minimum value of "max-allowable-numa-nodes" should not be less than 8',
        ),
    ],
)
def test_wrong_options_are_named_CG_083(texts: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        topology_options(texts)
    assert str(raised.value) == words


def test_options() -> None:
    assert topology_options({}) == TopologyOptions(prefer_closest=False, max_nodes=8)
    texts = {"prefer-closest-numa-nodes": "true", "max-allowable-numa-nodes": "12"}
    assert topology_options(texts) == TopologyOptions(prefer_closest=True, max_nodes=12)


def test_more_than_eight_nodes_are_a_start_failure_CG_083() -> None:
    nine = NumaInfo(tuple(range(9)))
    assert topology_policy("none", nine, {}) is None
    with pytest.raises(ValueError, match="unsupported on machines with more than 8 NUMA Nodes"):
        topology_policy("restricted", nine, {})
    assert topology_policy("restricted", nine, {"max-allowable-numa-nodes": "9"}) is not None
    assert topology_policy("restricted", NumaInfo(tuple(range(8))), {}) is not None


def test_closeness_needs_distances_and_policies_have_names() -> None:
    closest = {"prefer-closest-numa-nodes": "true"}
    with pytest.raises(ValueError, match=r".") as raised:
        topology_policy("best-effort", NumaInfo((0, 1)), closest)
    words = "cannot discover NUMA topology: error getting NUMA distances from cadvisor"
    assert str(raised.value) == words
    assert topology_policy("best-effort", FOUR, closest) is not None
    with pytest.raises(ValueError, match='unknown policy: "some"'):
        topology_policy("some", FOUR, {})


# -- admission ------------------------------------------------------------------------------------


class Provider:
    """Says what it was told to say, and remembers what it was asked."""

    def __init__(self, name: str, asked: list[str], hints: Hints, refuses: str = "") -> None:
        self.name, self.asked, self.hints, self.refuses = name, asked, hints, refuses
        self.manager: TopologyManager | None = None

    def topology_hints(self, pod: Pod, container: Container) -> Hints:
        self.asked.append(f"{self.name} hints {container.name}")
        return self.hints

    def pod_topology_hints(self, pod: Pod) -> Hints:
        self.asked.append(f"{self.name} hints")
        return self.hints

    async def allocate(self, pod: Pod, container: Container) -> None:
        near = self.manager.affinity("u", container.name).affinity if self.manager else None
        self.asked.append(f"{self.name} allocates {container.name} near {near}")
        if container.name == self.refuses:
            raise AllocationError("no more")


async def admission(
    policy: str, scope: str, hints: Hints, refuses: str = ""
) -> tuple[AllocationError | None, list[str], TopologyManager]:
    asked: list[str] = []
    chosen = topology_policy(policy, FOUR, {})
    manager = TopologyManager(chosen, scope)
    providers = [Provider("a", asked, hints), Provider("b", asked, {}, refuses)]
    for provider in providers:
        provider.manager = manager
    manager.providers = providers
    wanted = make_pod(container(), init=[container("first")], uid="u")
    return await manager.admit(wanted), asked, manager


NODE_2: Hints = {"r": (TopologyHint(4, preferred=True),)}


async def test_every_provider_allocates_for_every_container_in_order_CG_080() -> None:
    refusal, asked, _ = await admission("none", "container", NODE_2)
    assert refusal is None
    assert asked == [
        f"{name} allocates {container} near None"
        for container in ("first", "main")
        for name in ("a", "b")
    ]


async def test_hints_are_asked_container_by_container_or_once_CG_083() -> None:
    refusal, asked, manager = await admission("restricted", "container", NODE_2)
    assert refusal is None
    assert asked[:4] == ["a hints first", "b hints first", *_near_4("first")]
    refusal, asked, manager = await admission("restricted", "pod", NODE_2)
    assert refusal is None
    assert asked == ["a hints", "b hints", *_near_4("first"), *_near_4("main")]
    assert manager.affinity("u", "main") == TopologyHint()  # the pod's admission is over


def _near_4(container: str) -> list[str]:
    return [f"{name} allocates {container} near 4" for name in ("a", "b")]


async def test_refusals_have_upstreams_reasons_LIFE_223() -> None:
    not_preferred: Hints = {"r": (TopologyHint(4),)}
    refusal, asked, _ = await admission("restricted", "container", not_preferred)
    assert refusal is not None
    assert refusal.reason == "TopologyAffinityError"
    assert refusal.message == "Resources cannot be allocated with Topology locality"
    assert asked == ["a hints first", "b hints first"]
    refusal, asked, _ = await admission("none", "container", {}, refuses="first")
    assert refusal is not None
    assert refusal.reason == "UnexpectedAdmissionError"
    assert refusal.message == "Allocate failed due to no more, which is unexpected"
    assert asked[-1].startswith("b allocates first")
