"""This machine: memory, filesystems, CPUs, cgroups, read from /proc and /sys at every question.

Rules: EVIC-020, EVIC-022, EVIC-025, EVIC-026 (working set of cgroup v1 and v2), CG-014. `root`
replaces `/` as the place of `proc`, `sys` and `dev`, for tests.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from kubeobjects.machine import FilesystemStats, MemoryStats, PidStats
from kubeobjects.topology import MachineTopology
from refkubelet.host.interfaces import read_interfaces
from refkubelet.host.kernel_log import KernelLog, open_at_end
from refkubelet.host.memory_events import watch_memory
from refkubelet.host.topology import read_topology
from refkubelet.model.traffic import InterfaceTraffic
from simclock import Clock


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
            total_bytes=self._meminfo_bytes("MemTotal"),
            working_set_bytes=self._working_set_bytes(),
            time_ns=self._clock.wall_ns(),
        )

    def filesystem(self, path: str) -> FilesystemStats:
        """statfs of the filesystem that holds `path`; its device as `major:minor`."""
        device = os.stat(path).st_dev
        statfs = os.statvfs(path)
        return FilesystemStats(
            device=f"{os.major(device)}:{os.minor(device)}",
            capacity_bytes=statfs.f_blocks * statfs.f_frsize,
            available_bytes=statfs.f_bavail * statfs.f_frsize,
            inodes=statfs.f_files,
            inodes_free=statfs.f_ffree,
            kept_bytes=(statfs.f_bfree - statfs.f_bavail) * statfs.f_frsize,
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

    def boot_time_ns(self) -> int | None:
        """`btime` of /proc/stat."""
        try:
            _, _, rest = (self._root / "proc/stat").read_text().partition("\nbtime ")
            return int(rest.partition("\n")[0]) * 10**9
        except (OSError, ValueError):
            return None

    def interfaces(self) -> tuple[InterfaceTraffic, ...]:
        """Those of /proc/net/dev."""
        return read_interfaces(self._root / "proc/net/dev")

    def cgroup_root(self) -> Path:
        """Where the cgroup file systems are mounted."""
        return self._root / "sys/fs/cgroup"

    def cgroup_version(self) -> Literal[1, 2]:
        """Only the root of the unified hierarchy has cgroup.controllers (CG-014)."""
        return 2 if (self.cgroup_root() / "cgroup.controllers").exists() else 1

    def watch_memory(
        self, cgroup: str, usage_bytes: int, passed: Callable[[], None]
    ) -> Callable[[], None]:
        """By an eventfd that the running loop watches (EVIC-058)."""
        directory = self.cgroup_root() / "memory" / cgroup.strip("/")
        return watch_memory(directory, usage_bytes, passed)

    def kill_process(self, pid: int) -> None:
        """SIGKILL, if it is still there (CG-042). Raises ValueError for a pid that is no process's:
        0 and negative ones mean groups of processes."""
        if pid <= 0:
            raise ValueError(f"pid {pid}: wanted that of one process")
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def pids(self) -> PidStats:
        """The smaller kernel limit; tasks as /proc/loadavg counts them (EVIC-025)."""
        kernel = self._root / "proc/sys/kernel"
        limit = min(_number(kernel / "pid_max"), _number(kernel / "threads-max"))
        file = self._root / "proc/loadavg"
        try:
            running = int(file.read_text().split()[3].partition("/")[2])
        except (OSError, ValueError, IndexError) as e:
            raise MachineError(f"{file}: {e}") from e
        return PidStats(limit, running, self._clock.wall_ns())

    def swap_bytes(self) -> int:
        """SwapTotal."""
        return self._meminfo_bytes("SwapTotal")

    def topology(self) -> MachineTopology:
        """CPUs and NUMA nodes of /sys/devices/system. Raises `MachineError`."""
        system = self._root / "sys/devices/system"
        try:
            return read_topology(system, self._meminfo_bytes("MemTotal"))
        except (OSError, ValueError) as e:
            raise MachineError(f"{system}: {e}") from e

    def kernel_log(self) -> KernelLog:
        """/dev/kmsg from now on. Raises OSError."""
        return KernelLog(open_at_end(self._root / "dev/kmsg"), self._clock)

    def limits_swap(self) -> bool:
        """v1 has the file in every cgroup; v2 in every cgroup but the root, so the process's own is
        looked at (CG-050)."""
        if self.cgroup_version() == 1:
            return (self.cgroup_root() / "memory/memory.memsw.limit_in_bytes").exists()
        try:
            line = (self._root / "proc/self/cgroup").read_text().strip()
        except OSError:
            return False
        own = line.rpartition("::/")[2]
        return (self.cgroup_root() / own / "memory.swap.max").exists()

    def kernel_flag(self, name: str) -> int:
        """A setting below /proc/sys, for example `vm/overcommit_memory`. Raises OSError,
        ValueError."""
        return int((self._root / "proc/sys" / name).read_text())

    def swap_is_on(self) -> bool:
        """Whether any swap area is in use (failSwapOn)."""
        try:
            lines = (self._root / "proc/swaps").read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 1

    def _meminfo_bytes(self, wanted: str) -> int:
        file = self._root / "proc/meminfo"
        try:
            for line in file.read_text().splitlines():
                name, _, value = line.partition(":")
                if name == wanted:
                    return int(value.split()[0]) * 1024
        except (OSError, ValueError, IndexError) as e:
            raise MachineError(f"{file}: {e}") from e
        raise MachineError(f"{file}: no {wanted}")

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
