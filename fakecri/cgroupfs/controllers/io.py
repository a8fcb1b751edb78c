"""The io controller of v2 (CG-148): io.max, io.weight, io.stat by device.

Nothing is throttled: limits are kept and shown; what was read and written is set from outside
(`CgroupPath.use_io`). Grammar and errors follow the kernel's documentation.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass, field
from typing import Final

from fakecri.cgroupfs.controllers.blkio import Done, device_of
from fakecri.cgroupfs.interface.tree import Cgroup, Controller, InterfaceFile, everywhere, table
from fakecri.cgroupfs.interface.values import U32_MAX, U64_MAX, refuse, stripped

IO: Final = "io"
_KEYS: Final = ("rbps", "wbps", "riops", "wiops")
_WEIGHT: Final = 100
_WEIGHTS: Final = range(1, 10_001)
_NUMBER: Final = re.compile(r"(?:default\s*)?(\d+)")


@dataclass(slots=True, eq=False)
class Io:
    """What io keeps of a group, by device (`8:0`): what was read and written here, limits,
    weight."""

    cgroup: Cgroup
    done: dict[str, Done] = field(default_factory=dict)
    limits: dict[str, dict[str, int]] = field(default_factory=dict)
    weight: int = _WEIGHT
    weights: dict[str, int] = field(default_factory=dict)


def of(cgroup: Cgroup) -> Io:
    state: Io = cgroup.states[IO]
    return state


def _read_max(cgroup: Cgroup) -> str:
    lines = []
    for device, limits in of(cgroup).limits.items():
        words = [f"{key}={limits.get(key, 'max')}" for key in _KEYS]
        lines.append(f"{device} {' '.join(words)}\n" if limits else "")
    return "".join(lines)


def _write_max(cgroup: Cgroup, text: str) -> None:
    """io.max: `8:0 rbps=N wiops=max`; limits that are not named stay."""
    device, rest = device_of(cgroup, text)
    limits = dict(of(cgroup).limits.get(device, {}))
    for word in stripped(rest).split():
        key, _, value = word.partition("=")
        digits = re.match(r"\d+", value)
        if digits is None and value != "max":
            raise refuse(errno.EINVAL)
        number = U64_MAX if digits is None else int(digits[0])
        if number == 0:
            raise refuse(errno.ERANGE)
        if key not in _KEYS:
            raise refuse(errno.EINVAL)
        limits.pop(key, None)
        if digits is not None:
            limits[key] = min(number, U64_MAX if key.endswith("bps") else U32_MAX)
    of(cgroup).limits[device] = limits


def _read_weight(cgroup: Cgroup) -> str:
    rows = [f"{device} {weight}\n" for device, weight in of(cgroup).weights.items()]
    return f"default {of(cgroup).weight}\n" + "".join(rows)


def _write_weight(cgroup: Cgroup, text: str) -> None:
    """io.weight: `N` and `default N` set it for all devices, `8:0 N` for one, `8:0 default` removes
    that."""
    text = stripped(text)
    device = ""
    if ":" in text:
        device, text = device_of(cgroup, f"{text} ")
    if device and text.startswith("default"):
        of(cgroup).weights.pop(device, None)
        return
    match = _NUMBER.match(text)
    if match is None or int(match[1]) not in _WEIGHTS:
        raise refuse(errno.EINVAL)
    if device:
        of(cgroup).weights[device] = int(match[1])
    else:
        of(cgroup).weight = int(match[1])


def _read_stat(cgroup: Cgroup) -> str:
    """io.stat: what the subtree has read and written."""
    whole: dict[str, Done] = {}
    for group in cgroup.down():
        if IO in group.states:
            for device, device_use in of(group).done.items():
                whole.setdefault(device, Done()).add(device_use)
    return "".join(
        f"{device} rbytes={d.read_bytes} wbytes={d.written_bytes} rios={d.reads} wios={d.writes} "
        "dbytes=0 dios=0\n"
        for device, d in whole.items()
    )


V2: Final = Controller(
    IO,
    table(
        InterfaceFile("io.max", _read_max, _write_max),
        InterfaceFile("io.weight", _read_weight, _write_weight),
        everywhere("io.stat", _read_stat),
    ),
    Io,
)
