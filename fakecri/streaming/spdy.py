"""One SPDY/3.1 session without I/O: bytes in, events out; commands in, bytes out.

It works as h11 does: `receive` takes what came from the network and returns what it means; `open`,
`reply`, `send`, `reset` and `go_away` change the session; `outgoing` gives the bytes to send. The
streams follow `TRANSITIONS`; pings are answered here.

Flow control is left to TCP. SPDY/3.1 has windows, but the implementation that all of Kubernetes
shares neither sends WINDOW_UPDATE nor waits for one: a side that waits for a window stops for ever
after 64 KiB. So windows are read and not applied, and nothing is withheld.

What must never happen: DATA on a stream before its SYN_REPLY (peers drop it silently), a stream id
used twice, or a peer's mistake ending as an exception other than `PeerError`.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

from msgspec import Struct

from fakecri.streaming.spdy_frames import (
    CANCEL,
    INVALID_STREAM,
    PROTOCOL_ERROR,
    STREAM_ALREADY_CLOSED,
    Data,
    Frame,
    FrameError,
    FrameReader,
    FrameWriter,
    GoAway,
    MoreHeaders,
    Ping,
    RstStream,
    SynReply,
    SynStream,
)
from fakecri.streaming.spdy_headers import Headers

PIECE_BYTES: Final = 32 * 1024
"""The longest DATA frame that is sent, so that streams take turns."""


class PeerError(Exception):
    """The other side broke the protocol. A GOAWAY is in `outgoing`; then the session has ended."""


class UseError(RuntimeError):
    """This side was asked for something the protocol does not allow."""


class State(Enum):
    """The states of a stream, as this side sees it."""

    OPEN = "open"
    SENT_ALL = "sent all"
    GOT_ALL = "got all"
    CLOSED = "closed"


class Input(Enum):
    """What changes the state of a stream."""

    SEND = "send"
    SEND_LAST = "send the last"
    RECEIVE = "receive"
    RECEIVE_LAST = "receive the last"
    RESET = "reset"


# Pairs that are not listed are errors: UseError for sending, RST_STREAM for receiving.
TRANSITIONS: Final = {
    (State.OPEN, Input.SEND): State.OPEN,
    (State.OPEN, Input.SEND_LAST): State.SENT_ALL,
    (State.OPEN, Input.RECEIVE): State.OPEN,
    (State.OPEN, Input.RECEIVE_LAST): State.GOT_ALL,
    (State.OPEN, Input.RESET): State.CLOSED,
    (State.SENT_ALL, Input.RECEIVE): State.SENT_ALL,
    (State.SENT_ALL, Input.RECEIVE_LAST): State.CLOSED,
    (State.SENT_ALL, Input.RESET): State.CLOSED,
    (State.GOT_ALL, Input.SEND): State.GOT_ALL,
    (State.GOT_ALL, Input.SEND_LAST): State.CLOSED,
    (State.GOT_ALL, Input.RESET): State.CLOSED,
}


class Opened(Struct, frozen=True):
    """The other side opened a stream; answer with `reply` or `reset`."""

    stream_id: int
    headers: Headers


class Accepted(Struct, frozen=True):
    """The other side accepted a stream of ours."""

    stream_id: int
    headers: Headers


class Received(Struct, frozen=True):
    """Bytes on a stream (at least one)."""

    stream_id: int
    data: bytes


class Ended(Struct, frozen=True):
    """The other side sends nothing more on the stream."""

    stream_id: int


class WasReset(Struct, frozen=True):
    """The other side gave the stream up."""

    stream_id: int
    status: int


class WentAway(Struct, frozen=True):
    """The other side opens no streams any more."""

    status: int


Event: TypeAlias = Opened | Accepted | Received | Ended | WasReset | WentAway


class Session:
    """One side of a session; the side that asked for the upgrade is the client."""

    def __init__(self, *, client: bool = False) -> None:
        self._reader = FrameReader()
        self._writer = FrameWriter()
        self._outgoing = bytearray()
        self._states: dict[int, State] = {}
        self._unanswered: set[int] = set()  # only looked up, never iterated
        self._next_id = 1 if client else 2
        self._last_peer_id = 0
        self._gone = False

    # -- what this side does -------------------------------------------------------------------

    def open(self, headers: Headers, *, last: bool = False) -> int:
        """Open a stream; returns its id. `last`: nothing will be sent on it."""
        stream_id = self._next_id
        self._next_id += 2
        self._states[stream_id] = State.SENT_ALL if last else State.OPEN
        self._send(SynStream(stream_id, headers, last))
        return stream_id

    def reply(self, stream_id: int, headers: Headers = ()) -> None:
        """Accept a stream that the other side opened. Raises UseError if there is nothing to
        accept."""
        if stream_id not in self._unanswered:
            raise UseError(f"stream {stream_id} waits for no reply")
        self._unanswered.discard(stream_id)
        self._send(SynReply(stream_id, headers))

    def send(self, stream_id: int, data: bytes, *, last: bool = False) -> None:
        """Send bytes; `last` ends this direction. Raises UseError unless the stream is open."""
        if stream_id in self._unanswered:
            raise UseError(f"stream {stream_id} must be accepted before anything is sent on it")
        action = Input.SEND_LAST if last else Input.SEND
        if not self._move(stream_id, action):
            raise UseError(f"cannot {action.value} on stream {stream_id}: {self._name(stream_id)}")
        pieces = [data[i : i + PIECE_BYTES] for i in range(0, len(data), PIECE_BYTES)]
        for piece in pieces[:-1]:
            self._send(Data(stream_id, piece))
        if pieces or last:
            self._send(Data(stream_id, pieces[-1] if pieces else b"", last))

    def reset(self, stream_id: int, status: int = CANCEL) -> None:
        """Give a stream up; does nothing if it is closed already."""
        self._unanswered.discard(stream_id)
        if self._move(stream_id, Input.RESET):
            self._send(RstStream(stream_id, status))

    def go_away(self, status: int = 0) -> None:
        """Tell the other side that no more streams are wanted; those it opens from now on are
        ignored."""
        if not self._gone:
            self._gone = True
            self._send(GoAway(self._last_peer_id, status))

    def outgoing(self) -> bytes:
        """The bytes to send now; each byte is given once."""
        data = bytes(self._outgoing)
        self._outgoing.clear()
        return data

    def state(self, stream_id: int) -> State:
        """The state of a stream. Raises KeyError for an id that was never a stream."""
        return self._states[stream_id]

    # -- what the other side does --------------------------------------------------------------

    def receive(self, data: bytes) -> list[Event]:
        """The events that these bytes mean. Raises PeerError; then the session has ended."""
        events: list[Event] = []
        try:
            for frame in self._reader.feed(data):
                events += self._take(frame)
        except FrameError as error:
            self.go_away(PROTOCOL_ERROR)
            raise PeerError(str(error)) from None
        return events

    def _take(self, frame: Frame) -> list[Event]:
        match frame:
            case SynStream():
                return self._take_stream(frame)
            case SynReply(stream_id, headers, fin):
                return [Accepted(stream_id, headers), *self._received(stream_id, b"", fin)]
            case Data(stream_id, data, fin):
                return self._received(stream_id, data, fin)
            case MoreHeaders(stream_id, _, fin):
                return self._received(stream_id, b"", fin)
            case RstStream(stream_id, status):
                self._unanswered.discard(stream_id)
                return [WasReset(stream_id, status)] if self._move(stream_id, Input.RESET) else []
            case Ping(ping_id):
                if ping_id % 2 != self._next_id % 2:  # theirs; ours would be an answer
                    self._send(frame)
            case GoAway(_, status):
                return [WentAway(status)]
        return []  # SETTINGS, WINDOW_UPDATE and unknown frames change nothing here

    def _take_stream(self, frame: SynStream) -> list[Event]:
        stream_id = frame.stream_id
        if stream_id <= self._last_peer_id or stream_id % 2 == self._next_id % 2:
            raise FrameError(f"stream id {stream_id} after {self._last_peer_id}")
        self._last_peer_id = stream_id
        if self._gone:
            return []
        self._states[stream_id] = State.SENT_ALL if frame.unidirectional else State.OPEN
        self._unanswered.add(stream_id)
        return [Opened(stream_id, frame.headers), *self._received(stream_id, b"", frame.fin)]

    def _received(self, stream_id: int, data: bytes, last: bool) -> list[Event]:
        state = self._states.get(stream_id)
        if state is None:
            self._send(RstStream(stream_id, INVALID_STREAM))
            return []
        if state is State.CLOSED:
            return []  # sent before our reset arrived there
        if not self._move(stream_id, Input.RECEIVE_LAST if last else Input.RECEIVE):
            self.reset(stream_id, STREAM_ALREADY_CLOSED)
            return [WasReset(stream_id, STREAM_ALREADY_CLOSED)]
        events: list[Event] = [Received(stream_id, data)] if data else []
        return [*events, Ended(stream_id)] if last else events

    def _move(self, stream_id: int, what: Input) -> bool:
        """Change the state of a stream as `TRANSITIONS` says; False if it has no such row."""
        state = self._states.get(stream_id)
        new = None if state is None else TRANSITIONS.get((state, what))
        if new is None:
            return False
        self._states[stream_id] = new
        return True

    def _name(self, stream_id: int) -> str:
        return self._states[stream_id].value if stream_id in self._states else "no such stream"

    def _send(self, frame: Frame) -> None:
        self._outgoing += self._writer.encode(frame)
