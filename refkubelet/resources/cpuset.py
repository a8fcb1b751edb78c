"""Sets of CPUs and the kernel's list format for them, `0-3,8,10-11`. Pure.

Upstream: k8s.io/utils/cpuset: Parse, String.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from refkubelet.resources.golang import atoi, quoted

CpuSet = frozenset[int]
"""CPU numbers; whoever needs an order sorts."""

EMPTY: Final[CpuSet] = frozenset()


def parse_cpuset(text: str) -> CpuSet:
    """The CPUs of a list; an empty text is an empty set. Raises ValueError with upstream's words.

    >>> sorted(parse_cpuset("0-2,7"))
    [0, 1, 2, 7]
    """
    return frozenset(cpu for part in text.split(",") for cpu in _range(part)) if text else EMPTY


def _range(part: str) -> range:
    first_text, dash, last_text = part.partition("-")
    first = atoi(first_text)
    last = atoi(last_text) if dash else first
    if first > last:
        raise ValueError(f"invalid range {quoted(part)} ({first} > {last})")
    return range(first, last + 1)


def format_cpuset(cpus: Iterable[int]) -> str:
    """The shortest list of these CPUs; "" for none.

    >>> format_cpuset([7, 2, 1, 0])
    '0-2,7'
    """
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)
