"""Times and sizes as people write them: `1.5s`, `5m`, `64Mi`. Pure."""

from __future__ import annotations

import re
from typing import Final

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
SECONDS_PATTERN: Final = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"
BYTES_PATTERN: Final = r"^[0-9]+(Ki|Mi|Gi|Ti)$"
MOST_S: Final = 1e9
"""Thirty years: as nanoseconds it still fits into the wire's integers."""
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")


def seconds_of(given: float | str) -> float:
    """A number of seconds from 0 to 1e9, or a time with its unit. Raises ValueError.

    >>> seconds_of(2), seconds_of("1.5s"), seconds_of("500ms"), seconds_of("1h30m")
    (2.0, 1.5, 0.5, 5400.0)
    """
    if isinstance(given, str):
        if not re.match(SECONDS_PATTERN, given):
            raise ValueError(f"wanted seconds: 2, 1.5s, 500ms, 5m or 1h; got {given!r}")
        return seconds_of(sum(float(n) * _SECONDS[unit] for n, unit in _PART.findall(given)))
    if not 0 <= given <= MOST_S:
        raise ValueError(f"wanted seconds from 0 to 1e9, got {given!r}")
    return float(given)


def bytes_of(given: int | str) -> int:
    """A number of bytes from 0, or a size with its unit. Raises ValueError.

    >>> bytes_of(7), bytes_of("64Mi"), bytes_of("1Gi")
    (7, 67108864, 1073741824)
    """
    if isinstance(given, str):
        if not re.match(BYTES_PATTERN, given):
            raise ValueError(f"wanted bytes: 4096, 64Mi, 1Gi, ...; got {given!r}")
        return int(given[:-2]) * _BYTES[given[-2:]]
    if given < 0:
        raise ValueError(f"wanted bytes from 0, got {given!r}")
    return given
