"""This kernel's cgroups, as one side of a comparison.

Makes, in every hierarchy, one directory of its own with the process id in its name, works only
below it, moves only processes it started, and removes everything at the end. It is switched on by
REFKUBELET_CGROUPS=1 and needs root and the hierarchies mounted.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cgroup_sides import NUMBERS, TREES, make_own
from cgroupfs_helpers import eventually

MOUNT: Final = Path("/sys/fs/cgroup")
SWITCH: Final = "REFKUBELET_CGROUPS"
_HOG: Final = """
import sys
print(flush=True)
for line in sys.stdin:
    held = bytearray(int(line))
    print(flush=True)
"""


def why_not_real() -> str:
    """Why this kernel cannot be the other side; "" when it can."""
    if os.environ.get(SWITCH) != "1":
        return f"set {SWITCH}=1 to compare with this machine's kernel (as root)"
    if os.geteuid() != 0:
        return "needs root"
    missing = [t for t in TREES if not (MOUNT / t / "cgroup.procs").exists()]
    return f"not mounted below {MOUNT}: {', '.join(missing)}" if missing else ""


@dataclass(slots=True)
class RealChild:
    pid: int
    popen: subprocess.Popen[bytes]

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)  # Popen.send_signal reaps

    def reap(self) -> int:
        return self.popen.wait(10)


class RealHog(RealChild):
    """A Python that allocates what it reads from its standard input."""

    def holds(self, size_bytes: int) -> None:
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        self.popen.stdin.write(f"{size_bytes}\n".encode())
        self.popen.stdin.flush()
        self.popen.stdout.readline()  # nothing comes from a dead one


@dataclass(slots=True)
class RealSide:
    """This kernel."""

    name: str = "real"
    own: str = ""
    children: list[RealChild] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.own = f"refkubelet-cgroupfs-{os.getpid()}-{next(NUMBERS)}"
        make_own(self)

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
        make_own(self)

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
