"""The blkio controller of v1 (CG-146): limits by device, the weight of BFQ, what was read and
written.

Nothing is throttled: limits are kept and shown. What was read and written is set from outside
(`CgroupPath.use_io`). A group has a row for a device once it, or a group below, was configured or
used it; the newest row comes first. No disk is taken to have the scheduler BFQ.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from fakecri.cgroupfs.interface.tree import Cgroup, Controller, InterfaceFile, everywhere, table
from fakecri.cgroupfs.interface.values import U32_MAX, U64_MAX, refuse, stripped, unsigned

BLKIO: Final = "blkio"
_DEVICE: Final = re.compile(r"\s*(\d+):\s*(\d+)(?=\s)\s*")
_NUMBER: Final = re.compile(r"\s*(\d+)")
_DEFAULT: Final = re.compile(r"default\s*(\d+)")
_WEIGHTS: Final = range(1, 1001)


@dataclass(slots=True)
class Done:
    """How much was read from and written to a device, in bytes and operations."""

    read_bytes: int = 0
    written_bytes: int = 0
    reads: int = 0
    writes: int = 0

    def add(self, other: Done) -> None:
        self.read_bytes += other.read_bytes
        self.written_bytes += other.written_bytes
        self.reads += other.reads
        self.writes += other.writes


@dataclass(slots=True, eq=False)
class BlockIo:
    """What blkio keeps of a group: rows by device (`8:0`), the newest last, and limits by device
    and kind."""

    cgroup: Cgroup
    weight: int = 100
    rows: dict[str, Done] = field(default_factory=dict)
    limits: dict[str, dict[str, int]] = field(default_factory=dict)

    def row(self, device: str) -> Done:
        """The row for a device; made, here and above, when it is missing."""
        above = self.cgroup.parent
        if device not in self.rows and above is not None and BLKIO in above.states:
            of(above).row(device)
        return self.rows.setdefault(device, Done())


def of(cgroup: Cgroup) -> BlockIo:
    state: BlockIo = cgroup.states[BLKIO]
    return state


def device_of(cgroup: Cgroup, text: str) -> tuple[str, str]:
    """The device and the rest of `8:0 rest`. Raises EINVAL, and ENODEV for what is no whole disk of
    the machine."""
    match = _DEVICE.match(text)
    if match is None:
        raise refuse(errno.EINVAL)
    device = f"{int(match[1]) & U32_MAX}:{int(match[2]) & U32_MAX}"
    if device not in cgroup.hierarchy.machine.block_devices:
        raise refuse(errno.ENODEV)
    return device, text[match.end() :]


def _write_limit(name: str, most: int) -> Callable[[Cgroup, str], None]:
    """A writer for limits: 0 removes the limit; higher bits than those of `most` are lost, as in
    the kernel."""

    def write(cgroup: Cgroup, text: str) -> None:
        device, rest = device_of(cgroup, text)
        of(cgroup).row(device)
        match = _NUMBER.match(rest)
        if match is None:
            raise refuse(errno.EINVAL)
        value = (int(match[1]) & U64_MAX) or U64_MAX
        of(cgroup).limits.setdefault(name, {})[device] = value & most

    return write


def _read_limit(name: str, most: int) -> Callable[[Cgroup], str]:
    def read(cgroup: Cgroup) -> str:
        limits = of(cgroup).limits.get(name, {})
        rows = [d for d in reversed(of(cgroup).rows) if limits.get(d, most) != most]
        return "".join(f"{device} {limits[device]}\n" for device in rows)

    return read


def _read_done(kind: str, *, below: bool) -> Callable[[Cgroup], str]:
    """A reader of counters; with `below` of the whole subtree. Reads count as synchronous, writes
    do not."""
    fields = ("read_bytes", "written_bytes") if kind == "bytes" else ("reads", "writes")

    def read(cgroup: Cgroup) -> str:
        lines, whole = [], 0
        for device in reversed(of(cgroup).rows):
            total = Done()
            for group in cgroup.down() if below else (cgroup,):
                total.add(of(group).rows.get(device, Done()))
            reads, writes = (getattr(total, name) for name in fields)
            whole += reads + writes
            counts = (reads, writes, reads, writes, 0, reads + writes)
            words = ("Read", "Write", "Sync", "Async", "Discard", "Total")
            lines += [f"{device} {word} {n}\n" for word, n in zip(words, counts, strict=True)]
        return "".join(lines) + f"Total {whole}\n"

    return read


def _reset(cgroup: Cgroup, text: str) -> None:
    unsigned(text)
    rows = of(cgroup).rows
    rows.update({device: Done() for device in rows})


def _set_weight(cgroup: Cgroup, value: int) -> None:
    if value not in _WEIGHTS:
        raise refuse(errno.ERANGE)
    of(cgroup).weight = value


def _write_weight(cgroup: Cgroup, text: str) -> None:
    _set_weight(cgroup, unsigned(text))


def _write_weight_device(cgroup: Cgroup, text: str) -> None:
    """`default N` and `N` set the weight. A line for a device is refused: without BFQ no device has
    a weight of its own."""
    text = stripped(text)
    if text.startswith("+"):
        raise refuse(errno.EINVAL)
    if match := _DEFAULT.match(text):
        _set_weight(cgroup, int(match[1]) & U64_MAX)
        return
    try:
        value = unsigned(text)
    except OSError as error:
        if error.errno == errno.ERANGE:
            raise
        device_of(cgroup, text)
        raise refuse(errno.EOPNOTSUPP) from None
    _set_weight(cgroup, value)


_LIMITS: Final = (
    ("read_bps", U64_MAX),
    ("write_bps", U64_MAX),
    ("read_iops", U32_MAX),
    ("write_iops", U32_MAX),
)
_FILES: Final = (
    *(
        everywhere(
            f"blkio.throttle.{name}_device", _read_limit(name, most), _write_limit(name, most)
        )
        for name, most in _LIMITS
    ),
    *(
        everywhere(f"blkio.throttle.{name}{suffix}", _read_done(kind, below=bool(suffix)), None)
        for name, kind in (("io_service_bytes", "bytes"), ("io_serviced", "operations"))
        for suffix in ("", "_recursive")
    ),
    *(
        everywhere(f"blkio.bfq.{name}{suffix}", lambda _c: "Total 0\n")
        for name in ("io_service_bytes", "io_serviced")
        for suffix in ("", "_recursive")
    ),
    everywhere("blkio.reset_stats", None, _reset),
    InterfaceFile("blkio.bfq.weight", lambda c: f"{of(c).weight}\n", _write_weight),
    InterfaceFile(
        "blkio.bfq.weight_device", lambda c: f"default {of(c).weight}\n", _write_weight_device
    ),
)

V1: Final = Controller(BLKIO, table(*_FILES), BlockIo)
