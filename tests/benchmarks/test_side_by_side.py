"""This tree beside an earlier state: what is compared, what fails, what is left out and why."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import compared
import pytest
import side_by_side
import suite
from side_by_side import TREE, CannotCompare, Compared, Place, by_cpu, collected, rows

ALL = "import compared; [workload.run(1) for workload in compared.WORKLOADS.values()]"


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return Place(TREE, tmp_path)


def test_every_workload_runs(here: Place) -> None:
    """In one process: what they import takes most of the time."""
    subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.argv[1:] = [{str(TREE)!r}]; {ALL}"],
        check=True,
        stdout=subprocess.DEVNULL,
        env=here.environment,
        cwd=here.scratch,
    )


def test_a_run_tells_of_fewer_and_of_more_rounds(here: Place) -> None:
    fewer, more = here.run("lives", few=True)
    assert (fewer["rounds"], more["rounds"]) == (0, 100)
    assert fewer["pid"] != more["pid"]
    assert 0 < fewer["cpu_s"] < more["cpu_s"]


def test_code_of_another_tree_is_not_measured(tmp_path: Path) -> None:
    """Where the tree lacks a package, Python finds the installed one."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(CannotCompare, match=r"^not of this tree: .*fakecri"):
        Place(tmp_path / "empty", tmp_path).run("import", few=True)


def test_modules_of_another_tree_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["compared.py", str(tmp_path)])
    assert {"compared", "pytest"}.isdisjoint(compared.of_other_trees())
    assert "simclock" in compared.of_other_trees()
    there = Path(sys.modules["simclock"].__file__ or "").parents[1]
    monkeypatch.setattr(sys, "argv", ["compared.py", str(there)])
    assert "simclock" not in compared.of_other_trees()


def test_packages_go_by_their_earlier_names_in_earlier_trees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compared, "import_module", lambda name: name)
    monkeypatch.setattr(sys, "argv", ["compared.py", str(tmp_path)])
    assert compared.package("kubelet_conformance") == "conformance"
    (tmp_path / "conformance" / "kubelet_conformance").mkdir(parents=True)
    assert compared.package("kubelet_conformance") == "kubelet_conformance"


class Played:
    """A place whose runs take what is given."""

    def __init__(self, *cpu_s: float) -> None:
        self._cpu_s = list(cpu_s)

    def cpu_s(self, name: str, *, few: bool) -> float:
        return self._cpu_s.pop(0)


def test_cpu_time_is_the_median_of_pairs() -> None:
    """A machine that gets slower makes both of a pair slower, and one odd pair counts as one."""
    before = [0.1 * (1 + n) for n in range(side_by_side.PAIRS)]
    now = [1.02 * each for each in before]
    now[3] *= 40
    places: Any = Played(*before), Played(*now)
    seen = by_cpu(*places, "lives", few=False)
    assert seen.ratio == pytest.approx(1.02)
    assert (seen.before, seen.unit) == (pytest.approx(550), "ms of CPU")


def test_the_count_of_a_process_is_read_from_its_log(tmp_path: Path) -> None:
    (tmp_path / "7").write_text(
        "==7== \n==7== Events    : Ir\n==7== Collected : 496304169\n==7== \n"
    )
    assert collected(tmp_path, 7.0) == 496304169


@contextmanager
def no_trees(base: str) -> Iterator[tuple[Any, Any]]:
    yield Elsewhere(), Elsewhere()


class Elsewhere:
    """A state that has what it is asked for, except what is called `import`."""

    def run(self, name: str, *, few: bool) -> None:
        if name == "import":
            raise CannotCompare("ModuleNotFoundError: fakecri")


@pytest.mark.parametrize(("ratio", "verdict", "code"), [(1.049, "ok", 0), (1.051, "MISSED", 1)])
def test_what_takes_a_twentieth_more_fails(
    monkeypatch: pytest.MonkeyPatch, ratio: float, verdict: str, code: int
) -> None:
    seen = Compared(100.0, 100.0 * ratio, ratio=ratio, unit="ms of CPU")
    monkeypatch.setattr(side_by_side, "both", no_trees)
    monkeypatch.setattr(side_by_side, "METHODS", {"cpu": lambda *_, **__: seen})
    found = rows(["lives"], base="before", method="cpu")
    assert [(row.verdict, row.remark) for row in found] == [
        (verdict, f"100.0 (at before) and {100 * ratio:.1f} ms of CPU")
    ]
    assert side_by_side.tell(found) == code


def test_what_this_tree_cannot_run_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "both", no_trees)
    with pytest.raises(CannotCompare, match="ModuleNotFoundError"):
        rows(["import"], base="before", method="cpu")


def test_what_the_earlier_state_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def one_tree(base: str) -> Iterator[tuple[Any, Any]]:
        yield Elsewhere(), Played()

    monkeypatch.setattr(Played, "run", lambda *_, **__: None, raising=False)
    monkeypatch.setattr(side_by_side, "both", one_tree)
    (row,) = rows(["import"], base="before", method="cpu")
    assert row.verdict == "skipped"
    assert row.remark == "not at before: ModuleNotFoundError: fakecri"


@pytest.mark.parametrize("path", [None, ""], ids=["with git, if it is here", "without git"])
def test_a_commit_that_cannot_be_had_leaves_all_out(
    monkeypatch: pytest.MonkeyPatch, path: str | None
) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"] if path is None else path)
    found = rows(["lives", "import"], base="0" * 40, method="cpu")
    assert [row.verdict for row in found] == ["skipped", "skipped"]
    assert found[0].remark in ("needs git", "this copy of the repository does not have 0000000000")


def test_the_summary_of_a_run_tells_how_many_cases_passed() -> None:
    assert suite.count("seed 1\n1,446 passed, 3 deselected in 35.6s\n") == 1446
    with pytest.raises(ValueError, match="no case has passed: 3 failed"):
        suite.count("3 failed in 1 s")
