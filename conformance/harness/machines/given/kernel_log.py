"""/dev/kmsg of a fake machine: a named pipe in packets, so that each read is one record.

Whoever opens it gets all lines that the fake's log has, then those that come. What is not read in
time is lost, as in the kernel's ring.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from fakecri.machine.kernel_log import KernelLog, KernelMessage

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


class KernelLogPipe:
    """The pipe at `path`, in step with `log` until `close`. `booted_ns`: when the machine started,
    nanoseconds since 1970, in the log's time."""

    def __init__(self, path: Path, log: KernelLog, booted_ns: int) -> None:
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        flags = fcntl.fcntl(self._fd, fcntl.F_GETFL)
        fcntl.fcntl(self._fd, fcntl.F_SETFL, flags | os.O_DIRECT)
        with suppress(PermissionError):  # a limit for users without privileges
            fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._booted_ns = booted_ns
        self._number = 0
        for message in log.lines:
            self._say(message)
        self._log = log
        log.listeners.append(self._say)

    def close(self) -> None:
        """No further line."""
        self._log.listeners.remove(self._say)
        os.close(self._fd)

    def _say(self, message: KernelMessage) -> None:
        self._number += 1
        with suppress(BlockingIOError):
            os.write(self._fd, record(self._number, message, self._booted_ns))
