"""Directories: control groups, the hierarchies they form, and which may be made, removed or
renamed.

A cgroup keeps the running sums of its subtree (tasks, live tasks, CPU time), so that reading a
file or checking a limit costs the depth of the tree and not its size. Everything that belongs to
one controller is in `states`, under the controller's name; a v2 cgroup has a controller's state
only while its parent has it enabled. What must never happen here: a sum that is not the sum of
what is below. Rules CG-100, CG-101, CG-102, CG-125.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Protocol

from msgspec import Struct

from fakecri.cgroupfs.interface.machine import Machine
from fakecri.cgroupfs.interface.values import I32_MAX, refuse


class Process(Protocol):
    """What groups need of a process; `processes.Process` is one."""

    hung: bool
    oom_killed: bool

    @property
    def pid(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def tasks(self) -> Mapping[int, Task]: ...
    @property
    def table(self) -> Processes: ...
    @property
    def alive(self) -> bool: ...
    @property
    def leader(self) -> Task: ...
    @property
    def charges(self) -> dict[Cgroup, int]: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def oom_score_adj(self) -> int: ...
    @property
    def dies_later(self) -> bool: ...

    @property
    def exit_status(self) -> int | None: ...

    def kill(self, signal: int = ...) -> None: ...
    def reap(self) -> int: ...


class Task(Protocol):
    """A thread of a process, and its group in each hierarchy by mount."""

    @property
    def tid(self) -> int: ...
    @property
    def process(self) -> Process: ...
    @property
    def at(self) -> dict[str, Cgroup]: ...


class Processes(Protocol):
    """What groups need of the table of processes; `processes.ProcessTable` is one."""

    @property
    def processes(self) -> Mapping[int, Process]: ...

    def find(self, text: str) -> Task: ...
    def move(self, tasks: Sequence[Task], target: Cgroup) -> None: ...
    def deliver_pending(self) -> None: ...
    def tell_oom(self, full: Cgroup, victims: Sequence[Process], group: Cgroup | None) -> None: ...


class Where(Enum):
    """Which directories have a file."""

    EVERYWHERE = auto()
    ROOT = auto()
    BELOW_ROOT = auto()


class InterfaceFile(Struct, frozen=True):
    """A kind of file: what reading and writing it does. None: root gets EINVAL."""

    name: str
    read: Callable[[Cgroup], str] | None = None
    write: Callable[[Cgroup, str], None] | None = None
    where: Where = Where.BELOW_ROOT
    per_open: Callable[[Cgroup, str, Any], None] | None = None
    """A write that concerns the open file, which is the third argument."""

    @property
    def mode(self) -> int:
        """Its permission bits (CG-100)."""
        writable = self.write is not None or self.per_open is not None
        return (0o444 if self.read else 0) | (0o200 if writable else 0)

    def is_in(self, cgroup: Cgroup) -> bool:
        """Whether a directory in this position has it; its controller is not asked."""
        if self.where is Where.EVERYWHERE:
            return True
        return (self.where is Where.ROOT) == (cgroup.parent is None)


def everywhere(
    name: str,
    read: Callable[[Cgroup], str] | None = None,
    write: Callable[[Cgroup, str], None] | None = None,
) -> InterfaceFile:
    """A kind of file that every directory has."""
    return InterfaceFile(name, read, write, Where.EVERYWHERE)


Files = dict[str, InterfaceFile]


def table(*files: InterfaceFile) -> Files:
    """The files by name."""
    return {file.name: file for file in files}


class Controller(Struct, frozen=True):
    """A controller: its files, the state that it keeps of each group, and what it does to tasks."""

    name: str
    files: Files
    new_state: Callable[[Cgroup], Any]
    threaded: bool = False
    may_attach: Callable[[Cgroup, Task], None] = lambda _cgroup, _task: None
    attached: Callable[[Cgroup, Task], None] = lambda _cgroup, _task: None
    removing: Callable[[Cgroup], None] = lambda _cgroup: None


@dataclass(slots=True, eq=False)
class Hierarchy:
    """One mounted tree."""

    version: int  # 1 or 2
    mount: str
    """Its directory below the root of the file system; "" for v2 alone."""
    machine: Machine  # What the files depend on
    controllers: dict[str, Controller]  # By name
    core: Files  # The files that every directory has, by name
    inherit: Callable[[Cgroup], None]  # Gives a new directory its core settings
    processes: Processes  # All processes of the machine
    now_ns: Callable[[], int] = lambda: 0  # Monotonic time
    release_agent: str = ""  # v1: what release_agent says
    changed: Callable[[], None] = lambda: None
    """Called when directories or files have come or gone, or have another name."""
    has_threaded: bool = False  # v2: a group was made threaded, as few hierarchies have one
    root: Cgroup = field(init=False)  # Made with the hierarchy

    def __post_init__(self) -> None:
        self.root = Cgroup(self, "", None)
        self.inherit(self.root)
        for controller in self.controllers.values():
            self.root.states[controller.name] = controller.new_state(self.root)


@dataclass(slots=True, eq=False, repr=False)
class Cgroup:
    """A directory of a hierarchy."""

    hierarchy: Hierarchy  # The tree that it is in
    name: str  # "" for the root
    parent: Cgroup | None  # None for the root
    children: dict[str, Cgroup] = field(default_factory=dict)  # By name
    settings: dict[str, int] = field(default_factory=dict)
    """Core files that hold a number, by file name."""
    states: dict[str, Any] = field(default_factory=dict)
    """What each controller keeps of this group, by the controller's name."""
    enabled: list[str] = field(default_factory=list)
    """v2: what cgroup.subtree_control says, in the order of the controllers."""
    threaded: bool = False  # v2: its type is threaded (CG-125)
    members: dict[int, Task] = field(default_factory=dict)  # Tasks here by id, zombies among them
    tasks: int = 0  # Number of tasks in the subtree, zombies among them
    live: int = 0  # Number of live tasks in the subtree
    user_ns: int = 0  # CPU time of the subtree in user mode
    system_ns: int = 0  # CPU time of the subtree in the kernel
    removed: bool = False  # It was removed; open files still refer to it
    frozen_since_ns: int | None = None
    """v2: when it was frozen, itself or by a group above; None: it is not."""
    frozen_ns: int = 0  # v2: how long it was frozen before that
    pressure: dict[str, Any] = field(default_factory=dict)
    """Stalls of the subtree by resource (CG-126)."""
    watchers: dict[str, list[Callable[[], None]]] = field(default_factory=dict)
    """What to call when a file changes, by file name."""

    def __repr__(self) -> str:
        return f"Cgroup({self.hierarchy.mount}:{self.path})"

    @property
    def path(self) -> str:
        """Its path from the root of its hierarchy."""
        names = [c.name for c in self.up() if c.parent is not None]
        return "/" + "/".join(reversed(names))

    def up(self) -> Iterator[Cgroup]:
        """The group itself, then those above it, the root last."""
        cgroup: Cgroup | None = self
        while cgroup is not None:
            yield cgroup
            cgroup = cgroup.parent

    def down(self) -> Iterator[Cgroup]:
        """The group itself, then all groups below it, parents before children."""
        yield self
        for child in list(self.children.values()):
            yield from child.down()

    @property
    def live_here(self) -> bool:
        """Whether a live task is in this very group."""
        return any(task.process.alive for task in self.members.values())

    def states_up(self, controller: str) -> Iterator[Any]:
        """The states of a controller for the group and those above, where there are any."""
        for cgroup in self.up():
            if controller in cgroup.states:
                yield cgroup.states[controller]

    def file(self, name: str) -> InterfaceFile | None:
        """The interface file with that name; None: the directory does not have it now."""
        interface_file = self.hierarchy.core.get(name)
        if interface_file is None:
            for controller in self.states:
                interface_file = self.hierarchy.controllers[controller].files.get(name)
                if interface_file is not None:
                    break
        return None if interface_file is None or not self._has(interface_file) else interface_file

    def _has(self, file: InterfaceFile) -> bool:
        if not file.is_in(self):
            return False
        shows = self.settings.get("cgroup.pressure") != 0
        return shows or not file.name.endswith(".pressure") or file.name == "cgroup.pressure"

    def file_names(self) -> list[str]:
        """The names of the files that it has now, sorted."""
        tables = [self.hierarchy.core]
        tables += [self.hierarchy.controllers[name].files for name in self.states]
        return sorted(f.name for files in tables for f in files.values() if self._has(f))

    def notify(self, file: str) -> None:
        """Call what watches a file: it has changed."""
        for watcher in list(self.watchers.get(file, ())):
            watcher()

    def mkdir(self, name: str) -> Cgroup:
        """Make a directory. Raises EEXIST, EINVAL, and EAGAIN beyond cgroup.max.*."""
        if name in self.children or self.file(name):
            raise refuse(errno.EEXIST)
        if "\n" in name:
            raise refuse(errno.EINVAL)
        for depth, cgroup in enumerate(self.up(), start=1):
            below = sum(1 for _ in cgroup.down()) - 1 if _limited(cgroup) else 0
            if depth > cgroup.settings.get("cgroup.max.depth", I32_MAX):
                raise refuse(errno.EAGAIN)
            if below >= cgroup.settings.get("cgroup.max.descendants", I32_MAX):
                raise refuse(errno.EAGAIN)
        child = Cgroup(self.hierarchy, name, self)
        self.hierarchy.inherit(child)
        self.children[name] = child
        for controller in self.hierarchy.controllers.values():
            if self.hierarchy.version == 1 or controller.name in self.enabled:
                child.states[controller.name] = controller.new_state(child)
        self.hierarchy.changed()
        return child

    def rmdir(self) -> None:
        """Remove it. Raises EBUSY with children, live processes, or for the root (CG-102)."""
        if self.parent is None or self.children or self.live:
            raise refuse(errno.EBUSY)
        for name in list(self.states):
            self.drop(name)
        del self.parent.children[self.name]
        self.removed = True
        self.hierarchy.changed()
        for file in list(self.watchers):
            self.notify(file)

    def drop(self, controller: str) -> None:
        """Remove a controller from the directory; what was charged here is charged to the
        parent."""
        self.hierarchy.controllers[controller].removing(self)
        del self.states[controller]

    def rename(self, parent: Cgroup, name: str) -> None:
        """Rename the directory. Raises EPERM with v2, EIO for another parent (CG-101)."""
        if parent.file(name):
            raise refuse(errno.ENOTDIR)
        if self.hierarchy.version == 2:
            raise refuse(errno.EPERM)
        if "\n" in name:
            raise refuse(errno.EINVAL)
        if parent is not self.parent:
            raise refuse(errno.EIO)
        if name in parent.children:
            raise refuse(errno.EEXIST)
        del parent.children[self.name]
        self.name = name
        parent.children[name] = self
        self.hierarchy.changed()

    def count(self, tasks: int, live: int) -> None:
        """Count so many tasks more, here and above, and notify v2 groups that got or lost their
        last one."""
        for cgroup in self.up():
            before, cgroup.live = cgroup.live, cgroup.live + live
            cgroup.tasks += tasks
            if bool(before) != bool(cgroup.live):
                cgroup.notify("cgroup.events")

    def use_cpu(self, user_ns: int, system_ns: int) -> None:
        """Add CPU time, here and above."""
        for cgroup in self.up():
            cgroup.user_ns += user_ns
            cgroup.system_ns += system_ns


def _limited(cgroup: Cgroup) -> bool:
    return cgroup.settings.get("cgroup.max.descendants", I32_MAX) != I32_MAX
