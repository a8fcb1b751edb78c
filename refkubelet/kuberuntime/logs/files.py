"""Decides which rotated log files of a container are kept, removed or compressed (GC-203). Pure.

The log is `N.log`, a rotated one `N.log.YYYYMMDD-HHMMSS`; the next rotation compresses that to
`....gz`, via `....tmp`. Sorting by name sorts by age.
Upstream: pkg/kubelet/logs/container_log_manager.go: filterUnusedLogs, removeExcessLogs.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

COMPRESSED: Final = ".gz"
UNFINISHED: Final = ".tmp"
STAMP: Final = "%Y%m%d-%H%M%S"
ALWAYS_KEPT: Final = 2  # the log that is being rotated now, and the new one


class RotationPlan(Struct, frozen=True):
    """The rotated files to remove, and then to compress, before the log itself is rotated."""

    remove: tuple[str, ...]
    compress: tuple[str, ...]


def rotation_plan(rotated: Iterable[str], max_files: int) -> RotationPlan:
    """Remove leftovers and the oldest files until, with two more logs, at most `max_files` remain;
    compress the others. `rotated`: all files that begin with the log's name and a dot.

    >>> rotation_plan(["0.log.3", "0.log.1.gz", "0.log.2.gz", "0.log.2", "0.log.3.tmp"], 4)
    RotationPlan(remove=('0.log.2', '0.log.3.tmp', '0.log.1.gz'), compress=('0.log.3',))
    """
    names = sorted(rotated)
    used = [name for name in names if _is_in_use(name, names)]
    leftovers = [name for name in names if name not in used]
    too_many = max(0, len(used) - max(0, max_files - ALWAYS_KEPT))
    remaining = used[too_many:]
    plain = (name for name in remaining if not name.endswith(COMPRESSED))
    return RotationPlan((*leftovers, *used[:too_many]), tuple(plain))


def _is_in_use(name: str, names: Iterable[str]) -> bool:
    """Whether the file is neither half-written nor already compressed into another file."""
    if name.endswith(UNFINISHED):
        return False
    return name.endswith(COMPRESSED) or name + COMPRESSED not in names


def rotated_name(log_path: str, local_time: datetime) -> str:
    """The path of the log after its rotation at that time.

    >>> rotated_name("/logs/0.log", datetime(2026, 1, 2, 3, 4, 5))
    '/logs/0.log.20260102-030405'
    """
    return f"{log_path}.{local_time.strftime(STAMP)}"
