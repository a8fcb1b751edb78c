"""The files containers write: logs, held open as a runtime holds them, and termination messages.

A log is opened at the start of its container and stays that file when it is renamed, until
ReopenContainerLog or the end (CRI-104). What must never happen here: a full disk or a bad path
ends more than a line in our own log; a file that is none makes the fake wait.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fakecri.core.file_work import (
    BYTES_OF_LOGS,
    CloseLog,
    FileWork,
    OpenLog,
    WriteLog,
    WriteMessage,
)

log = logging.getLogger("fakecri")
_LOG_MODE: Final = 0o640  # CRI-100
_MESSAGE_MODE: Final = 0o666


class HostFiles:
    """Does file work. `write_logs` False: logs are left out, termination messages are written."""

    def __init__(self, *, write_logs: bool) -> None:
        self.write_logs = write_logs
        self._open: dict[str, int] = {}

    def do(self, work: FileWork) -> None:
        """Carry out one piece of work; errors of the file system are logged, not raised."""
        try:
            if isinstance(work, WriteMessage):
                file = _opened(work.path, os.O_TRUNC, _MESSAGE_MODE)
                with open(file, "w", encoding="utf-8") as message:
                    message.write(work.text)
            elif self.write_logs:
                self._log_work(work)
        except (OSError, ValueError) as error:  # the latter: a zero byte in the path
            log.warning("cannot write %s for a container: %s", work.path, error)

    def _log_work(self, work: OpenLog | WriteLog | CloseLog) -> None:
        if isinstance(work, WriteLog):
            if work.path in self._open:
                data = work.text.encode(errors=BYTES_OF_LOGS)
                os.write(self._open[work.path], data)
            return
        _close(self._open.pop(work.path, None))
        if isinstance(work, OpenLog):
            self._open[work.path] = _opened(work.path, os.O_APPEND, _LOG_MODE)

    def closer(self) -> Callable[[], None]:
        """A function that closes all logs and does not keep this object alive."""
        opened = self._open

        def close_all() -> None:
            while opened:
                _close(opened.popitem()[1])

        return close_all


def _opened(path: str, flags: int, mode: int) -> int:
    """A regular file for writing, made if it is missing, with the directories above it: the path
    is a caller's, and a FIFO there must not hold the fake up."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    common = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    file = os.open(path, common | flags, mode)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "Not a regular file", path)
    return file


def _close(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)
