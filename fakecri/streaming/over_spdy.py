"""Exec, attach and port-forward over SPDY streams: which streams belong together, and their end.

Protocols for commands: `v4.channel.k8s.io` down to `channel.k8s.io`; they differ in how the end is
told, and in whether a terminal may change its size. For ports: `portforward.k8s.io`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias

from fakecri.streaming.connections import SpdyLink, SpdyStream
from fakecri.streaming.forwarding import Duplex
from fakecri.streaming.session import Channels, Work

COMMAND_PROTOCOLS: Final = (
    "v4.channel.k8s.io",
    "v3.channel.k8s.io",
    "v2.channel.k8s.io",
    "channel.k8s.io",
)
PORT_PROTOCOLS: Final = ("portforward.k8s.io",)
CREATION_S: Final = 30.0
"""How long the caller may take to open the streams that it asked for."""

Forward: TypeAlias = Callable[[int, Duplex], Awaitable[str]]


async def serve_command(link: SpdyLink, protocol: str, wanted: frozenset[str], work: Work) -> None:
    """Collect the wanted streams, do the work on them, tell the caller how it ended.

    `wanted`: names of stdin, stdout, stderr, resize. Raises ConnectionError when the caller leaves,
    TimeoutError when it does not open its streams in time.
    """
    if protocol in COMMAND_PROTOCOLS[2:]:
        wanted -= {"resize"}
    streams: dict[str, SpdyStream] = {}
    async with asyncio.timeout(CREATION_S):
        while wanted | {"error"} > set(streams):
            stream = await link.accept()
            if stream is None:
                raise ConnectionResetError("the caller left before its streams were there")
            kind = stream.header("streamType")
            if kind in streams or kind not in wanted | {"error"}:
                link.refuse(stream)
                continue
            streams[kind] = stream
    outcome = await work(_channels(streams))
    text = outcome.to_json() if protocol == COMMAND_PROTOCOLS[0] else outcome.text().encode()
    await streams["error"].write(text)
    for kind in ("stdout", "stderr", "error"):
        if kind in streams:
            streams[kind].close()
    for stream in streams.values():
        stream.reset()


def _channels(streams: dict[str, SpdyStream]) -> Channels:
    stdin, resize = streams.get("stdin"), streams.get("resize")
    return Channels(
        stdin=None if stdin is None else stdin.reader,
        stdout=streams.get("stdout"),
        stderr=streams.get("stderr"),
        resize=None if resize is None else resize.reader,
    )


async def serve_ports(link: SpdyLink, forward: Forward) -> None:
    """Serve pairs of streams (data, error) with the same requestID, until the caller leaves."""
    halves: dict[str, dict[str, SpdyStream]] = {}
    async with asyncio.TaskGroup() as connections:
        while (stream := await link.accept()) is not None:
            kind, port = stream.header("streamType"), _port(stream.header("port"))
            if port is None or kind not in ("data", "error"):
                link.refuse(stream)
                continue
            # Old callers send no requestID; then the data stream comes right after its error one.
            first = stream.stream_id - (2 if kind == "data" else 0)
            key = stream.header("requestID") or f"#{first}"
            pair = halves.setdefault(key, {})
            if kind in pair:
                link.refuse(stream)
                continue
            pair[kind] = stream
            if len(pair) == 2:
                del halves[key]
                connections.create_task(_serve_pair(port, pair["data"], pair["error"], forward))


async def _serve_pair(port: int, data: SpdyStream, error: SpdyStream, forward: Forward) -> None:
    text = await forward(port, data)
    with suppress(ConnectionError):
        await error.write(text.encode())
    data.close()
    error.close()
    if text:
        data.reset()
        error.reset()


def _port(text: str) -> int | None:
    return int(text) if text.isdecimal() and 0 < int(text) < 65536 else None
