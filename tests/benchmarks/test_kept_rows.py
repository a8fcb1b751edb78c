"""The numbers of benchmarks in the documentation are of the code as it is, or nearly so."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import run

TREE: Final = Path(__file__).parents[2]
KEPT: Final[dict[str, Any]] = json.loads((TREE / "results" / "benchmarks.json").read_text())
MOST_COMMITS: Final = 60
"""So many commits may have touched what a benchmark measures since its rows were kept."""


def git(*words: str, tree: Path = TREE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ("git", "-C", str(tree), *words), check=False, capture_output=True, text=True
    )


def commits_since(commit: str, folders: tuple[str, ...], tree: Path = TREE) -> int | None:
    """How many commits have touched the folders since that one; None: the history lacks it."""
    counted = git("rev-list", "--count", f"{commit}..HEAD", "--", *folders, tree=tree)
    return int(counted.stdout) if counted.returncode == 0 else None


def has_history() -> bool:
    try:
        return git("rev-parse", "--is-shallow-repository").stdout.strip() == "false"
    except FileNotFoundError:  # no git
        return False


@pytest.mark.skipif(not has_history(), reason="needs the whole history of the repository in git")
@pytest.mark.parametrize("name", run.BENCHMARKS)
def test_kept_rows_are_of_the_code_as_it_is(name: str) -> None:
    again = f"measure it again: tox -e bench -- --only {name}"
    commit = KEPT.get(name, {}).get("commit", "")
    assert commit, f"results/benchmarks.json does not tell which commit {name} is of; {again}"
    age = commits_since(commit, run.BENCHMARKS[name].measures)
    assert age is not None, f"{name} is of {commit}, which the history does not have; {again}"
    assert age <= MOST_COMMITS, f"{age} commits have touched what {name} measures; {again}"


@pytest.mark.parametrize("name", run.BENCHMARKS)
def test_what_a_benchmark_measures_is_there(name: str) -> None:
    folders = run.BENCHMARKS[name].measures
    assert [folder for folder in folders if not (TREE / folder).is_dir()] == []


def test_commits_count_that_touch_a_folder(tmp_path: Path) -> None:
    if not has_history():
        pytest.skip("needs git")
    git("init", "-q", tree=tmp_path)

    def commit(folder: str, text: str) -> str:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "file").write_text(text)
        git("add", ".", tree=tmp_path)
        me = ("-c", "user.name=a", "-c", "user.email=a@localhost")
        assert git(*me, "commit", "-qm", text, tree=tmp_path).returncode == 0
        return run.commit_of(tmp_path)

    first = commit("measured", "1")
    commit("other", "2")
    commit("measured", "3")
    assert commits_since(first, ("measured",), tmp_path) == 1
    assert commits_since(first, ("measured", "other"), tmp_path) == 2
    assert commits_since("0" * 40, ("measured",), tmp_path) is None
