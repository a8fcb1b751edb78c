"""What is to happen to the files of containers: logs and termination messages, as plain values.

The core only says what is to be written; `clockwork.files.HostFiles` does it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

BYTES_OF_LOGS: Final = "surrogateescape"
"""How texts of logs hold bytes that are no UTF-8, such as half a letter where a line is cut."""


@dataclass(frozen=True, slots=True)
class OpenLog:
    """Create the log file, or open it again; missing directories are made (CRI-045)."""

    path: str


@dataclass(frozen=True, slots=True)
class WriteLog:
    """Add text to an open log."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class CloseLog:
    """The container has ended."""

    path: str


@dataclass(frozen=True, slots=True)
class WriteMessage:
    """Replace a file by a termination message."""

    path: str
    text: str


FileWork: TypeAlias = OpenLog | WriteLog | CloseLog | WriteMessage
