"""The page at the end of a run."""

from io import StringIO
from pathlib import Path

import pytest

from kubelet_conformance.ci.markdown import Told, markdown
from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.registry import Case, Level
from kubelet_conformance.summary import area_rows, print_summary, reasons, where_more_is


async def nothing(node: object) -> None:
    """A case that does nothing."""


def case_in(area: str) -> Case:
    return Case(
        id="x", area=area, title="t", rules=("LIFE-001",), level=Level.MUST,
        needs=frozenset(), body=nothing,
    )  # fmt: skip


def test_the_rows_count_results_by_area() -> None:
    results = [
        Result(case_in("a"), Outcome.PASSED, case_s=100.0, real_s=0.5),
        Result(case_in("b"), Outcome.SKIPPED, "needs x"),
        Result(case_in("b"), Outcome.ERROR, real_s=1.0),
    ]
    assert area_rows(results) == [
        ["a", "1", "-", "-", "-", "-", "-", "-", "100.0 s", "0.5 s"],
        ["b", "-", "-", "-", "1", "-", "1", "-", "0.0 s", "1.0 s"],
        ["all", "1", "-", "-", "1", "-", "1", "-", "100.0 s", "1.5 s"],
    ]
    assert reasons(results) == ["skipped 1: needs x"]


BUG = "it starts too early (kubernetes/kubernetes#1, not fixed)"


@pytest.mark.parametrize(
    ("seen", "told"),
    [("1", "expected 2 s, seen 1"), ("1\n  2", None), ("x " * 400, "x x ...")],
)
def test_a_known_bug_says_what_was_expected_and_seen(seen: str, told: str | None) -> None:
    """On the terminal in lines that are not too long, and in Markdown."""
    detail = f"{BUG}\nexpected: 2 s\nseen:     {seen}\nat:       3.00 s"
    results = [Result(case_in("a"), Outcome.KNOWN_BUG, detail)]
    out = StringIO()
    print_summary(results, Choice(), out, 1.0)
    _, _, after = out.getvalue().partition(f"known bug: x: {BUG}\n")
    first = after.splitlines()[0]
    assert first.startswith("  expected 2 s, seen ")
    assert first.endswith(told or "2")
    assert len(first) < 310
    assert f"- `x`: {BUG}; expected 2 s, seen " in markdown(results, Choice(), Told(1.0))


def test_a_known_failure_without_an_expectation_has_its_reason_alone() -> None:
    out = StringIO()
    print_summary([Result(case_in("a"), Outcome.KNOWN_BUG, "why")], Choice(), out, 1.0)
    assert "known bug: x: why\nseed 1" in out.getvalue()


def test_where_more_can_be_read_is_told_unless_all_passed() -> None:
    passed = [Result(case_in("a"), Outcome.PASSED), Result(case_in("a"), Outcome.SKIPPED, "no")]
    assert where_more_is(passed, Path("run.json")) == ""
    for outcome in (Outcome.FAILED, Outcome.ERROR, Outcome.INCONCLUSIVE, Outcome.KNOWN_BUG):
        results = [*passed, Result(case_in("a"), outcome, "why")]
        page = "kubelet-conformance report run.json"
        assert where_more_is(results, Path("run.json")).endswith(page)
        assert "--results FILE" in where_more_is(results, None)
