"""A plug-in's service at a unix socket, over gRPC.

Only for real time, because grpc uses its own threads; grpc is imported when a plug-in is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final, Protocol

from kubeobjects.golang.grpc_deadlines import within_deadline

DIAL_LIMIT_S: Final = 10.0


class PluginConnection(Protocol):
    """A connection to one service of a plug-in; errors are `grpc.RpcError`s."""

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any: ...

    async def close(self) -> None: ...


class PluginSocket:
    """A connection to the service at a socket. `stub`: the service's class of kubecri."""

    def __init__(self, path: str | Path, stub: Callable[[Any], Any]) -> None:
        import grpc.aio

        self._channel = grpc.aio.insecure_channel(
            f"unix:{path}",
            options=[("grpc.default_authority", "localhost"), ("grpc.enable_http_proxy", 0)],
        )
        self._stub = stub(self._channel)

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        """The answer. Raises grpc.RpcError."""
        answer = getattr(self._stub, method)(request, timeout=timeout_s)
        return await within_deadline(answer, timeout_s)

    async def stream(
        self, method: str, request: Any, *, timeout_s: float | None = None
    ) -> AsyncIterator[Any]:
        """The answers one after the other. Raises grpc.RpcError."""
        async for answer in getattr(self._stub, method)(request, timeout=timeout_s):
            yield answer

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()


async def dialled(path: str, stub: Callable[[Any], Any]) -> PluginSocket:
    """A connection to the service at a socket. Raises OSError if nothing listens there within
    `DIAL_LIMIT_S`."""
    try:
        async with asyncio.timeout(DIAL_LIMIT_S):
            _, writer = await asyncio.open_unix_connection(path)
    except TimeoutError:
        raise OSError(0, "context deadline exceeded", path) from None
    writer.close()
    return PluginSocket(path, stub)
