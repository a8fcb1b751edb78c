"""For all tests: generated examples are the same ones at each run, so that a change is judged by
what it changes; REFKUBELET_EXAMPLES=fresh draws others, and more of them. How long an example takes
says nothing on a busy machine. What a machine could not run is told by its reason, and can be
listed for a machine that can. Mounts that tests make do not outlive them, nor do open files. With
`@pytest.mark.manual_time` an `async def` test and its async fixtures run on a loop whose time
stands still until the test advances it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings
from loops import virtual_loop
from open_files import pytest_runtest_setup, pytest_runtest_teardown

from kubelet_conformance.harness.runs.garbage import collect_less
from refkubelet.host.untrusted_files import opened_below
from refkubelet.volumes.mounting import RealMounts
from simclock import Clock, ManualLoop

__all__ = ["pytest_runtest_setup", "pytest_runtest_teardown"]  # hooks

settings.register_profile("project", deadline=None, derandomize=True)
settings.register_profile("fresh", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("REFKUBELET_EXAMPLES", "project"))

skipped: dict[str, str] = {}
"""Test -> why it was skipped."""


@pytest.fixture(autouse=True)
def own_log_level() -> Iterator[None]:
    """A kubelet that a test runs as a program does sets what its log tells, for this test alone."""
    product = logging.getLogger("refkubelet")
    before = product.level
    yield
    product.setLevel(before)


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Which loop an `async def` test gets that is not marked with `virtual_time`."""
    if item.get_closest_marker("manual_time"):
        return {"manual": partial(ManualLoop, start=datetime(2026, 1, 1, tzinfo=UTC))}
    return {"real": asyncio.new_event_loop}


def pytest_collection() -> None:
    """Collecting garbage among some ten thousand tests again and again takes a part of the time,
    already while they become so many."""
    collect_less()


def pytest_collection_finish() -> None:
    """Nor is there any among the tests themselves."""
    collect_less()


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


@pytest.fixture
async def clock() -> Clock:
    """The clock of the loop; the test must be on virtual time."""
    return virtual_loop().clock


@pytest.fixture
def real_mounts(tmp_path: Path) -> Iterator[RealMounts]:
    """Real mounts below the test's directory; they are undone."""
    mounts = RealMounts()
    (tmp_path / "mount-source").mkdir()
    try:
        with opened_below(tmp_path, "mount-source") as place:
            mounts.bind(place, str(tmp_path / "mount-target"))
    except OSError as error:
        pytest.skip(f"mounting is not allowed here: {error.strerror}")
    yield mounts
    mounts.unmount_below(str(tmp_path))
