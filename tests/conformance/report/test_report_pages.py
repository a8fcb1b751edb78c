"""The pages and tables of result files and recordings."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from places import ROOT
from result_files import case_line, crash_trace, head_line, trace_line, write_lines

from fakecri.recording.recorded import RecordError
from kubelet_conformance.report.commands import main
from kubelet_conformance.report.showing import recorded_trace
from kubelet_conformance.report.tables import HEADS, Column, differing, matrix, summary_rows
from kubelet_conformance.results_schema import Product, RunEnd

GOLDEN = ROOT / "tests/data/golden"
FAILED: dict[str, Any] = {
    "verdict": "failed",
    "rules": ("BACK-003.2", "LIFE-143"),
    "expected": "a start <at once>",
    "seen": "none",
    "messages": "expected: a start <at once>\nseen:     none",
    "repeat": "kubelet-conformance run --id bad --seed 1",
}


def a_run(file: Path) -> Path:
    return write_lines(
        file,
        *(head_line(), case_line("good"), case_line("bad", **FAILED)),
        trace_line("bad", crash_trace(0.2, 10.0)),
        RunEnd(12.0, 1.0),
    )


def trace_in(page: str, identity: str = "trace-0") -> Any:
    found = re.search(rf'id="{identity}">([^<]*)<', page)
    assert found is not None
    return json.loads(zlib.decompress(base64.b64decode(found[1])))


def test_a_report_has_rules_expectation_and_trace_of_a_failure(tmp_path: Path) -> None:
    assert main("report", [str(a_run(tmp_path / "run.json"))]) == 0
    page = (tmp_path / "run.html").read_text()
    assert page.index('id="bad"') < page.index('id="good"')  # what failed is first
    assert "<strong>BACK-003, clause 2</strong>" in page
    assert "The 600 s are fixed" in page  # the text of the rule
    assert "a start &lt;at once&gt;" in page
    assert "<at once>" not in page
    assert "kubelet-conformance run --id bad --seed 1" in page
    assert len(trace_in(page)["entries"]) == len(crash_trace(0.2, 10.0).entries)
    assert "--traces all" in page[page.index('id="good"') :]


def test_a_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    main("report", [str(a_run(tmp_path / "run.json")), "-o", str(tmp_path / "x.html")])
    page = (tmp_path / "x.html").read_text()
    assert not re.search(r'(src|href)="(?!#|data:)', page)
    assert not re.search(r"@import|url\(", page)


def test_a_thousand_cases_make_a_page_under_5_mb(tmp_path: Path) -> None:
    from kubelet_conformance.registry import load_cases

    cases = load_cases()
    lines = [
        case_line(case.id, area=case.area, title=case.title, rules=case.rules) for case in cases
    ]
    assert main("report", [str(write_lines(tmp_path / "run.json", head_line(), *lines))]) == 0
    page = tmp_path / "run.html"
    assert page.stat().st_size < 5_000_000 * len(cases) / 1000
    assert "its text is not known" not in page.read_text()


def test_the_file_of_a_killed_run_is_reported_up_to_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = a_run(tmp_path / "run.json")
    file.write_bytes(file.read_bytes()[:-20])
    assert main("report", [str(file)]) == 0
    assert "its last line is not whole" in capsys.readouterr().err
    assert "it was not ended" in (tmp_path / "run.html").read_text()


def test_the_summary_counts_by_area_and_level() -> None:
    cases = [
        case_line("a"),
        case_line("b", "failed"),
        case_line("c", "passed", level="should"),
        case_line("d", "skipped"),
        case_line("e", "known bug", area="probes"),
    ]
    rows = [dict(zip(HEADS, row, strict=True)) for row in summary_rows(cases)]
    assert [row["area"] for row in rows] == ["backoff", "probes", "all"]
    assert (rows[0]["MUST"], rows[0]["SHOULD"], rows[0]["DETAIL"]) == ("1/2", "1/1", "-")
    assert (rows[0]["failed"], rows[0]["skipped"]) == ("1", "1")
    assert (rows[1]["MUST"], rows[1]["known bug"]) == ("0/1", "1")
    assert rows[2]["MUST"] == "1/3"


def test_a_matrix_has_products_beside_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = a_run(tmp_path / "one.json")
    kubelet = Product("kubelet", "1.36.2", "/usr/bin/kubelet")
    lines = (head_line(kubelet=kubelet), case_line("good"), case_line("bad", area="probes"))
    other = write_lines(tmp_path / "other.json", *lines)
    assert main("matrix", [str(one), str(other), "--markdown"]) == 0
    told = capsys.readouterr().out
    assert "| area | refkubelet 1.36.0 on fakecri 1.36.0 | kubelet 1.36.2 on fakecri" in told
    assert "| backoff | 1/2 (1 failed) | 1/1 |" in told
    assert "| bad | failed | passed |" in told
    assert main("matrix", [str(one), str(one), "--html", str(tmp_path / "m.html")]) == 0
    assert "fakecri 1.36.0 (one)" in (tmp_path / "m.html").read_text()


def test_a_case_that_a_run_does_not_have_is_told_in_the_matrix() -> None:
    columns = [Column("x", {"a": case_line("a")}), Column("y", {})]
    assert matrix(columns)[1] == [["backoff", "1/1", "-"], ["all", "1/1", "-"]]
    assert differing(columns)[1] == [["a", "passed", "-"]]


def test_a_recorded_run_is_shown_with_what_lies_beside_its_calls() -> None:
    trace = recorded_trace(GOLDEN / "s02/api")
    kinds = {entry.kind for entry in trace.entries}
    assert kinds == {"call", "reads", "state", "wait", "status", "event", "api"}
    assert {entry.what for entry in trace.entries if entry.kind == "event"} >= {
        *("Pulled", "Created", "Started", "BackOff"),
    }
    patches = [entry for entry in trace.entries if entry.kind == "api" and entry.pod == "crash"]
    assert patches
    assert patches[0].what == "PATCH /pods/crash/status"


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.iterdir() if path.is_dir()))
def test_every_recorded_run_can_be_shown(name: str) -> None:
    for calls in (GOLDEN / name).rglob("cri.jsonl"):
        assert recorded_trace(calls.parent).entries


def test_show_makes_a_page(tmp_path: Path) -> None:
    assert main("show", [str(GOLDEN / "s10/cri.jsonl"), "-o", str(tmp_path / "x.html")]) == 0
    page = (tmp_path / "x.html").read_text()
    assert "<title>s10/cri.jsonl</title>" in page
    assert any(entry["kind"] == "probe" for entry in trace_in(page)["entries"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello\n", "x.jsonl:1: no JSON"),
        ("[]\n", "x.jsonl:1: wanted an object, got []"),
        ('{"t_start": 1}\n', "x.jsonl:1: wanted method and request of a call, got ['t_start']"),
        ('{"method": "Version"}\n', "x.jsonl:1: wanted a call with t_start in seconds"),
    ],
)
def test_what_is_no_recording_is_told_with_its_place(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(RecordError) as told:
        recorded_trace(tmp_path / "x.jsonl")
    assert said in str(told.value)


def test_an_empty_recording_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.jsonl").write_text("")
    assert main("show", [str(tmp_path / "x.jsonl")]) == 2
    assert "no calls in it" in capsys.readouterr().err
