"""The files containers write: logs, and termination messages.

A log is made at the start of its container and stays that file when it is renamed, until
ReopenContainerLog or the end (CRI-104). A runtime holds it open for that; here its identity is kept
in place of a descriptor, and it is opened for each piece of output, so that a thousand containers
need no more open files than one. What is written has the time of the fake, as what the CRI says of
containers has: a client may compare the two. What must never happen here: a full disk or a bad path
ends more than a line in our own log; a file that is none makes the fake wait; a descriptor stays
open.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias

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
_FOR_WRITING: Final = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_Identity: TypeAlias = tuple[int, int]
"""Device and inode of a file."""


class HostFiles:
    """Does file work. `write_logs` False: logs are left out, termination messages are written.
    `wall_ns`: the fake's time, which files are given; None: they have the machine's."""

    def __init__(self, *, write_logs: bool, wall_ns: Callable[[], int] | None = None) -> None:
        self.write_logs = write_logs
        self._wall_ns = wall_ns
        self._logs: dict[str, _Identity] = {}
        """Path of a log when it was made -> which file it is, for containers that run."""

    def do(self, work: FileWork) -> None:
        """Carry out one piece of work; errors of the file system are logged, not raised."""
        try:
            if isinstance(work, WriteMessage):
                with _made(work.path, os.O_TRUNC, _MESSAGE_MODE) as file:
                    self._write(file, work.text.encode())
            elif self.write_logs:
                self._log_work(work)
        except (OSError, ValueError) as error:  # the latter: a zero byte in the path
            log.warning("cannot write %s for a container: %s", work.path, error)

    def _log_work(self, work: OpenLog | WriteLog | CloseLog) -> None:
        if isinstance(work, WriteLog):
            if work.path in self._logs:
                self._append(work.path, work.text.encode(errors=BYTES_OF_LOGS))
            return
        self._logs.pop(work.path, None)
        if isinstance(work, OpenLog):
            with _made(work.path, os.O_APPEND, _LOG_MODE) as file:
                self._write(file, b"")
                self._logs[work.path] = _identity(os.fstat(file))

    def _append(self, path: str, data: bytes) -> None:
        """Add to the log that was made at `path`; it may have another name in the same directory by
        now. If it is not there any more, nobody reads what is written."""
        file_id = self._logs[path]
        if not self._append_to(path, file_id, data):
            renamed = _name_of(file_id, os.path.dirname(path))
            if renamed is not None:
                self._append_to(renamed, file_id, data)

    def _append_to(self, path: str, known: _Identity, data: bytes) -> bool:
        """Add to the file at `path` if it is the known one; False if it is not."""
        try:
            file = os.open(path, _FOR_WRITING | os.O_APPEND)
        except OSError as error:
            # ENXIO: a FIFO that nobody reads has taken the name.
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.ELOOP):
                return False
            raise
        try:
            if _identity(os.fstat(file)) != known:
                return False
            self._write(file, data)
        finally:
            os.close(file)
        return True

    def _write(self, file: int, data: bytes) -> None:
        while data:
            data = data[os.write(file, data) :]
        if self._wall_ns is not None:
            with suppress(PermissionError):  # another user's file that we may write
                os.utime(file, ns=(self._wall_ns(), self._wall_ns()))


def _name_of(known: _Identity, directory: str) -> str | None:
    """The path of the known file below that directory; None: it is not there."""
    try:
        with os.scandir(directory) as entries:
            candidates = [entry for entry in entries if entry.inode() == known[1]]
    except (FileNotFoundError, NotADirectoryError):
        return None
    return next((entry.path for entry in candidates), None)


def _identity(found: os.stat_result) -> _Identity:
    return found.st_dev, found.st_ino


@contextmanager
def _made(path: str, flags: int, mode: int) -> Iterator[int]:
    """A regular file for writing, made if it is missing, with the directories above it: the path
    is a caller's, and a FIFO there must not hold the fake up. Closed at the end of the block."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, _FOR_WRITING | os.O_CREAT | flags, mode)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", path)
        yield file
    finally:
        os.close(file)
