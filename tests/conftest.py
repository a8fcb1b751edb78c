"""For all tests: how long a generated example takes says nothing on a busy machine, and the tests
that a machine cannot run can be listed for one that can."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("project", deadline=None)
settings.load_profile("project")

skipped: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        skipped.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """REFKUBELET_SKIPPED_TESTS=FILE: the IDs of skipped tests are written to FILE, one a line."""
    target = os.environ.get("REFKUBELET_SKIPPED_TESTS")
    if target and not hasattr(session.config, "workerinput"):  # the workers of xdist have one
        Path(target).write_text("".join(f"{test}\n" for test in skipped))
