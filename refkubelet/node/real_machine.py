"""This machine: memory, filesystems, CPUs, read from /proc and /sys at every question.

Rules: EVIC-020, EVIC-022, EVIC-026 (working set of cgroup v1 and v2). `root` replaces `/` as the
place of `proc` and `sys`, for tests.
"""

from __future__ import annotations

import os
from pathlib import Path

from refkubelet.node.machine import FilesystemStats, MemoryStats
from simtime import Clock


class MachineError(Exception):
    """The machine's files do not say what they should; the text names the file."""


def apparmor_enabled(root: str | Path = "/") -> bool:
    """Whether the kernel has AppArmor switched on."""
    try:
        text = (Path(root) / "sys/module/apparmor/parameters/enabled").read_text()
    except OSError:
        return False
    return text.startswith("Y")


class RealMachine:
    """The `Machine` of a kubelet on a real node."""

    def __init__(self, clock: Clock, root: str | Path = "/") -> None:
        self._clock = clock
        self._root = Path(root)

    def memory(self) -> MemoryStats:
        """MemTotal and the root cgroup's working set. Raises `MachineError`."""
        return MemoryStats(
            total_bytes=self._mem_total_bytes(),
            working_set_bytes=self._working_set_bytes(),
            time_ns=self._clock.wall_ns(),
        )

    def filesystem(self, path: str) -> FilesystemStats:
        """statfs of the filesystem that holds `path`; its device as `major:minor`."""
        device = os.stat(path).st_dev
        found = os.statvfs(path)
        return FilesystemStats(
            device=f"{os.major(device)}:{os.minor(device)}",
            capacity_bytes=found.f_blocks * found.f_frsize,
            available_bytes=found.f_bavail * found.f_frsize,
            inodes=found.f_files,
            inodes_free=found.f_ffree,
            time_ns=self._clock.wall_ns(),
        )

    def cpu_count(self) -> int:
        return os.cpu_count() or 1

    def boot_id(self) -> str:
        """The kernel's id of this boot; "" where the kernel has none."""
        try:
            return (self._root / "proc/sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            return ""

    def has_cgroup_v2(self) -> bool:
        """Whether the cgroup root is the unified hierarchy."""
        return (self._root / "sys/fs/cgroup/cgroup.controllers").exists()

    def swap_is_on(self) -> bool:
        """Whether any swap area is in use (failSwapOn)."""
        try:
            lines = (self._root / "proc/swaps").read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 1

    def _mem_total_bytes(self) -> int:
        file = self._root / "proc/meminfo"
        try:
            for line in file.read_text().splitlines():
                name, _, value = line.partition(":")
                if name == "MemTotal":
                    return int(value.split()[0]) * 1024
        except (OSError, ValueError, IndexError) as e:
            raise MachineError(f"{file}: {e}") from e
        raise MachineError(f"{file}: no MemTotal")

    def _working_set_bytes(self) -> int:
        """usage - inactive file pages, at least 0 (EVIC-026)."""
        root = self._root / "sys/fs/cgroup"
        v1 = root / "memory"
        if (v1 / "memory.usage_in_bytes").exists():
            usage = _number(v1 / "memory.usage_in_bytes")
            inactive = _table(v1 / "memory.stat").get("total_inactive_file", 0)
            return max(0, usage - inactive)
        stat = _table(root / "memory.stat")
        if (root / "memory.current").exists():
            usage = _number(root / "memory.current")
        else:  # the real root has no memory.current
            usage = stat.get("anon", 0) + stat.get("file", 0)
        return max(0, usage - stat.get("inactive_file", 0))


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError) as e:
        raise MachineError(f"{file}: {e}") from e


def _table(file: Path) -> dict[str, int]:
    try:
        rows = (line.split() for line in file.read_text().splitlines())
        return {row[0]: int(row[1]) for row in rows if len(row) == 2}
    except (OSError, ValueError) as e:
        raise MachineError(f"{file}: {e}") from e
