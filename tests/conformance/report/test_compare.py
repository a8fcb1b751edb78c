"""What differs between two runs: the first call that does, in words and with its time."""

from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path

import pytest
from result_files import case_line, crash_trace, head_line, trace_line, write_lines

from kubelet_conformance.report import compare
from kubelet_conformance.report.commands import main
from kubelet_conformance.report.compare import Slack, compared, first_difference, first_of, steps
from kubelet_conformance.traces.entries import Entry, Trace
from simclock import Rng

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


@pytest.mark.parametrize("seed", range(40))
def test_calls_stand_side_by_side_that_are_alike(seed: int) -> None:
    """Whatever the two have: each call is there once, those side by side have one name, and up to
    the first one that differs, and from the last one on, all are side by side."""
    rng = Rng(seed).stream("names")
    a = [rng.choice("xyz") for _ in range(int(rng.random() * 40))]
    b = [name for name in a if rng.random() < 0.9]
    for _ in range(int(rng.random() * 3)):
        b.insert(int(rng.random() * (len(b) + 1)), rng.choice("xyz"))
    at_a = at_b = 0
    for kind, a_from, a_to, b_from, b_to in compare._alignment(a, b):
        assert (a_from, b_from) == (at_a, at_b)
        assert (kind == "equal") is (a[a_from:a_to] == b[b_from:b_to])
        at_a, at_b = a_to, b_to
    assert (at_a, at_b) == (len(a), len(b))
    ways = list(compare._alignment(a, b))
    if a == b:
        assert len(ways) == min(1, len(a))
    elif a and b and a[0] == b[0]:
        assert ways[0][0] == "equal"
    if a and b and a != b and a[-1] == b[-1]:
        assert ways[-1][0] == "equal"


def test_only_what_differs_is_aligned(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [("CreateContainer", "StartContainer")[n % 2] for n in range(1000)]
    lengths = []

    class Counting(SequenceMatcher[str]):
        def __init__(self, junk: None, a: list[str], b: list[str], *, autojunk: bool) -> None:
            lengths.append((len(a), len(b)))
            super().__init__(junk, a, b, autojunk)

    monkeypatch.setattr(compare, "SequenceMatcher", Counting)
    other = [*names[:500], "StopContainer", *names[500:]]
    assert [way[0] for way in compare._alignment(names, other)] == ["equal", "insert", "equal"]
    assert list(compare._alignment(names, list(names))) == [("equal", 0, 1000, 0, 1000)]
    assert lengths == [(0, 1), (0, 0)]
