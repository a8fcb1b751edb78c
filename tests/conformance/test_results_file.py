"""Result files: what is written is read again, what is damaged is told, the schema is published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from places import ROOT
from result_files import case_line, crash_trace, head_line, trace_line, write_lines

from kubelet_conformance.harness.runs.case_run import Outcome
from kubelet_conformance.results_file import document, read
from kubelet_conformance.results_run import ResultsError
from kubelet_conformance.results_schema import (
    FORMAT,
    Product,
    RunEnd,
    RuntimeTold,
    Verdict,
    schema,
)

SCHEMA: dict[str, Any] = json.loads(
    (ROOT / "conformance/kubelet_conformance/results.schema.json").read_text()
)


def whole(file: Path) -> Path:
    return write_lines(
        file,
        head_line(),
        RuntimeTold(Product("containerd", "1.7.24", "containerd")),
        case_line("good"),
        case_line("bad", "failed", messages="expected: x\nseen:     y"),
        trace_line("bad", crash_trace(10.0)),
        RunEnd(2.5, 1.0),
    )


def test_the_schema_is_the_one_of_the_structs() -> None:
    """To make it anew: kubelet-conformance report --schema, into results.schema.json."""
    assert schema() == SCHEMA


def test_the_schema_takes_what_is_written_and_refuses_other_words(tmp_path: Path) -> None:
    for line in whole(tmp_path / "run.json").read_text().splitlines():
        jsonschema.validate(json.loads(line), SCHEMA)
    wrong = json.loads((tmp_path / "run.json").read_text().splitlines()[3])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**wrong, "verdict": "good"}, SCHEMA)


def test_every_outcome_is_a_verdict() -> None:
    assert {outcome.value for outcome in Outcome} == set(get_args(Verdict))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    run = read(whole(tmp_path / "run.json"))
    assert [case.id for case in run.cases] == ["good", "bad"]
    assert run.title == "refkubelet 1.36.0 on containerd 1.7.24"
    assert run.trace(run.cases[0]) is None
    assert run.trace(run.cases[1]) == crash_trace(10.0)
    assert (run.end, run.cut) == (RunEnd(2.5, 1.0), False)


def test_the_file_of_a_run_that_was_killed_is_read_up_to_there(tmp_path: Path) -> None:
    """At any byte: what is there is read, and the line that is not whole is told of."""
    file = whole(tmp_path / "run.json")
    text = file.read_bytes()
    ends = [place for place, byte in enumerate(text) if byte == ord("\n")]
    for place in range(ends[0] + 1, len(text), 7):
        file.write_bytes(text[:place])
        run = read(file)
        assert len(run.cases) == sum(place >= end for end in ends[2:4]), place
        assert run.cut == (place not in [*ends, *(end + 1 for end in ends)]), place
        assert document(run)["real_s"] == 130.0 * len(run.cases)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no result file: it is empty"),
        ("hello\n", "run.json:1: no line of a result file"),
        ('{"kind":"end","real_s":1,"load":1}\n', "wanted a line of kind run first"),
        (f'{{"kind":"run","format":{FORMAT}}}\n', "run.json:1: Object missing required field"),
    ],
)
def test_what_is_no_result_file_is_told_with_its_place(
    text: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ResultsError, match=said):
        read(tmp_path / "run.json")


def test_a_damaged_line_in_the_middle_is_not_passed_over(tmp_path: Path) -> None:
    file = whole(tmp_path / "run.json")
    file.write_text(file.read_text().replace('"verdict":"failed"', '"verdict":"fialed"'))
    with pytest.raises(ResultsError, match=r"run.json:4: Invalid enum value 'fialed'"):
        read(file)


def test_a_file_of_another_format_names_the_version_that_reads_it(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "run.json", head_line(format=FORMAT + 1))
    with pytest.raises(ResultsError, match="use the version that wrote it"):
        read(file)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"cannot read .*: no such file"):
        read(tmp_path / "none.json")


def test_the_worst_result_of_several_seeds_is_told(tmp_path: Path) -> None:
    lines = [case_line("a", verdict, seed=n) for n, verdict in enumerate(("passed", "error"), 1)]
    run = read(write_lines(tmp_path / "run.json", head_line(seeds=(1, 2)), *lines))
    assert run.worst()["a"].verdict == "error"
    assert document(run)["cases"]["a"]["seeds"] == {"passed": [1], "error": [2]}


def test_a_thousand_cases_are_under_5_mb(tmp_path: Path) -> None:
    """With the longest title and text that a case of today has, and a failure in ten."""
    title, text = "t" * 160, "expected: something\nseen:     another\n" + "last call\n" * 200
    lines = [
        case_line(f"case-{n:04}", title=title, rules=tuple(f"BACK-{i:03}" for i in range(8)))
        if n % 10
        else case_line(f"case-{n:04}", "failed", title=title, messages=text)
        for n in range(1000)
    ]
    file = write_lines(tmp_path / "run.json", head_line(), *lines)
    assert file.stat().st_size < 5_000_000
    assert len(read(file).cases) == 1000
