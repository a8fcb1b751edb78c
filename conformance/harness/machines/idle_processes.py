"""Processes that do nothing, for a case to put into cgroups: of a fake machine, or `sleep` on this
one. Containers of a fake runtime are no processes of this machine."""

from __future__ import annotations

import signal
import subprocess
from typing import Any, Final, Protocol

_SECONDS: Final = "3600"


class IdleProcess(Protocol):
    """One such process; it runs until it is killed."""

    @property
    def pid(self) -> str:
        """Its id, as the files of cgroups have it."""
        ...

    def was_killed(self) -> bool:
        """Whether SIGKILL has ended it."""
        ...

    def end(self) -> None:
        """Kill it, if it runs, and take note of its end."""
        ...


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
    """A `sleep` on this machine."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(["sleep", _SECONDS])

    @property
    def pid(self) -> str:
        return str(self._process.pid)

    def was_killed(self) -> bool:
        return self._process.poll() == -signal.SIGKILL

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
