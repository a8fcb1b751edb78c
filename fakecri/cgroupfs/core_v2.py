"""The files that every v2 directory has: cgroup.* and the pressure files (CG-120 to CG-126)."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Final

from fakecri.cgroupfs import domains
from fakecri.cgroupfs.controllers import cpu
from fakecri.cgroupfs.core_v1 import read_tasks
from fakecri.cgroupfs.interface import pressure
from fakecri.cgroupfs.interface.tree import Cgroup, InterfaceFile, everywhere, table
from fakecri.cgroupfs.interface.values import I32_MAX, one_of, refuse, small, stripped

FREEZE: Final = "cgroup.freeze"
PRESSURE: Final = "cgroup.pressure"
KNOWN: Final[tuple[str, ...]] = (
    *("cpuset", "cpu", "io", "memory", "perf_event", "hugetlb", "pids", "rdma", "misc"),
)
"""The names that v2 knows, in its order. One that is not in cgroup.controllers gives ENOENT
(CG-121)."""


def inherit(cgroup: Cgroup) -> None:
    """Set up a new directory. It is frozen if a group above is."""
    cgroup.settings[PRESSURE] = 1
    if cgroup.parent is not None:
        cgroup.settings[FREEZE] = 0
        if is_frozen(cgroup):
            cgroup.frozen_since_ns = cgroup.hierarchy.now_ns()
    for name in ("cgroup.max.depth", "cgroup.max.descendants"):
        cgroup.settings[name] = I32_MAX


def available(cgroup: Cgroup) -> list[str]:
    """The controllers that may be enabled in a group: those that its parent enables; in the root,
    those of the hierarchy."""
    above = cgroup.parent
    names = cgroup.hierarchy.controllers if above is None else above.enabled
    usable = [n for n in KNOWN if n in names]
    if cgroup.threaded:
        usable = [n for n in usable if cgroup.hierarchy.controllers[n].threaded]
    return usable


def _words(names: list[str]) -> str:
    return " ".join(names) + "\n" if names else ""


def _write_subtree_control(cgroup: Cgroup, text: str) -> None:
    switches: dict[str, bool] = {}
    for word in stripped(text).split(" "):
        if word and (word[0] not in "+-" or word[1:] not in KNOWN):
            raise refuse(errno.EINVAL)
        if word:
            switches[word[1:]] = word[0] == "+"
    on = [n for n in KNOWN if switches.get(n) and n not in cgroup.enabled]
    off = [n for n in KNOWN if switches.get(n) is False and n in cgroup.enabled]
    for name in KNOWN:
        if name in on and name not in available(cgroup):
            raise refuse(errno.ENOENT)
        if name in off and any(name in child.enabled for child in cgroup.children.values()):
            raise refuse(errno.EBUSY)
    if on or off:
        domains.need_room_for_controllers(cgroup, on)
    _switch(cgroup, on, off)


def _switch(cgroup: Cgroup, on: list[str], off: list[str]) -> None:
    """Enable and disable controllers: the directories below get or lose their files."""
    enabled = (set(cgroup.enabled) | set(on)) - set(off)
    cgroup.enabled = [n for n in KNOWN if n in enabled]
    for child in cgroup.children.values():
        for name in on:
            child.states[name] = cgroup.hierarchy.controllers[name].new_state(child)
        for name in off:
            child.drop(name)
    cgroup.hierarchy.changed()


def is_frozen(cgroup: Cgroup) -> bool:
    """Whether the group, or one above it, is told to freeze; here tasks stop at once (CG-123)."""
    return any(c.settings.get(FREEZE) for c in cgroup.up())


def _write_freeze(cgroup: Cgroup, text: str) -> None:
    value = one_of(text, 0, 1)
    before = {c: is_frozen(c) for c in cgroup.down()}
    cgroup.settings[FREEZE] = value
    now_ns = cgroup.hierarchy.now_ns()
    for group, was in before.items():
        if is_frozen(group) == was:
            continue
        if group.frozen_since_ns is not None:
            group.frozen_ns += now_ns - group.frozen_since_ns
        group.frozen_since_ns = None if was else now_ns
        group.notify("cgroup.events")


def _read_frozen_time(cgroup: Cgroup) -> str:
    frozen_ns = cgroup.frozen_ns
    if cgroup.frozen_since_ns is not None:
        frozen_ns += cgroup.hierarchy.now_ns() - cgroup.frozen_since_ns
    return f"frozen_usec {frozen_ns // 1000}\n"


def _write_kill(cgroup: Cgroup, text: str) -> None:
    one_of(text, 1)
    if cgroup.threaded:
        raise refuse(errno.EOPNOTSUPP)
    for group in cgroup.down():
        for task in list(group.members.values()):
            task.process.kill()


def _read_type(cgroup: Cgroup) -> str:
    return f"{domains.type_text(cgroup)}\n"


def _write_type(cgroup: Cgroup, text: str) -> None:
    if stripped(text) != "threaded":
        raise refuse(errno.EINVAL)
    domains.make_threaded(cgroup)


def _read_procs(cgroup: Cgroup) -> str:
    """cgroup.procs. In a threaded subtree all processes belong to its root, and are listed
    there."""
    if cgroup.threaded:
        raise refuse(errno.EOPNOTSUPP)
    pids = {
        task.process.pid
        for below in cgroup.down()
        if domains.domain_of(below) is cgroup
        for task in below.members.values()
        if task.process.alive
    }
    return "".join(f"{pid}\n" for pid in sorted(pids))


def _write_procs(cgroup: Cgroup, text: str) -> None:
    processes = cgroup.hierarchy.processes
    task = processes.find(text)
    domains.need_room_for_processes(cgroup)
    processes.move(list(task.process.tasks.values()), cgroup)


def _write_threads(cgroup: Cgroup, text: str) -> None:
    processes = cgroup.hierarchy.processes
    task = processes.find(text)
    source = task.at[cgroup.hierarchy.mount]
    if domains.domain_of(source) is not domains.domain_of(cgroup):
        raise refuse(errno.EOPNOTSUPP)
    domains.need_room_for_processes(cgroup)
    processes.move([task], cgroup)


def _read_events(cgroup: Cgroup) -> str:
    return f"populated {int(cgroup.live > 0)}\nfrozen {int(is_frozen(cgroup))}\n"


def _read_stat(cgroup: Cgroup) -> str:
    """cgroup.stat. perf_event counts in every group without being enabled; no group lingers after
    rmdir here."""
    counted = [n for n in KNOWN if n in cgroup.hierarchy.controllers or n == "perf_event"]
    below = list(cgroup.down())
    lines = [f"nr_descendants {len(below) - 1}"]
    for name in counted:
        n = len(below) if name == "perf_event" else sum(name in c.states for c in below)
        lines.append(f"nr_subsys_{name} {n}")
    lines.append("nr_dying_descendants 0")
    lines += [f"nr_dying_subsys_{name} 0" for name in counted]
    return "\n".join(lines) + "\n"


def _limit_file(name: str) -> InterfaceFile:
    def read(cgroup: Cgroup) -> str:
        value = cgroup.settings[name]
        return "max\n" if value == I32_MAX else f"{value}\n"

    def write(cgroup: Cgroup, text: str) -> None:
        value = I32_MAX if stripped(text) == "max" else small(text)
        if value < 0:
            raise refuse(errno.ERANGE)
        cgroup.settings[name] = value

    return everywhere(name, read, write)


def _write_pressure(cgroup: Cgroup, text: str) -> None:
    cgroup.settings[PRESSURE] = one_of(text, 0, 1)
    cgroup.hierarchy.changed()


def _setting(name: str) -> Callable[[Cgroup], str]:
    return lambda cgroup: f"{cgroup.settings[name]}\n"


FILES: Final = table(
    everywhere("cgroup.controllers", lambda c: _words(available(c))),
    everywhere("cgroup.subtree_control", lambda c: _words(c.enabled), _write_subtree_control),
    everywhere("cgroup.procs", _read_procs, _write_procs),
    everywhere("cgroup.threads", read_tasks, _write_threads),
    InterfaceFile("cgroup.type", _read_type, _write_type),
    InterfaceFile("cgroup.events", _read_events),
    InterfaceFile(FREEZE, _setting(FREEZE), _write_freeze),
    InterfaceFile("cgroup.kill", write=_write_kill),
    _limit_file("cgroup.max.depth"),
    _limit_file("cgroup.max.descendants"),
    everywhere("cgroup.stat", _read_stat),
    InterfaceFile("cgroup.stat.local", _read_frozen_time),
    everywhere(PRESSURE, _setting(PRESSURE), _write_pressure),
    everywhere("cpu.stat", cpu.read_stat_v2),
    everywhere("cpu.stat.local", cpu.read_stat_local_v2),
    *pressure.files(),
)
