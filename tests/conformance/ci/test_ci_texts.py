"""What CI is told: annotations, the summary in Markdown, progress."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from ci_results import result

from kubelet_conformance.ci.annotations import annotation
from kubelet_conformance.ci.markdown import MOST_FAILURES, Told, markdown
from kubelet_conformance.ci.plugin import _is_terminal
from kubelet_conformance.ci.progress import Progress
from kubelet_conformance.harness.runs.case_run import Outcome
from kubelet_conformance.harness.runs.choice import Choice

FAILED, PASSED = Outcome.FAILED, Outcome.PASSED


def test_an_annotation_is_one_line_with_rules_reason_and_repeat() -> None:
    line = annotation(result("one", FAILED, "expected: 50%\nseen: 3"), "again one", Path("/x"))
    assert line == (
        "::error title=failed%3A one::What one wants, <= 2 s. (BACK-003.2, MUST)%0A"
        "expected: 50%25%0Aseen: 3%0Arepeat: again one"
    )


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Outcome.ERROR, "::error "),
        (Outcome.KNOWN_BUG, "::notice "),
        (Outcome.INCONCLUSIVE, "::warning "),
        (Outcome.PASSED, ""),
        (Outcome.SKIPPED, ""),
    ],
)
def test_the_kind_of_an_annotation_tells_how_bad_it_is(outcome: Outcome, kind: str) -> None:
    line = annotation(result("one", outcome, "why"), "", Path("/x"))
    assert line.startswith(kind) if kind else line == ""


def test_a_case_in_the_checkout_is_shown_at_its_place(tmp_path: Path) -> None:
    mine = result("one", FAILED, file=str(tmp_path / "bugs" / "one.py"))
    assert annotation(mine, "", tmp_path).startswith("::error file=bugs/one.py,line=7,title=")
    assert annotation(mine, "", tmp_path / "elsewhere").startswith("::error title=")


def test_the_summary_has_verdict_areas_failures_and_what_the_baseline_says() -> None:
    results = [
        result("good", PASSED, seed=1),
        result("bad", FAILED, "expected: <a>\n\nseen: b", seed=1),
        result("known", Outcome.KNOWN_BUG, "known failure: issue 12\nmore", seed=1),
        result("left", Outcome.SKIPPED, "needs a disk", seed=1),
    ]
    text = markdown(results, Choice(), Told(3.0, fixed=["old"], unknown=["typo"]))
    assert text.startswith("## kubelet-conformance: 1 failed, 1 known bug, 1 passed, 1 skipped\n")
    assert "| area | 1 | 1 | 1 | 1 | 4 min 04 s | 2.0 s |" in text
    assert "| error |" not in text  # a column without numbers
    assert "failed: <b>bad</b>: What bad wants, &lt;= 2 s. (BACK-003.2, MUST)</summary>" in text
    assert "<pre>expected: &lt;a&gt;\n&#8203;\nseen: b</pre>" in text
    assert "<pre>kubelet-conformance run --id bad" in text
    assert "take them out of the baseline**\n\n- old" in text
    assert "cases that there are not**\n\n- typo" in text
    assert "- `known`: known failure: issue 12\n" in text
    assert "- skipped 1: needs a disk" in text


def test_a_summary_of_hundreds_of_failures_stays_far_below_a_mebibyte() -> None:
    many = [result(f"bad-{n}", FAILED, "x" * 100_000) for n in range(300)]
    text = markdown(many, Choice(), Told(1.0))
    assert text.count("<details>") == MOST_FAILURES
    assert "... and 250 more" in text
    assert len(text) < 500_000


def test_time_left_goes_by_what_the_cases_took_earlier() -> None:
    times = {f"short-{n}": 1.0 for n in range(5)} | {"long": 95.0}
    known, unknown = Progress(times, times), Progress(times, {})
    for n in range(5):
        for progress in (known, unknown):
            assert progress.left_s(10) is None or n == 4
            progress.ended(f"short-{n}", bad=n == 0)
    assert known.left_s(10) == pytest.approx(190)
    assert unknown.left_s(10) == pytest.approx(2)
    assert known.line(10) == "5 of 6 cases (83 %), 1 failed, about 3 min 10 s left"


@pytest.mark.parametrize(
    ("told", "is_one"), [(True, True), (False, False), (lambda: True, True), (lambda: False, False)]
)
def test_pytest_tells_of_a_terminal_by_a_boolean_or_by_a_method(told: object, is_one: bool) -> None:
    assert _is_terminal(SimpleNamespace(isatty=told)) is is_one
