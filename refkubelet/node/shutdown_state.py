"""The file with the begin and end of the last graceful shutdown (NODE-064).

Upstream: pkg/kubelet/nodeshutdown/storage.go.
"""

from __future__ import annotations

import json
import logging
from datetime import datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from refkubelet.checkpoints.atomic_file import read_json, write_whole
from simclock import format_rfc3339

log = logging.getLogger(__name__)

FILE_NAME: Final = "graceful_node_shutdown_state"
NEVER: Final = "0001-01-01T00:00:00Z"


class ShutdownTimes(Struct, frozen=True):
    """Begin and end of the last shutdown, nanoseconds since 1970; None: not yet, or never."""

    began_ns: int | None = None
    ended_ns: int | None = None


def store_times(file: Path, times: ShutdownTimes) -> None:
    """Write the times; an error is only logged, because the shutdown must go on."""
    fields = {"startTime": _text(times.began_ns), "endTime": _text(times.ended_ns)}
    try:
        write_whole(file, json.dumps(fields, separators=(",", ":")).encode())
    except OSError as error:
        log.error("%s: cannot write the times of the shutdown: %s", file, error)


def load_times(file: Path) -> ShutdownTimes:
    """The times in the file; none if it is missing, or invalid, which is logged."""
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
