"""The v1 cpuacct controller: CPU time used by a subtree, nanoseconds and ticks (CG-145)."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fakecri.cgroupfs.interface.tree import Cgroup, Controller, everywhere, table
from fakecri.cgroupfs.interface.values import refuse, unsigned

CPUACCT: Final = "cpuacct"
_TICK_NS: Final = 10_000_000


@dataclass(slots=True, eq=False)
class CpuAccount:
    """How much CPU time the group had used when cpuacct.usage was last reset."""

    user_ns: int = 0
    system_ns: int = 0

    def used_ns(self, cgroup: Cgroup, user: bool, system: bool) -> int:
        used = cgroup.user_ns - self.user_ns if user else 0
        return used + (cgroup.system_ns - self.system_ns if system else 0)


def _used(user: bool, system: bool) -> Callable[[Cgroup], str]:
    def read(cgroup: Cgroup) -> str:
        state = cgroup.states[CPUACCT]
        return f"{state.used_ns(cgroup, user, system)}\n"

    return read


def _reset_usage(cgroup: Cgroup, text: str) -> None:
    if unsigned(text) != 0:
        raise refuse(errno.EINVAL)
    state = cgroup.states[CPUACCT]
    state.user_ns, state.system_ns = cgroup.user_ns, cgroup.system_ns


def _per_cpu(user: bool, system: bool) -> Callable[[Cgroup], str]:
    """A reader of times for each CPU; all time was spent on the first one."""

    def read(cgroup: Cgroup) -> str:
        used = cgroup.states[CPUACCT].used_ns(cgroup, user, system)
        return f"{used} " + "0 " * (cgroup.hierarchy.machine.cpus - 1) + "\n"

    return read


def _read_all(cgroup: Cgroup) -> str:
    state: CpuAccount = cgroup.states[CPUACCT]
    first = state.used_ns(cgroup, True, False), state.used_ns(cgroup, False, True)
    rows = [first, *[(0, 0)] * (cgroup.hierarchy.machine.cpus - 1)]
    return "cpu user system\n" + "".join(f"{n} {u} {s}\n" for n, (u, s) in enumerate(rows))


def _read_ticks(cgroup: Cgroup) -> str:
    return f"user {cgroup.user_ns // _TICK_NS}\nsystem {cgroup.system_ns // _TICK_NS}\n"


_FILES: Final = (
    ("cpuacct.usage", _used(True, True), _reset_usage),
    ("cpuacct.usage_user", _used(True, False), None),
    ("cpuacct.usage_sys", _used(False, True), None),
    ("cpuacct.usage_percpu", _per_cpu(True, True), None),
    ("cpuacct.usage_percpu_user", _per_cpu(True, False), None),
    ("cpuacct.usage_percpu_sys", _per_cpu(False, True), None),
    ("cpuacct.usage_all", _read_all, None),
    ("cpuacct.stat", _read_ticks, None),
)

V1: Final = Controller(
    CPUACCT,
    table(*(everywhere(n, read, write) for n, read, write in _FILES)),
    lambda _cgroup: CpuAccount(),
)
