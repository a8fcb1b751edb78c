"""Deadlines of calls over a real socket, in Go's words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from kubeobjects.golang.grpc_deadlines import within_deadline

Handler = Callable[[bytes, Any], Awaitable[bytes]]


@asynccontextmanager
async def method(handler: Handler, directory: Path) -> AsyncIterator[Any]:
    """A method of a server at a unix socket: call it with bytes and a timeout."""

    class Every(grpc.GenericRpcHandler):
        def service(self, _details: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(handler)

    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Every(),))
    address = f"unix:{directory}/s"
    server.add_insecure_port(address)
    await server.start()
    try:
        async with grpc.aio.insecure_channel(address) as channel:
            yield channel.unary_unary("/service/method")
    finally:
        await server.stop(None)


async def failure(call: Any, timeout_s: float) -> tuple[str, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await within_deadline(call(b"", timeout=timeout_s), timeout_s)
    return caught.value.code().name, caught.value.details() or ""


async def test_a_deadline_of_a_silent_server_is_told_as_go_does(tmp_path: Path) -> None:
    async def silent(_request: bytes, _context: Any) -> bytes:
        await asyncio.Event().wait()
        return b""

    async with method(silent, tmp_path) as call:
        assert await failure(call, 0.2) == ("DEADLINE_EXCEEDED", "context deadline exceeded")


async def test_a_server_that_ends_the_call_at_its_deadline_changes_nothing(tmp_path: Path) -> None:
    async def punctual(_request: bytes, context: Any) -> bytes:
        await asyncio.sleep(max(0.0, context.time_remaining() - 0.005))
        await context.abort(grpc.StatusCode.CANCELLED, "context canceled")
        return b""

    async with method(punctual, tmp_path) as call:
        assert await failure(call, 0.2) == ("DEADLINE_EXCEEDED", "context deadline exceeded")


@pytest.mark.parametrize(
    ("code", "details"),
    [("CANCELLED", "shutting down"), ("DEADLINE_EXCEEDED", "the command took too long")],
)
async def test_what_a_server_says_before_the_deadline_is_kept(
    code: str, details: str, tmp_path: Path
) -> None:
    async def hasty(_request: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode[code], details)
        return b""

    async with method(hasty, tmp_path) as call:
        assert await failure(call, 5.0) == (code, details)
