"""Streams over one SPDY session: the session's events become readers, writers and their ends.

A `Carrier` moves the bytes: a TCP connection, or a WebSocket that tunnels them. The connection
calls `receive` and `lost`; the work on the streams waits for `accept`. What must never happen here:
a stream is used before it was accepted, or a lost connection leaves a reader waiting.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

from fakecri.process.pipes import Valve
from fakecri.streaming import spdy
from fakecri.streaming.spdy_frames import REFUSED_STREAM
from fakecri.streaming.spdy_headers import Headers, header


class Carrier(Protocol):
    """Moves the bytes of a session."""

    def write(self, data: bytes) -> None:
        """Send bytes; does not wait until they are sent."""

    async def drain(self) -> None:
        """Wait until there is room for more bytes. Raises ConnectionError when the other side is
        gone."""

    def pause(self) -> None:
        """Read no more bytes for now."""

    def resume(self) -> None:
        """Read bytes again."""


class SpdyStream:
    """One accepted stream."""

    def __init__(self, link: SpdyLink, stream_id: int, headers: Headers) -> None:
        self._link = link
        self.stream_id = stream_id
        self.headers = headers
        self.reader = link.valve.reader()

    def header(self, name: str) -> str:
        """The first value of a header; its name may be in any case. "": there is none."""
        return header(self.headers, name)

    async def write(self, data: bytes) -> None:
        """Send bytes. Raises ConnectionError when the stream or the connection has ended."""
        if not data:
            return
        try:
            self._link.session.send(self.stream_id, data)
        except spdy.UseError as error:
            raise ConnectionResetError(str(error)) from None
        self._link.flush()
        await self._link.carrier.drain()

    def close(self) -> None:
        """End the direction to the other side; reading goes on."""
        with suppress(spdy.UseError):
            self._link.session.send(self.stream_id, b"", last=True)
        self._link.flush()
        self._link.forget_if_closed(self.stream_id)

    def reset(self) -> None:
        """Give the stream up in both directions."""
        self._link.session.reset(self.stream_id)
        self._link.flush()
        self._link.forget(self.stream_id)


class SpdyLink:
    """The server's side of a session."""

    def __init__(self, carrier: Carrier) -> None:
        self.session = spdy.Session()
        self.carrier = carrier
        self.valve = Valve(carrier.pause, carrier.resume)
        self._streams: dict[int, SpdyStream] = {}
        self._offered: asyncio.Queue[SpdyStream | None] = asyncio.Queue()
        self._over = False

    async def accept(self) -> SpdyStream | None:
        """The next stream that the other side opened; None when there will be no more."""
        stream = await self._offered.get()
        if stream is None:
            self._offered.put_nowait(None)
            return None
        self.session.reply(stream.stream_id)
        self.flush()
        return stream

    def refuse(self, stream: SpdyStream) -> None:
        """Reset a stream that was accepted but is not wanted."""
        self.session.reset(stream.stream_id, REFUSED_STREAM)
        self.flush()
        self.forget(stream.stream_id)

    def receive(self, data: bytes) -> None:
        """Take bytes that came from the other side."""
        try:
            events = self.session.receive(data)
        except spdy.PeerError:
            self.flush()
            self.lost()
            return
        for event in events:
            self._take(event)
        self.flush()

    def lost(self) -> None:
        """Note that the other side is gone: every reader is at its end."""
        if self._over:
            return
        self._over = True
        for stream_id in list(self._streams):
            self.forget(stream_id)
        self._offered.put_nowait(None)

    @property
    def over(self) -> bool:
        """Whether the session has ended: by `lost`, or since the other side broke the protocol."""
        return self._over

    def forget(self, stream_id: int) -> None:
        """Drop a stream: its reader ends, and it keeps no other stream from being read."""
        stream = self._streams.pop(stream_id, None)
        if stream is not None:
            stream.reader.feed_eof()
            self.valve.open_for(stream.reader)

    def forget_if_closed(self, stream_id: int) -> None:
        """Drop a stream if both of its directions have ended."""
        stream = self._streams.get(stream_id)
        if stream is not None and self.session.state(stream_id) is spdy.State.CLOSED:
            # Its reader may still hold bytes for the program: it keeps them, and is at its end.
            del self._streams[stream_id]
            self.valve.open_for(stream.reader)

    def flush(self) -> None:
        """Hand the session's bytes to the carrier."""
        if data := self.session.outgoing():
            self.carrier.write(data)

    def _take(self, event: spdy.Event) -> None:
        match event:
            case spdy.Opened(stream_id, headers):
                stream = SpdyStream(self, stream_id, headers)
                self._streams[stream_id] = stream
                self._offered.put_nowait(stream)
            case spdy.Received(stream_id, data):
                if stream_id in self._streams:
                    self._streams[stream_id].reader.feed_data(data)
            case spdy.Ended(stream_id):
                if stream_id in self._streams:
                    self._streams[stream_id].reader.feed_eof()
                    self.forget_if_closed(stream_id)
            case spdy.WasReset(stream_id):
                self.forget(stream_id)
