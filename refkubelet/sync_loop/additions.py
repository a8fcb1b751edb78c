"""Admits new pods, batch after batch, without holding up the sync loop when admission takes long.

How it works. A batch of new pods is handled as all updates are, and the loop waits for it, for up
to a second. A batch that takes longer (a device plugin that hangs, pods that end to make room) goes
on in a task of its own: later batches follow it in their order, and so does every changed spec,
with all that comes later for its pod; ends and statuses of other pods are handled at once.
Housekeeping, which must not run beside an admission, gets its turn between two batches. Upstream's
whole loop stands still meanwhile. What must never happen here: two batches at a time; an update
that overtakes another one of the same pod, or counts for a source whose first batch is not done
(SRC-070); a resize that is looked at while a pod is admitted.
Rules: LIFE-010, CG-084, PREE-008.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from refkubelet.model.pod import uid
from refkubelet.model.pod_updates import PodOperation, PodUpdate

PATIENCE_S: Final = 1.0
PASSING: Final = frozenset({PodOperation.DELETE, PodOperation.REMOVE, PodOperation.RECONCILE})


class Additions:
    """The queue of updates that wait for an admission.

    `handle` handles one update, and logs what goes wrong with it. `may_pass` answers whether an
    update may be handled beside an admission; whether one of its pods waits here is asked beside
    that. `pause` is called when what was put off (`put_off`) may have its turn; no batch begins
    until `go_on`."""

    def __init__(
        self,
        handle: Callable[[PodUpdate], Awaitable[None]],
        may_pass: Callable[[PodUpdate], bool],
        pause: Callable[[], None],
    ) -> None:
        self._handle = handle
        self._may_pass = may_pass
        self._pause = pause
        self._lane: deque[PodUpdate] = deque()
        self._task: asyncio.Task[None] | None = None
        self._admitting = False
        self._pause_is_wanted = False
        self._paused = asyncio.Event()

    def put_off(self) -> bool:
        """Whether pods are being admitted now; if so, `pause` is called after that batch."""
        self._pause_is_wanted = self._pause_is_wanted or self._admitting
        return self._admitting

    def go_on(self) -> None:
        """What was put off has had its turn: the next batch may begin."""
        self._paused.set()

    async def take(self, update: PodUpdate) -> None:
        """Handle it now, or when it is its turn."""
        if self._task is not None and not self._task.done():
            if self._passes(update):
                await self._handle(update)
            else:
                self._lane.append(update)
        elif update.operation is PodOperation.ADD and update.pods:
            self._lane.append(update)
            self._task = asyncio.create_task(self._run(), name="new pods")
            await asyncio.wait([self._task], timeout=PATIENCE_S)
        else:
            await self._handle(update)

    def _passes(self, update: PodUpdate) -> bool:
        if update.operation not in PASSING or not self._may_pass(update):
            return False
        waiting = {uid(pod) for each in self._lane for pod in each.pods}
        return not any(uid(pod) in waiting for pod in update.pods)

    async def _run(self) -> None:
        while self._lane:
            self._admitting = True
            try:
                await self._handle(self._lane[0])
            finally:
                self._admitting = False
            self._lane.popleft()
            if self._pause_is_wanted:
                self._pause_is_wanted = False
                self._paused.clear()
                self._pause()
                await self._paused.wait()

    async def close(self) -> None:
        """Cancel the admission that is under way, and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
