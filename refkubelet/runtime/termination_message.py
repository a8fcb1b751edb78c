"""What an exited container had to say for itself: LIFE-145.

Its termination log, else (policy FallbackToLogsOnError, after a failure) the end of its log. What
must never happen here: a big log is read as a whole; an unreadable file hides the exit.
Upstream: kuberuntime_container.go: convertToKubeContainerStatus, getTerminationMessage.
"""

from __future__ import annotations

import os
from typing import Final

from refkubelet.runtime.records import ContainerRecord, ContainerState

MAX_FILE_BYTES: Final = 4096
MAX_LOG_BYTES: Final = 2048
MAX_LOG_LINES: Final = 80
READ_BYTES: Final = 64 * 1024  # holds 80 lines with 2048 bytes of text between them
FALLBACK_TO_LOGS: Final = "FallbackToLogsOnError"
CANNOT_RUN: Final = "ContainerCannotRun"


def termination_message(record: ContainerRecord) -> str:
    """The runtime's message with the container's own behind it, joined by `: `."""
    if record.state is not ContainerState.EXITED:
        return record.message
    own = _own_message(record)
    if own is None:
        own = _end_of_log(record.log_path)
    return ": ".join(text for text in (record.message, own) if text)


def wants_logs(record: ContainerRecord) -> bool:
    """Policy FallbackToLogsOnError, a failure, and the container could run at all."""
    return (
        record.termination_message_policy == FALLBACK_TO_LOGS
        and record.exit_code != 0
        and record.reason != CANNOT_RUN
    )


def _own_message(record: ContainerRecord) -> str | None:
    """The end of the termination log; None when the log of the container is to be read instead."""
    path = record.termination_log_host_path
    instead = None if wants_logs(record) else ""
    if not path:
        return instead
    try:
        text = _end_of_file(path, MAX_FILE_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return instead
    except OSError as error:
        return f"Error on reading termination log {path}: {error.strerror or error}"
    return text or instead


def _end_of_log(path: str) -> str:
    try:
        return log_tail(_end_of_file(path, READ_BYTES))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        return (
            "Error on reading termination message from logs: failed to try resolving symlinks "
            f'in path "{path}": lstat {path}: {why}'
        )


def log_tail(data: bytes) -> str:
    """The payload of the last lines of a CRI log: at most 80 lines and 2048 bytes.

    >>> log_tail(b"2026-01-01T00:00:00Z stdout F one\\n2026-01-01T00:00:01Z stderr P two\\n")
    'one\\ntwo'
    """
    payloads = []
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for line in lines[-MAX_LOG_LINES:]:
        words = line.split(b" ", 3)  # time, stream, F or P, payload (CRI-101)
        if len(words) == 4:
            payloads.append(words[3] + (b"" if words[2] == b"P" else b"\n"))
    return b"".join(payloads)[-MAX_LOG_BYTES:].decode(errors="replace")


def _end_of_file(path: str, limit: int) -> bytes:
    """At most the last `limit` bytes; raises OSError."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(file, limit, max(0, os.fstat(file).st_size - limit))
    finally:
        os.close(file)
