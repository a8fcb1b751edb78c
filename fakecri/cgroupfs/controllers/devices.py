"""The v1 devices controller: which devices processes may open or make (CG-147).

A group allows everything but its exceptions, or nothing but them. It never allows more than its
parent: a write that would is EPERM, and what the parent is denied is denied to all groups below. No
process here opens devices; there are just the lists.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from fakecri.cgroupfs.interface.tree import Cgroup, Controller, everywhere, table
from fakecri.cgroupfs.interface.values import U32_MAX, refuse, stripped

DEVICES: Final = "devices"
_ANY: Final = U32_MAX
"""Stands for all numbers, and is written `*`."""
_RULE: Final = re.compile(r"([bc])\s(\*|\d{1,11}):(\*|\d{1,11})\s([rwm]{1,3})(.*)", re.DOTALL)
_ORDER: Final = "rwm"


class Device(Struct, frozen=True):
    """A device, or all devices with `_ANY` as one of their numbers."""

    kind: str
    major: int
    minor: int

    def covers(self, other: Device) -> bool:
        """Whether every device that `other` stands for is one that this stands for."""
        return (
            self.kind == other.kind
            and self.major in (_ANY, other.major)
            and self.minor in (_ANY, other.minor)
        )

    def meets(self, other: Device) -> bool:
        """Whether there can be a device that both stand for."""
        return (
            self.kind == other.kind
            and (_ANY in (self.major, other.major) or self.major == other.major)
            and (_ANY in (self.minor, other.minor) or self.minor == other.minor)
        )

    def __str__(self) -> str:
        major, minor = ("*" if n == _ANY else str(n) for n in (self.major, self.minor))
        return f"{self.kind} {major}:{minor}"


Access = frozenset[str]
Exceptions = dict[Device, Access]


@dataclass(slots=True, eq=False)
class Devices:
    """What devices keeps of a group. `open`: everything is allowed but the exceptions; else nothing
    but them."""

    cgroup: Cgroup
    open: bool = True
    exceptions: Exceptions = field(default_factory=dict)

    @property
    def parent(self) -> Devices | None:
        above = self.cgroup.parent
        return None if above is None else of(above)

    def may_add(self, device: Device, access: Access) -> bool:
        """Whether the parent allows this group such an exception."""
        parent = self.parent
        if parent is None or (parent.open and self.open):
            return True
        if parent.open:
            return not parent.meets(device, access)
        return any(d.covers(device) and access <= a for d, a in parent.exceptions.items())

    def meets(self, device: Device, access: Access) -> bool:
        """Whether an exception is about some of that access to some of these devices."""
        return any(d.meets(device) and access & a for d, a in self.exceptions.items())

    def add(self, device: Device, access: Access) -> None:
        self.exceptions[device] = self.exceptions.get(device, frozenset()) | access

    def take(self, device: Device, access: Access) -> None:
        """Take access away from the exception about this very device, if there is one."""
        remaining = self.exceptions.get(device, frozenset()) - access
        if remaining:
            self.exceptions[device] = remaining
        else:
            self.exceptions.pop(device, None)

    def narrow(self, device: Device, access: Access) -> None:
        """Take away what a group above was denied."""
        if self.open:
            self.add(device, access)
        else:
            self.take(device, access)
        for d, a in list(self.exceptions.items()):
            if not self.may_add(d, a):
                del self.exceptions[d]


def of(cgroup: Cgroup) -> Devices:
    state: Devices = cgroup.states[DEVICES]
    return state


def _parsed(text: str) -> tuple[Device, Access]:
    """The device and the access that a line means. Raises EINVAL."""
    match = _RULE.match(text)
    if match is None or (len(match[4]) < 3 and match[5][:1] not in ("", "\n")):
        raise refuse(errno.EINVAL)
    major, minor = (_ANY if n == "*" else int(n) for n in (match[2], match[3]))
    if max(major, minor) > _ANY:
        raise refuse(errno.EINVAL)
    return Device(match[1], major, minor), frozenset(match[4])


def _all(devices: Devices, *, allow: bool) -> None:
    """The line `a`: allow or deny everything. Raises EINVAL in a group with groups below, EPERM for
    more than the parent allows."""
    if devices.cgroup.children:
        raise refuse(errno.EINVAL)
    parent = devices.parent
    if allow and parent is not None and not parent.open:
        raise refuse(errno.EPERM)
    devices.open = allow
    devices.exceptions = dict(parent.exceptions) if allow and parent is not None else {}


def _allow(cgroup: Cgroup, text: str) -> None:
    text, devices = stripped(text), of(cgroup)
    if text.startswith("a"):
        _all(devices, allow=True)
        return
    device, access = _parsed(text)
    parent = devices.parent
    if devices.open:
        if parent is not None and parent.meets(device, access):
            raise refuse(errno.EPERM)
        devices.take(device, access)
    elif devices.may_add(device, access):
        devices.add(device, access)
    else:
        raise refuse(errno.EPERM)


def _deny(cgroup: Cgroup, text: str) -> None:
    text, devices = stripped(text), of(cgroup)
    if text.startswith("a"):
        _all(devices, allow=False)
        return
    device, access = _parsed(text)
    if devices.open:
        devices.add(device, access)
    else:
        devices.take(device, access)
    for below in list(cgroup.down())[1:]:
        of(below).narrow(device, access)


def _read_list(cgroup: Cgroup) -> str:
    devices = of(cgroup)
    if devices.open:
        return "a *:* rwm\n"
    return "".join(
        f"{device} {''.join(c for c in _ORDER if c in access)}\n"
        for device, access in devices.exceptions.items()
    )


def _inherited(cgroup: Cgroup) -> Devices:
    if cgroup.parent is None:
        return Devices(cgroup)
    parent = of(cgroup.parent)
    return Devices(cgroup, parent.open, dict(parent.exceptions))


V1: Final = Controller(
    DEVICES,
    table(
        everywhere("devices.allow", None, _allow),
        everywhere("devices.deny", None, _deny),
        everywhere("devices.list", _read_list),
    ),
    _inherited,
)
