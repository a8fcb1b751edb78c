"""A fake with a container for streaming tests, and clients of SPDY and WebSocket."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from kubecri.v1 import api_pb2 as cri
from runtime_calls import create, pod_config, run_pod, start

from fakecri import FakeCRI
from fakecri.streaming import spdy

SUCCESS = {"metadata": {}, "status": "Success"}


@dataclass
class Node:
    """A fake runtime with one running container in one pod."""

    fake: FakeCRI
    sandbox: str = ""
    container: str = ""

    async def start(self, pod: str = "web", **fields: Any) -> None:
        config = pod_config(pod)
        self.sandbox = await run_pod(self.fake, config)
        envs = [cri.KeyValue(key="A", value=b"1")]
        self.container = await create(self.fake, self.sandbox, config, envs=envs, **fields)
        await start(self.fake, self.container)

    async def exec(self, *command: str, **streams: bool) -> str:
        streams = streams or {"stdout": True, "stderr": True}
        request = cri.ExecRequest(container_id=self.container, cmd=command, **streams)
        return str((await self.fake.call("Exec", request)).url)

    async def attach(self, **streams: bool) -> str:
        request = cri.AttachRequest(container_id=self.container, **streams)
        return str((await self.fake.call("Attach", request)).url)

    async def forward(self, *ports: int) -> str:
        request = cri.PortForwardRequest(pod_sandbox_id=self.sandbox, port=ports)
        answer: Any = await self.fake.call("PortForward", request)
        return str(answer.url)


@dataclass
class SpdyClient:
    """What came on each stream; `ended` has the streams that are over."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    session: spdy.Session = field(default_factory=lambda: spdy.Session(client=True))
    data: dict[int, bytes] = field(default_factory=dict)
    accepted: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    closed: bool = False

    async def open(self, **headers: str) -> int:
        stream = self.session.open(tuple((k.lower(), v) for k, v in headers.items()))
        self.data[stream] = b""
        await self.flush()
        await self.until(lambda: stream in self.accepted or stream in self.ended)
        return stream

    async def send(self, stream: int, data: bytes, *, last: bool = False) -> None:
        self.session.send(stream, data, last=last)
        await self.flush()

    async def flush(self) -> None:
        self.writer.write(self.session.outgoing())
        await self.writer.drain()

    async def until(self, done: Any) -> None:
        """Take what comes until `done()` or the end of the connection."""
        while not done() and not self.closed:
            raw = await self.reader.read(65536)
            self.closed = not raw
            for event in self.session.receive(raw):
                match event:
                    case spdy.Accepted(stream):
                        self.accepted.append(stream)
                    case spdy.Received(stream, data):
                        self.data[stream] += data
                    case spdy.Ended(stream) | spdy.WasReset(stream):
                        self.ended.append(stream)

    async def to_the_end(self) -> None:
        await self.until(lambda: False)


@asynccontextmanager
async def upgraded(
    url: str, *protocols: str
) -> AsyncIterator[tuple[str, asyncio.StreamReader, asyncio.StreamWriter]]:
    """The head of the answer to a request for SPDY, and the connection."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    lines = [f"POST {parts.path} HTTP/1.1", f"Host: {parts.netloc}"]
    lines += ["Connection: Upgrade", "Upgrade: SPDY/3.1"]
    lines += [f"X-Stream-Protocol-Version: {protocol}" for protocol in protocols]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    try:
        yield (await reader.readuntil(b"\r\n\r\n")).decode(), reader, writer
    finally:
        writer.close()


@asynccontextmanager
async def spdy_client(url: str, *protocols: str) -> AsyncIterator[SpdyClient]:
    protocols = protocols or ("v5.channel.k8s.io", "v4.channel.k8s.io", "portforward.k8s.io")
    async with upgraded(url, *protocols) as (head, reader, writer):
        assert head.startswith("HTTP/1.1 101 "), head
        yield SpdyClient(reader, writer)


@asynccontextmanager
async def websocket(url: str, protocol: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, protocols=(protocol,)) as socket,
    ):
        assert socket.protocol == protocol
        yield socket


async def channels_of(socket: aiohttp.ClientWebSocketResponse) -> dict[int, bytes]:
    """Everything until the server closes, by channel."""
    found: dict[int, bytes] = {}
    async for message in socket:
        raw = message.data
        if isinstance(raw, str):
            number, data = int(raw[0]), base64.b64decode(raw[1:])
        else:
            number, data = raw[0], raw[1:]
        found[number] = found.get(number, b"") + data
    return found
