"""The pages and tables of result files and recordings."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from golden_files import unpack
from golden_recording import Recording, recordings
from result_files import case_line, crash_trace, head_line, trace_line, write_lines

from fakecri.recording.recorded import RecordError
from kubelet_conformance.report import html
from kubelet_conformance.report.commands import main
from kubelet_conformance.report.html import marked
from kubelet_conformance.report.showing import recorded_trace
from kubelet_conformance.report.tables import HEADS, Column, differing, matrix, summary_rows
from kubelet_conformance.results_schema import Product, RunEnd
from kubelet_conformance.rule_texts import all_rules

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


def test_a_recorded_run_is_shown_with_what_lies_beside_its_calls(tmp_path: Path) -> None:
    trace = recorded_trace(unpack("s02", tmp_path) / "api")
    kinds = {entry.kind for entry in trace.entries}
    assert kinds == {"call", "reads", "state", "wait", "status", "event", "api"}
    assert {entry.what for entry in trace.entries if entry.kind == "event"} >= {
        *("Pulled", "Created", "Started", "BackOff"),
    }
    patches = [entry for entry in trace.entries if entry.kind == "api" and entry.pod == "crash"]
    assert patches
    assert patches[0].what == "PATCH /pods/crash/status"


@pytest.mark.parametrize("run", recordings(), ids=lambda run: run.name)
def test_every_recorded_run_can_be_shown(run: Recording, tmp_path: Path) -> None:
    unpack(run.scenario, tmp_path)
    assert recorded_trace(tmp_path / run.name).entries


def test_show_makes_a_page(tmp_path: Path) -> None:
    calls = unpack("s10", tmp_path) / "cri.jsonl"
    assert main("show", [str(calls), "-o", str(tmp_path / "x.html")]) == 0
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


# -- two runs, titles, logs -----------------------------------------------------------------------


def the_title(page: str) -> str:
    found = re.search(r"<title>(.*?)</title>.*<h1>(.*?)</h1>", page, re.S)
    assert found is not None
    assert found[1] == found[2]
    return found[1]


def test_the_title_of_a_report_says_how_the_run_ended(tmp_path: Path) -> None:
    assert main("report", [str(a_run(tmp_path / "run.json"))]) == 0
    words = "refkubelet 1.36.0 on fakecri 1.36.0"
    assert the_title((tmp_path / "run.html").read_text()) == f"\u2717 1 failed of 2 cases: {words}"
    good = write_lines(tmp_path / "good.json", head_line(), case_line("x"), RunEnd(1.0, 0.1))
    main("report", [str(good)])
    assert the_title((tmp_path / "good.html").read_text()) == f"\u2713 1 passed: {words}"
    cut = write_lines(tmp_path / "cut.json", head_line(), case_line("x", "known bug"))
    main("report", [str(cut)])
    title = the_title((tmp_path / "cut.html").read_text())
    assert title == f"\u2713 1 known bug of 1 case, not all have run: {words}"


def test_a_report_has_the_log_of_a_failed_case(tmp_path: Path) -> None:
    log = ("E1129 web.yaml <refused>", "...", "I1129 the end")
    lines = (head_line(), case_line("bad", **FAILED, log=log), case_line("good"))
    main("report", [str(write_lines(tmp_path / "run.json", *lines))])
    page = (tmp_path / "run.html").read_text()
    assert page.count("The kubelet's log") == 1
    assert "E1129 web.yaml &lt;refused&gt;\n...\nI1129 the end</pre>" in page


def two_runs(folder: Path, *cases: tuple[str, str, float]) -> str:
    """The page of a run and of another one; of each case its ID, and of the other run its verdict
    and the second delay of its crash loop, which is 10 s in the first."""
    lines: dict[str, list[Any]] = {"a": [], "b": []}
    for name, verdict, delay_s in cases:
        more: dict[str, Any] = {"reason": "too late"} if verdict != "passed" else {}
        lines["a"] += [case_line(name), trace_line(name, crash_trace(0.2, 0.3, 0.4, 0.5, 10.0, 20))]
        trace = crash_trace(0.2, 0.3, 0.4, 0.5, delay_s, 20)
        lines["b"] += [case_line(name, verdict, **more), trace_line(name, trace)]
    files = [str(write_lines(folder / f"{s}.json", head_line(), *lines[s])) for s in "ab"]
    main("diff", [*files, "--html", str(folder / "d.html")])
    return (folder / "d.html").read_text()


def test_the_page_of_two_runs_begins_with_the_first_difference(tmp_path: Path) -> None:
    cases = [("same", "passed", 10.0), ("slow", "passed", 30.0), ("worse", "failed", 40.0)]
    page = two_runs(tmp_path, *cases)
    assert the_title(page) == "\u2260 1 verdict, calls of 2 cases: a.json and b.json"
    places = [
        *("<h2>The first difference</h2>", 'id="worse" open', 'data-trace="trace-a0"'),
        *('data-trace="trace-b0"', '<tr class="differs first">', "<h2>Verdicts that differ</h2>"),
        *("<h2>Further cases whose calls differ</h2>", 'id="slow">'),
    ]
    assert [page.index(place) for place in places] == sorted(page.index(p) for p in places)
    assert page.index("<h2>The first") < page.index("<table")
    assert 'id="same"' not in page
    assert "too late" in page


def test_calls_alike_are_folded_up_and_the_timelines_know_the_moment(tmp_path: Path) -> None:
    page = two_runs(tmp_path, ("slow", "passed", 30.0))
    calls = page[page.index("differs in</th>") :]
    rows = calls[: calls.index("</table>")]
    folded = re.search(
        r'class="unfold">(\d+) calls alike</button>.*?<tbody hidden>(.*?)</tbody>', rows
    )
    assert folded is not None
    assert folded[2].count("<tr") == int(folded[1]) >= 4
    before = rows[: rows.index("differs first")]
    assert before.rpartition("</tbody>")[2].count('<tr class="">') == 2
    moments = [
        float(at_s) for at_s in re.findall(r'data-trace="trace-.0" data-at="([\d.]+)"', page)
    ]
    assert len(moments) == 2
    assert moments[1] - moments[0] == pytest.approx(20.0)


def test_two_runs_without_a_difference_say_so_in_the_title(tmp_path: Path) -> None:
    page = two_runs(tmp_path, ("same", "passed", 10.0))
    assert the_title(page) == "= No difference: a.json and b.json"


def test_no_mark_of_markdown_is_left_in_the_text_of_a_rule() -> None:
    for rule in all_rules().values():
        page = re.sub(r"<code>.*?</code>", "", marked(rule.text), flags=re.S)
        left = re.findall(r"(?<![\w.*])\*\w+[^*\n]*\w\*(?!\w)|\*\*|`|^\|.*", page, re.M)
        assert left == [], rule.id


def test_colours_are_named_once_for_each_mode() -> None:
    """A colour beside the two lists of :root would be the same in the dark."""
    style = (Path(html.__file__).parent / "page/style.css").read_text()
    modes = re.findall(r":root \{(.*?)\}", style, re.S)
    assert len(modes) == 2
    light, dark = ({name for name, _ in re.findall(r"(--\w+): (#\w+)", mode)} for mode in modes)
    assert light == dark
    assert set(re.findall(r"var\((--\w+)\)", style)) <= light
    rest = re.sub(r":root \{.*?\}", "", style, flags=re.S)
    assert re.findall(r"#[0-9a-f]{3,6}\b", rest) == []
