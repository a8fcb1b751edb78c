"""What a CRI runtime looks like from the outside: the shape that fake, proxy and client share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from google.protobuf.message import Message


class CriTarget(Protocol):
    """Answers CRI calls. `method` is the bare RPC name (unique over both services).

    Failures are raised as `grpc.RpcError` with `code()` and `details()`. `timeout_s` is the
    caller's deadline in seconds, None for none; when it passes, the call fails with
    DEADLINE_EXCEEDED. Messages are never shared with the caller. A stream begins when its first
    message is asked for: what happens before that is not told.
    """

    async def call(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> Message: ...

    def stream(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> AsyncIterator[Message]: ...
