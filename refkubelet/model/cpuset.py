"""Sets of CPUs, the kernel's lists of them, `0-3,8,10-11`, and where a container may run. Pure.

Rules: CG-031, CG-050. Upstream: k8s.io/utils/cpuset: Parse, String;
pkg/kubelet/cm/internal_container_lifecycle_linux.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from kubeobjects.golang.strconv import atoi, quoted

CpuSet = frozenset[int]
"""CPU numbers, without an order."""

EMPTY: Final[CpuSet] = frozenset()

MOST_CPUS: Final = 1 << 16
"""More than any machine has (Linux: 8192), so that a huge range does not fill the memory."""


def parse_cpuset(text: str) -> CpuSet:
    """The CPUs of a list; an empty text is an empty set. Raises ValueError with upstream's text,
    also for numbers above `MOST_CPUS`.

    >>> sorted(parse_cpuset("0-2,7"))
    [0, 1, 2, 7]
    """
    if not text:
        return EMPTY
    ranges = sorted((_range(part) for part in text.split(",")), key=lambda r: (r.start, r.stop))
    cpus: set[int] = set()
    behind = 0
    for part in ranges:  # each number is added once, however often the list names it
        cpus.update(range(max(part.start, behind), part.stop))
        behind = max(behind, part.stop)
    return frozenset(cpus)


def _range(part: str) -> range:
    first_text, dash, last_text = part.partition("-")
    first = atoi(first_text)
    last = atoi(last_text) if dash else first
    if first > last:
        raise ValueError(f"invalid range {quoted(part)} ({first} > {last})")
    if last >= MOST_CPUS:
        highest = MOST_CPUS - 1
        raise ValueError(f"{quoted(part)} names CPU {last}: the last there can be is {highest}")
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


class Placement(Struct, frozen=True):
    """Where a container may run, as the runtime is told it. The default leaves it to the kernel."""

    cpus: str = ""
    """A list in the kernel's format, such as `0-3,8`; "" for any CPU."""
    memory_nodes: str = ""
    """NUMA nodes, in the same format; "" for any."""
    own_cpus: bool = False
    """The CPUs are this container's alone, so that a CFS quota would only slow it down (CG-031)."""


ANYWHERE: Final = Placement()
