"""The side of pytest of `mutant_tests.py`: becomes the mutant before anything of refkubelet is
imported, and writes down which tests failed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from mutant_import import become
from mutant_patches import read_all

if os.environ.get("REFKUBELET_MUTANT"):
    become(read_all([os.environ["REFKUBELET_MUTANT"]])[0])

_failed: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember the function of a failed test, without its parameters."""
    if report.failed:
        path, _, name = report.nodeid.partition("::")
        function = name.rpartition("::")[2].partition("[")[0]
        _failed.add(f"{path}::{function}")


def pytest_sessionfinish() -> None:
    """Write the file that `mutant_tests.py` reads."""
    told = os.environ.get("REFKUBELET_MUTANT_FAILED")
    if told:
        Path(told).write_text(json.dumps(sorted(_failed)))
