"""The report of `tox -e mutants` counts verdicts, keeps whole modules, and goes on where it was."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from unit_mutant_trees import Work, forget

TOLD = {
    "pkg.a.x_f__mutmut_1": "killed",
    "pkg.a.x_f__mutmut_2": "survived",
    "pkg.a.x_f__mutmut_3": "timeout",
    "pkg.b.xǁClassǁ_g__mutmut_1": "no tests",
}


@pytest.fixture(scope="module")
def mutants() -> ModuleType:
    place = Path(__file__).parents[1] / "mutants" / "unit_mutants.py"
    spec = importlib.util.spec_from_file_location("mutants_report", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_survivors_and_mutants_without_tests_are_not_killed(mutants: ModuleType) -> None:
    counted = mutants.by_module(TOLD)
    assert {module: mutants.share(verdicts) for module, verdicts in counted.items()} == {
        "pkg.a": 2 / 3,
        "pkg.b": 0.0,
    }
    assert list(mutants.lines(counted))[-1].endswith("50.0%")
    assert mutants.unfinished([*TOLD, "pkg.b.xǁClassǁ_g__mutmut_2"], TOLD) == {"pkg.b"}
    assert mutants.unfinished(TOLD, TOLD) == set()


def test_what_was_told_is_read_up_to_where_the_run_was_cut_off(
    mutants: ModuleType, tmp_path: Path
) -> None:
    work = Work(tmp_path)
    assert mutants.told_so_far(work) == {}
    lines = [
        {"mutant": "a", "verdict": "killed", "test": "t", "within_s": 2.0},
        {"mutant": "b", "verdict": "survived", "test": "", "within_s": 2.0},
    ]
    work.told.write_text(
        "".join(json.dumps(line) + "\n" for line in lines) + '{"mutant": "c", "ver'
    )
    assert mutants.told_so_far(work) == {"a": "killed", "b": "survived"}
    assert mutants.told_so_far(work, 3.0) == {"a": "killed"}, "b is asked about for longer now"


def test_of_each_module_equal_parts_come_one_after_the_other(mutants: ModuleType) -> None:
    names = [f"a.x_f__mutmut_{n}" for n in range(20)] + [f"b.x_f__mutmut_{n}" for n in range(40)]
    order = mutants.ordered(names, seed=7)
    assert sorted(order) == sorted(names)
    assert Counter(name[0] for name in order[:6]) == {"a": 2, "b": 4}
    assert order != mutants.ordered(names, seed=8)


def test_modules_are_kept_in_the_place_of_their_last_run(
    mutants: ModuleType, tmp_path: Path
) -> None:
    file, sizes = tmp_path / "mutants.json", {"pkg.a": 3, "pkg.b": 2, "pkg.c": 1}

    def keep(told: dict[str, str], date: str) -> None:
        mutants.keep(mutants.by_module(told), sizes, file, date)

    keep({**TOLD, "pkg.c.x_f__mutmut_1": "killed"}, "2026-01-01")
    keep({"pkg.a.x_f__mutmut_1": "killed", "pkg.b.x_g__mutmut_1": "killed"}, "2026-01-02")
    assert json.loads(file.read_text()) == {
        "pkg.a": {"killed": 2, "tried": 3, "mutants": 3, "date": "2026-01-01"},
        "pkg.b": {"killed": 1, "tried": 1, "mutants": 2, "date": "2026-01-02"},
        "pkg.c": {"killed": 1, "tried": 1, "mutants": 1, "date": "2026-01-01"},
    }


def test_a_sample_asks_the_tests_that_import_its_modules(
    mutants: ModuleType, tmp_path: Path
) -> None:
    folder = tmp_path / "tests" / "refkubelet" / "pleg"
    folder.mkdir(parents=True)
    (folder / "test_a.py").write_text("from refkubelet.pleg.compute import compute_events\n")
    (folder / "test_b.py").write_text("from refkubelet.pleg.computer import x\n")
    asked = mutants.asked_about(["refkubelet/pleg/compute.py"], tmp_path)
    assert asked == ["tests/refkubelet/pleg/test_a.py"]
    assert mutants.asked_about(["refkubelet/pleg/b.py"], tmp_path) == ["tests/refkubelet/pleg"]


def test_a_changed_file_makes_verdicts_untrue(tmp_path: Path) -> None:
    """A changed test is run anew alone; after anything else all are."""
    work = Work(tmp_path)
    other = '{"test": "test_b.py::t"}\n'
    work.reach.write_text('{"test": "test_a.py::t"}\n' + other)
    work.told.write_text("")
    before = {"modules": ["code.py"], "files": {"test_a.py": "1", "code.py": "1"}}
    forget(work, before, {**before, "files": {"test_a.py": "2", "code.py": "1"}})
    assert not work.told.exists()
    assert work.reach.read_text() == other
    forget(work, before, {**before, "files": {"test_a.py": "1", "code.py": "2"}})
    assert not work.reach.exists()
    work.reach.write_text(other)
    forget(work, before, {**before, "modules": ["code.py", "more.py"]})
    assert not work.reach.exists()
