"""Removes the mounts that a kubelet leaves behind: its root directory, which it mounts on itself,
and volumes below. Mounts outside the directory of the case are not touched.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from kubelet_conformance.harness.machines.mounting import unmount

MOUNTS: Final = Path("/proc/self/mountinfo")
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


def mounts_below(mountinfo: Iterable[str], base: Path) -> list[Path]:
    """The mount points at or below `base`, the newest first; `mountinfo`: lines of the kernel's
    table.

    >>> lines = ["21 1 0:1 / / rw - ext4 a rw", "22 21 0:1 /t /t/k\\\\0401 rw - ext4 a rw"]
    >>> mounts_below(lines, Path("/t"))
    [PosixPath('/t/k 1')]
    """
    points = [Path(_OCTAL.sub(_character, line.split()[4])) for line in mountinfo if line.strip()]
    return [point for point in reversed(points) if point.is_relative_to(base)]


def _character(octal: re.Match[str]) -> str:
    return chr(int(octal[1], 8))


def mounted_below(base: Path) -> Counter[Path]:
    """How many mounts there are now at each place at or below `base`."""
    return Counter(mounts_below(MOUNTS.read_text().splitlines(), base))


def left_to_unmount(points: Sequence[Path], keep: Counter[Path]) -> list[Path]:
    """The mount points without those in `keep`, of each place the oldest; the newest come first."""
    remaining, to_unmount = Counter(keep), []
    for point in reversed(points):
        if remaining[point] > 0:
            remaining[point] -= 1
        else:
            to_unmount.append(point)
    return to_unmount[::-1]


def unmount_below(base: Path, keep: Counter[Path]) -> None:
    """Unmount everything at or below `base`, even what is still in use, but for the mounts in
    `keep`, which were there before.

    Errors are ignored: without the right to unmount the kubelet could not mount anything either.
    """
    points = mounts_below(MOUNTS.read_text().splitlines(), base)
    for point in left_to_unmount(points, keep):
        with suppress(OSError):
            unmount(point)
