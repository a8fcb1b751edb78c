"""Eviction thresholds: signals, and the value of a threshold in bytes, inodes or processes. Pure.

Rules: EVIC-001, EVIC-009, EVIC-056, EVIC-060..062. Upstream: pkg/kubelet/eviction/api/types.go.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from kubeobjects.quantity import canonical, format_binary

MEMORY: Final = "memory"
STORAGE: Final = "ephemeral-storage"
INODES: Final = "inodes"
PIDS: Final = "pids"
PID: Final = "pid.available"
LEAST: Final = -(1 << 63)
ALLOCATABLE: Final = "allocatableMemory.available"
DISKS: Final = ("nodefs", "imagefs", "containerfs")
SIGNALS: Final[Mapping[str, tuple[str, str]]] = {
    "memory.available": (MEMORY, "MemoryPressure"),
    "allocatableMemory.available": (MEMORY, "MemoryPressure"),
    "nodefs.available": (STORAGE, "DiskPressure"),
    "nodefs.inodesFree": (INODES, "DiskPressure"),
    "imagefs.available": (STORAGE, "DiskPressure"),
    "imagefs.inodesFree": (INODES, "DiskPressure"),
    "containerfs.available": (STORAGE, "DiskPressure"),
    "containerfs.inodesFree": (INODES, "DiskPressure"),
    "pid.available": (PIDS, "PIDPressure"),
}
"""Signal -> starved resource (EVIC-056) and node condition (EVIC-060..062)."""


class ThresholdValue(Struct, frozen=True):
    """A quantity, or a percentage of the capacity (`percent`, 0..100); `text`: as configured."""

    text: str
    quantity: int | None = None
    percent: float | None = None

    @property
    def share(self) -> float:
        """The percentage divided by 100, with the rounding of 32 bit floats (EVIC-009)."""
        return _share(self.percent or 0.0)

    def amount(self, capacity: int) -> int:
        """The value in bytes, inodes or pids; percentages with float32 rounding (EVIC-009). `NaN%`,
        and amounts beyond 64 bits, give `LEAST`, so that such a threshold is never met."""
        if self.quantity is not None:
            return self.quantity
        amount = float(capacity) * self.share
        return int(amount) if LEAST <= amount < -LEAST else LEAST

    def shown(self, capacity: int) -> str:
        """The amount as a canonical text; percentages always in binary form (EVIC-092)."""
        if self.quantity is None:
            return format_binary(self.amount(capacity))
        return canonical(self.text)


class Threshold(Struct, frozen=True):
    """`signal` must not fall below `value`; hard when `grace_s` is 0 (EVIC-004)."""

    signal: str
    value: ThresholdValue
    grace_s: float = 0.0
    min_reclaim: ThresholdValue | None = None

    @property
    def resource(self) -> str:
        """What is short when it is met: `memory`, `ephemeral-storage`, `inodes`, `pids`."""
        return resource_of(self.signal)

    @property
    def condition(self) -> str:
        """The Node's condition that tells of it: `MemoryPressure` and its like."""
        return SIGNALS[self.signal][1]

    @property
    def hard(self) -> bool:
        """Hard ones have no grace period."""
        return self.grace_s == 0


def resource_of(signal: str) -> str:
    """The starved resource of a signal (EVIC-056)."""
    return SIGNALS[signal][0]


@lru_cache
def _share(percent: float) -> float:
    return _float32(_float32(percent) / 100)


def _float32(value: float) -> float:
    result: float = struct.unpack("f", struct.pack("f", value))[0]
    return result
