"""SPDY/3.1 without I/O: frames, header blocks, the stream table, peers that break the rules."""

from __future__ import annotations

import zlib
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri.streaming import spdy, spdy_headers
from fakecri.streaming import spdy_frames as frames
from fakecri.streaming.spdy_dictionary import ADLER32, DICTIONARY

NAMES = st.text("abcdefghijklmnopqrstuvwxyz-:", min_size=1, max_size=12)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
HEADERS = st.dictionaries(NAMES, VALUES, max_size=5).map(lambda d: tuple(d.items()))
IDS = st.integers(1, 2**31 - 1)
WORDS = st.integers(0, 2**32 - 1)
FRAMES = st.one_of(
    st.builds(
        frames.SynStream,
        IDS,
        HEADERS,
        fin=st.booleans(),
        unidirectional=st.booleans(),
        associated_id=IDS,
        priority=st.integers(0, 7),
    ),
    st.builds(frames.SynReply, IDS, HEADERS, st.booleans()),
    st.builds(frames.MoreHeaders, IDS, HEADERS, st.booleans()),
    st.builds(frames.RstStream, IDS, WORDS),
    st.builds(
        frames.Settings,
        st.lists(st.tuples(st.integers(0, 255), st.integers(0, 2**24 - 1), WORDS)).map(tuple),
    ),
    st.builds(frames.Ping, WORDS),
    st.builds(frames.GoAway, IDS, WORDS),
    st.builds(frames.WindowUpdate, IDS, st.integers(0, 2**31 - 1)),
    st.builds(frames.Data, IDS, st.binary(max_size=200), st.booleans()),
)


def test_dictionary_is_the_one_of_the_protocol() -> None:
    assert len(DICTIONARY) == 1423
    assert zlib.adler32(DICTIONARY) == ADLER32


@given(st.lists(FRAMES, max_size=6), st.integers(1, 50))
def test_frames_come_back_whatever_the_pieces(sent: list[frames.Frame], size: int) -> None:
    writer, reader = frames.FrameWriter(), frames.FrameReader()
    raw = b"".join(map(writer.encode, sent))
    pieces = (raw[i : i + size] for i in range(0, len(raw), size))
    assert [frame for piece in pieces for frame in reader.feed(piece)] == sent


@given(st.binary(max_size=300))
def test_noise_is_a_peer_error_or_waits_for_more(noise: bytes) -> None:
    session = spdy.Session()
    try:
        session.receive(noise)
    except spdy.PeerError:
        assert session.outgoing().endswith(frames.FrameWriter().encode(frames.GoAway(0, 1))[-4:])


def test_frame_layout_of_the_draft() -> None:
    """2.2.1 and 2.6.1: control bit, version 3, type, flags, 24 bits of length."""
    raw = frames.FrameWriter().encode(frames.SynStream(1, (("streamtype", "error"),)))
    assert raw[:4] == bytes.fromhex("80030001")
    assert int.from_bytes(raw[4:8], "big") == len(raw) - 8
    assert raw[8:18] == bytes.fromhex("00000001 00000000 0000")
    assert raw[18:20] == b"\x78\xf9"  # zlib with a dictionary
    assert raw[20:24] == ADLER32.to_bytes(4, "big")
    assert frames.FrameWriter().encode(frames.Data(5, b"hi", True)) == bytes.fromhex(
        "00000005 01000002 6869"
    )


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("80020001 00000000", "SPDY version 2"),
        ("80030001 00ffffff", "a control frame of 16777215 bytes"),
        ("80030003 00000004 00000001", "malformed control frame of type 3"),
        ("80030001 0000000c 00000001 00000000 0000 ffff", "malformed control frame of type 1"),
        ("80030004 00000004 000000ff", "255 settings in 4 bytes"),
    ],
)
def test_malformed_frames_end_the_session(raw: str, text: str) -> None:
    with pytest.raises(spdy.PeerError, match=text):
        spdy.Session().receive(bytes.fromhex(raw))


def test_headers_that_unpack_to_too_much_end_the_session() -> None:
    packer = zlib.compressobj(9, zdict=DICTIONARY)
    block = packer.compress(b"\0" * (frames.MAX_HEADERS_BYTES + 1)) + packer.flush(2)
    head = bytes.fromhex("80030001") + (10 + len(block)).to_bytes(4, "big")
    with pytest.raises(spdy.PeerError, match="bytes of headers"):
        spdy.Session().receive(head + bytes.fromhex("00000001 00000000 0000") + block)


@pytest.mark.parametrize(
    "block",
    [
        spdy_headers.pack_headers((("a", "1"),)).replace(b"a", b"A"),
        b"\0\0\0\2" + 2 * spdy_headers.pack_headers((("a", "1"),))[4:],
        spdy_headers.pack_headers((("a", "1"),))[:-1],
    ],
)
def test_bad_header_blocks(block: bytes) -> None:
    with pytest.raises(ValueError, match="header"):
        spdy_headers.unpack_headers(block)


def test_values_of_one_name_are_joined() -> None:
    headers = (("a", "1"), ("b", "2"), ("a", "3"))
    assert spdy_headers.unpack_headers(spdy_headers.pack_headers(headers)) == (
        ("a", "1"),
        ("a", "3"),
        ("b", "2"),
    )
    assert spdy_headers.header(headers, "A") == "1"
    assert spdy_headers.header(headers, "c") == ""


# -- sessions ------------------------------------------------------------------------------------


class Pair:
    """A client and a server session, connected."""

    def __init__(self) -> None:
        self.client, self.server = spdy.Session(client=True), spdy.Session()

    def to_server(self) -> list[Any]:
        return self.server.receive(self.client.outgoing())

    def to_client(self) -> list[Any]:
        return self.client.receive(self.server.outgoing())


@pytest.fixture
def pair() -> Pair:
    return Pair()


def test_a_stream_from_opening_to_its_end(pair: Pair) -> None:
    stream = pair.client.open((("streamtype", "stdin"),))
    assert pair.to_server() == [spdy.Opened(1, (("streamtype", "stdin"),))]
    pair.server.reply(stream)
    pair.server.send(stream, b"out")
    assert pair.to_client() == [spdy.Accepted(1, ()), spdy.Received(1, b"out")]
    pair.client.send(stream, b"in", last=True)
    assert pair.to_server() == [spdy.Received(1, b"in"), spdy.Ended(1)]
    pair.server.send(stream, b"", last=True)
    assert pair.to_client() == [spdy.Ended(1)]
    assert pair.client.state(1) is pair.server.state(1) is spdy.State.CLOSED
    assert pair.client.open(()) == 3


def test_long_data_goes_in_pieces_and_needs_no_window(pair: Pair) -> None:
    stream = pair.client.open(())
    pair.to_server()
    pair.server.reply(stream)
    pair.server.send(stream, bytes(1_000_000), last=True)
    events = pair.to_client()
    sizes = [len(e.data) for e in events if isinstance(e, spdy.Received)]
    assert sum(sizes) == 1_000_000
    assert max(sizes) == spdy.PIECE_BYTES
    assert events[-1] == spdy.Ended(1)


def test_nothing_is_sent_before_the_reply(pair: Pair) -> None:
    stream = pair.client.open(())
    pair.to_server()
    with pytest.raises(spdy.UseError, match="must be accepted"):
        pair.server.send(stream, b"x")
    pair.server.reply(stream)
    with pytest.raises(spdy.UseError, match="waits for no reply"):
        pair.server.reply(stream)


def test_pings_come_back_once(pair: Pair) -> None:
    ping = frames.FrameWriter().encode(frames.Ping(7))
    assert pair.server.receive(ping) == []
    assert pair.server.outgoing() == ping
    assert pair.client.receive(ping) == []  # its own number: an answer
    assert pair.client.outgoing() == b""


def test_resets_and_data_after_them(pair: Pair) -> None:
    stream = pair.client.open(())
    pair.to_server()
    pair.server.reset(stream)
    assert pair.to_client() == [spdy.WasReset(1, frames.CANCEL)]
    with pytest.raises(spdy.UseError, match="closed"):
        pair.client.send(stream, b"x")
    late = frames.FrameWriter().encode(frames.Data(1, b"late"))
    assert pair.server.receive(late) == []
    assert pair.server.outgoing() == b""


def test_data_for_no_stream_and_after_the_end_is_refused(pair: Pair) -> None:
    writer, reader = frames.FrameWriter(), frames.FrameReader()
    pair.server.receive(writer.encode(frames.Data(9, b"x")))
    pair.server.receive(writer.encode(frames.SynStream(11, (), fin=True)))
    assert pair.server.receive(writer.encode(frames.Data(11, b"x"))) == [
        spdy.WasReset(11, frames.STREAM_ALREADY_CLOSED)
    ]
    assert list(reader.feed(pair.server.outgoing())) == [
        frames.RstStream(9, frames.INVALID_STREAM),
        frames.RstStream(11, frames.STREAM_ALREADY_CLOSED),
    ]


@pytest.mark.parametrize("stream_id", [0, 2, 3])
def test_stream_ids_must_grow_and_be_the_clients(pair: Pair, stream_id: int) -> None:
    writer = frames.FrameWriter()
    pair.server.receive(writer.encode(frames.SynStream(3)))
    with pytest.raises(spdy.PeerError, match=f"stream id {stream_id} after 3"):
        pair.server.receive(writer.encode(frames.SynStream(stream_id)))


def test_after_go_away_new_streams_are_not_looked_at(pair: Pair) -> None:
    pair.server.go_away()
    pair.server.go_away()
    assert pair.to_client() == [spdy.WentAway(0)]
    pair.client.open(())
    assert pair.to_server() == []


def test_frames_that_change_nothing(pair: Pair) -> None:
    writer = frames.FrameWriter()
    settings = writer.encode(frames.Settings(((0, 4, 100),)))
    window = writer.encode(frames.WindowUpdate(0, 65536))
    unknown = bytes.fromhex("8003000a 00000002 0000")
    assert pair.server.receive(settings + window + unknown) == []
    assert pair.server.outgoing() == b""


def test_every_state_and_input_is_decided() -> None:
    """A pair is in the table, or refused; CLOSED is final."""
    for state, what in product(spdy.State, spdy.Input):
        new = spdy.TRANSITIONS.get((state, what))
        if state is spdy.State.CLOSED:
            assert new is None
        elif what is spdy.Input.RESET:
            assert new is spdy.State.CLOSED
        elif what in (spdy.Input.SEND, spdy.Input.RECEIVE) and new is not None:
            assert new is state


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["send", "last", "reset"])), max_size=8))
def test_both_sides_agree_in_the_end(steps: list[tuple[bool, str]]) -> None:
    """Whatever the two sides do, legal sends only: both see the same state of the stream."""
    pair = Pair()
    stream = pair.client.open(())
    pair.to_server()
    pair.server.reply(stream)
    pair.to_client()
    for by_client, what in steps:
        side = pair.client if by_client else pair.server
        if what == "reset":
            side.reset(stream)
        elif side.state(stream) in (spdy.State.OPEN, spdy.State.GOT_ALL):
            side.send(stream, b"x", last=what == "last")
        pair.to_server()
        pair.to_client()
    mirrored = {spdy.State.SENT_ALL: spdy.State.GOT_ALL, spdy.State.GOT_ALL: spdy.State.SENT_ALL}
    seen = pair.server.state(stream)
    assert pair.client.state(stream) is mirrored.get(seen, seen)
