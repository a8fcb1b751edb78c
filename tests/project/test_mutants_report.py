"""The report of `tox -e mutants` counts what mutmut says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

TOLD = """
    pkg.a.x_f__mutmut_1: killed
    pkg.a.x_f__mutmut_2: survived
    pkg.a.x_f__mutmut_3: timeout
    pkg.b.xǁClassǁ_g__mutmut_1: no tests
    pkg.b.xǁClassǁ_g__mutmut_2: not checked
"""


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
    assert mutants.unfinished(TOLD) == {"pkg.b"}
