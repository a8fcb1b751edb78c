"""What the processes of one program have in common: their numbers, and what runs behind `&`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

_FIRST_JOB: Final = 8


class Processes:
    """`pid`: of the program itself; 1 is the main process of a container."""

    def __init__(self, pid: int = 7) -> None:
        self.pid = pid
        self._jobs: list[asyncio.Task[int]] = []

    def start(self, work: Coroutine[Any, Any, int]) -> asyncio.Task[int]:
        """Run it beside the others."""
        task = asyncio.create_task(work)
        self._jobs.append(task)
        return task

    def number_of(self, job: asyncio.Task[int]) -> int:
        """What `$!` says of it."""
        return _FIRST_JOB + self._jobs.index(job)

    def job(self, number: str) -> asyncio.Task[int] | None:
        """The job with that number; None: there is none."""
        index = int(number.lstrip("%")) - _FIRST_JOB if number.lstrip("%").isdecimal() else -1
        if number.startswith("%"):
            index += _FIRST_JOB - 1
        return self._jobs[index] if 0 <= index < len(self._jobs) else None

    def running(self) -> list[asyncio.Task[int]]:
        """Those that have not ended."""
        return [job for job in self._jobs if not job.done()]

    async def finished(self) -> None:
        """Wait until none runs, those that others started meanwhile included."""
        while jobs := self.running():
            await asyncio.wait(jobs)

    def end(self) -> None:
        """Kill what runs."""
        for job in self.running():
            job.cancel()
