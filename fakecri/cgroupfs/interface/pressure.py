"""Pressure stall information: files, triggers, stalls that are set from outside (CG-126)."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from fakecri.cgroupfs.interface.tree import Cgroup, InterfaceFile, Where
from fakecri.cgroupfs.interface.values import refuse

RESOURCES: Final = ("cpu", "memory", "io")
KINDS: Final = ("some", "full")
_TRIGGER: Final = re.compile(r"(some|full)\s+(\d+)\s+(\d+)")
_SHORTEST_US, _LONGEST_US, _UNPRIVILEGED_US = 500_000, 10_000_000, 2_000_000


@dataclass(slots=True, eq=False)
class Trigger:
    """Fires when tasks have stalled for `stall_us` within `window_us`; at most once a window."""

    kind: str
    stall_us: int
    window_us: int
    fire: Callable[[], None]
    seen: list[tuple[int, int]] = field(default_factory=list)
    """The stalls within the window: when each was told, in microseconds, and how long it was."""
    fired_us: int | None = None

    def stalled(self, now_us: int, stall_us: int) -> None:
        """Count one more stall; fires if that is enough."""
        self.seen = [(at, us) for at, us in self.seen if at > now_us - self.window_us]
        self.seen.append((now_us, stall_us))
        rested = self.fired_us is None or now_us - self.fired_us >= self.window_us
        if rested and sum(us for _, us in self.seen) >= self.stall_us:
            self.fired_us = now_us
            self.fire()


@dataclass(slots=True, eq=False)
class Pressure:
    """Stalls of one resource in one group's subtree."""

    averages: dict[str, tuple[float, float, float]] = field(
        default_factory=lambda: dict.fromkeys(KINDS, (0.0, 0.0, 0.0))
    )
    """Percent over 10, 60 and 300 s."""
    total_us: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    triggers: list[Trigger] = field(default_factory=list)


def require_resource(resource: str) -> None:
    """Check that stalls are counted for that resource. Raises ValueError."""
    if resource not in RESOURCES:
        raise ValueError(f"resource: wanted one of {', '.join(RESOURCES)}, got {resource!r}")


class Opened(Protocol):
    """An open pressure file; `open_file.OpenFile` is one."""

    trigger: Trigger | None

    def wake(self) -> None:
        """Note that the trigger has fired."""

    def rest(self) -> None:
        """Forget what has happened up to now."""


def of(cgroup: Cgroup, resource: str) -> Pressure:
    """The pressure of a resource in a group; made when it is first asked for."""
    pressure: Pressure = cgroup.pressure.setdefault(resource, Pressure())
    return pressure


def stall(cgroup: Cgroup, resource: str, some_us: int, full_us: int) -> None:
    """Count a stall of the group's tasks here and above, and let triggers fire."""
    now_us = cgroup.hierarchy.now_ns() // 1000
    for group in cgroup.up():
        pressure = of(group, resource)
        for kind, us in zip(KINDS, (some_us, full_us), strict=True):
            pressure.total_us[kind] += us
            for trigger in [t for t in pressure.triggers if t.kind == kind and us]:
                trigger.stalled(now_us, us)


def _read(resource: str) -> Callable[[Cgroup], str]:
    def read(cgroup: Cgroup) -> str:
        pressure = of(cgroup, resource)
        return "".join(
            f"{kind} avg10={a:.2f} avg60={b:.2f} avg300={c:.2f} total={pressure.total_us[kind]}\n"
            for kind, (a, b, c) in pressure.averages.items()
        )

    return read


def _write(resource: str) -> Callable[[Cgroup, str, Opened], None]:
    def write(cgroup: Cgroup, text: str, opened: Opened) -> None:
        if opened.trigger is not None:
            raise refuse(errno.EBUSY)
        match = _TRIGGER.match(text)
        if match is None:
            raise refuse(errno.EINVAL)
        stall_us, window_us = int(match[2]), int(match[3])
        if not _SHORTEST_US <= window_us <= _LONGEST_US or not 0 < stall_us <= window_us:
            raise refuse(errno.EINVAL)
        if not cgroup.hierarchy.machine.cap_sys_resource and window_us % _UNPRIVILEGED_US:
            raise refuse(errno.EINVAL)
        opened.trigger = Trigger(match[1], stall_us, window_us, opened.wake)
        opened.rest()
        of(cgroup, resource).triggers.append(opened.trigger)

    return write


def files() -> list[InterfaceFile]:
    """The pressure files, which every v2 directory has."""
    return [
        InterfaceFile(f"{r}.pressure", _read(r), where=Where.EVERYWHERE, per_open=_write(r))
        for r in RESOURCES
    ]
