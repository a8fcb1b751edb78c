"""Admits new pods batch by batch; the sync loop goes on when an admission takes long.

How it works. The loop waits for a batch of new pods for up to a second. A batch that takes longer
(a device plugin hangs, pods are stopped to make room) continues in its own task. Meanwhile, later
batches and changed specs wait in a queue, and so does every later update of their pods; deletions,
removals and status changes of other pods are handled at once. Housekeeping must not run during an
admission, so it runs between two batches. (Upstream's whole loop blocks meanwhile.) What must never
happen here: two batches at a time; an update that overtakes another update of the same pod, or that
marks a source as ready before its first batch is done (SRC-070); a resize decided while a pod is
being admitted.
Rules: LIFE-010, CG-084, PREE-008.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from refkubelet.failures import end_tasks
from refkubelet.model.pod import uid
from refkubelet.model.pod_updates import PodOperation, PodUpdate

PATIENCE_S: Final = 1.0
PASSING: Final = frozenset({PodOperation.DELETE, PodOperation.REMOVE, PodOperation.RECONCILE})


class Additions:
    """The queue of updates that wait until the current admission ends.

    `handle` handles one update and logs its errors. `may_pass` says whether an update may be
    handled during an admission (updates of pods that wait here never may). `pause` is called
    between two batches after `put_off` answered True; no batch begins until `go_on`."""

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
        """Whether pods are being admitted now; if so, `pause` will be called after this batch."""
        self._pause_is_wanted = self._pause_is_wanted or self._admitting
        return self._admitting

    def go_on(self) -> None:
        """End the pause: the next batch may begin."""
        self._paused.set()

    async def take(self, update: PodUpdate) -> None:
        """Handle the update now, or queue it behind the admission that is running."""
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
        """Cancel the running admission and wait for its end."""
        if self._task is not None:
            await end_tasks([self._task])
