"""Processes of the fake machine: where they are, what they use, how they end.

A process is its tasks; each task is in exactly one cgroup of every hierarchy and stays in the
counts as a zombie until it is reaped (CG-111, CG-142). What must never happen here: a process that
is dead is alive for one hierarchy and gone for another. Rules CG-110 to CG-113, CG-142.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, Protocol

from fakecri.cgroupfs.controllers import memory_use
from fakecri.cgroupfs.interface import tree
from fakecri.cgroupfs.interface.tree import Cgroup, Hierarchy
from fakecri.cgroupfs.interface.values import refuse, require_amounts, small, stripped

SIGKILL: Final = 9
INIT, KTHREADD, WRITER = 1, 2, 100


class Life(Enum):
    """LIVE becomes ZOMBIE by an exit or a signal, ZOMBIE becomes GONE when its parent waits for
    it."""

    LIVE = auto()
    ZOMBIE = auto()
    GONE = auto()


@dataclass(slots=True, eq=False)
class Task:
    """A thread; the first one of a process has the process's id."""

    tid: int
    process: Process
    at: dict[str, Cgroup] = field(default_factory=dict)
    """Its cgroup in each hierarchy, by mount."""


@dataclass(slots=True, eq=False, repr=False)
class Process:
    """A process. Made by `CgroupFS.spawn`, or by another's `fork`."""

    pid: int
    """The id of its first task."""
    table: ProcessTable
    """All processes of the fake machine."""
    tasks: dict[int, Task] = field(default_factory=dict)
    """Its threads by id."""
    life: Life = Life.LIVE
    """Whether it lives, waits for its parent, or is gone."""
    exit_status: int | None = None
    """The exit code, or minus the signal that killed it."""
    charges: dict[Cgroup, int] = field(default_factory=dict)
    """Memory by the cgroup it was charged to, bytes (CG-111)."""
    on_exit: list[Callable[[Process], None]] = field(default_factory=list)
    """Called once, when it becomes a zombie."""
    hung: bool = False
    """Waits for memory in a group whose OOM killer is off (CG-132)."""
    name: str = ""
    """At most 15 characters, as the kernel's log shows it."""
    oom_score_adj: int = 0
    """-1000 to 1000, in thousandths of the memory that is short; -1000: never a victim."""
    oom_killed: bool = False
    """The OOM killer ended it, and its group shows that."""

    def __repr__(self) -> str:
        return f"Process({self.pid} {self.name!r} {self.life.name})"

    @property
    def alive(self) -> bool:
        return self.life is Life.LIVE

    @property
    def leader(self) -> Task:
        return self.tasks[self.pid]

    @property
    def memory_bytes(self) -> int:
        """What it holds, wherever it was charged."""
        return sum(self.charges.values())

    @property
    def frozen(self) -> bool:
        """Whether a freezer, of v1 or v2, stops it: that of its group or of one above."""
        return any(
            cgroup.settings.get("cgroup.freeze") or _freezer_stops(cgroup)
            for leaf in self.leader.at.values()
            for cgroup in leaf.up()
        )

    def cgroup(self, mount: str = "") -> str:
        """The path of its group in the hierarchy at `mount`; `<path> (deleted)` for one that was
        removed (CG-103)."""
        leaf = self.leader.at[mount]
        return leaf.path + (" (deleted)" if leaf.removed else "")

    def fork(self) -> Process:
        """Start a child in the same cgroups. Raises EAGAIN when a pids.max forbids it, ESRCH when
        this process has ended."""
        self._need_life()
        return self.table.start(self.leader)

    def start_thread(self) -> int:
        """Start a thread; returns its id. Raises EAGAIN and ESRCH as `fork` does."""
        self._need_life()
        return self.table.add_task(self, self.leader).tid

    def set_usage(
        self,
        *,
        memory_bytes: int | None = None,
        cpu_user_ns: int = 0,
        cpu_system_ns: int = 0,
    ) -> None:
        """Let it hold `memory_bytes` from now on (None: no change), and add to the CPU time that it
        has used.

        More memory than a limit allows has the kernel's consequences: page cache is reclaimed, then
        the OOM killer takes the biggest process of the group at its limit, maybe this one. Raises
        ESRCH for a process that has ended.
        """
        require_amounts(
            memory_bytes=memory_bytes or 0, cpu_user_ns=cpu_user_ns, cpu_system_ns=cpu_system_ns
        )
        self._need_life()
        for cgroup in self.leader.at.values():
            cgroup.use_cpu(cpu_user_ns, cpu_system_ns)
        if memory_bytes is not None:
            memory_use.set_process(self, memory_bytes)

    def exit(self, code: int = 0) -> None:
        """End it with an exit code; it is a zombie until `reap`."""
        self._need_life()
        self.table.end(self, code)

    @property
    def dies_later(self) -> bool:
        """Whether the v1 freezer keeps it from dying by a signal now (CG-144)."""
        return any(_freezer_frozen(c) for c in self.leader.at.values())

    def kill(self, signal: int = SIGKILL) -> None:
        """Send it a deadly signal; a zombie ignores it. A task that the v1 freezer holds dies when
        it is thawed (CG-144)."""
        if not self.alive or self.dies_later:
            self.table.pending += [(self, signal)] if self.alive else []
            return
        self.table.end(self, -signal)

    def oom_kill(self, *, noticed: bool = True) -> None:
        """The OOM killer kills it; see `memory_use.oom_kill`."""
        memory_use.oom_kill(self, noticed=noticed)

    def reap(self) -> int:
        """Take note of its end, as its parent's wait does: it is counted no longer. Returns the
        exit status. Raises ECHILD for a process that has not ended."""
        if self.life is not Life.ZOMBIE or self.exit_status is None:
            raise refuse(errno.ECHILD)
        self.life = Life.GONE
        self.table.forget(self)
        return self.exit_status

    def _need_life(self) -> None:
        if not self.alive:
            raise refuse(errno.ESRCH)


def _freezer_stops(cgroup: Cgroup) -> bool:
    state = cgroup.states.get("freezer")
    return state is not None and bool(state.own)


def _freezer_frozen(leaf: Cgroup) -> bool:
    return any(_freezer_stops(cgroup) for cgroup in leaf.up())


class Host(Protocol):
    """The machine whose processes and cgroups these are."""

    def before_use(self) -> None:
        """Charge what is used by now: a cgroup file is about to be opened."""

    def out_of_memory(
        self, full: Cgroup, victims: Sequence[tree.Process], group: Cgroup | None
    ) -> None:
        """Take note of processes that are about to be killed, since the group `full` is at its
        limit. `group`: the one with memory.oom.group, all of whose processes go; None: there is
        none."""


@dataclass(slots=True, eq=False)
class ProcessTable:
    """All processes of a machine; gives out ids and moves tasks."""

    hierarchies: list[Hierarchy] = field(default_factory=list)
    processes: dict[int, Process] = field(default_factory=dict)
    tasks: dict[int, Task] = field(default_factory=dict)
    pending: list[tuple[Process, int]] = field(default_factory=list)
    """Signals to frozen processes, which are delivered later."""
    next_id: int = WRITER
    host: Host | None = None

    def start(self, like: Task | None, tid: int | None = None) -> Process:
        """Start a process in the cgroups of a task; None: in the roots."""
        return self.start_in(self._places(like), tid)

    def start_in(self, places: dict[str, Cgroup], tid: int | None = None) -> Process:
        """Start a process in a cgroup of each hierarchy, by mount. Raises EAGAIN, ENOSPC."""
        tid = tid if tid is not None else self._new_id()
        process = Process(tid, self)
        self._enter(Task(tid, process), dict(places))
        self.processes[tid] = process
        return process

    def add_task(self, process: Process, like: Task) -> Task:
        """Start a thread of a process, in the cgroups of the task `like`."""
        task = Task(self._new_id(), process)
        self._enter(task, self._places(like))
        return task

    def _new_id(self) -> int:
        self.next_id += 1
        return self.next_id

    def _places(self, like: Task | None) -> dict[str, Cgroup]:
        return {h.mount: h.root if like is None else like.at[h.mount] for h in self.hierarchies}

    def _enter(self, task: Task, places: dict[str, Cgroup]) -> None:
        for cgroup in places.values():
            _need_room(cgroup)
        task.at = places
        task.process.tasks[task.tid] = self.tasks[task.tid] = task
        for cgroup in places.values():
            cgroup.members[task.tid] = task
            cgroup.count(tasks=1, live=1)
            _note_peaks(cgroup)

    def end(self, process: Process, status: int) -> None:
        """Make a process a zombie: its memory is freed, its tasks stay counted."""
        process.life, process.exit_status = Life.ZOMBIE, status
        memory_use.set_process(process, 0)
        for task in process.tasks.values():
            for cgroup in task.at.values():
                cgroup.count(tasks=0, live=-1)
        for callback in list(process.on_exit):
            callback(process)

    def forget(self, process: Process) -> None:
        """Remove all traces of a process."""
        del self.processes[process.pid]
        for task in process.tasks.values():
            del self.tasks[task.tid]
            for cgroup in task.at.values():
                cgroup.members.pop(task.tid, None)
                cgroup.count(tasks=-1, live=0)

    def tell_oom(self, full: Cgroup, victims: Sequence[tree.Process], group: Cgroup | None) -> None:
        """Tell the machine, if there is one, of processes that are about to be killed for
        memory."""
        if self.host is not None:
            self.host.out_of_memory(full, victims, group)

    def deliver_pending(self) -> None:
        """Deliver the signals that waited to processes that are not frozen any more."""
        waiting, self.pending = self.pending, []
        for process, signal in waiting:
            process.kill(signal)

    def find(self, text: str) -> Task:
        """The task that a line for cgroup.procs means. Raises EINVAL, ESRCH (CG-110)."""
        try:
            pid = small(stripped(text))
        except OSError:
            raise refuse(errno.EINVAL) from None
        if pid < 0 or pid == KTHREADD:
            raise refuse(errno.EINVAL)
        task = self.tasks.get(pid or WRITER)
        if task is None:
            raise refuse(errno.ESRCH)
        return task

    def move(self, tasks: Sequence[tree.Task], target: Cgroup) -> None:
        """Move live tasks to a group, all or none of them. Raises the OSError of a controller that
        refuses."""
        moving = [
            t for t in tasks if t.process.alive and t.at[target.hierarchy.mount] is not target
        ]
        controllers = [target.hierarchy.controllers[name] for name in target.states]
        for controller in controllers:
            for task in moving:
                controller.may_attach(target, task)
        for task in moving:
            old = task.at[target.hierarchy.mount]
            del old.members[task.tid]
            task.at[target.hierarchy.mount] = target
            target.members[task.tid] = task
            # As the kernel does it: for a moment groups above both have one more.
            target.count(tasks=1, live=1)
            _note_peaks(target)
            old.count(tasks=-1, live=-1)
        if moving:
            self.deliver_pending()


def _need_room(cgroup: Cgroup) -> None:
    for pids in cgroup.states_up("pids"):
        pids.need_room(cgroup)


def _note_peaks(cgroup: Cgroup) -> None:
    for pids in cgroup.states_up("pids"):
        pids.note_peak()
