"""A run that is ended early stops the kubelets that it started."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kubelet_conformance.harness.runs.real import end_all
from simclock import RealClock

CLOCK = RealClock()
COMMAND = (
    *(sys.executable, "-m", "kubelet_conformance.cli", "run", "--id", "stop-grace"),
    *("--kubelet", "refkubelet-process", "--runtime", "fake-socket"),
)


def kubelets_of(pid: int) -> list[Path]:
    """The /proc directories of the running kubelets that the process `pid` started."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    found = [Path("/proc", child) for child in children.read_text().split()]
    return [path for path in found if b"refkubelet.cli" in (path / "cmdline").read_bytes()]


async def until(condition: Callable[[], object], within_s: float) -> None:
    """Wait in real time until the condition is true; it is asked every 50 ms."""
    end_s = CLOCK.monotonic_s() + within_s
    while not condition():
        assert CLOCK.monotonic_s() < end_s, "waited too long"
        await CLOCK.sleep(0.05)


@pytest.mark.slow
async def test_sigterm_leaves_no_kubelet_behind() -> None:
    quiet = asyncio.subprocess.DEVNULL
    run = await asyncio.create_subprocess_exec(*COMMAND, stdout=quiet, stderr=quiet)
    try:
        await until(lambda: kubelets_of(run.pid), 120)
        kubelets = kubelets_of(run.pid)
        run.send_signal(signal.SIGTERM)
        async with asyncio.timeout(200):
            assert await run.wait() == 2
        await until(lambda: not any(path.exists() for path in kubelets), 60)
    finally:
        if run.returncode is None:
            run.kill()
            await run.wait()


async def hangs(cleaned: list[str]) -> None:
    """A case whose clean-up never ends by itself, and then takes 5 s more."""
    try:
        await asyncio.sleep(3600)
    finally:
        try:
            await asyncio.get_running_loop().create_future()  # a runtime that does not answer
        finally:
            await asyncio.sleep(5)
            cleaned.append("the rest")


@pytest.mark.virtual_time
async def test_a_clean_up_that_hangs_is_given_up_step_by_step() -> None:
    cleaned: list[str] = []
    tasks = [asyncio.create_task(hangs(cleaned)) for _ in range(2)]
    await asyncio.sleep(1)
    began_s = asyncio.get_running_loop().time()
    await end_all(tasks, within_s=30, again_s=10)
    assert cleaned == ["the rest", "the rest"]
    assert asyncio.get_running_loop().time() - began_s == 35


async def cleans_up_slowly() -> None:
    """A case whose clean-up takes 20 s."""
    try:
        await asyncio.sleep(3600)
    finally:
        await asyncio.sleep(20)


@pytest.mark.virtual_time
async def test_a_clean_up_that_ends_is_waited_for() -> None:
    task = asyncio.create_task(cleans_up_slowly())
    await asyncio.sleep(1)
    began_s = asyncio.get_running_loop().time()
    await end_all([task], within_s=30)
    assert task.cancelled()
    assert asyncio.get_running_loop().time() - began_s == 20
