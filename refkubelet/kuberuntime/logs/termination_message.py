"""The termination message of an exited container (LIFE-145).

It is the content of the termination log, or, after a failure with the policy FallbackToLogsOnError,
the end of the container's log. What must never happen here: a big log is read as a whole; an
unreadable file hides the exit; the kubelet follows a link that a container made, or reads a file
that is not regular (`untrusted_files`).
Upstream: kuberuntime_container.go: convertToKubeContainerStatus, getTerminationMessage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from refkubelet.cri.records import ContainerRecord, ContainerState
from refkubelet.host.untrusted_files import fingerprint, read_tail

MAX_FILE_BYTES: Final = 4096
MAX_LOG_BYTES: Final = 2048
MAX_LOG_LINES: Final = 80
READ_BYTES: Final = 64 * 1024  # holds 80 lines with 2048 bytes of text between them
FALLBACK_TO_LOGS: Final = "FallbackToLogsOnError"
CANNOT_RUN: Final = "ContainerCannotRun"
REMEMBERED: Final = 1000
"""How many containers' messages are kept, those that were read last."""
FAILED: Final = "Error on reading termination "


class TerminationMessages:
    """Those of exited containers, whose files are read again only when they have changed: the
    status of a pod is read with each change of any of its containers. `trusted` as of
    `termination_message`."""

    def __init__(self, trusted: Sequence[str] = ()) -> None:
        self._trusted = trusted
        self._read: dict[str, tuple[ContainerRecord, list[tuple[int, ...]], str]] = {}

    def of(self, record: ContainerRecord) -> str:
        """As `termination_message`."""
        if record.state is not ContainerState.EXITED:
            return record.message
        paths = (record.termination_log_host_path, wants_logs(record) and record.log_path)
        files = [fingerprint(path) for path in paths if path]
        known = self._read.get(record.id)
        if known is not None and known[1] == files and known[0] == record:
            return known[2]
        message = termination_message(record, self._trusted)
        if FAILED not in message:
            if len(self._read) >= REMEMBERED:
                del self._read[next(iter(self._read))]
            self._read[record.id] = (record, files, message)
        return message


def termination_message(record: ContainerRecord, trusted: Sequence[str] = ()) -> str:
    """The runtime's message and the container's own, joined by `: `. `trusted`: the kubelet's own
    directories; no other part of a path may be a link."""
    if record.state is not ContainerState.EXITED:
        return record.message
    own = _own_message(record, trusted)
    if own is None:
        own = _end_of_log(record.log_path, trusted)
    return ": ".join(text for text in (record.message, own) if text)


def wants_logs(record: ContainerRecord) -> bool:
    """Whether the end of the log may be used: the policy is FallbackToLogsOnError, and the
    container ran and failed."""
    return (
        record.termination_message_policy == FALLBACK_TO_LOGS
        and record.exit_code != 0
        and record.reason != CANNOT_RUN
    )


def _own_message(record: ContainerRecord, trusted: Sequence[str]) -> str | None:
    """The end of the termination log; None: the container's log is used instead."""
    path = record.termination_log_host_path
    instead = None if wants_logs(record) else ""
    if not path:
        return instead
    try:
        text = read_tail(path, MAX_FILE_BYTES, trusted).decode(errors="replace")
    except FileNotFoundError:
        return instead
    except (OSError, ValueError) as error:
        return f"{FAILED}log {path}: {_why(error)}"
    return text or instead


def _end_of_log(path: str, trusted: Sequence[str]) -> str:
    try:
        return log_tail(read_tail(path, READ_BYTES, trusted))
    except (OSError, ValueError) as error:
        return (
            f"{FAILED}message from logs: failed to try resolving symlinks "
            f'in path "{path}": lstat {path}: {_why(error).lower()}'
        )


def _why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


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
