"""The cpuset controller: which CPUs and memory nodes a group may use (CG-143).

v1: a group without CPUs or nodes takes no process, and groups stay within their parents. v2: a
group without any uses those of its parent, and nothing is refused for that.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from fakecri.cgroupfs.interface.tree import (
    Cgroup,
    Controller,
    InterfaceFile,
    Task,
    Where,
    everywhere,
    table,
)
from fakecri.cgroupfs.interface.values import U32_MAX, int_list, list_text, refuse, signed, unsigned

CPUSET: Final = "cpuset"
MAX_NODES: Final = 1024
_MAX_RELAX_LEVEL: Final = 2
"""Depends on the scheduling domains of the machine: this one has all cores in one domain."""
_FLAGS: Final = {
    "cpuset.cpu_exclusive": 0,
    "cpuset.mem_exclusive": 0,
    "cpuset.mem_hardwall": 0,
    "cpuset.memory_migrate": 0,
    "cpuset.memory_spread_page": 0,
    "cpuset.memory_spread_slab": 0,
    "cpuset.sched_load_balance": 1,
}
_INHERITED: Final = ("cpuset.memory_spread_page", "cpuset.memory_spread_slab")
_EXCLUSIVE: Final = {"cpus": "cpuset.cpu_exclusive", "mems": "cpuset.mem_exclusive"}


@dataclass(slots=True, eq=False)
class Cpuset:
    """What cpuset keeps of a group: sets of numbers by `cpus` and `mems`, and flags of v1 by file
    name."""

    cgroup: Cgroup
    sets: dict[str, frozenset[int]] = field(default_factory=dict)
    flags: dict[str, int] = field(default_factory=lambda: dict(_FLAGS))
    relax_level: int = -1


def of(cgroup: Cgroup) -> Cpuset:
    state: Cpuset = cgroup.states[CPUSET]
    return state


def _machine_has(cgroup: Cgroup, kind: str) -> int:
    machine = cgroup.hierarchy.machine
    return machine.cpus if kind == "cpus" else machine.memory_nodes


def _new(cgroup: Cgroup) -> Cpuset:
    cpuset = Cpuset(cgroup, {"cpus": frozenset(), "mems": frozenset()})
    parent = cgroup.parent
    if parent is None:
        cpuset.sets = {k: frozenset(range(_machine_has(cgroup, k))) for k in cpuset.sets}
        cpuset.flags.update(dict.fromkeys(_EXCLUSIVE.values(), 1))
    elif cgroup.hierarchy.version == 1:
        above = of(parent)
        cpuset.flags.update({name: above.flags[name] for name in _INHERITED})
        siblings = [of(c) for c in parent.children.values() if c is not cgroup]
        exclusive = any(s.flags[f] for s in siblings for f in _EXCLUSIVE.values())
        if parent.settings.get("cgroup.clone_children") and not exclusive:
            cpuset.sets = dict(above.sets)
    return cpuset


def effective(cgroup: Cgroup, kind: str) -> frozenset[int]:
    """The CPUs or nodes that processes of a group may use. v2: its own as far as the parent has
    them, else all of the parent's."""
    own: frozenset[int] = frozenset()
    for at in cgroup.up():
        if CPUSET in at.states:
            own = of(at).sets[kind]
            if cgroup.hierarchy.version == 1 or at.parent is None:
                return own
            above = effective(at.parent, kind)
            return own & above or above
    return own


def _check_v1(cgroup: Cgroup, kind: str, wanted: frozenset[int]) -> None:
    cpuset = of(cgroup)
    if any(not of(c).sets[kind] <= wanted for c in cgroup.children.values()):
        raise refuse(errno.EBUSY)
    assert cgroup.parent is not None
    if not wanted <= of(cgroup.parent).sets[kind]:
        raise refuse(errno.EACCES)
    _check_exclusive(cgroup, kind, wanted, cpuset.flags[_EXCLUSIVE[kind]])
    if cgroup.live_here and cpuset.sets[kind] and not wanted:
        raise refuse(errno.ENOSPC)


def _check_exclusive(cgroup: Cgroup, kind: str, wanted: frozenset[int], exclusive: int) -> None:
    assert cgroup.parent is not None
    for sibling in cgroup.parent.children.values():
        other = of(sibling)
        shared = sibling is not cgroup and bool(wanted & other.sets[kind])
        if shared and (exclusive or other.flags[_EXCLUSIVE[kind]]):
            raise refuse(errno.EINVAL)


def _write_set(kind: str, count: Callable[[Cgroup], int]) -> Callable[[Cgroup, str], None]:
    def write(cgroup: Cgroup, text: str) -> None:
        if cgroup.parent is None:
            raise refuse(errno.EACCES)
        members = int_list(text, count(cgroup))
        if not members <= frozenset(range(_machine_has(cgroup, kind))):
            raise refuse(errno.EINVAL)
        if members == of(cgroup).sets[kind]:
            return
        if cgroup.hierarchy.version == 1:
            _check_v1(cgroup, kind, members)
        of(cgroup).sets[kind] = members

    return write


def _read_set(kind: str) -> Callable[[Cgroup], str]:
    return lambda cgroup: list_text(of(cgroup).sets[kind]) + "\n"


def _read_effective(kind: str) -> Callable[[Cgroup], str]:
    return lambda cgroup: list_text(effective(cgroup, kind)) + "\n"


def _write_flag(name: str) -> Callable[[Cgroup, str], None]:
    def write(cgroup: Cgroup, text: str) -> None:
        value, cpuset = int(unsigned(text) & U32_MAX != 0), of(cgroup)  # the kernel keeps 32 bits
        kind = next((k for k, exclusive in _EXCLUSIVE.items() if exclusive == name), None)
        if kind is not None and cgroup.parent is not None and value != cpuset.flags[name]:
            if any(of(c).flags[name] > value for c in cgroup.children.values()):
                raise refuse(errno.EBUSY)
            if value > of(cgroup.parent).flags[name]:
                raise refuse(errno.EACCES)
            _check_exclusive(cgroup, kind, cpuset.sets[kind], value)
        cpuset.flags[name] = value

    return write


def _write_relax(cgroup: Cgroup, text: str) -> None:
    value = signed(text)
    if not -1 <= value <= _MAX_RELAX_LEVEL:
        raise refuse(errno.EINVAL)
    of(cgroup).relax_level = value


def _may_attach(cgroup: Cgroup, _task: Task) -> None:
    if cgroup.hierarchy.version == 1 and not all(of(cgroup).sets.values()):
        raise refuse(errno.ENOSPC)


def _flag_file(name: str) -> InterfaceFile:
    read: Callable[[Cgroup], str] = lambda c: f"{of(c).flags[name]}\n"  # noqa: E731
    return everywhere(name, read, _write_flag(name))


def _sets(where: Where) -> tuple[InterfaceFile, ...]:
    cpus = _write_set("cpus", lambda c: c.hierarchy.machine.cpus)
    mems = _write_set("mems", lambda _c: MAX_NODES)
    return (
        InterfaceFile("cpuset.cpus", _read_set("cpus"), cpus, where),
        InterfaceFile("cpuset.mems", _read_set("mems"), mems, where),
    )


V1: Final = Controller(
    CPUSET,
    table(
        *_sets(Where.EVERYWHERE),
        everywhere("cpuset.effective_cpus", _read_effective("cpus")),
        everywhere("cpuset.effective_mems", _read_effective("mems")),
        *(_flag_file(name) for name in _FLAGS),
        everywhere("cpuset.memory_pressure", lambda _c: "0\n"),
        everywhere(
            "cpuset.sched_relax_domain_level", lambda c: f"{of(c).relax_level}\n", _write_relax
        ),
    ),
    _new,
    may_attach=_may_attach,
)
V2: Final = Controller(
    CPUSET,
    table(
        *_sets(Where.BELOW_ROOT),
        everywhere("cpuset.cpus.effective", _read_effective("cpus")),
        everywhere("cpuset.mems.effective", _read_effective("mems")),
    ),
    _new,
    threaded=True,
)
