"""The files that every v1 directory has, whatever its controllers (CG-110, CG-145)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fakecri.cgroupfs.interface.tree import Cgroup, InterfaceFile, Where, everywhere, table
from fakecri.cgroupfs.interface.values import flag, stripped

CLONE: Final = "cgroup.clone_children"
NOTIFY: Final = "notify_on_release"


def inherit(cgroup: Cgroup) -> None:
    """Set up a new directory: it takes both flags from its parent."""
    for name in (CLONE, NOTIFY):
        above = cgroup.parent.settings[name] if cgroup.parent is not None else 0
        cgroup.settings[name] = above


def read_procs(cgroup: Cgroup) -> str:
    """Ids of live processes with a task here, in order."""
    pids = {t.process.pid for t in cgroup.members.values() if t.process.alive}
    return "".join(f"{pid}\n" for pid in sorted(pids))


def read_tasks(cgroup: Cgroup) -> str:
    """Ids of live tasks, in order."""
    tids = [tid for tid, task in cgroup.members.items() if task.process.alive]
    return "".join(f"{tid}\n" for tid in sorted(tids))


def _write_procs(cgroup: Cgroup, text: str) -> None:
    processes = cgroup.hierarchy.processes
    processes.move(list(processes.find(text).process.tasks.values()), cgroup)


def _write_tasks(cgroup: Cgroup, text: str) -> None:
    processes = cgroup.hierarchy.processes
    processes.move([processes.find(text)], cgroup)


def _flag_file(name: str) -> InterfaceFile:
    def write(cgroup: Cgroup, text: str) -> None:
        cgroup.settings[name] = flag(text)

    read: Callable[[Cgroup], str] = lambda c: f"{c.settings[name]}\n"  # noqa: E731
    return everywhere(name, read, write)


def _write_agent(cgroup: Cgroup, text: str) -> None:
    cgroup.hierarchy.release_agent = stripped(text)


FILES: Final = table(
    everywhere("cgroup.procs", read_procs, _write_procs),
    everywhere("tasks", read_tasks, _write_tasks),
    _flag_file(CLONE),
    _flag_file(NOTIFY),
    InterfaceFile("cgroup.sane_behavior", lambda _c: "0\n", where=Where.ROOT),
    InterfaceFile(
        "release_agent", lambda c: f"{c.hierarchy.release_agent}\n", _write_agent, Where.ROOT
    ),
)
