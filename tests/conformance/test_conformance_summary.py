"""The page at the end of a run."""

from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.registry import Case, Level
from kubelet_conformance.summary import area_rows, reasons


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
