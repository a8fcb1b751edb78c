"""CgroupFS: the kernel's cgroup file system, v1 or v2, in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from fakecri.cgroupfs import core_v1, core_v2
from fakecri.cgroupfs.controllers import (
    blkio,
    cpu,
    cpuacct,
    cpuset,
    devices,
    freezer,
    hugetlb,
    io,
    memory_v1,
    memory_v2,
    pids,
)
from fakecri.cgroupfs.interface.machine import Machine
from fakecri.cgroupfs.interface.open_file import EventFd, OpenFile
from fakecri.cgroupfs.interface.tree import Cgroup, Controller, Hierarchy, InterfaceFile
from fakecri.cgroupfs.path import CgroupPath
from fakecri.cgroupfs.processes import INIT, WRITER, Host, Process, ProcessTable
from fakecri.cgroupfs.walking import split
from simclock import Clock

V1_CONTROLLERS: Final = (
    *("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "hugetlb"),
)
V2_CONTROLLERS: Final = ("cpuset", "cpu", "io", "memory", "hugetlb", "pids")
NAMED: Final = "systemd"
"""The v1 mount that systemd uses: a hierarchy without a controller."""
_FIRST_FD: Final = 1000
_TABLES: Final[dict[int, dict[str, Controller]]] = {
    1: {
        "cpu": cpu.V1,
        "cpuacct": cpuacct.V1,
        "cpuset": cpuset.V1,
        "memory": memory_v1.V1,
        "devices": devices.V1,
        "freezer": freezer.V1,
        "blkio": blkio.V1,
        "pids": pids.V1,
    },
    2: {
        "cpuset": cpuset.V2,
        "cpu": cpu.V2,
        "io": io.V2,
        "memory": memory_v2.V2,
        "pids": pids.V2,
    },
}


class CgroupFS:
    """What is mounted at /sys/fs/cgroup of a fake machine; use it through `path`.

    `version`: 2, one tree at "/"; or 1, one tree for each mount, below "/".

    `controllers`: for v2 those of the root, by default `V2_CONTROLLERS`. For v1 the mounts: the
    name of a controller, of several with commas ("cpu,cpuacct"), or "systemd" for the tree without
    controllers; by default each of `V1_CONTROLLERS` and "systemd".

    `unified`: only with v1, the controllers of a v2 tree at "/unified", as on hybrid machines;
    None: no such tree. `machine`: CPUs, nodes, huge pages. `clock`: the time for pressure triggers
    and frozen time; None: it is always 0. `on_structure`: what is called when directories or files
    have come or gone. Raises ValueError for a version, a controller or a
    combination of them that cannot be.
    """

    def __init__(
        self,
        version: int = 2,
        *,
        controllers: Sequence[str] | None = None,
        unified: Sequence[str] | None = None,
        machine: Machine | None = None,
        clock: Clock | None = None,
    ) -> None:
        if version not in (1, 2):
            raise ValueError(f"version {version!r}: cgroup has versions 1 and 2")
        if version == 2 and unified is not None:
            raise ValueError("unified: only v1 has a second tree for v2")
        self.version = version
        self.machine = machine or Machine()
        self.processes = ProcessTable()
        self.open_files: dict[int, OpenFile] = {}
        self.eventfds: dict[int, EventFd] = {}
        self.mounts: dict[str, Hierarchy] = {}
        self.on_structure: list[Callable[[], None]] = []
        self._clock = clock
        self._next_fd = _FIRST_FD
        if version == 2:
            self._mount("", 2, V2_CONTROLLERS if controllers is None else controllers)
        else:
            for mount in (*V1_CONTROLLERS, NAMED) if controllers is None else controllers:
                self._mount(mount, 1, [] if mount == NAMED else mount.split(","))
            if unified is not None:
                self._mount("unified", 2, unified)
        self.init = self.processes.start(None, INIT)
        self.writer = self.processes.start(None, WRITER)

    def path(self, path: str = "/") -> CgroupPath:
        """A path below /sys/fs/cgroup: "/kubepods" with v2, "/memory/kubepods" with v1."""
        return CgroupPath(self, split(path))

    def spawn(self, cgroup: str = "/") -> Process:
        """Start a process in that cgroup of every hierarchy; `cgroup`: its path without the mount.

        Raises ENOENT where a hierarchy has no such cgroup, and the errors of moving a process
        there.
        """
        process = self.init.fork()
        try:
            for mount in self.mounts:
                target = self.path(f"/{mount}") / cgroup
                (target / "cgroup.procs").write_text(str(process.pid))
        except OSError:
            process.exit()
            process.reap()
            raise
        return process

    def eventfd(self) -> EventFd:
        """A new counter for cgroup.event_control (CG-133)."""
        event = EventFd(self._new_fd())
        self.eventfds[event.fd] = event
        event.on_close.append(partial(self.eventfds.__delitem__, event.fd))
        return event

    def register(self, opened: OpenFile) -> int:
        """Give an open file its number."""
        fd = self._new_fd()
        self.open_files[fd] = opened
        return fd

    def belongs_to(self, host: Host) -> None:
        """Let `host` be the machine of these processes: it is asked before files are opened, and
        told which processes are killed for memory."""
        self.processes.host = host

    def before_use(self) -> None:
        """Let the machine charge what is used by now; called before a file is opened."""
        if self.processes.host is not None:
            self.processes.host.before_use()

    def look_up(self, parts: tuple[str, ...]) -> Cgroup | InterfaceFile | CgroupFS | None:
        """The cgroup or file at a path; the file system itself at the top of v1; None: nothing."""
        if self.version == 1:
            if not parts:
                return self
            hierarchy = self._mounted(parts[0])
            parts = parts[1:]
        else:
            hierarchy = self.mounts[""]
        if hierarchy is None:
            return None
        at = hierarchy.root
        for n, part in enumerate(parts):
            if part in at.children:
                at = at.children[part]
            else:
                return at.file(part) if n == len(parts) - 1 else None
        return at

    def file_at(self, parts: tuple[str, ...]) -> tuple[Cgroup, InterfaceFile] | None:
        """The file at a path, with its directory; None: there is no file."""
        above = self.look_up(parts[:-1])
        file = above.file(parts[-1]) if parts and isinstance(above, Cgroup) else None
        return None if file is None or not isinstance(above, Cgroup) else (above, file)

    def _mounted(self, name: str) -> Hierarchy | None:
        """The hierarchy at the top of a path: by its own name, or by that of one of its
        controllers, which is a link on real machines."""
        by_controller = (h for h in self.mounts.values() if name in h.controllers)
        hierarchy = self.mounts.get(name)
        if hierarchy is None and name != "unified":
            hierarchy = next((h for h in by_controller if h.version == 1), None)
        return hierarchy

    def _mount(self, mount: str, version: int, names: Sequence[str]) -> None:
        controllers: dict[str, Controller] = {}
        for name in names:
            controllers[name] = self._controller(name, version)
            if any(name in h.controllers for h in self.mounts.values()):
                raise ValueError(f"controller {name!r} is mounted twice: it belongs to one tree")
        core = core_v1 if version == 1 else core_v2
        self.mounts[mount] = Hierarchy(
            version=version,
            mount=mount,
            machine=self.machine,
            controllers=controllers,
            core=core.FILES,
            inherit=core.inherit,
            processes=self.processes,
            now_ns=self._now_ns,
            changed=self._structure_changed,
        )
        self.processes.hierarchies.append(self.mounts[mount])

    def _structure_changed(self) -> None:
        for listener in self.on_structure:
            listener()

    def _controller(self, name: str, version: int) -> Controller:
        names = [*_TABLES[version], hugetlb.HUGETLB]
        if name not in names:
            raise ValueError(
                f"controller {name!r}: not one of {', '.join(sorted(names))} (cgroup v{version})"
            )
        if name == hugetlb.HUGETLB:
            return hugetlb.controller(self.machine, version)
        return _TABLES[version][name]

    def _now_ns(self) -> int:
        return 0 if self._clock is None else round(self._clock.monotonic_s() * 1e9)

    def _new_fd(self) -> int:
        self._next_fd += 1
        return self._next_fd
