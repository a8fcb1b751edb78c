"""A run in parts comes together: one summary, one page, one baseline, one exit code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from result_files import case_line, crash_trace, head_line, trace_line, write_lines

from kubelet_conformance.cli import main
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.registry import Selection
from kubelet_conformance.results_file import read
from kubelet_conformance.results_lines import choice_of
from kubelet_conformance.results_lines import head_line as line_of
from kubelet_conformance.results_run import ResultsError
from kubelet_conformance.results_schema import Product, RunEnd, RuntimeTold
from kubelet_conformance.session.options import _times
from simclock import RealClock

Said = pytest.CaptureFixture[str]
FAILURE = "expected: 2 s\nseen:     3 s\nat:       4.00 s"


def bad(name: str, verdict: str = "failed", text: str = FAILURE) -> Any:
    return case_line(name, verdict, reason="expected 2 s, seen 3 s", messages=text)


def part(file: Path, shard: str, *lines: Any, end: RunEnd | None = None, **head: Any) -> Path:
    return write_lines(file, head_line(shard=shard, **head), *lines, end or RunEnd(2.5, 1.0))


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three parts: each with a case that passed, the second with a failure, the third with one that
    is known."""
    return [
        part(tmp_path / "a.json", "1/3", case_line("one"), end=RunEnd(2.0, 0.5, chosen=5)),
        part(
            tmp_path / "b.json", "2/3", case_line("two"), bad("bad"),
            trace_line("bad", crash_trace(10.0)), end=RunEnd(3.0, 1.5),
        ),
        part(
            tmp_path / "c.json", "3/3", case_line("three"),
            bad("known", text=FAILURE.replace("2 s", f"2 s in {'/very/long' * 12} and more")),
        ),
    ]  # fmt: skip


def words(files: list[Path], *more: str) -> list[str]:
    return [*map(str, files), *more]


def test_parts_are_one_run_with_their_sums_wherever_they_stand(
    files: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "all.json").write_bytes(b"".join(file.read_bytes() for file in files))
    for run in (read(*files), read(tmp_path / "all.json"), read(*reversed(files))):
        assert {case.id for case in run.cases} == {"one", "two", "bad", "three", "known"}
        assert (run.head.shard, run.end) == ("1, 2 and 3 of 3", RunEnd(7.5, 1.5, chosen=5))
        (failed,) = (case for case in run.cases if case.id == "bad")
        assert run.trace(failed) == crash_trace(10.0)


@pytest.mark.parametrize(
    ("head", "lines", "said"),
    [
        ({"shard": "2/4"}, [], "number of parts 3 and 4"),
        ({"shard": ""}, [], "number of parts 3 and 1"),
        ({"shard": "2/3", "kubelet": Product("kubelet", "1.34.1")}, [], "kubelet refkubelet 1.36"),
        ({"shard": "2/3", "seeds": (2,)}, [], r"seeds \(1,\) and \(2,\)"),
        ({"shard": "2/3", "runtime": Product("cri-o", "")}, [], "runtime fakecri 1.36.0 and cri-o"),
        ({"shard": "2/3"}, [case_line("one")], "both have the case one"),
        ({"shard": "2/3", "chosen": ("area pleg",)}, [], "chosen nothing and area pleg"),
        ({"shard": "2/3", "end": RunEnd(1.0, 0.5, chosen=9)}, [], "number of chosen cases 5 and 9"),
    ],
)
def test_what_are_no_parts_of_one_run_is_told(
    head: dict[str, Any], lines: list[Any], said: str, files: list[Path], tmp_path: Path
) -> None:
    other = part(tmp_path / "other.json", head.pop("shard"), *lines, **head)
    with pytest.raises(ResultsError, match=rf"a\.json and .*other\.json are no parts.*{said}"):
        read(files[0], other)


def test_a_runtime_that_only_one_part_has_asked_is_known(tmp_path: Path) -> None:
    runtime = Product("unix:///x.sock", "", "unix:///x.sock")
    told = Product("containerd", "2.1", "unix:///x.sock")
    silent = part(tmp_path / "a.json", "1/2", runtime=runtime)
    telling = part(tmp_path / "b.json", "2/2", RuntimeTold(told), runtime=runtime)
    assert read(silent, telling).runtime == told


def test_the_whole_is_told_once_and_ends_as_one_run(
    files: list[Path], tmp_path: Path, capsys: Said
) -> None:
    summary = tmp_path / "summary.md"
    assert main(["join", *words(files, "--summary", str(summary))]) == 1
    said = capsys.readouterr().out
    assert re.search(r"│ all +│ +3 │ +2 │", said), said
    assert "failed: bad: What bad shows.\n  repeat: kubelet-conformance run --id bad" in said
    text = summary.read_text()
    assert text.startswith("## kubelet-conformance: 2 failed, 3 passed\n")
    assert "`refkubelet` on `fake`, 7.5 s, seed 1" in text
    good = [files[0], part(tmp_path / "d.json", "2/3"), part(tmp_path / "e.json", "3/3")]
    assert main(["join", *words(good)]) == 0


def test_a_part_that_is_missing_or_was_stopped_is_told_and_fails(
    files: list[Path], tmp_path: Path, capsys: Said
) -> None:
    summary = tmp_path / "summary.md"
    assert main(["join", str(files[0]), "--summary", str(summary)]) == 1
    assert "of the parts of this run, 2 and 3 missing\n" in capsys.readouterr().out
    assert "**This is not the whole run**\n\n- of the parts" in summary.read_text()
    end = RunEnd(1.0, 1.0, complete=False)
    stopped = [part(tmp_path / f"{n}.json", f"{n}/2", end=end) for n in (1, 2)]
    assert main(["join", *words(stopped)]) == 1
    assert "a part was stopped before all of its cases had run\n" in capsys.readouterr().out


def test_one_baseline_is_made_of_all_parts_and_no_path_in_it_is_cut(
    files: list[Path], tmp_path: Path, capsys: Said
) -> None:
    known = tmp_path / "known.txt"
    words_of_it = ["--baseline", str(known)]
    assert main(["join", *words(files), *words_of_it, "--write-baseline"]) == 0
    assert "has 2 known failures now" in capsys.readouterr().out
    path = "/very/long" * 12
    assert "known  # expected: 2 s in ...\n" in known.read_text()
    assert path[:20] not in known.read_text()
    assert main(["join", *words(files), *words_of_it]) == 0
    said = capsys.readouterr().out
    assert "known bug: bad: known failure, in" in said
    assert "\n  expected 2 s, seen 3 s\n" in said
    known.write_text(f"{known.read_text()}nonsense\none\n")
    assert main(["join", *words(files), *words_of_it]) == 0
    said = capsys.readouterr().out
    assert "no such case: nonsense, in the baseline" in said
    assert "fixed: one: take it out of the baseline" in said
    assert main(["join", *words(files[:1]), *words_of_it]) == 1
    assert "no such case" not in capsys.readouterr().out, "they may be in what is missing"


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["none.json"], 2, "cannot read none.json: no such file"),
        (["--write-baseline"], 4, "--write-baseline needs --baseline FILE"),
        (["--baseline", "none.txt"], 4, "--baseline none.txt: no such file"),
        (["--summary", "no/such/dir"], 2, "cannot write no/such/dir"),
    ],
)
def test_wrong_files_are_told_in_one_line(
    more: list[str], code: int, said: str, files: list[Path], capsys: Said
) -> None:
    assert main(["join", *words(files), *more]) == code
    assert capsys.readouterr().err.startswith(f"kubelet-conformance: {said}")


def test_a_page_and_a_matrix_are_made_of_parts(files: list[Path], capsys: Said) -> None:
    assert main(["report", *words(files)]) == 0
    page = files[0].with_suffix(".html").read_text()
    assert "1, 2 and 3 of 3" in page
    assert all(f'id="{name}"' in page for name in ("one", "two", "three", "bad", "known"))
    assert page.count('id="trace-0"') == 1
    assert main(["report", *words(files[1:])]) == 0
    assert "of the parts of this run, 1 missing" in capsys.readouterr().err
    assert "2 and 3 of 3; 1 missing" in files[1].with_suffix(".html").read_text()
    assert main(["matrix", *words(files)]) == 0
    heads, *_ = capsys.readouterr().out.splitlines()
    assert heads.count("refkubelet") == 1


def test_times_are_those_of_all_parts(files: list[Path]) -> None:
    times_s = _times(files)
    assert times_s == dict.fromkeys(["one", "two", "bad", "three", "known"], 130.0)


@pytest.mark.parametrize(
    "choice",
    [
        Choice(seed=7, latency=3.0),
        Choice(kubelet="/usr/bin/kubelet", time="jump"),
        Choice(kubelet="/usr/bin/kubelet", runtime="fake-socket", speed=4.0),
        Choice(kubelet="/usr/bin/kubelet", runtime="unix:///x.sock", long=True),
    ],
)
def test_the_line_that_repeats_a_case_is_that_of_its_part(choice: Choice) -> None:
    head = line_of([choice], Selection(shard=(1, 2)), now=RealClock().now())
    assert choice_of(head).repeat("one") == choice.repeat("one")
