"""The pids controller: how many tasks a subtree may have (CG-142)."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Final

from fakecri.cgroupfs.interface.tree import Cgroup, Controller, InterfaceFile, table
from fakecri.cgroupfs.interface.values import refuse, signed, stripped

PIDS: Final = "pids"
NO_LIMIT: Final = 4_194_305
"""One more than the largest pid that there can be."""


@dataclass(slots=True, eq=False)
class Pids:
    """What pids keeps of a group: its limit and counts."""

    cgroup: Cgroup
    limit: int = NO_LIMIT
    peak: int = 0
    refused: int = 0
    refused_here_or_below: int = 0

    def need_room(self, forking: Cgroup) -> None:
        """Check that there may be one task more. If not it is counted as an event; raises EAGAIN.

        v1 counts in the group of the forking task, v2 in the group whose limit was hit.
        """
        if self.cgroup.tasks + 1 <= self.limit:
            return
        if self.cgroup.hierarchy.version == 1:
            of(forking).refused += 1
            forking.notify("pids.events")
        else:
            self.refused += 1
            self.cgroup.notify("pids.events.local")
            for pids in self.cgroup.states_up(PIDS):
                pids.refused_here_or_below += 1
                pids.cgroup.notify("pids.events")
        raise refuse(errno.EAGAIN)

    def note_peak(self) -> None:
        self.peak = max(self.peak, self.cgroup.tasks)


def of(cgroup: Cgroup) -> Pids:
    """The state that counts for a directory: its own, or that of the next group above."""
    state: Pids = next(cgroup.states_up(PIDS))
    return state


def _read_max(cgroup: Cgroup) -> str:
    limit = of(cgroup).limit
    return "max\n" if limit >= NO_LIMIT else f"{limit}\n"


def _write_max(cgroup: Cgroup, text: str) -> None:
    text = stripped(text)
    value = NO_LIMIT if text == "max" else signed(text)
    if value < 0 or (value >= NO_LIMIT and text != "max"):
        raise refuse(errno.EINVAL)
    of(cgroup).limit = value


_BOTH: Final = (
    InterfaceFile("pids.max", _read_max, _write_max),
    InterfaceFile("pids.current", lambda c: f"{c.tasks}\n"),
    InterfaceFile("pids.peak", lambda c: f"{of(c).peak}\n"),
)

V1: Final = Controller(
    PIDS,
    table(*_BOTH, InterfaceFile("pids.events", lambda c: f"max {of(c).refused}\n")),
    Pids,
)
V2: Final = Controller(
    PIDS,
    table(
        *_BOTH,
        InterfaceFile("pids.events", lambda c: f"max {of(c).refused_here_or_below}\n"),
        InterfaceFile("pids.events.local", lambda c: f"max {of(c).refused}\n"),
    ),
    lambda cgroup: Pids(cgroup, peak=cgroup.tasks),
    threaded=True,
)
