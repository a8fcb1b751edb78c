"""Removes the mounts that a kubelet leaves behind: its root directory, which it mounts on itself,
and volumes below. Mounts outside the directory of the case are not touched.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

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


async def unmount_below(base: Path) -> None:
    """Unmount everything at or below `base`, even what is still in use.

    Errors are ignored: without the right to unmount the kubelet could not mount anything either.
    """
    for point in mounts_below(MOUNTS.read_text().splitlines(), base):
        process = await asyncio.create_subprocess_exec(
            "umount", "--lazy", str(point), stderr=asyncio.subprocess.DEVNULL
        )
        await process.wait()
