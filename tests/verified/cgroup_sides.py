"""The fake's cgroups, and the same mounted, with the face that this kernel's have, too
(`cgroup_kernel.py`)."""

from __future__ import annotations

import itertools
import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from fakecri.cgroupfs import CgroupFS, Machine, Process
from fakecri.cgroupfs.outside import why_no_mount

V1: Final = (
    *("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd"),
)
TREES: Final = (*V1, "unified")
CAP_SYS_RESOURCE: Final = 24
NO_SUCH_PID: Final = 99_999_999
NUMBERS: Final = itertools.count()
"""For names of directories that no other side in this process has."""


class Side(Protocol):
    name: str

    def tree(self, tree: str) -> Any:
        """This side's own directory in that hierarchy."""

    def root(self, tree: str) -> Any:
        """The root of that hierarchy; only to be read."""

    def child(self) -> Any:
        """A process that sleeps."""

    def hog(self) -> Any:
        """A process that `holds` as much memory as it is told, or dies of it."""

    def threshold(self, group: Any, at_bytes: int) -> Callable[[], int]:
        """An eventfd on the usage of a v1 memory group: how often it was signalled since."""

    def close(self) -> None: ...


def disks() -> tuple[str, ...]:
    """The whole disks of this machine, loop devices among them."""
    found = sorted(Path("/sys/block").glob("*/dev"))
    return tuple(file.read_text().strip() for file in found)


def this_machine() -> Machine:
    """The fake machine is as this one."""
    status = Path("/proc/self/status").read_text()
    effective = re.search(r"CapEff:\s*(\w+)", status)
    sizes = Path("/sys/kernel/mm/hugepages")
    kib = [int(d.name.split("-")[1][:-2]) for d in sizes.iterdir()] if sizes.exists() else [2048]
    return Machine(
        cpus=int(Path("/sys/devices/system/cpu/possible").read_text().split("-")[-1]) + 1,
        memory_nodes=len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1,
        hugepage_sizes=tuple(
            f"{n >> 20}GB" if n >= 1 << 20 else f"{n >> 10}MB" for n in sorted(kib, reverse=True)
        ),
        block_devices=disks(),
        cap_sys_resource=bool(effective and int(effective[1], 16) >> CAP_SYS_RESOURCE & 1),
    )


@dataclass(slots=True)
class FakeHog:
    """A process of the fake that uses as much memory as it is told to."""

    process: Process

    @property
    def pid(self) -> int:
        return self.process.pid

    def holds(self, size_bytes: int) -> None:
        self.process.set_usage(memory_bytes=size_bytes)

    def reap(self) -> int:
        return self.process.reap()


@dataclass(slots=True)
class FakeSide:
    """The fake: same names, same CPUs, and processes with the ids they are given."""

    fs: CgroupFS
    name: str = "fake"
    own: str = "own"

    def tree(self, tree: str) -> Any:
        return self.fs.path(f"/{tree}/{self.own}")

    def root(self, tree: str) -> Any:
        return self.fs.path(f"/{tree}")

    def child(self, pid: int | None = None) -> Any:
        return self.fs.processes.start(self.fs.init.leader, pid)

    def hog(self) -> Any:
        return FakeHog(self.child())

    def threshold(self, group: Any, at_bytes: int) -> Callable[[], int]:
        event = self.fs.eventfd()
        usage = (group / "memory.usage_in_bytes").open()
        (group / "cgroup.event_control").write_text(f"{event.fd} {usage.fd} {at_bytes}")
        return lambda: event.read() if event.count else 0

    def close(self) -> None:
        """Nothing of it is outside this process."""


def fake_cgroups(machine: Machine | None = None) -> CgroupFS:
    return CgroupFS(1, controllers=V1, unified=("hugetlb",), machine=machine or this_machine())


def fake_side(machine: Machine | None = None) -> FakeSide:
    side = FakeSide(fake_cgroups(machine))
    make_own(side)
    return side


def make_own(side: Any) -> None:
    """The side's own directories, with all CPUs and memory nodes to give."""
    for tree in TREES:
        side.tree(tree).mkdir()
    for kind in ("cpus", "mems"):
        own = side.tree("cpuset") / f"cpuset.{kind}"
        own.write_text((side.root("cpuset") / f"cpuset.{kind}").read_text())


@dataclass(slots=True)
class HandedProcess:
    """A process of a fake that lives on another thread's loop."""

    run: Any
    process: Process

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.run(lambda: self.process.kill(number))

    def holds(self, size_bytes: int) -> None:
        self.run(lambda: self.process.set_usage(memory_bytes=size_bytes))

    def reap(self) -> int:
        status: int = self.run(self.process.reap)
        return status


@dataclass(slots=True)
class MountedSide:
    """The fake through its FUSE mount: files and directories as any process sees them."""

    fake: FakeSide
    at: Path
    run: Any
    name: str = "mounted"

    def tree(self, tree: str) -> Any:
        return self.at / tree / self.fake.own

    def root(self, tree: str) -> Any:
        return self.at / tree

    def child(self) -> Any:
        return HandedProcess(self.run, self.run(self.fake.child))

    hog = child

    def threshold(self, group: Any, at_bytes: int) -> Callable[[], int]:
        inside = self.fake.fs.path(f"/{group.relative_to(self.at)}")
        seen = self.run(lambda: self.fake.threshold(inside, at_bytes))
        return lambda: self.run(seen)

    def close(self) -> None:
        """The mount goes with its block."""


def why_not_mounted() -> str:
    """Why the fake cannot be mounted here; "" when it can."""
    return why_no_mount() or ("" if os.geteuid() == 0 else "needs root")
