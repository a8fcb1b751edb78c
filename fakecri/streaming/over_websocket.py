"""Exec, attach and port-forward over WebSocket channels, and SPDY tunnelled through a WebSocket.

A message is the number of a channel in a byte, then data (binary), or a digit, then base64 text
(the `base64.` protocols). Commands: 0 stdin, 1 stdout, 2 stderr, 3 error, 4 resize; v5 adds `255
n`, the end of channel n. Ports: two channels for each, data and error, which begin with the port in
two little-endian bytes.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable
from typing import Any, Final

from aiohttp import WSMsgType, web

from fakecri.process.pipes import Valve
from fakecri.streaming.connections import SpdyLink
from fakecri.streaming.over_spdy import Forward, serve_ports
from fakecri.streaming.session import Channels, Work

V5: Final = "v5.channel.k8s.io"
COMMAND_PROTOCOLS: Final = (
    V5,
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "channel.k8s.io",
    "base64.channel.k8s.io",
)
TUNNEL: Final = "SPDY/3.1+portforward.k8s.io"
PORT_PROTOCOLS: Final = (TUNNEL, "v4.channel.k8s.io", "v4.base64.channel.k8s.io")
STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
CLOSE: Final = 255
_NUMBERS: Final = {"stdin": STDIN, "resize": RESIZE}


class ChannelSocket:
    """The channels of one WebSocket."""

    def __init__(self, socket: web.WebSocketResponse, protocol: str) -> None:
        self._socket = socket
        self._base64 = "base64" in protocol
        self._ends = protocol == V5
        self._room = asyncio.Event()
        self._room.set()
        self._valve = Valve(self._room.clear, self._room.set)
        self._readers: dict[int, asyncio.StreamReader] = {}
        self._ended: set[int] = set()  # only looked up, never iterated

    def reader(self, number: int) -> asyncio.StreamReader:
        """A reader of what comes on that channel. Messages on channels without a reader are
        dropped."""
        self._readers[number] = self._valve.reader()
        return self._readers[number]

    def output(self, number: int) -> ChannelOutput:
        """An output that writes to that channel."""
        return ChannelOutput(self, number)

    async def send(self, number: int, data: bytes) -> None:
        """Send one message. Raises ConnectionError."""
        if self._base64:
            await self._socket.send_str(str(number) + base64.b64encode(data).decode())
        else:
            await self._socket.send_bytes(bytes((number,)) + data)

    async def receive(self) -> None:
        """Feed the readers with what comes, until the other side closes."""
        async for message in self._socket:
            if message.type in (WSMsgType.BINARY, WSMsgType.TEXT) and message.data:
                self._take(message.data)
            await self._room.wait()
        for number in self._readers:
            self._end(number)

    def _take(self, message: bytes | str) -> None:
        raw = message.encode() if isinstance(message, str) else message
        number, data = raw[0], raw[1:]
        if self._ends and number == CLOSE:
            if data:
                self._end(data[0])
            return
        if self._base64:
            try:
                number, data = number - ord("0"), base64.b64decode(data, validate=True)
            except binascii.Error:
                return  # not a message of this protocol
        if number in self._readers and number not in self._ended:
            self._readers[number].feed_data(data)

    def _end(self, number: int) -> None:
        if number in self._readers and number not in self._ended:
            self._ended.add(number)
            self._readers[number].feed_eof()


class ChannelOutput:
    """A channel to write to. For a forwarded port it also has a reader."""

    def __init__(self, socket: ChannelSocket, number: int) -> None:
        self._socket = socket
        self.number = number

    async def write(self, data: bytes) -> None:
        await self._socket.send(self.number, data)


class _PortChannel(ChannelOutput):
    def __init__(self, socket: ChannelSocket, number: int) -> None:
        super().__init__(socket, number)
        self.reader = socket.reader(number)


async def serve_command(
    socket: web.WebSocketResponse, protocol: str, wanted: frozenset[str], work: Work
) -> None:
    """Do the work over channels, tell the caller how it ended, and close.

    `wanted`: names of stdin, stdout, stderr, resize. Raises ConnectionError when the caller leaves
    first.
    """
    channels = ChannelSocket(socket, protocol)
    channels_of_call = Channels(
        stdin=channels.reader(STDIN) if "stdin" in wanted else None,
        stdout=channels.output(STDOUT) if "stdout" in wanted else None,
        stderr=channels.output(STDERR) if "stderr" in wanted else None,
        resize=channels.reader(RESIZE) if "resize" in wanted else None,
    )
    first = STDOUT if "stdout" in wanted else STDERR if "stderr" in wanted else ERROR
    await channels.send(first, b"")  # tells the caller that the streams are there

    async def run() -> None:
        outcome = await work(channels_of_call)
        as_json = "v5" in protocol or "v4" in protocol
        text = outcome.to_json() if as_json else outcome.text().encode()
        if text:
            await channels.send(ERROR, text)

    await _until_closed(channels.receive(), run())
    await socket.close()


async def serve_port_channels(
    socket: web.WebSocketResponse, protocol: str, ports: tuple[int, ...], forward: Forward
) -> None:
    """Forward one connection for each port of the request, all through one WebSocket."""
    channels = ChannelSocket(socket, protocol)

    async def one(index: int, port: int) -> None:
        data = _PortChannel(channels, 2 * index)
        for number in (data.number, data.number + 1):
            await channels.send(number, port.to_bytes(2, "little"))
        if text := await forward(port, data):
            await channels.send(data.number + 1, text.encode())

    async def run() -> None:
        async with asyncio.TaskGroup() as connections:
            for index, port in enumerate(ports):
                connections.create_task(one(index, port))

    await _until_closed(channels.receive(), run())
    await socket.close()


class _SocketCarrier:
    """Carries a SPDY session in the binary messages of a WebSocket."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket
        self.room = asyncio.Event()
        self.room.set()
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()

    def write(self, data: bytes) -> None:
        self._pieces.put_nowait(data)

    async def drain(self) -> None:
        await self._pieces.join()
        if self.socket.closed:
            raise ConnectionResetError("the caller left")

    def pause(self) -> None:
        self.room.clear()

    def resume(self) -> None:
        self.room.set()

    async def send_all(self) -> None:
        while True:
            piece = await self._pieces.get()
            try:
                await self.socket.send_bytes(piece)
            finally:
                self._pieces.task_done()


async def serve_tunnel(socket: web.WebSocketResponse, forward: Forward) -> None:
    """Port-forward with SPDY inside the WebSocket."""
    carrier = _SocketCarrier(socket)
    link = SpdyLink(carrier)

    async def receive() -> None:
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                link.receive(message.data)
            if link.over:
                return
            await carrier.room.wait()

    sender = asyncio.create_task(carrier.send_all())
    try:
        await _until_closed(receive(), serve_ports(link, forward))
    finally:
        link.lost()
        sender.cancel()
        await asyncio.wait((sender,))
    await socket.close()


async def _until_closed(receiving: Awaitable[None], work: Awaitable[None]) -> None:
    """Run both until the work is done or the caller has left; then cancel the other."""
    tasks: list[asyncio.Task[Any]] = [
        asyncio.ensure_future(receiving),
        asyncio.ensure_future(work),
    ]
    try:
        finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in finished:
        task.result()
