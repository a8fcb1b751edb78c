"""Directories of pods: they are made, and looked at for what is mounted below them.

What is mounted the kernel's own table says: bind mounts within one filesystem cannot be told by
device numbers (`os.path.ismount`), and volumes lie at different depths. So nothing else says that a
directory may be deleted as a whole.

What must never happen here: a directory that is there gets another mode; a table that cannot be
read passes for one without mounts.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

LOG_DIRECTORY_MODE: Final = 0o755
DIRECTORY_MODE: Final = 0o750
TABLE: Final = Path("/proc/self/mountinfo")
_OCTAL: Final = re.compile(rb"\\([0-7]{3})")


def make_directory(path: str, mode: int = DIRECTORY_MODE) -> None:
    """The directory is there afterwards, with those above it; those that were missing have the
    mode. Raises OSError.

    It is nearly always there already, so a look comes first."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(path)
    if above not in ("", path):
        make_directory(above, mode)
    os.makedirs(path, mode=mode, exist_ok=True)


def anything_mounted_below(directory: str | Path, table: Path = TABLE) -> bool:
    """Whether something is mounted at the directory or anywhere below. Raises OSError."""
    return bool(mount_points_below(directory, table))


def mount_points_below(directory: str | Path, table: Path = TABLE) -> list[str]:
    """Where something is mounted, at the directory or anywhere below; the newest first. What is
    mounted there is not touched: its server may not answer. Raises OSError."""
    above, name = os.path.split(os.path.abspath(directory))
    place = os.fsencode(os.path.join(os.path.realpath(above), name))
    points = [_point(line) for line in table.read_bytes().splitlines()]
    below = (p for p in reversed(points) if p == place or p.startswith(place + b"/"))
    return [os.fsdecode(point) for point in below]


def is_mount_point(path: str | Path, table: Path = TABLE) -> bool:
    """Whether something is mounted at the path itself; it is not touched. Raises OSError."""
    above, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(above), name) in mount_points_below(path, table)


def _point(line: bytes) -> bytes:
    """The fifth word; blanks and their like are written in octal digits."""
    words = line.split(b" ", 5)
    mount_point = words[4] if len(words) > 4 else b""
    return _OCTAL.sub(lambda match: bytes([int(match[1], 8)]), mount_point)
