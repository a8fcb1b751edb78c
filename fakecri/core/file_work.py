"""What containers write, and what is to happen to their files: plain values.

The core only says what is to be written; `clockwork.files.HostFiles` does it.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

from simclock import format_rfc3339

BYTES_OF_LOGS: Final = "surrogateescape"
"""How texts of logs hold bytes that are no UTF-8, such as half a letter where a line is cut."""


class OpenLog(Struct, frozen=True):
    """Create the log file, or open it again; missing directories are made (CRI-045)."""

    path: str


class WriteLog(Struct, frozen=True):
    """Add text to an open log."""

    path: str
    text: str


class CloseLog(Struct, frozen=True):
    """The container has ended."""

    path: str


class WriteMessage(Struct, frozen=True):
    """Replace a file by a termination message."""

    path: str
    text: str


FileWork: TypeAlias = OpenLog | WriteLog | CloseLog | WriteMessage


class LogLine(Struct, frozen=True):
    """A line a container wrote."""

    time_ns: int
    stream: str
    text: str
    whole: bool = True  # False: it ends without a newline (CRI-103)


def log_text(line: LogLine) -> str:
    """The line as a CRI log file has it (CRI-101, CRI-102: pieces of 16384 bytes; CRI-103).

    >>> log_text(LogLine(1_500_000_000_100_000_000, "stdout", "hi"))
    '2017-07-14T02:40:00.1Z stdout F hi\\n'
    """
    stamp = format_rfc3339(line.time_ns, digits=9).rstrip("Z").rstrip("0").rstrip(".") + "Z"
    data = line.text.encode()
    pieces = [data[i : i + 16384] for i in range(0, len(data), 16384)] or [b""]
    marks = ["P"] * (len(pieces) - 1) + ["F" if line.whole else "P"]
    rows = zip(marks, pieces, strict=True)
    texts = ((mark, piece.decode(errors=BYTES_OF_LOGS)) for mark, piece in rows)
    return "".join(f"{stamp} {line.stream} {mark} {text}\n" for mark, text in texts)
