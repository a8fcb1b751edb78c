"""Parses the eviction thresholds of the configuration. Pure.

Rules: EVIC-001..005, EVIC-008. Error texts are upstream's, because other tools match them; an error
of upstream's parser comes after field and signal here.
Upstream: pkg/kubelet/eviction/helpers.go: ParseThresholdConfig.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from kubeobjects.golang.duration import parse_duration_s
from kubeobjects.golang.strconv import parse_float32
from kubeobjects.quantity import canonical, parse_integer
from kubeobjects.structs import replace
from refkubelet.config.eviction_thresholds import ALLOCATABLE, SIGNALS, Threshold, ThresholdValue

PODS: Final = "pods"
"""The word in enforceNodeAllocatable that limits the cgroup of all pods."""
WRONG_FORMAT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
WRONG_SUFFIX: Final = "unable to parse quantity's suffix"
WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_QUANTITY: Final = re.compile(r"([+-]?[0-9]*\.?[0-9]*)([eEinumkKMGTP]*[-+]?[0-9]*)")
_SUFFIX: Final = re.compile(r"[numkMGTPE]?|[KMGTPE]i|[eE][+-]?[0-9]+")
_NUMBER: Final = re.compile(r"([0-9]+)\.?[0-9]*|\.[0-9]+")
_MOST_DIGITS: Final = 19  # of a number in 64 bits
_UNITS: Final = ("ns", "us", "µs", "μs", "ms", "s", "m", "h")


class ThresholdError(ValueError):
    """An invalid threshold, with which a kubelet does not start."""


def parse_thresholds(
    hard: Mapping[str, str],
    soft: Mapping[str, str],
    soft_grace_period: Mapping[str, str],
    minimum_reclaim: Mapping[str, str],
    enforced: Collection[str] = (),
) -> tuple[Threshold, ...]:
    """The thresholds of a configuration, hard ones first. `enforced`: enforceNodeAllocatable.
    Raises `ThresholdError` with upstream's text."""
    hard_values = _values("evictionHard", hard)
    soft_values = _values("evictionSoft", soft)
    grace = {_known(s): _parse_grace(s, text) for s, text in soft_grace_period.items()}
    reclaim = {_known(s): _parse_reclaim(s, text) for s, text in minimum_reclaim.items()}
    thresholds = [Threshold(s, value, 0.0, reclaim.get(s)) for s, value in hard_values.items()]
    for signal, value in soft_values.items():
        if signal not in grace:  # EVIC-004
            raise ThresholdError(
                f"grace period must be specified for the soft eviction threshold {signal}"
            )
        thresholds.append(Threshold(signal, value, grace[signal], reclaim.get(signal)))
    if PODS in enforced:  # EVIC-008
        memory = [t for t in thresholds if t.signal == "memory.available" and t.hard]
        thresholds += [replace(t, signal=ALLOCATABLE) for t in memory]
    return tuple(thresholds)


def _known(signal: str) -> str:
    if signal not in SIGNALS:
        raise ThresholdError(f"unsupported eviction signal {signal}")  # EVIC-001
    return signal


def _values(field: str, texts: Mapping[str, str]) -> dict[str, ThresholdValue]:
    """The thresholds by signal (EVIC-003); `0%` and `100%` disable a signal."""
    return {
        signal: _parse_value(f"{field}: {signal}", signal, text)
        for signal, text in texts.items()
        if _known(signal) and text not in ("0%", "100%")
    }


def _parse_value(where: str, signal: str, text: str) -> ThresholdValue:
    if text.endswith("%"):
        value = ThresholdValue(text, percent=_parse_percent(where, text))
        if value.share < 0:
            raise ThresholdError(f"eviction percentage threshold {signal} must be >= 0%: {text}")
        if value.share > 1:
            raise ThresholdError(f"eviction percentage threshold {signal} must be <= 100%: {text}")
        return value
    quantity = _parse_quantity(where, text)
    if quantity <= 0:
        raise ThresholdError(f"eviction threshold {signal} must be positive: {canonical(text)}")
    return ThresholdValue(text, quantity=quantity)


def _parse_grace(signal: str, text: str) -> float:
    """The grace period of a soft threshold in seconds, not negative (EVIC-004)."""
    try:
        grace_s = parse_duration_s(text)
    except ValueError:
        where = f"evictionSoftGracePeriod: {signal}"
        raise ThresholdError(f"{where}: {duration_complaint(text)}") from None
    if grace_s < 0:
        raise ThresholdError(
            f"invalid eviction grace period specified: {text}, must be a positive value"
        )
    return grace_s


def _parse_reclaim(signal: str, text: str) -> ThresholdValue:
    """A minimum reclaim: a share above 0, or an amount that is not negative (EVIC-005)."""
    where = f"evictionMinimumReclaim: {signal}"
    if text.endswith("%"):
        value = ThresholdValue(text, percent=_parse_percent(where, text))
        if value.share <= 0:
            raise ThresholdError(
                f"eviction percentage minimum reclaim {signal} must be positive: {text}"
            )
        return value
    quantity = _parse_quantity(where, text)
    if quantity < 0:
        raise ThresholdError(f"negative eviction minimum reclaim specified for {signal}")
    return ThresholdValue(text, quantity=quantity)


def _parse_percent(where: str, text: str) -> float:
    try:
        return parse_float32(text.rstrip("%"))
    except ValueError as error:
        expected_form = "wanted a number before the %, such as 10%"
        raise ThresholdError(f"{where}: {error}; {expected_form}") from None


def _parse_quantity(where: str, text: str) -> int:
    try:
        return parse_integer(text)
    except ValueError:
        expected_form = "wanted a quantity such as 100Mi, or a share such as 10%"
        raise ThresholdError(f"{where}: {quantity_complaint(text)}; {expected_form}") from None


def quantity_complaint(text: str) -> str:
    """Upstream's error for a text that is not a quantity.

    >>> quantity_complaint("1K"), quantity_complaint("Ei")
    ("unable to parse quantity's suffix", 'unable to parse numeric part of quantity')
    """
    match = _QUANTITY.fullmatch(text)
    if match is None or not text:
        return WRONG_FORMAT
    return WRONG_NUMBER if _SUFFIX.fullmatch(match[2]) else WRONG_SUFFIX


def duration_complaint(text: str) -> str:
    """Upstream's error for a text that is not a duration.

    >>> duration_complaint("10"), duration_complaint("1d")
    ('time: missing unit in duration "10"', 'time: unknown unit "d" in duration "1d"')
    """
    rest = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    whole = _in_duration(text)
    while rest and (number := _NUMBER.match(rest)):
        unit = re.match(r"[^.0-9]*", rest[number.end() :])
        name = unit[0] if unit else ""
        if len(number[1] or "") > _MOST_DIGITS:
            break
        if not name:
            return f"time: missing unit in duration {whole}"
        if name not in _UNITS:
            return f"time: unknown unit {_in_duration(name)} in duration {whole}"
        rest = rest[number.end() + len(name) :]
    return f"time: invalid duration {whole}"


def _in_duration(text: str) -> str:
    """The text quoted as in errors of Go's package time, byte by byte."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').encode(errors="surrogateescape")
    return '"' + "".join(chr(b) if 0x20 <= b < 0x80 else f"\\x{b:02x}" for b in escaped) + '"'
