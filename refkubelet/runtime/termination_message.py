"""What an exited container had to say for itself: LIFE-145."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from refkubelet.runtime.records import ContainerRecord, ContainerState

MAX_FILE_BYTES: Final = 4096
MAX_LOG_BYTES: Final = 2048
MAX_LOG_LINES: Final = 80
FALLBACK_TO_LOGS: Final = "FallbackToLogsOnError"
CANNOT_RUN: Final = "ContainerCannotRun"


def termination_message(record: ContainerRecord) -> str:
    """The runtime's message with the container's own behind it, joined by `: `."""
    if record.state is not ContainerState.EXITED:
        return record.message
    own = _tail(record.termination_log_host_path, MAX_FILE_BYTES)
    if not own and wants_logs(record):
        own = log_tail(_tail(record.log_path, None))
    return ": ".join(text for text in (record.message, own) if text)


def wants_logs(record: ContainerRecord) -> bool:
    """Policy FallbackToLogsOnError, a failure, and the container could run at all."""
    return (
        record.termination_message_policy == FALLBACK_TO_LOGS
        and record.exit_code != 0
        and record.reason != CANNOT_RUN
    )


def log_tail(text: str) -> str:
    """The payload of the last lines of a CRI log: at most 80 lines and 2048 bytes."""
    payloads = []
    for line in text.splitlines()[-MAX_LOG_LINES:]:
        words = line.split(" ", 3)  # time, stream, F or P, payload (CRI-101)
        if len(words) == 4:
            payloads.append(words[3] + ("\n" if words[2] == "F" else ""))
    return "".join(payloads).encode()[-MAX_LOG_BYTES:].decode(errors="replace")


def _tail(path: str, limit: int | None) -> str:
    """The end of a file; "" when it cannot be read."""
    if not path:
        return ""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return ""
    return (data if limit is None else data[-limit:]).decode(errors="replace")
