"""The kernel tells when memory of a cgroup v1 passes a number of bytes (EVIC-058): this kernel, and
the fake's. Switched on for the kernel as the other cgroup tests are, by REFKUBELET_CGROUPS=1.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cgroup_kernel import MOUNT, SWITCH

from fakecri import FakeNode
from fakecri.cgroupfs import CgroupFS
from refkubelet.host.real_machine import RealMachine
from simclock import RealClock

MI = 1 << 20
HOLDS = "import sys\nfor line in sys.stdin:\n    held = bytearray(int(line)); print(flush=True)\n"


@pytest.fixture
def group() -> Iterator[Path]:
    """A fresh cgroup of the kernel's memory hierarchy, removed at the end."""
    if os.environ.get(SWITCH) != "1":
        pytest.skip(f"set {SWITCH}=1 to try this kernel's cgroups")
    path = MOUNT / "memory" / f"refkubelet-events-{os.getpid()}"
    if not (MOUNT / "memory" / "memory.usage_in_bytes").exists():
        pytest.skip("this kernel has no cgroup v1 hierarchy for memory")
    path.mkdir()
    try:
        yield path
    finally:
        path.rmdir()


@pytest.fixture
def process(group: Path) -> Iterator[subprocess.Popen[str]]:
    """A process of ours in that cgroup that holds as much memory as a line says."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdin=pipe, stdout=pipe, text=True) as it:
        (group / "cgroup.procs").write_text(str(it.pid))
        try:
            yield it
        finally:
            it.kill()
            it.wait()


@pytest.mark.real
async def test_this_kernel_tells_upwards_and_downwards_EVIC_058(
    group: Path, process: subprocess.Popen[str]
) -> None:
    heard = asyncio.Semaphore(0)
    machine = RealMachine(RealClock())
    stop = machine.watch_memory(f"/{group.name}", 40 * MI, heard.release)
    try:
        for size_bytes in (80 * MI, 1):
            assert process.stdin is not None
            process.stdin.write(f"{size_bytes}\n")
            process.stdin.flush()
            async with asyncio.timeout(20):
                await heard.acquire()
    finally:
        stop()
    assert heard.locked()


def test_the_fake_kernel_tells_upwards_and_downwards_EVIC_058() -> None:
    machine, heard = FakeNode(), []
    machine.cgroups = CgroupFS(1, controllers=["memory"])
    (machine.cgroup_root() / "memory" / "group").mkdir()
    stop = machine.watch_memory("/group", 40 * MI, lambda: heard.append(1))
    process = machine.cgroups.spawn("/group")
    process.set_usage(memory_bytes=80 * MI)
    process.set_usage(memory_bytes=1)
    assert len(heard) == 2
    stop()
    process.set_usage(memory_bytes=80 * MI)
    assert len(heard) == 2


async def test_a_group_that_is_not_there_is_an_error_EVIC_058() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        with pytest.raises(FileNotFoundError):
            RealMachine(RealClock()).watch_memory("/no such group", 1, lambda: None)
    assert len(os.listdir("/proc/self/fd")) < before + 10  # nothing stays open
