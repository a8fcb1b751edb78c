"""Eviction thresholds: their texts in the configuration, and what they mean in bytes. Pure.

Rules: EVIC-001..009, EVIC-060..062. Messages of errors are wire facts: other tools
match them.
Upstream: pkg/kubelet/eviction/helpers.go: ParseThresholdConfig; pkg/kubelet/eviction/api/types.go.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from refkubelet.model.duration import parse_duration_s
from refkubelet.model.quantity import canonical, format_binary, parse_integer

MEMORY: Final = "memory"
STORAGE: Final = "ephemeral-storage"
INODES: Final = "inodes"
PIDS: Final = "pids"
ALLOCATABLE: Final = "allocatableMemory.available"
DISKS: Final = ("nodefs", "imagefs", "containerfs")
PODS: Final = "pods"
"""Among what enforceNodeAllocatable is enforced on: the cgroup of all pods is limited."""
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


class ThresholdError(ValueError):
    """A threshold that a kubelet refuses to start with."""


@dataclass(frozen=True, slots=True)
class ThresholdValue:
    """A quantity, or a share of the capacity (`percent`, 0..100); `text` is the user's."""

    text: str
    quantity: int | None = None
    percent: float | None = None

    def amount(self, capacity: int) -> int:
        """Bytes, inodes or pids. Percentages show float32 rounding (EVIC-009)."""
        if self.quantity is not None:
            return self.quantity
        return int(float(capacity) * _float32(_float32(self.percent or 0.0) / 100))

    def shown(self, capacity: int) -> str:
        """Canonical text of the amount: percentages are always in binary form (EVIC-092)."""
        if self.quantity is None:
            return format_binary(self.amount(capacity))
        return canonical(self.text)


@dataclass(frozen=True, slots=True)
class Threshold:
    """`signal` must not fall below `value`; hard when `grace_s` is 0 (EVIC-004)."""

    signal: str
    value: ThresholdValue
    grace_s: float = 0.0
    min_reclaim: ThresholdValue | None = None

    @property
    def resource(self) -> str:
        return resource_of(self.signal)

    @property
    def condition(self) -> str:
        return SIGNALS[self.signal][1]

    @property
    def hard(self) -> bool:
        return self.grace_s == 0


def parse_thresholds(
    hard: Mapping[str, str],
    soft: Mapping[str, str],
    soft_grace_period: Mapping[str, str],
    minimum_reclaim: Mapping[str, str],
    enforced: Collection[str] = (),
) -> tuple[Threshold, ...]:
    """The thresholds of a configuration, hard ones first. `enforced`: enforceNodeAllocatable.

    Raises `ThresholdError` with the text a kubelet shows (EVIC-001..005).
    """
    grace = {_known(s): _parse_grace(text) for s, text in soft_grace_period.items()}
    reclaim = {_known(s): _parse_reclaim(s, text) for s, text in minimum_reclaim.items()}
    found = [
        Threshold(signal, value, 0.0, reclaim.get(signal))
        for signal, text in hard.items()
        if (value := _parse_value(_known(signal), text)) is not None
    ]
    for signal, text in soft.items():
        value = _parse_value(_known(signal), text)
        if signal not in grace:
            raise ThresholdError(
                f"grace period must be specified for the soft eviction threshold {signal}"
            )
        if value is not None:
            found.append(Threshold(signal, value, grace[signal], reclaim.get(signal)))
    if PODS in enforced:  # EVIC-008
        memory = [t for t in found if t.signal == "memory.available" and t.hard]
        found += [replace(t, signal=ALLOCATABLE) for t in memory]
    return tuple(found)


def resource_of(signal: str) -> str:
    """The starved resource of a signal (EVIC-056)."""
    return SIGNALS[signal][0]


def _known(signal: str) -> str:
    if signal not in SIGNALS:
        raise ThresholdError(f"unsupported eviction signal {signal}")  # EVIC-001
    return signal


def _parse_value(signal: str, text: str) -> ThresholdValue | None:
    """EVIC-003; None for `0%` and `100%`, which switch a signal off."""
    if text in ("0%", "100%"):
        return None
    if text.endswith("%"):
        percent = _parse_percent(text)
        if percent < 0:
            raise ThresholdError(f"eviction percentage threshold {signal} must be >= 0%: {text}")
        if percent > 100:
            raise ThresholdError(f"eviction percentage threshold {signal} must be <= 100%: {text}")
        return ThresholdValue(text, percent=percent)
    quantity = _parse_quantity(text)
    if quantity <= 0:
        raise ThresholdError(f"eviction threshold {signal} must be positive: {canonical(text)}")
    return ThresholdValue(text, quantity=quantity)


def _parse_grace(text: str) -> float:
    try:
        grace_s = parse_duration_s(text)
    except ValueError as error:
        raise ThresholdError(str(error)) from error
    if grace_s < 0:
        raise ThresholdError(
            f"invalid eviction grace period specified: {text}, must be a positive value"
        )  # EVIC-004
    return grace_s


def _parse_reclaim(signal: str, text: str) -> ThresholdValue:
    """EVIC-005."""
    if text.endswith("%"):
        percent = _parse_percent(text)
        if percent <= 0:
            raise ThresholdError(
                f"eviction percentage minimum reclaim {signal} must be positive: {text}"
            )
        return ThresholdValue(text, percent=percent)
    quantity = _parse_quantity(text)
    if quantity < 0:
        raise ThresholdError(f"negative eviction minimum reclaim specified for {signal}")
    return ThresholdValue(text, quantity=quantity)


def _parse_percent(text: str) -> float:
    try:
        return float(text.removesuffix("%"))
    except ValueError:
        raise ThresholdError(
            f"{text!r} is no percentage: wanted a number before the %, such as 10%"
        ) from None


def _parse_quantity(text: str) -> int:
    try:
        return parse_integer(text)
    except ValueError as error:
        raise ThresholdError(str(error)) from error


def _float32(value: float) -> float:
    result: float = struct.unpack("f", struct.pack("f", value))[0]
    return result
