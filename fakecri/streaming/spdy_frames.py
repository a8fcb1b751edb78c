"""SPDY/3.1 frames as values, their bytes, and back. No I/O and no state but the two zlib streams.

A frame is 8 bytes of head and a payload (SPDY draft 3.1, 2.2). Header blocks of one direction share
one zlib stream, so every control frame with headers must pass through the same `FrameReader` in
order, also those that are not needed. What must never happen here: a frame is read beyond its
length, or a small frame unpacks to more than `MAX_HEADERS_BYTES`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final, TypeAlias

import msgspec

from fakecri.streaming.spdy_dictionary import DICTIONARY
from fakecri.streaming.spdy_headers import U32, Headers, pack_headers, unpack_headers, word

MAX_CONTROL_BYTES: Final = 1 << 20
MAX_HEADERS_BYTES: Final = 1 << 18
MAX_DATA_BYTES: Final = (1 << 24) - 1
VERSION: Final = 3

_HEAD: Final = Struct("!II")
_CONTROL_BIT: Final = 1 << 31
_ID_MASK: Final = _CONTROL_BIT - 1
_FIN: Final = 1
_UNIDIRECTIONAL: Final = 2

SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS = 1, 2, 3, 4
PING, GOAWAY, HEADERS, WINDOW_UPDATE = 6, 7, 8, 9

PROTOCOL_ERROR: Final = 1
INVALID_STREAM: Final = 2
REFUSED_STREAM: Final = 3
CANCEL: Final = 5
STREAM_ALREADY_CLOSED: Final = 9


class FrameError(ValueError):
    """The bytes are no SPDY/3.1 frames; the session cannot go on."""


class SynStream(msgspec.Struct, frozen=True):
    """Opens a stream. `fin`: the side that opens it will send nothing on it."""

    stream_id: int
    headers: Headers = ()
    fin: bool = False
    unidirectional: bool = False
    associated_id: int = 0
    priority: int = 0


class SynReply(msgspec.Struct, frozen=True):
    """Accepts a stream."""

    stream_id: int
    headers: Headers = ()
    fin: bool = False


class MoreHeaders(msgspec.Struct, frozen=True):
    """A HEADERS frame: more headers for an open stream."""

    stream_id: int
    headers: Headers = ()
    fin: bool = False


class RstStream(msgspec.Struct, frozen=True):
    """Ends a stream at once, in both directions."""

    stream_id: int
    status: int


class Settings(msgspec.Struct, frozen=True):
    """Settings of the session, each as (flags, id, value)."""

    values: tuple[tuple[int, int, int], ...] = ()


class Ping(msgspec.Struct, frozen=True):
    """The other side sends it back as it is; odd ids are the client's."""

    ping_id: int


class GoAway(msgspec.Struct, frozen=True):
    """No new streams are wanted; those up to `last_stream_id` were handled."""

    last_stream_id: int
    status: int = 0


class WindowUpdate(msgspec.Struct, frozen=True):
    """`delta` more bytes may be sent on the stream (0: on the session)."""

    stream_id: int
    delta: int


class Data(msgspec.Struct, frozen=True):
    """Bytes of a stream."""

    stream_id: int
    data: bytes
    fin: bool = False


class UnknownControl(msgspec.Struct, frozen=True):
    """A control frame of a type that SPDY/3.1 does not have; receivers ignore it."""

    kind: int


Frame: TypeAlias = (
    SynStream
    | SynReply
    | MoreHeaders
    | RstStream
    | Settings
    | Ping
    | GoAway
    | WindowUpdate
    | Data
    | UnknownControl
)


class FrameWriter:
    """Turns frames into bytes; one for each direction of a session."""

    def __init__(self) -> None:
        self._zlib = zlib.compressobj(level=9, zdict=DICTIONARY)

    def encode(self, frame: Frame) -> bytes:
        """The bytes of `frame`. Raises FrameError for data longer than a frame can be."""
        match frame:
            case Data(stream_id, data, fin):
                if len(data) > MAX_DATA_BYTES:
                    raise FrameError(f"{len(data)} bytes do not fit into one DATA frame")
                return _HEAD.pack(stream_id & _ID_MASK, fin << 24 | len(data)) + data
            case SynStream():
                flags = frame.fin * _FIN | frame.unidirectional * _UNIDIRECTIONAL
                ids = _HEAD.pack(frame.stream_id, frame.associated_id)
                slot = bytes((frame.priority << 5, 0))
                return _control(SYN_STREAM, flags, ids + slot + self._pack(frame.headers))
            case SynReply(stream_id, headers, fin):
                return _control(SYN_REPLY, int(fin), U32.pack(stream_id) + self._pack(headers))
            case MoreHeaders(stream_id, headers, fin):
                return _control(HEADERS, int(fin), U32.pack(stream_id) + self._pack(headers))
            case RstStream(stream_id, status):
                return _control(RST_STREAM, 0, _HEAD.pack(stream_id, status))
            case Settings(values):
                rows = (_HEAD.pack(flags << 24 | key, value) for flags, key, value in values)
                return _control(SETTINGS, 0, U32.pack(len(values)) + b"".join(rows))
            case Ping(ping_id):
                return _control(PING, 0, U32.pack(ping_id))
            case GoAway(last_stream_id, status):
                return _control(GOAWAY, 0, _HEAD.pack(last_stream_id, status))
            case WindowUpdate(stream_id, delta):
                return _control(WINDOW_UPDATE, 0, _HEAD.pack(stream_id, delta))
        raise FrameError(f"cannot send {frame}")

    def _pack(self, headers: Headers) -> bytes:
        block = pack_headers(headers)
        return self._zlib.compress(block) + self._zlib.flush(zlib.Z_SYNC_FLUSH)


class FrameReader:
    """Turns bytes, in pieces of any size, into frames; one for each direction of a session."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(zdict=DICTIONARY)
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete with these bytes. Raises FrameError; then the session has
        ended."""
        self._bytes += data
        while len(self._bytes) >= _HEAD.size:
            first, second = _HEAD.unpack_from(self._bytes)
            length = second & 0xFFFFFF
            if first & _CONTROL_BIT and length > MAX_CONTROL_BYTES:
                raise FrameError(f"a control frame of {length} bytes")
            end = _HEAD.size + length
            if len(self._bytes) < end:
                return
            payload = bytes(self._bytes[_HEAD.size : end])
            del self._bytes[:end]
            if first & _CONTROL_BIT:
                yield self._control(first, second >> 24, payload)
            else:
                yield Data(first, payload, bool(second >> 24 & _FIN))

    def _control(self, first: int, flags: int, payload: bytes) -> Frame:
        version, kind = first >> 16 & 0x7FFF, first & 0xFFFF
        if version != VERSION:
            raise FrameError(f"a control frame of SPDY version {version}; wanted 3")
        try:
            return self._decode(kind, flags, payload)
        except (IndexError, ValueError, zlib.error) as error:
            raise FrameError(f"a malformed control frame of type {kind}: {error}") from None

    def _decode(self, kind: int, flags: int, payload: bytes) -> Frame:
        fin = bool(flags & _FIN)
        match kind:
            case _ if kind == SYN_STREAM:
                return SynStream(
                    stream_id=word(payload, 0) & _ID_MASK,
                    headers=self._unpack(payload[10:]),
                    fin=fin,
                    unidirectional=bool(flags & _UNIDIRECTIONAL),
                    associated_id=word(payload, 4) & _ID_MASK,
                    priority=payload[8] >> 5,
                )
            case _ if kind == SYN_REPLY:
                return SynReply(word(payload, 0) & _ID_MASK, self._unpack(payload[4:]), fin)
            case _ if kind == HEADERS:
                return MoreHeaders(word(payload, 0) & _ID_MASK, self._unpack(payload[4:]), fin)
            case _ if kind == SETTINGS:
                return Settings(tuple(_settings(payload)))
            case _ if kind == PING:
                return Ping(word(payload, 0))
            case _ if kind == RST_STREAM:
                return RstStream(word(payload, 0) & _ID_MASK, word(payload, 4))
            case _ if kind == GOAWAY:
                return GoAway(word(payload, 0) & _ID_MASK, word(payload, 4))
            case _ if kind == WINDOW_UPDATE:
                return WindowUpdate(word(payload, 0) & _ID_MASK, word(payload, 4) & _ID_MASK)
        return UnknownControl(kind)

    def _unpack(self, packed: bytes) -> Headers:
        block = self._zlib.decompress(packed, MAX_HEADERS_BYTES)
        if self._zlib.unconsumed_tail:
            raise ValueError(f"more than {MAX_HEADERS_BYTES} bytes of headers")
        return unpack_headers(block)


def _control(kind: int, flags: int, payload: bytes) -> bytes:
    return _HEAD.pack(_CONTROL_BIT | VERSION << 16 | kind, flags << 24 | len(payload)) + payload


def _settings(payload: bytes) -> Iterator[tuple[int, int, int]]:
    count = word(payload, 0)
    if len(payload) < 4 + 8 * count:
        raise ValueError(f"{count} settings in {len(payload)} bytes")
    for at in range(4, 4 + 8 * count, 8):
        key = word(payload, at)
        yield key >> 24, key & 0xFFFFFF, word(payload, at + 4)
