"""The register of cases and the selection; no kubelet is needed for any of it."""

import re
from argparse import ArgumentTypeError

import pytest
from places import SPEC

from kubelet_conformance.registry import (
    Case,
    CaseError,
    CaseRegistry,
    Feature,
    Level,
    Selection,
    SelectionError,
    load_cases,
    select,
    shard_of,
)

CASES = load_cases()
MINIMUM = {
    "lifecycle": 20,
    "backoff": 10,
    "static": 10,
    "pleg": 10,
    "eviction": 10,
    "probes": 15,
}


async def nothing(node: object) -> None:
    """A case that does nothing."""


def case(id: str = "a-case", **changes: object) -> Case:
    fields = {
        "id": id,
        "area": "backoff",
        "title": "A sentence.",
        "rules": ("BACK-001",),
        "level": Level.MUST,
        "needs": frozenset(),
        "body": nothing,
    }
    return Case(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(("area", "minimum"), MINIMUM.items())
def test_every_area_has_its_number_of_cases(area: str, minimum: int) -> None:
    assert sum(c.area == area and c.level is Level.MUST for c in CASES) >= minimum


def test_every_cited_rule_is_in_the_spec() -> None:
    known = set(re.findall(r"\b[A-Z]{2,5}-\d{3}\b", "".join(f.read_text() for f in SPEC.iterdir())))
    unknown = {
        (c.id, rule) for c in CASES for rule in c.rules if rule.partition(".")[0] not in known
    }
    assert unknown == set()


def test_bodies_are_short() -> None:
    """Style: 10-40 lines a case, without what it declares."""
    from inspect import getsourcelines

    def length(case: Case) -> int:
        lines = getsourcelines(case.body)[0]
        return len(lines) - next(n for n, line in enumerate(lines) if line.startswith("async def"))

    long = {c.id: length(c) for c in CASES if length(c) > 43}
    assert long == {}


def test_enough_cases_can_run_on_a_real_runtime() -> None:
    from kubelet_conformance.harness.runs.choice import Choice
    from kubelet_conformance.harness.runs.offered import CONTAINERD, PROCESS

    offered = Choice(kubelet=PROCESS, runtime=CONTAINERD).features
    assert sum(not c.missing(offered) and c.level is Level.MUST for c in CASES) >= 40


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"id": "No Spaces"}, "words-with-dashes"),
        ({"rules": ()}, "names no rule"),
        ({"rules": ("BACK9",)}, "is no clause ID"),
        ({"title": ""}, "no docstring"),
    ],
)
def test_a_malformed_case_is_refused(wrong: dict[str, object], text: str) -> None:
    with pytest.raises(CaseError, match=text):
        CaseRegistry().add(case(**wrong))  # type: ignore[arg-type]


def test_two_cases_with_one_id_are_refused() -> None:
    registry = CaseRegistry()
    registry.add(case(module="one"))
    with pytest.raises(CaseError, match="already taken by one"):
        registry.add(case(module="two"))


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        (Selection(), ["back", "pleg"]),
        (Selection(level=Level.DETAIL), ["back", "pleg", "detail"]),
        (Selection(rules=("BACK",)), ["back"]),
        (Selection(rules=("PLEG-001",)), ["pleg"]),
        (Selection(areas=("pleg",)), ["pleg"]),
        (Selection(ids=("detail",)), ["detail"]),
        (Selection(level=Level.DETAIL, shard=(1, 3)), ["detail"]),
        (Selection(level=Level.DETAIL, shard=(2, 3)), ["back"]),
        (Selection(level=Level.DETAIL, shard=(3, 3)), ["pleg"]),
        (Selection(rules=("BACK", "PLEG"), areas=("pleg",)), ["pleg"]),
    ],
)
def test_selection_by_rule_area_id_and_level(selection: Selection, chosen: list[str]) -> None:
    cases = [
        case("back"),
        case("pleg", area="pleg", rules=("PLEG-001",)),
        case("detail", area="other", rules=("GC-001",), level=Level.DETAIL),
    ]
    assert [c.id for c in select(cases, selection)] == chosen


@pytest.mark.parametrize(
    "selection",
    [
        Selection(ids=("nope",)),
        Selection(areas=("nope",)),
        Selection(rules=("BACK-00",)),
        Selection(disabled=("nope",)),
        Selection(areas=("backoff",), rules=("BACK-001",), level=Level.MUST, ids=()),
    ],
)
def test_a_selection_that_names_nothing_is_an_error(selection: Selection) -> None:
    with pytest.raises(SelectionError):
        select([case(level=Level.DETAIL)], selection)


def test_missing_features_are_listed_in_a_fixed_order() -> None:
    needy = case(needs=frozenset({Feature.VIRTUAL_TIME, Feature.API}))
    assert needy.missing([Feature.API]) == [Feature.VIRTUAL_TIME]
    assert needy.missing([]) == [Feature.API, Feature.VIRTUAL_TIME]


def test_more_parts_than_cases_are_told() -> None:
    with pytest.raises(SelectionError, match="--shard 3/3 of 2 cases: wanted at most 2 parts"):
        select([case("one"), case("two")], Selection(shard=(3, 3)))


@pytest.mark.parametrize("text", ["3/2", "0/2", "1/0", "1", "a/b", "1/2/3", ""])
def test_parts_that_cannot_be(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="wanted a part such as 2/5"):
        shard_of(text)
