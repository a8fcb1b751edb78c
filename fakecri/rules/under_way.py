"""The calls that have not been answered yet, so that all of them can be broken off at once."""

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
        self.unary: dict[asyncio.Timeout, grpc.RpcError | None] = {}
        """The time limit of each unary call, and the error that it was broken off with; None: it
        goes on."""
        self.held_streams: dict[OpenStream, None] = {}
        """Streams whose start a rule holds up."""

    async def answer(self, work: Callable[[], Awaitable[A]], timeout_s: float | None) -> A:
        """The answer that `work` gives. Raises TimeoutError at the deadline, or the error of
        `break_off`."""
        broken: grpc.RpcError | None = None
        try:
            async with asyncio.timeout(timeout_s) as limit:
                self.unary[limit] = None
                try:
                    return await work()
                finally:
                    broken = self.unary.pop(limit)
        except TimeoutError:
            if broken is not None:
                raise broken from None
            raise

    def break_off(self, error: grpc.RpcError) -> None:
        """End all of them with `error`, now."""
        try:
            now_s = asyncio.get_running_loop().time()
        except RuntimeError:
            return  # no loop runs, so none of its calls does
        for limit in [limit for limit, broken in self.unary.items() if broken is None]:
            if not limit.expired():
                self.unary[limit] = error
                limit.reschedule(now_s)
        for stream in self.held_streams:
            stream.cut(error)
