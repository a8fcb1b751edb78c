"""Which cases share a kubelet, and which of them together."""

from __future__ import annotations

import pytest

from kubelet_conformance.features import Feature
from kubelet_conformance.harness.runs.batches import OF_THE_NODE, batches, shares
from kubelet_conformance.registry import Case, Level, load_cases
from kubeobjects.structs import replace


async def _nothing(_: object) -> None:
    return


def a_case(name: str, *needs: Feature) -> Case:
    return Case(
        id=name,
        area="lifecycle",
        title="",
        rules=("LIFE-001",),
        level=Level.MUST,
        needs=frozenset(needs),
        body=_nothing,
    )


def test_a_case_that_looks_at_its_pods_only_shares() -> None:
    assert shares(
        a_case("plain", Feature.API, Feature.STATUS, Feature.FAULTS, Feature.VIRTUAL_TIME)
    )


@pytest.mark.parametrize("need", sorted(OF_THE_NODE, key=lambda need: need.name))
def test_a_case_that_needs_the_node_does_not(need: Feature) -> None:
    assert not shares(a_case("needy", need))


def test_nor_does_one_that_says_so_or_has_a_machine_or_a_limit_of_its_node() -> None:
    case = a_case("plain")
    assert not shares(replace(case, alone=True))
    assert not shares(replace(case, machine={"cpus": 4}))
    assert not shares(replace(case, node_config={"maxPods": 2}))
    assert shares(replace(case, node_config={"syncFrequency": "5s"}))


def test_cases_with_equal_kubelets_are_together_and_all_are_there_once() -> None:
    plain = [a_case(f"plain-{number}") for number in range(5)]
    api = [a_case(f"api-{number}", Feature.API) for number in range(2)]
    other = [replace(case, id=f"o{case.id}", node_config={"syncFrequency": "5s"}) for case in plain]
    alone = a_case("alone", Feature.RESTART)
    groups = batches([*plain, alone, *api, *other])
    named = [[case.id for case in group] for group in groups]
    assert sorted(map(len, named)) == [1, 2, 5, 5]
    assert [case.id for case in plain] in named
    assert ["alone"] in named
    assert all(len({(str(c.node_config), c.needs) for c in group}) == 1 for group in groups)


def test_groups_have_equal_sizes_and_long_cases_are_together_and_first() -> None:
    short = [a_case(f"short-{number}") for number in range(7)]
    long = [a_case(f"long-{number}", Feature.VIRTUAL_TIME) for number in range(3)]
    groups = batches([*short, *long], most=4)
    assert [len(group) for group in groups] == [3, 3, 4]
    assert [case.id for case in groups[0]] == ["long-0", "long-1", "long-2"]


def test_with_groups_of_one_long_cases_come_first() -> None:
    cases = [a_case("short"), a_case("long", Feature.VIRTUAL_TIME)]
    assert [[c.id for c in group] for group in batches(cases, most=1)] == [["long"], ["short"]]


def test_a_third_of_the_cases_share() -> None:
    cases = load_cases()
    assert 3 * sum(map(shares, cases)) >= len(cases)
