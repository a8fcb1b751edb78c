"""What PortForward does, whatever carries its connections (CRI-115, SRV-026).

A handler of the test gets an ordinary asyncio reader and writer, the ends of a socket pair, so that
the same function can also serve a real port.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import AsyncExitStack, suppress
from typing import Protocol

from fakecri.behaviors.matching import Subject
from fakecri.core.objects import Sandbox
from fakecri.errors import CriError
from fakecri.programs.ports import Ports
from fakecri.programs.socket_protocols import SERVE
from fakecri.streaming.execution import PIECE_BYTES, stop
from fakecri.streaming.session import Runtime
from fakecri.streaming.stream_rules import Programs, Target, address, run_handler

log = logging.getLogger(__name__)


class Duplex(Protocol):
    """One forwarded connection, the caller's end."""

    reader: asyncio.StreamReader

    async def write(self, data: bytes) -> None:
        """Send bytes to the caller."""


async def forward(
    runtime: Runtime, programs: Programs, sandbox_id: str, port: int, stream: Duplex
) -> str:
    """Carry one connection to a port of a pod, until one side ends. The result is the text of what
    went wrong; "": nothing."""
    try:
        sandbox = runtime.core.find_sandbox(sandbox_id)
    except CriError as error:
        return str(error.details())
    if not sandbox.ready:
        return f"sandbox {sandbox.id} is not running"
    meta = sandbox.config.metadata
    subject = Subject(meta.name, meta.namespace, meta.uid, attempt=meta.attempt)
    async with AsyncExitStack() as stack:
        target = programs.port_of(subject, port)
        if target is None:
            target = await _served(runtime.ports, sandbox, port, stack)
        return await _carried(target, port, stream)


async def _served(
    ports: Ports, sandbox: Sandbox, port: int, stack: AsyncExitStack
) -> Target | None:
    """What a container serves on that port (`serves`), behind a port of this machine until the
    stack ends; None: nothing, or what only a client with an address can talk to."""
    host_and_protocol = ports.protocol_in(sandbox, port)
    if host_and_protocol is None or host_and_protocol[1] not in ("http", "tcp"):
        return None
    host, protocol = host_and_protocol
    bound = socket.create_server(("127.0.0.1", 0))
    stack.push_async_callback(await SERVE[protocol](ports, (host, port, protocol), bound, None))
    return int(bound.getsockname()[1])


async def _carried(target: Target | None, port: int, stream: Duplex) -> str:
    if target is None:
        return (
            f"failed to connect to localhost:{port} inside the pod: connection refused "
            f"(nothing listens there: serves({port}), or cri.streaming.forward({port}, to=...))"
        )
    try:
        await _carry(target, stream)
    except OSError as error:
        return f"failed to connect to localhost:{port} inside the pod: {error}"
    except Exception as error:
        log.exception("a port handler of the test failed")
        return f"{type(error).__name__}: {error}"
    return ""


async def _carry(target: Target, stream: Duplex) -> None:
    """Carry bytes both ways until the pod's side has sent everything."""
    async with AsyncExitStack() as stack:
        if callable(target):
            own_end, other_end = socket.socketpair()
            reader, writer = await asyncio.open_connection(sock=own_end)
            inner = await asyncio.open_connection(sock=other_end)
            handler = asyncio.create_task(run_handler(target, *inner))
            stack.push_async_callback(stop, handler)
        else:
            host, port = address(target)
            reader, writer = await asyncio.open_connection(host, port)
            handler = None
        stack.callback(writer.close)
        upward = asyncio.create_task(_pour(stream.reader, writer))
        stack.push_async_callback(stop, upward)
        while data := await reader.read(PIECE_BYTES):
            await stream.write(data)
        if handler is not None:
            await handler


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(PIECE_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
