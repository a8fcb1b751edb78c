"""The fake's cgroups, the same mounted, and this kernel's, behind one face; where they may differ.

The kernel's side makes, in every hierarchy, one directory of its own with the process id in its
name, works only below it, moves only processes it started, and removes everything at the end. It
is switched on by REFKUBELET_CGROUPS=1 and needs root and the hierarchies mounted.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import pytest

from fakecri.cgroupfs import CgroupFS, Machine, Process
from fakecri.cgroupfs.outside import mount_in_background, why_no_mount
from simtime import RealClock

MOUNT: Final = Path("/sys/fs/cgroup")
V1: Final = (
    *("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd"),
)
TREES: Final = (*V1, "unified")
SWITCH: Final = "REFKUBELET_CGROUPS"
CAP_SYS_RESOURCE: Final = 24
NO_SUCH_PID: Final = 99_999_999
_PATIENCE_S: Final = 10.0
_NUMBERS: Final = itertools.count()
_HOG: Final = """
import sys
print(flush=True)
for line in sys.stdin:
    held = bytearray(int(line))
    print(flush=True)
"""


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


@dataclass(slots=True)
class RealChild:
    pid: int
    popen: subprocess.Popen[bytes]

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)  # Popen.send_signal reaps

    def reap(self) -> int:
        return self.popen.wait(10)


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


def why_not_real() -> str:
    """Why this kernel cannot be the other side; "" when it can."""
    if os.environ.get(SWITCH) != "1":
        return f"set {SWITCH}=1 to compare with this machine's kernel (as root)"
    if os.geteuid() != 0:
        return "needs root"
    missing = [t for t in TREES if not (MOUNT / t / "cgroup.procs").exists()]
    return f"not mounted below {MOUNT}: {', '.join(missing)}" if missing else ""


class RealHog(RealChild):
    """A Python that allocates what it reads from its standard input."""

    def holds(self, size_bytes: int) -> None:
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        self.popen.stdin.write(f"{size_bytes}\n".encode())
        self.popen.stdin.flush()
        self.popen.stdout.readline()  # nothing comes from a dead one


@dataclass(slots=True)
class FakeHog:
    """The same for the fake."""

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
    _make_own(side)
    return side


def _make_own(side: Any) -> None:
    for tree in TREES:
        side.tree(tree).mkdir()
    for kind in ("cpus", "mems"):
        own = side.tree("cpuset") / f"cpuset.{kind}"
        own.write_text((side.root("cpuset") / f"cpuset.{kind}").read_text())


@dataclass(slots=True)
class RealSide:
    """This kernel."""

    name: str = "real"
    own: str = ""
    children: list[RealChild] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.own = f"refkubelet-cgroupfs-{os.getpid()}-{next(_NUMBERS)}"
        _make_own(self)

    def tree(self, tree: str) -> Any:
        return MOUNT / tree / self.own

    def root(self, tree: str) -> Any:
        return MOUNT / tree

    def child(self) -> Any:
        popen = subprocess.Popen(["sleep", "600"])
        found = RealChild(popen.pid, popen)
        self.children.append(found)
        return found

    def hog(self) -> Any:
        pipe = subprocess.PIPE
        popen = subprocess.Popen([sys.executable, "-S", "-c", _HOG], stdin=pipe, stdout=pipe)
        assert popen.stdout is not None
        popen.stdout.readline()
        found = RealHog(popen.pid, popen)
        self.children.append(found)
        return found

    def threshold(self, group: Any, at_bytes: int) -> Callable[[], int]:
        event = os.eventfd(0, os.EFD_NONBLOCK)
        usage = os.open(group / "memory.usage_in_bytes", os.O_RDONLY)
        (group / "cgroup.event_control").write_text(f"{event} {usage} {at_bytes}")
        self.descriptors += [event, usage]

        def seen() -> int:
            try:
                return os.eventfd_read(event)
            except BlockingIOError:
                return 0

        return seen

    def close(self) -> None:
        """No process and no directory of ours is left."""
        self._empty()
        for tree in TREES:
            if self.tree(tree).exists():
                eventually(self.tree(tree).rmdir)

    def reset(self) -> None:
        """Begin anew."""
        self.close()
        _make_own(self)

    def _empty(self) -> None:
        """Thaw, kill and reap our processes, remove what is below our directories."""
        for tree, file, thawed in (
            ("freezer", "freezer.state", "THAWED"),
            ("unified", "cgroup.freeze", "0"),
        ):
            for at, _, _ in os.walk(self.tree(tree)):
                (Path(at) / file).write_text(thawed)
        for child in self.children:
            child.popen.kill()
            child.popen.wait(10)
            for pipe in (child.popen.stdin, child.popen.stdout):
                if pipe is not None:
                    pipe.close()
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.children.clear()
        self.descriptors.clear()
        for tree in TREES:
            for at, dirs, _ in os.walk(self.tree(tree), topdown=False):
                for name in dirs:
                    eventually((Path(at) / name).rmdir)


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


@pytest.fixture(scope="session")
def mounted_fake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], MountedSide]]:
    """Makes sides with directories of their own in one mounted fake: a mount takes its time."""
    if reason := why_not_mounted():
        pytest.skip(reason)
    fs, at = fake_cgroups(), tmp_path_factory.mktemp("cgroup")
    with mount_in_background(fs, at) as run:

        def made() -> MountedSide:
            side = MountedSide(FakeSide(fs, own=f"own-{next(_NUMBERS)}"), at, run)
            run(lambda: _make_own(side.fake))
            return side

        yield made


def eventually(action: Callable[[], Any], *, patience_s: float = _PATIENCE_S) -> Any:
    """What the kernel does a little later than asked, it has to do within that time."""
    clock = RealClock()
    end_s = clock.monotonic_s() + patience_s
    while True:
        try:
            return action()
        except (AssertionError, OSError):
            if clock.monotonic_s() >= end_s:
                raise
            select.select([], [], [], 0.002)


def outcome(action: Callable[[], Any]) -> str:
    """`ok`, or the name of the errno."""
    try:
        action()
    except OSError as error:
        return (
            "EOPNOTSUPP" if error.errno == errno.EOPNOTSUPP else errno.errorcode[error.errno or 0]
        )
    return "ok"


def write(path: Any, text: str) -> str:
    return outcome(lambda: path.write_text(text))


def read(path: Any) -> str:
    """The contents, or the errno that reading gives."""
    try:
        return path.read_text()
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            return "EOPNOTSUPP"
        return errno.errorcode[error.errno or 0]


@pytest.fixture(params=["fake", "mounted", pytest.param("real", marks=pytest.mark.real)])
def side(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "real" and (reason := why_not_real()):
        pytest.skip(reason)
    made: Any
    if request.param == "mounted":
        made = request.getfixturevalue("mounted_fake")()
    else:
        made = fake_side() if request.param == "fake" else RealSide()
    yield made
    made.close()
