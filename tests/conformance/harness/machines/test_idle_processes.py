"""Processes that do nothing, on this machine."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubelet_conformance.harness.machines.idle_processes import SleepProcess
from simclock import RealClock

CLOCK = RealClock()


@pytest.fixture
def process() -> Iterator[SleepProcess]:
    made = SleepProcess()
    yield made
    made.end()


def is_over(pid: str) -> bool:
    """Whether the process has ended, whoever has asked for its exit code."""
    try:
        return Path("/proc", pid, "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def kill(process: SleepProcess, number: int) -> None:
    os.kill(int(process.pid), number)
    until_s = CLOCK.monotonic_s() + 10
    while not is_over(process.pid):
        assert CLOCK.monotonic_s() < until_s


def test_it_tells_that_sigkill_has_ended_it(process: SleepProcess) -> None:
    assert not process.was_killed()
    kill(process, signal.SIGKILL)
    assert process.was_killed()
    assert process.was_killed(), "asked again"


def test_another_signal_has_not_killed_it(process: SleepProcess) -> None:
    kill(process, signal.SIGTERM)
    assert not process.was_killed()


def test_it_is_no_child_of_this_process(process: SleepProcess) -> None:
    """A jumping time waits for what children of ours do."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    if not children.exists():
        pytest.skip("this kernel does not tell children")
    assert process.pid not in children.read_text().split()


def test_nothing_is_left_of_it() -> None:
    process = SleepProcess()
    process.end()
    assert is_over(process.pid)
