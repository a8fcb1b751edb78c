"""The text of a wait in vain says what the condition looked at."""

from types import SimpleNamespace
from typing import Any

import pytest

from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.observing.looked import looked_at, seen_by, shortly
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.registry import Case, Feature, Level


class Box:
    """An object with observations."""

    @looked_at
    def size(self, *, of: str) -> int:
        return len(of)

    @looked_at
    def sizes(self, *texts: str) -> list[int]:
        return [self.size(of=text) for text in texts]


def test_every_look_of_the_condition_is_told_once_with_its_answer() -> None:
    box = Box()
    told = seen_by(lambda: box.size(of="abc") > 3 or box.size(of="abc") == 0 or box.sizes("a"))
    assert [line.strip() for line in told.splitlines()] == [
        "size(of='abc') = 3",
        "sizes('a') = [1]",
    ]


class Facet(Box):
    facet = "api."


def test_a_look_through_a_facet_is_told_with_its_name() -> None:
    assert seen_by(lambda: Facet().size(of="abc")) == "api.size(of='abc') = 3"


def test_a_condition_that_looks_at_nothing_known_tells_its_answer() -> None:
    assert seen_by(lambda: []) == "the condition is []"


CALL = SimpleNamespace(method="StartContainer", started_s=1.0, container="main", attempt=1)
EVENT = {"reason": "BackOff", "message": "waits", "involvedObject": {}}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Pending", "'Pending'"),
        ([CALL], "[StartContainer main/1]"),
        ([EVENT], "[BackOff: waits]"),
        ({"metadata": {}, "status": {"phase": "Failed"}}, "Failed"),
        ([1, 2, 3, 4, 5], "5, the last of them [2, 3, 4, 5]"),
        ("x" * 1000, f"'{'x' * 299}..."),
    ],
)
def test_what_was_seen_is_told_on_one_line(value: Any, text: str) -> None:
    assert shortly(value) == text


async def waits_for_a_phase(node: Node) -> None:
    await node.apply_static(pod("web"))
    await node.run_until(lambda: node.phase("web") == "Failed", within_s=2, what="web failed")


def test_a_case_that_waits_in_vain_says_what_it_saw() -> None:
    case = Case(
        id="waits", area="a", title="t", rules=("LIFE-001",), level=Level.MUST,
        needs=frozenset({Feature.STATUS}), body=waits_for_a_phase,
    )  # fmt: skip
    detail = run_virtual_case(case, Choice()).detail
    assert "expected: web failed within 2 s\nseen:     phase('web') = 'Running'\n" in detail
