"""Which log files of a container stay, which go, which are compressed (GC-203). Pure.

Beside the log itself, `N.log`, lie the rotated ones, `N.log.YYYYMMDD-HHMMSS`, compressed to
`....gz` at the rotation after their own; what is being compressed is `....tmp`. Names sort by age.
Upstream: pkg/kubelet/logs/container_log_manager.go: filterUnusedLogs, removeExcessLogs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

COMPRESSED: Final = ".gz"
UNFINISHED: Final = ".tmp"
STAMP: Final = "%Y%m%d-%H%M%S"
ALWAYS_KEPT: Final = 2  # the log that is being rotated now, and the new one


@dataclass(frozen=True, slots=True)
class RotationPlan:
    """What happens to the rotated files before the log itself is rotated, in this order."""

    remove: tuple[str, ...]
    compress: tuple[str, ...]


def rotation_plan(rotated: Iterable[str], max_files: int) -> RotationPlan:
    """Leftovers go, then the oldest, until the two logs to come make `max_files`; what stays is
    compressed if it is not yet. `rotated`: every file named like the log plus a dot and more.

    >>> rotation_plan(["0.log.3", "0.log.1.gz", "0.log.2.gz", "0.log.2", "0.log.3.tmp"], 4)
    RotationPlan(remove=('0.log.2', '0.log.3.tmp', '0.log.1.gz'), compress=('0.log.3',))
    """
    names = sorted(rotated)
    used = [name for name in names if _is_in_use(name, names)]
    leftovers = [name for name in names if name not in used]
    too_many = max(0, len(used) - max(0, max_files - ALWAYS_KEPT))
    kept = used[too_many:]
    plain = (name for name in kept if not name.endswith(COMPRESSED))
    return RotationPlan((*leftovers, *used[:too_many]), tuple(plain))


def _is_in_use(name: str, names: Iterable[str]) -> bool:
    """Neither half-written nor already compressed into another file."""
    if name.endswith(UNFINISHED):
        return False
    return name.endswith(COMPRESSED) or name + COMPRESSED not in names


def rotated_name(log_path: str, local_time: datetime) -> str:
    """Where the log moves when it is rotated at that time.

    >>> rotated_name("/logs/0.log", datetime(2026, 1, 2, 3, 4, 5))
    '/logs/0.log.20260102-030405'
    """
    return f"{log_path}.{local_time.strftime(STAMP)}"
