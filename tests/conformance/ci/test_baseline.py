"""The baseline: what is known does not count, what is new does, what is fixed is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from ci_results import result

from kubelet_conformance.ci.baseline import (
    Baseline,
    BaselineError,
    read_baseline,
    updated,
    write_baseline,
)
from kubelet_conformance.harness.runs.case_run import Outcome

FAILED, PASSED, KNOWN = Outcome.FAILED, Outcome.PASSED, Outcome.KNOWN_BUG


def baseline(tmp_path: Path, text: str) -> Baseline:
    file = tmp_path / "known.txt"
    file.write_text(text)
    return read_baseline(file)


def test_a_listed_failure_is_known_and_says_why_and_what_was_seen(tmp_path: Path) -> None:
    known = baseline(tmp_path, "# ours\n\none  # issue 12\n")
    judged = known.judged(result("one", FAILED, "expected: 2 s"))
    assert judged.outcome is KNOWN
    assert "issue 12" in judged.detail
    assert judged.detail.endswith("\nexpected: 2 s")


def test_what_is_not_listed_and_errors_of_the_harness_stay(tmp_path: Path) -> None:
    known = baseline(tmp_path, "one\n")
    for other in (result("two", FAILED), result("one", Outcome.ERROR), result("one", PASSED)):
        assert known.judged(other) is other


def test_a_case_is_fixed_when_it_passed_under_every_seed(tmp_path: Path) -> None:
    known = baseline(tmp_path, "one\ntwo\nthree\n")
    results = [result("one", PASSED), result("two", PASSED), result("two", KNOWN)]
    assert known.fixed(results) == ["one"]
    assert known.unknown(["one", "two"]) == ["three"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("one\nNot a case\n", "line 2: 'Not a case' is no case ID"),
        ("one\none\n", "line 2: .*twice"),
    ],
)
def test_a_wrong_file_is_told_with_its_line(tmp_path: Path, text: str, wanted: str) -> None:
    with pytest.raises(BaselineError, match=wanted):
        baseline(tmp_path, text)


def test_a_file_that_is_not_there_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="no such file; --write-baseline"):
        read_baseline(tmp_path / "none.txt")


def test_a_new_baseline_has_what_failed_and_what_was_not_judged() -> None:
    known = {"again": "issue 1", "gone": "issue 2", "not-run": "issue 3"}
    results = [
        result("again", KNOWN, "known\nexpected: 1"),
        result("gone", PASSED),
        result("new", FAILED, "\nexpected:   2\nseen: 3"),
        result("broken", Outcome.ERROR),
    ]
    assert updated(known, results) == {
        "again": "issue 1",
        "new": "expected: 2",
        "not-run": "issue 3",
    }


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    reasons = {"one": "expected: a # b", "longer-name": ""}
    write_baseline(tmp_path / "known.txt", reasons)
    assert read_baseline(tmp_path / "known.txt").reasons == reasons
