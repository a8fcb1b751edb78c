"""/dev/kmsg of a fake machine: named pipes in packets, so that each read is one record.

The kernel gives each reader all lines; what is read from a pipe is gone for others, and a kubelet
reads the log twice (its OOM watcher and cAdvisor do). So each opening gets a pipe of its own. What
is not read in time is lost, as in the kernel's ring.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from fakecri.machine.kernel_log import KernelLog
from kubeobjects.machine import KernelMessage

_PIPE_BYTES: Final = 1 << 20
_MICROSECOND_NS: Final = 1000
_PRIORITY: Final = 6


def record(number: int, message: KernelMessage, booted_ns: int) -> bytes:
    """A record as the kernel writes it: priority, number, microseconds since the boot, text.

    >>> record(7, KernelMessage(5_000_000, "oom-kill"), booted_ns=3_000_000)
    b'6,7,2000,-;oom-kill\\n'
    """
    since_us = max(0, message.time_ns - booted_ns) // _MICROSECOND_NS
    return f"{_PRIORITY},{number},{since_us},-;{message.text}\n".encode()


class KernelLogPipes:
    """Pipes in `directory`, one for each reader, in step with `log` until `close`. `booted_ns`:
    when the machine started, nanoseconds since 1970, in the log's time."""

    def __init__(self, directory: Path, log: KernelLog, booted_ns: int) -> None:
        directory.mkdir()
        self._directory = directory
        self._log = log
        self._booted_ns = booted_ns
        self._number = 0
        self._records: list[bytes] = []
        self._pipes: list[int] = []
        for message in log.lines:
            self._say(message)
        log.listeners.append(self._say)

    def new(self) -> Path:
        """A pipe for one more reader, which gets all lines that the log has, then those that
        come."""
        path = self._directory / str(len(self._pipes))
        os.mkfifo(path)
        pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        flags = fcntl.fcntl(pipe, fcntl.F_GETFL)
        fcntl.fcntl(pipe, fcntl.F_SETFL, flags | os.O_DIRECT)
        with suppress(PermissionError):  # a limit for users without privileges
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._pipes.append(pipe)
        for line in self._records:
            _write(pipe, line)
        return path

    def close(self) -> None:
        """No further line."""
        self._log.listeners.remove(self._say)
        for pipe in self._pipes:
            os.close(pipe)

    def _say(self, message: KernelMessage) -> None:
        self._number += 1
        line = record(self._number, message, self._booted_ns)
        self._records.append(line)
        for pipe in self._pipes:
            _write(pipe, line)


def _write(pipe: int, line: bytes) -> None:
    with suppress(BlockingIOError):
        os.write(pipe, line)
