"""What the kernel says of an OOM kill at a limit: the fake's lines are those of this machine.

Switched on like the comparison of cgroups; makes one group of its own, with one child in it.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest
from cgroup_kernel import MOUNT, SWITCH

from fakecri import FakeNode
from refkubelet.host.real_machine import RealMachine
from simclock import RealClock

TOLD = ("invoked oom-killer", "oom-kill:", "Killed process")
EATS = "import sys; sys.stdin.readline(); held = b'x' * (64 << 20)"
LIMIT = 20 << 20


def shape(line: str, group: str) -> str:
    """A line without numbers and names; bits that the kernel's configuration decides are cut."""
    line = re.sub(r"gfp_mask=\S+", "gfp_mask=X", line.replace(group, "GROUP"))
    return re.sub(r"\d+", "N", line.replace(Path(sys.executable).name, "python3"))


def fake_lines() -> list[str]:
    node = FakeNode(cgroups_version=1)
    directory = node.cgroups.path("/memory/one")
    directory.mkdir()
    (directory / "memory.limit_in_bytes").write_text(str(LIMIT))
    process = node.cgroups.processes.start_in(
        {mount: h.root.children.get("one", h.root) for mount, h in node.cgroups.mounts.items()}
    )
    process.name = "python3"
    process.set_usage(memory_bytes=LIMIT // 2)
    process.set_usage(memory_bytes=LIMIT * 2)
    return [shape(line, "/one") for line in node.log.texts]


async def real_lines(group: Path) -> list[str]:
    log = RealMachine(RealClock()).kernel_log()
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", EATS, stdin=asyncio.subprocess.PIPE
    )
    try:
        (group / "cgroup.procs").write_text(str(child.pid))
        await child.communicate(b"\n")
        found: list[str] = []
        while not found or "Killed process" not in found[-1]:
            text = (await asyncio.wait_for(anext(log), 10)).text
            if any(words in text for words in TOLD):
                found.append(shape(text, f"/{group.name}"))
        return found
    finally:
        log.close()


@pytest.mark.skipif(os.environ.get(SWITCH) != "1", reason=f"needs root and {SWITCH}=1")
async def test_an_oom_kill_at_a_limit_EVIC_124() -> None:
    group = MOUNT / "memory" / f"refkubelet-oom-{os.getpid()}"
    if not group.parent.is_dir():
        pytest.skip("the memory controller is not in version 1 here")
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(LIMIT))
        assert await real_lines(group) == fake_lines()
    finally:
        group.rmdir()
