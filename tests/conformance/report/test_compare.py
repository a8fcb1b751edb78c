"""What differs between two runs: the first call that does, in words and with its time."""

from __future__ import annotations

from pathlib import Path

import pytest
from result_files import case_line, crash_trace, head_line, trace_line, write_lines

from kubelet_conformance.report.commands import main
from kubelet_conformance.report.compare import Slack, compared, first_difference, first_of, steps
from kubelet_conformance.traces.entries import Entry, Trace

GOOD = crash_trace(0.2, 10.4, 20.7, 40.1)


def test_a_run_beside_itself_has_no_difference() -> None:
    pairs = compared(GOOD, GOOD)
    assert len(pairs) == 11
    assert first_of(pairs) is None


def test_a_doubled_back_off_shows_at_the_first_wait_that_is_too_long() -> None:
    """Not before: the first restart is at once in both."""
    first = first_of(compared(GOOD, crash_trace(0.2, 20.8, 41.4, 80.2)))
    assert first is not None
    assert first.differs == ("CreateContainer main/2: 20.8 s after the call before, in A 10.4 s")
    assert first.at_s == pytest.approx(10.7)


def test_what_two_right_kubelets_may_differ_by_is_no_difference() -> None:
    """BACK-011: between d and 1.5 d + 1 s."""
    other = crash_trace(1.1, 15.5, 14.0, 59.0)
    assert first_of(compared(GOOD, other)) is None
    assert first_of(compared(GOOD, other, Slack(1.0, 0.001))) is not None


def without(trace: Trace, number: int) -> Trace:
    return Trace(trace.entries[:number] + trace.entries[number + 1 :], trace.end_s)


def test_a_call_that_is_missing_or_added_is_told_with_its_side() -> None:
    place = next(n for n, entry in enumerate(GOOD.entries) if entry.what == "StartContainer")
    for a, b, side in ((GOOD, without(GOOD, place), "A"), (without(GOOD, place), GOOD, "B")):
        first = first_of(compared(a, b))
        assert first is not None
        assert first.differs == f"only in {side}: StartContainer main/0"


def stop(timeout: str, error: str = "", pod: str = "web") -> Trace:
    detail = {"request": {"container_id": "ctr:web/main/0", "timeout": timeout}}
    return Trace((Entry(1.0, "call", "StopContainer", pod, "main", 0, 2.0, error, "", detail),))


def test_a_request_with_another_field_is_a_difference() -> None:
    first = first_of(compared(stop("30"), stop("2")))
    assert first is not None
    assert first.differs == "StopContainer main/0: timeout: '2', in A '30'"


def test_an_error_in_one_of_them_is_a_difference() -> None:
    first = first_of(compared(stop("2"), stop("2", "UNKNOWN: no")))
    assert first is not None
    assert first.differs == "only in A: StopContainer main/0"


def test_fields_that_every_run_has_otherwise_are_left_out() -> None:
    one = {"annotations": {"kubernetes.io/config.seen": "1", "x": "1"}}
    other = {"annotations": {"kubernetes.io/config.seen": "2", "x": "1"}}
    assert first_difference(one, other) == ""
    assert first_difference({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}) == "a[1].b: 3, in A 2"
    assert first_difference({"a": [1]}, {"a": [1, 2]}) == "a: [1, 2], in A [1]"


def test_pods_have_no_order_among_each_other() -> None:
    a, b = stop("2").entries[0], stop("2", pod="db").entries[0]
    assert list(steps([a, b])) == ["web", "db"]
    assert first_of(compared(Trace((a, b)), Trace((b, a)))) is None


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """A good run and one with a doubled back-off, and a case of which nothing was kept."""
    good = write_lines(
        tmp_path / "good.json",
        *(head_line(), case_line("series"), trace_line("series", GOOD), case_line("other")),
    )
    doubled = crash_trace(0.2, 20.8, 41.4, 80.2)
    bad = write_lines(
        tmp_path / "bad.json",
        head_line(),
        case_line("series", "failed", reason="expected 10 s, seen 20.8 s"),
        trace_line("series", doubled),
        *(case_line("other"), case_line("new")),
    )
    return good, bad


def test_diff_says_the_first_call_then_the_verdicts(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "diff.html"
    assert main("diff", [*map(str, runs), "--html", str(page)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[2:5] == [
        "series: web: CreateContainer main/2: 20.8 s after the call before, in A 10.4 s",
        "    A      10.700 s  CreateContainer main/2",
        "    B      21.100 s  CreateContainer main/2",
    ]
    assert told[5] == "series: verdict failed, in A passed"
    assert "    B  expected 10 s, seen 20.8 s" in told
    assert "only in B: 1 cases (new)" in told
    assert "bad.json, good.json" not in "\n".join(told)
    assert "the calls of 1 cases were not compared: good.json has no traces of them" in told[-2]
    text = page.read_text()
    first = text.index('class="differs first"')
    assert "CreateContainer main/2" in text[first : first + 200]
    assert text.count('class="differs first"') == 1


def test_diff_of_a_run_with_itself_is_0(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("diff", [str(runs[0]), str(runs[0])]) == 0
    assert "0 cases with other calls, 0 with another verdict" in capsys.readouterr().out


def test_a_file_that_is_none_is_one_error(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("diff", [str(runs[0]), "none.json"]) == 2
    said = capsys.readouterr()
    assert said.err == "kubelet-conformance: cannot read none.json: no such file or directory\n"
