"""Values as a Go program prints them: wire messages contain such texts."""

from __future__ import annotations

from typing import Final

NANOSECOND: Final = 1
MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000


def go_duration(duration_ns: int) -> str:
    """A duration as Go prints it.

    >>> [go_duration(s * SECOND) for s in (0, 10, 80, 300, 3600)]
    ['0s', '10s', '1m20s', '5m0s', '1h0m0s']
    >>> go_duration(1_500_000), go_duration(-250), go_duration(2_050_000_000)
    ('1.5ms', '-250ns', '2.05s')
    """
    if duration_ns < 0:
        return "-" + go_duration(-duration_ns)
    if duration_ns == 0:
        return "0s"
    for unit, name in ((MICROSECOND, "ns"), (MILLISECOND, "µs"), (SECOND, "ms")):
        if duration_ns < unit:
            return _decimal(duration_ns, max(unit // 1000, 1)) + name
    minutes, rest_ns = divmod(duration_ns, 60 * SECOND)
    hours, minutes = divmod(minutes, 60)
    text = _decimal(rest_ns, SECOND) + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    digits = len(str(unit)) - 1
    fraction = f"{rest:0{digits}d}".rstrip("0") if digits else ""
    return f"{whole}.{fraction}" if fraction else str(whole)
