"""The calls that have not been answered yet, so that all of them can be broken off at once.

What must never happen here: a call that was cancelled by its caller ends as one that was late, or
a cancel of ours reaches the caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc

from fakecri.rules.stream_faults import OpenStream

A = TypeVar("A")


class CallsUnderWay:
    """The calls that wait for their answer, those that a rule holds up among them."""

    def __init__(self) -> None:
        self.unary: dict[Limit, None] = {}
        """The limit of each unary call."""
        self.held_streams: dict[OpenStream, None] = {}
        """Streams whose start a rule holds up."""

    async def answer(self, work: Callable[[], Awaitable[A]], timeout_s: float | None) -> A:
        """The answer that `work` gives. Raises TimeoutError at the deadline, or the error of
        `break_off`."""
        limit = Limit(timeout_s)
        self.unary[limit] = None
        try:
            answer = await work()
        except BaseException as error:
            if self._ended(limit) and isinstance(error, asyncio.CancelledError):
                raise limit.error or TimeoutError() from None
            raise
        self._ended(limit)
        return answer

    def _ended(self, limit: Limit) -> bool:
        """The call has ended; whether for its limit."""
        del self.unary[limit]
        return limit.close()

    def break_off(self, error: grpc.RpcError) -> None:
        """End all of them with `error`, now."""
        if asyncio._get_running_loop() is None:
            return  # no loop runs, so none of its calls does
        for limit in self.unary:
            limit.break_off(error)
        for stream in self.held_streams:
            stream.cut(error)


class Limit:
    """What ends a call of the running task early: its deadline, or an error. It does what
    `asyncio.timeout` does with fewer steps, since nearly every call has one."""

    __slots__ = ("_cancels", "_loop", "_reached", "_task", "_timer", "error")

    def __init__(self, timeout_s: float | None) -> None:
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task(self._loop)
        assert task is not None, "a call is made in a task"
        self._task = task
        self._cancels = task.cancelling()
        self._reached = False
        self._timer: asyncio.Handle | None = None
        self.error: grpc.RpcError | None = None
        """What the call is broken off with; None: it goes on, or it was late."""
        if timeout_s is not None and timeout_s > 0:
            self._timer = self._loop.call_later(timeout_s, self._reach)
        elif timeout_s is not None:
            self._timer = self._loop.call_soon(self._reach)

    def break_off(self, error: grpc.RpcError) -> None:
        """End the call in the next turn of the loop, if nothing has ended it yet."""
        if self._reached or self.error is not None:
            return
        self.error = error
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_soon(self._reach)

    def close(self) -> bool:
        """The call is over. Whether its cancel was that of the limit, and nobody else's."""
        if self._timer is not None:
            self._timer.cancel()
        return self._reached and self._task.uncancel() <= self._cancels

    def _reach(self) -> None:
        self._reached, self._timer = True, None
        self._task.cancel()
