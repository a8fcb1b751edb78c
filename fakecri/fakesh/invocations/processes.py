"""What the processes of one program have in common: their numbers, their jobs.

A job is what a script starts with `&`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

_FIRST_JOB: Final = 8
_REMEMBERED: Final = 1000


class Processes:
    """`pid`: of the program itself; 1 is the main process of a container."""

    def __init__(self, pid: int = 7) -> None:
        self.pid = pid
        self._jobs: dict[int, asyncio.Task[int]] = {}
        self._live: set[asyncio.Task[int]] = set()
        self._next = _FIRST_JOB

    def start(self, work: Coroutine[Any, Any, int]) -> asyncio.Task[int]:
        """Run it beside the others."""
        task = asyncio.create_task(work)
        self._live.add(task)
        task.add_done_callback(self._live.discard)
        self._jobs[self._next] = task
        self._next += 1
        if len(self._jobs) > _REMEMBERED + len(self._live):  # so many are never waited for
            self._jobs = {n: job for n, job in self._jobs.items() if not job.done()}
        return task

    def number_of(self, job: asyncio.Task[int]) -> int:
        """What `$!` says of it."""
        return next((n for n, one in self._jobs.items() if one is job), self._next)

    def job(self, number: str) -> asyncio.Task[int] | None:
        """The job with that number, or the n-th (`%1`); None: there is none."""
        plain = number.removeprefix("%")
        if not plain.isdecimal() or len(plain) > 9:
            return None
        return self._jobs.get(int(plain) + (_FIRST_JOB - 1 if number != plain else 0))

    def running(self) -> list[asyncio.Task[int]]:
        """Those that have not ended."""
        return [job for job in self._live if not job.done()]

    async def finished(self) -> None:
        """Wait until none runs, those that others started meanwhile included."""
        while jobs := self.running():
            await asyncio.wait(jobs)

    def end(self) -> None:
        """Kill what runs."""
        for job in self.running():
            job.cancel()
