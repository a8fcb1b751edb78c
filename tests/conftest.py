"""For all tests: how long a generated example takes says nothing on a busy machine, and what a
machine could not run is told by its reason, and can be listed for a machine that can."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("project", deadline=None)
settings.load_profile("project")

skipped: dict[str, str] = {}
"""Test -> why it was skipped."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        told = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        skipped[report.nodeid] = told.removeprefix("Skipped: ")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """REFKUBELET_SKIPPED_TESTS=FILE: the IDs of skipped tests are written to FILE, one a line."""
    target = os.environ.get("REFKUBELET_SKIPPED_TESTS")
    if target and not hasattr(session.config, "workerinput"):  # the workers of xdist have one
        Path(target).write_text("".join(f"{test}\n" for test in skipped))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reason, count in Counter(skipped.values()).most_common():
        terminalreporter.write_line(f"skipped {count}: {reason}")
