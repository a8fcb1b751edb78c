"""Where the fake's cgroups may differ from a kernel's, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Row:
    """Files that are not compared, or not in full. `pattern` matches `<tree>/<file>`."""

    pattern: str
    reason: str
    absent: bool = False
    """The fake has no such file."""
    once_populated: bool = False
    """Only after a process was in the group or below."""
    lines: str = ""
    """Only lines that match this are left out."""

    def __str__(self) -> str:
        return self.pattern


DIFFERENCES: Final = (
    Row(
        r"cpu/cpu\.rt_.*",
        "only kernels built for real-time group scheduling have them; kubelets do not use them",
        absent=True,
    ),
    Row(
        r"memory/memory\.shown_ram_in_bytes",
        "an addition of this machine's kernel; upstream Linux has no such file",
        absent=True,
    ),
    Row(
        r"memory/memory\.(.*usage_in_bytes|stat|numa_stat|.*failcnt|kmem\.slabinfo)",
        "real processes, and groups in a group, use memory themselves; the fake's what is set",
        once_populated=True,
    ),
    Row(
        r"(cpuacct/cpuacct\..*|unified/cpu\.stat|cpu/cpu\.stat.*)",
        "a real process uses CPU time; a fake one what is set",
        once_populated=True,
    ),
    Row(
        r"blkio/blkio\.throttle\.io_.*",
        "a real process reads its program from a disk, and groups above get its row, too",
        once_populated=True,
    ),
    Row(r"unified/.*\.pressure", "real processes wait for CPUs", once_populated=True),
    Row(
        r"cpu/cpu\.stat(\.local)?",
        "the kernel's bandwidth timer ticks a few periods even in an empty group",
    ),
    Row(
        r"unified/cgroup\.stat",
        "removed groups linger in the kernel until nothing refers to them",
        lines=r"nr_dying_.*",
    ),
    Row(r"unified/cgroup\.stat\.local", "time passes on the real machine only"),
)


def row_for(tree: str, file: str) -> list[Row]:
    return [row for row in DIFFERENCES if re.fullmatch(row.pattern, f"{tree}/{file}")]
