"""Streams over one SPDY session: the session's events become readers, writers and their ends.

A `Carrier` moves the bytes (a TCP connection, or a WebSocket that tunnels them). Someone feeds
`receive` and `lost`; the work on the streams waits for `accept`. What must never happen here: a
stream is used before it was accepted, or a lost connection leaves a reader waiting.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

from fakecri.invocations.pipes import Valve
from fakecri.streaming import spdy
from fakecri.streaming.spdy_frames import REFUSED_STREAM
from fakecri.streaming.spdy_headers import Headers, header


class Carrier(Protocol):
    """Moves the bytes of a session."""

    def write(self, data: bytes) -> None:
        """Send them soon."""

    async def drain(self) -> None:
        """Wait for room. Raises: ConnectionError when the other side is gone."""

    def pause(self) -> None:
        """Feed no bytes for now."""

    def resume(self) -> None:
        """Go on."""


class SpdyStream:
    """One accepted stream."""

    def __init__(self, link: SpdyLink, stream_id: int, headers: Headers) -> None:
        self._link = link
        self.stream_id = stream_id
        self.headers = headers
        self.reader = link.valve.reader()

    def header(self, name: str) -> str:
        """A header's first value in any case, "" if it is not there."""
        return header(self.headers, name)

    async def write(self, data: bytes) -> None:
        """Send bytes. Raises: ConnectionError when the stream or the connection is over."""
        if not data:
            return
        try:
            self._link.session.send(self.stream_id, data)
        except spdy.UseError as error:
            raise ConnectionResetError(str(error)) from None
        self._link.flush()
        await self._link.carrier.drain()

    def close(self) -> None:
        """Nothing more will be written; reading goes on."""
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
        """The next stream the other side opened; None when there will be none."""
        stream = await self._offered.get()
        if stream is None:
            self._offered.put_nowait(None)
            return None
        self.session.reply(stream.stream_id)
        self.flush()
        return stream

    def refuse(self, stream: SpdyStream) -> None:
        """Turn an accepted stream away."""
        self.session.reset(stream.stream_id, REFUSED_STREAM)
        self.flush()
        self.forget(stream.stream_id)

    def receive(self, data: bytes) -> None:
        """Take bytes of the other side."""
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
        """The other side is gone: every reader is at its end."""
        if self._over:
            return
        self._over = True
        for stream_id in list(self._streams):
            self.forget(stream_id)
        self._offered.put_nowait(None)

    @property
    def over(self) -> bool:
        """True after `lost`, or when the other side broke the protocol."""
        return self._over

    def forget(self, stream_id: int) -> None:
        """The stream is over: its reader ends and holds nothing up."""
        stream = self._streams.pop(stream_id, None)
        if stream is not None:
            stream.reader.feed_eof()
            self.valve.open_for(stream.reader)

    def forget_if_closed(self, stream_id: int) -> None:
        """Drop a stream whose both directions are done."""
        stream = self._streams.get(stream_id)
        if stream is not None and self.session.state(stream_id) is spdy.State.CLOSED:
            # Its reader may still hold bytes for the program: it keeps them, and is at its end.
            del self._streams[stream_id]
            self.valve.open_for(stream.reader)

    def flush(self) -> None:
        """Hand what the session wants to send to the carrier."""
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
