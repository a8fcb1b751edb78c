"""Runs as CI sees them: whole commands on planted outcomes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from kubelet_conformance.cli import READER_GONE, main
from kubelet_conformance.pytest_plugin import CASES_DIR, pytest_addoption
from kubelet_conformance.sources import declaring

PLANTED = """\
from kubelet_conformance.session import run as run_state
from kubelet_conformance.harness.runs import processes
from kubelet_conformance.harness.runs.case_run import Outcome, Result

BAD = ("sandbox-collected", "unknown-pod-killed")

def planted(case, choice):
    outcome = Outcome.FAILED if case.id in BAD else Outcome.PASSED
    detail = "expected: 1\\nseen: 2" if case.id in BAD else ""
    return Result(case, outcome, detail, case_s=60.0, real_s=0.25, seed=choice.seed)

processes.run_virtual_case = run_state.run_virtual_case = planted
"""


def command(tmp_path: Path, *words: str, area: str = "pleg") -> tuple[list[str], dict[str, str]]:
    (tmp_path / "planted.py").write_text(PLANTED)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    run = [
        sys.executable,
        "-m",
        "kubelet_conformance.cli",
        "run",
        "-p",
        "planted",
        *(["--area", area] if area else []),
    ]
    return [*run, *words], {**os.environ, "PYTHONPATH": path}


def run(tmp_path: Path, *words: str, area: str = "pleg") -> subprocess.CompletedProcess[str]:
    line, environment = command(tmp_path, *words, area=area)
    return subprocess.run(
        line, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
    )


def test_failures_are_shown_once_annotated_and_summed_up(tmp_path: Path) -> None:
    (tmp_path / "summary.md").write_text("from a step before\n")
    done = run(
        tmp_path, "--jobs", "2", "--annotations", "github",
        "--summary", "summary.md", "--junitxml", "junit.xml",
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout.count("FAILED pleg/sandbox-collected (seed 1)\n") == 1
    assert done.stdout.count("\nrepeat:   ") == 2
    assert done.stdout.count("::error title=failed%3A ") == 2
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("from a step before\n## kubelet-conformance: 2 failed, ")
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()[0]
    assert told(suite)["kubelet"] == "refkubelet"
    case = next(one for one in suite if one.get("name") == "sandbox-collected")
    assert case.get("time") == "0.250"
    properties = told(case)
    assert properties["rules"].split()[0].startswith("GC-")
    assert properties["outcome"] == "failed"
    assert (properties["level"], properties["seed"]) == ("MUST", "1")


def told(element: ElementTree.Element) -> dict[str, str]:
    return {p.attrib["name"]: p.attrib["value"] for p in element.iter("property")}


def test_a_baseline_is_written_kept_and_found_to_be_out_of_date(tmp_path: Path) -> None:
    written = run(tmp_path, "--baseline", "known.txt", "--write-baseline")
    assert written.returncode == 0, written.stdout
    assert "baseline: known.txt has 2 known failures now" in written.stdout
    file = tmp_path / "known.txt"
    text = file.read_text()
    assert "sandbox-collected   # expected: 1\n" in text
    good = "removed-after-end  # fixed since\nno-such-case\n"
    file.write_text(text.replace("unknown-pod-killed  # expected: 1\n", good))
    done = run(tmp_path, "--baseline", "known.txt", "--summary", "summary.md")
    assert done.returncode == 1
    assert "FAILED pleg/unknown-pod-killed" in done.stdout
    assert "FAILED pleg/sandbox-collected" not in done.stdout
    assert "fixed: removed-after-end: take it out of the baseline" in done.stdout
    assert "no such case: no-such-case, in the baseline" in done.stdout
    assert "- removed-after-end\n" in (tmp_path / "summary.md").read_text()


SCENARIO = """\
id: {id}
title: A pod starts
rules: [LIFE-001]
pods: {{web: {{spec: {{containers: [{{name: main}}]}}}}}}
steps: [{{apply: web}}]
expect: [{{calls: {{method: StartContainer, pod: web}}, within: 20s, says: It starts}}]
"""


def test_a_part_knows_the_scenarios_of_the_other_parts(tmp_path: Path) -> None:
    """Of a baseline that names them all, only the name that no file has is told."""
    names = ["one", "two", "three"]
    for name in names:
        (tmp_path / f"{name}.yaml").write_text(SCENARIO.format(id=name))
    (tmp_path / "known.txt").write_text("\n".join([*names, "nonsense"]))
    told_of = []
    for part in ("1/2", "2/2"):
        words = [f"{name}.yaml" for name in names]
        done = run(tmp_path, "--shard", part, "--baseline", "known.txt", *words, area="")
        assert "no such case: nonsense, in the baseline" in done.stdout, done.stdout + done.stderr
        told_of += re.findall("no such case: (.*), in", done.stdout)
    assert told_of == ["nonsense", "nonsense"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--write-baseline",), "--write-baseline needs --baseline FILE"),
        (("--baseline", "none.txt"), "--baseline none.txt: no such file"),
        (("--times", "none.json"), "--times none.json: cannot be read"),
        (("--annotations", "other"), "invalid choice: 'other'"),
    ],
)
def test_wrong_options_end_with_exit_code_4(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = run(tmp_path, *words)
    assert done.returncode == 4
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_into_a_pipe_that_is_closed_early_ends_quietly(tmp_path: Path) -> None:
    line, environment = command(tmp_path, "-v", "--jobs", "2")
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdout=pipe, stderr=pipe, env=environment) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == READER_GONE


class Options:
    """Stands for pytest's parser and group: keeps the names of options."""

    prog = ""

    def __init__(self) -> None:
        self.added: set[str] = set()

    def getgroup(self, _: str) -> Options:
        return self

    def addoption(self, name: str, **_: object) -> None:
        self.added.add(name)


def test_every_option_of_a_run_is_in_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    options = Options()
    pytest_addoption(options)  # type: ignore[arg-type]
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    said = capsys.readouterr().out
    assert [name for name in sorted(options.added) if f"  {name}" not in said] == []


def test_completion_knows_commands_options_and_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    said = capsys.readouterr().out
    assert "--write-baseline" in said
    assert "_shtab_compgen_files" in said
    assert "explain" in said


def test_a_case_chosen_by_its_id_is_run_once_and_no_other_module_is_imported() -> None:
    cases = CASES_DIR
    assert declaring(["stop-minimum"], cases) == [str(cases / "lifecycle" / "ending" / "stop.py")]
    assert declaring(["stop-minimum", "no-such-case"], cases) == []
    line = [sys.executable, "-m", "kubelet_conformance.cli", "run", "--id", "stop-minimum"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert "│ all       │      1 │" in done.stdout
    assert " 1 passed, " in done.stdout, done.stdout
    (deselected,) = set(re.findall(r"(\d+) deselected", done.stdout))
    assert int(deselected) < 100
