"""The report of `tox -e mutants` counts verdicts, keeps whole modules, and goes on where it was."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

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
    mutants: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told.jsonl"
    monkeypatch.setattr(mutants, "TOLD", told)
    assert mutants.told_so_far() == {}
    told.write_text('{"mutant": "a", "verdict": "killed", "test": "t"}\n{"mutant": "b", "ver')
    assert mutants.told_so_far() == {"a": "killed"}


def test_modules_are_kept_in_the_place_of_their_last_run(
    mutants: ModuleType, tmp_path: Path
) -> None:
    file = tmp_path / "mutants.json"
    mutants.keep(mutants.by_module({**TOLD, "pkg.c.x_f__mutmut_1": "killed"}), file, "2026-01-01")
    mutants.keep(mutants.by_module({"pkg.a.x_f__mutmut_1": "killed"}), file, "2026-01-02")
    assert json.loads(file.read_text()) == {
        "pkg.a": {"killed": 1, "mutants": 1, "date": "2026-01-02"},
        "pkg.b": {"killed": 0, "mutants": 1, "date": "2026-01-01"},
        "pkg.c": {"killed": 1, "mutants": 1, "date": "2026-01-01"},
    }


def test_a_changed_file_makes_verdicts_untrue(
    mutants: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed test is run anew alone; for anything else mutmut looks at all tests again."""
    stats, told = tmp_path / "stats.json", tmp_path / "told.jsonl"
    for name, place in (("WORK", tmp_path), ("STATS", stats), ("TOLD", told)):
        monkeypatch.setattr(mutants, name, place)
    known = {"tests_by_mangled_function_name": {"f": ["test_a.py::t", "test_b.py::t"]}}
    stats.write_text(json.dumps(known | {"duration_by_test": {}}))
    told.write_text("")
    before = {"test_a.py": "1", "code.py": "1"}
    mutants.forget(before, {**before, "test_a.py": "2"})
    assert not told.exists()
    left = json.loads(stats.read_text())["tests_by_mangled_function_name"]
    assert left == {"f": ["test_b.py::t"]}
    mutants.forget(before, {**before, "code.py": "2"})
    assert not stats.exists()
