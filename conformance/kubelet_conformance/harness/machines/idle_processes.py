"""Processes that do nothing, for a case to put into cgroups: of a fake machine, or `sleep` on this
one. Containers of a fake runtime are no processes of this machine."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from contextlib import suppress
from typing import Any, Final, Protocol

_SCRIPT: Final = "sleep 3600 & echo $!; read asked; wait $!"
_BY_SIGNAL: Final = 128
"""A shell adds it to the number of the signal that has ended a process."""


class IdleProcess(Protocol):
    """One such process; it runs until it is killed."""

    @property
    def pid(self) -> str:
        """Its id, as the files of cgroups have it."""

    def was_killed(self) -> bool:
        """Whether SIGKILL has ended it."""

    def end(self) -> None:
        """Kill it, if it runs, and take note of its end."""


class FakeProcess:
    """A process of a fake machine; its end is noted at once."""

    def __init__(self, machine: Any) -> None:
        self._process = machine.cgroups.spawn()
        self._process.on_exit.append(lambda process: process.reap())

    @property
    def pid(self) -> str:
        return str(self._process.pid)

    def was_killed(self) -> bool:
        return bool(self._process.exit_status == -signal.SIGKILL)

    def end(self) -> None:
        self._process.kill()


class SleepProcess:
    """A `sleep` on this machine.

    It is the child of a shell: a jumping time does not jump while a child of our own sleeps or is
    frozen, since it cannot know how long that child will do so. The shell waits to be asked."""

    def __init__(self) -> None:
        self._shell = subprocess.Popen(
            ["sh", "-c", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._shell.stdout is not None
        self.pid = self._shell.stdout.readline().strip()
        self._lives = os.pidfd_open(int(self.pid))

    def was_killed(self) -> bool:
        ended, _, _ = select.select([self._lives], [], [], 0)
        if ended and self._shell.returncode is None:
            self._shell.communicate("tell\n")
        return self._shell.returncode == _BY_SIGNAL + signal.SIGKILL

    def end(self) -> None:
        if self._shell.returncode is None:
            with suppress(ProcessLookupError):  # it has ended, and the shell knows
                signal.pidfd_send_signal(self._lives, signal.SIGKILL)
            self._shell.communicate("tell\n")
        os.close(self._lives)
