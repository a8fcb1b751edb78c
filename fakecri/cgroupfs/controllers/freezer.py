"""The v1 freezer (CG-144). Freezing takes effect at once here, so FREEZING is never seen."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Final

from fakecri.cgroupfs.interface.tree import Cgroup, Controller, InterfaceFile, table
from fakecri.cgroupfs.interface.values import refuse, stripped

FREEZER: Final = "freezer"
_STATES: Final = {"THAWED": 0, "FROZEN": 1}


@dataclass(slots=True, eq=False)
class Freezer:
    """What freezer keeps of a group. `own`: the group itself was told to freeze."""

    cgroup: Cgroup
    own: int = 0


def _parent_frozen(cgroup: Cgroup) -> bool:
    above = cgroup.parent
    return above is not None and any(f.own for f in above.states_up(FREEZER))


def _read_state(cgroup: Cgroup) -> str:
    frozen = cgroup.states[FREEZER].own or _parent_frozen(cgroup)
    return "FROZEN\n" if frozen else "THAWED\n"


def _write_state(cgroup: Cgroup, text: str) -> None:
    if stripped(text) not in _STATES:
        raise refuse(errno.EINVAL)
    cgroup.states[FREEZER].own = _STATES[stripped(text)]
    cgroup.hierarchy.processes.deliver_pending()


V1: Final = Controller(
    FREEZER,
    table(
        InterfaceFile("freezer.state", _read_state, _write_state),
        InterfaceFile("freezer.self_freezing", lambda c: f"{c.states[FREEZER].own}\n"),
        InterfaceFile("freezer.parent_freezing", lambda c: f"{int(_parent_frozen(c))}\n"),
    ),
    Freezer,
)
