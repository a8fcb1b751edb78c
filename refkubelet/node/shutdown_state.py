"""When the last graceful shutdown began and ended, in a file that outlives it (NODE-064).

What must never happen here: a shutdown stops because the file cannot be written.
Upstream: pkg/kubelet/nodeshutdown/storage.go.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from refkubelet.checkpoints.atomic_file import read_json, write_whole
from simtime import format_rfc3339

log = logging.getLogger(__name__)

FILE_NAME: Final = "graceful_node_shutdown_state"
NEVER: Final = "0001-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class ShutdownTimes:
    """Nanoseconds since 1970; None: not yet, or never."""

    began_ns: int | None = None
    ended_ns: int | None = None


def store_times(file: Path, times: ShutdownTimes) -> None:
    """Write the times; an error is logged."""
    fields = {"startTime": _text(times.began_ns), "endTime": _text(times.ended_ns)}
    try:
        write_whole(file, json.dumps(fields, separators=(",", ":")).encode())
    except OSError as error:
        log.error("%s: the times of the shutdown are not kept: %s", file, error)


def load_times(file: Path) -> ShutdownTimes:
    """The times in the file; no times if it is missing, or cannot be understood (logged)."""
    try:
        fields = read_json(file)
        return ShutdownTimes(_wall_ns(fields["startTime"]), _wall_ns(fields["endTime"]))
    except FileNotFoundError:
        return ShutdownTimes()
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.error("%s: wanted the times of the last shutdown: %r; ignored", file, error)
        return ShutdownTimes()


def _text(wall_ns: int | None) -> str:
    return NEVER if wall_ns is None else format_rfc3339(wall_ns, digits=9)


def _wall_ns(text: str) -> int | None:
    if text == NEVER:
        return None
    return round(datetime.fromisoformat(text).timestamp()) * 1_000_000_000
