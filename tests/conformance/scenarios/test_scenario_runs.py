"""`kubelet-conformance run` with files: scenarios and modules of cases outside of the package; and
the fixtures of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mutant_tables import read_all

from kubelet_conformance.known_bugs import KnownBug
from kubelet_conformance.packaged import shipped
from kubelet_conformance.registry import Selection
from kubelet_conformance.results_file import read
from kubelet_conformance.scenarios.files import in_files, named_files
from kubelet_conformance.scenarios.reading import load_scenario
from kubelet_conformance.sources import with_fixtures

BUG = """\
id: my-bug
title: A pod never starts
upstream: [77]
affected: {since: 1.30, source: here}
pods: {web: {}}
steps: [{apply: web}]
expect:
  - calls: {method: StartContainer, pod: web}
    says: It was not started
"""
CASE = '''
from kubelet_conformance import conformance


@conformance(id="my-case", rules=["LIFE-143"])
async def starts(node):
    """A container starts."""
    from kubelet_conformance.harness.manifests import pod
    await node.apply_static(pod("web"))
    await node.wait_running("web")
'''


def run(folder: Path, *words: str) -> tuple[int, str, dict[str, str]]:
    """The exit code, what was printed, and the outcome of each case."""
    results = folder / "results.json"
    words = ("run", "-q", "--jobs", "1", "--results", str(results), *words)
    done = subprocess.run(
        [sys.executable, "-m", "kubelet_conformance.cli", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    cases = read(results).worst() if results.exists() else {}
    outcomes = {name: case.verdict for name, case in cases.items()}
    return done.returncode, done.stdout + done.stderr, outcomes


def test_scenarios_and_cases_run_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "my-bug.yaml").write_text(BUG)
    (tmp_path / "my_case.py").write_text(CASE)
    code, _, outcomes = run(tmp_path, "my-bug.yaml", "my_case.py")
    assert (code, outcomes) == (0, {"my-bug": "passed", "my-case": "passed"})


def test_a_failure_tells_the_line_that_repeats_it_and_a_known_bug_is_one(tmp_path: Path) -> None:
    (tmp_path / "my-bug.yaml").write_text(
        BUG.replace("StartContainer", "UpdatePodSandboxResources")
    )
    code, said, outcomes = run(tmp_path, "my-bug.yaml")
    assert (code, outcomes) == (1, {"my-bug": "failed"})
    assert "It was not started\nexpected: calls: method UpdatePodSandboxResources" in said
    assert f"kubelet-conformance run {tmp_path}/my-bug.yaml --id my-bug --seed 1" in said
    code, said, outcomes = run(tmp_path, "my-bug.yaml", "--kubernetes-version", "1.31.2")
    assert (code, outcomes) == (0, {"my-bug": "known bug"})
    (tmp_path / "my-bug.yaml").write_text(BUG)
    code, said, outcomes = run(tmp_path, "my-bug.yaml", "--kubernetes-version", "1.31.2")
    assert (code, outcomes) == (1, {"my-bug": "failed"})
    assert "seen:     the case passed" in said


def test_wrong_files_end_a_run_before_it_begins(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BUG)
    (tmp_path / "b.yaml").write_text(BUG)
    code, said, _ = run(tmp_path, "a.yaml", "b.yaml")
    assert code == 4
    assert "b.yaml:1:1: id: my-bug is already that of a.yaml" in said
    code, said, _ = run(tmp_path, "nowhere.yaml")
    assert code == 4
    assert "nowhere.yaml: no such file" in said
    (tmp_path / "a.yaml").write_text(BUG.replace("StartContainer", "StartContaner"))
    code, said, _ = run(tmp_path, "a.yaml")
    assert code == 4
    assert said.startswith("a.yaml:8:21: expect[0].calls.method: CRI v1 has no method")


def test_a_case_and_a_scenario_with_one_id_are_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "my-bug.yaml").write_text(BUG)
    (tmp_path / "my_case.py").write_text(CASE.replace("my-case", "my-bug"))
    code, said, _ = run(tmp_path, "my-bug.yaml", "my_case.py")
    assert code == 4
    assert "case ID 'my-bug' is in" in said


def test_which_words_name_files(tmp_path: Path) -> None:
    words = ["--results", "x.yaml", "--long", "a.yaml", f"{tmp_path}", "-c", "b.yaml", "c.py", "-x"]
    assert named_files(words) == ["a.yaml", f"{tmp_path}", "c.py"]
    assert in_files([str(tmp_path)]) == [tmp_path]  # none in it
    for name in ("b.yaml", "a.yml", "c.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in in_files([str(tmp_path)])] == ["a.yml", "b.yaml"]


@pytest.mark.parametrize("word", ["mine", "mine/", "./mine"])
def test_a_directory_is_its_scenarios_and_nothing_else(tmp_path: Path, word: str) -> None:
    (tmp_path / "mine").mkdir()
    code, said, outcomes = run(tmp_path, word)
    assert (code, outcomes) == (4, {})
    assert said == "kubelet-conformance: mine: a directory without scenarios (*.yaml)\n"
    (tmp_path / "mine" / "my-bug.yaml").write_text(BUG)
    code, _, outcomes = run(tmp_path, word)
    assert (code, outcomes) == (0, {"my-bug": "passed"})


def test_fixtures_run_when_they_are_chosen() -> None:
    cases = Path("/cases")
    first, *_ = bugs = shipped("bugs")
    files = [str(path) for path in bugs]
    assert with_fixtures(["/cases"], Selection(), cases) == ["/cases"]
    assert with_fixtures(["/cases"], Selection(areas=("bugs",)), cases) == files
    both = Selection(areas=("bugs", "pleg"))
    assert with_fixtures(["/cases"], both, cases) == ["/cases", *files]
    assert with_fixtures(["/cases"], Selection(ids=(first.stem,)), cases) == [str(first)]
    story = shipped("stories")[0]
    assert with_fixtures(["/cases"], Selection(ids=(story.stem,)), cases) == [str(story)]
    assert with_fixtures(["x.yaml"], Selection(areas=("bugs",)), cases) == ["x.yaml"]


@pytest.fixture(scope="module")
def fixtures_with_mutants() -> frozenset[str]:
    """The fixtures that notice a mutant, as its table says."""
    return frozenset(name for mutant in read_all() for name in mutant.fixtures)


@pytest.mark.parametrize("path", shipped("bugs"), ids=lambda path: path.stem)
def test_a_fixture_is_named_by_its_id_says_where_it_is_from_and_has_a_mutant(
    path: Path, fixtures_with_mutants: frozenset[str]
) -> None:
    scenario = load_scenario(path)
    assert scenario.id == path.stem
    assert scenario.rules
    assert scenario.upstream or scenario.about
    assert all(isinstance(bug, KnownBug) for bug in scenario.bugs)
    schema = "../../conformance/kubelet_conformance/scenario.schema.json"
    assert path.read_text().startswith(f"# yaml-language-server: $schema={schema}\n")
    assert scenario.id in fixtures_with_mutants
