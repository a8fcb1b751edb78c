"""Lines of container logs: what they say, which of them are shown, and how. No I/O.

Two formats are read, as upstream: that of the CRI (time, stream, tags, text), and Docker's JSON. A
line that is none of both in a file that began well is left out.
Rules: SRV-020, SRV-023. Upstream: staging/src/k8s.io/cri-client/pkg/logs/logs.go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

from msgspec import Struct

NANO: Final = 10**9
MOST_SHOWN_BYTES: Final = 1024  # of a line without a known format
STREAMS: Final = (b"stdout", b"stderr")
_TIME: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)\Z")


class LogLine(Struct, frozen=True):
    """One line. `time_ns`: since 1970; `zone`: as it was written; `text` with its line end, unless
    more of the line follows."""

    time_ns: int
    zone: str
    stream: bytes
    text: bytes


class UnknownFormat(Exception):
    """The first line of a log has no format that is known."""


Parse = Callable[[bytes], LogLine]


def parser_of(line: bytes) -> Parse:
    """How to read a log whose first line this is. Raises `UnknownFormat`."""
    for parse in (parse_cri, parse_json):
        try:
            parse(line)
        except ValueError:
            continue
        return parse
    beginning = line[:MOST_SHOWN_BYTES].decode(errors="replace")
    raise UnknownFormat(f"unsupported log format: {beginning!r}")


def parse_cri(line: bytes) -> LogLine:
    r"""A line as runtimes write it. Raises ValueError.

    >>> parse_cri(b"2026-01-02T03:04:05.5Z stdout P half\n").text
    b'half'
    """
    when, stream, tags, text = line.split(b" ", 3)
    if stream not in STREAMS:
        raise ValueError(f"unexpected stream type {stream!r}")
    if tags.split(b":")[0] == b"P":
        text = text.removesuffix(b"\n")
    time_ns, zone = _time(when)
    return LogLine(time_ns, zone, stream, text)


def parse_json(line: bytes) -> LogLine:
    """A line as Docker wrote them. Raises ValueError."""
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("no mapping")
    stream = str(value.get("stream")).encode()
    if stream not in STREAMS:
        raise ValueError(f"unexpected stream type {stream!r}")
    time_ns, zone = _time(str(value.get("time")).encode())
    return LogLine(time_ns, zone, stream, str(value.get("log", "")).encode())


def _time(written: bytes) -> tuple[int, str]:
    """Nanoseconds since 1970 and the zone. Raises ValueError."""
    match = _TIME.match(written)
    if match is None:
        raise ValueError(f"unexpected timestamp {written!r}")
    zone = match[3].decode()
    whole = datetime.fromisoformat(match[1].decode() + zone)
    part = (match[2] or b"0")[:9].ljust(9, b"0")
    return int(whole.timestamp()) * NANO + int(part), zone


def shown_time(line: LogLine) -> bytes:
    """The time with nine digits, in the zone in which it was written.

    >>> shown_time(parse_cri(b"2026-01-02T03:04:05.5+02:00 stdout F x"))
    b'2026-01-02T03:04:05.500000000+02:00'
    """
    seconds, nanos = divmod(line.time_ns, NANO)
    zone = datetime.fromisoformat(f"2000-01-01T00:00:00{line.zone}").tzinfo
    whole = datetime.fromtimestamp(seconds, zone).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{nanos:09d}{line.zone}".encode()


class LogFilter:
    """Takes the raw lines of a log in order, gives what is shown of them.

    `since_ns`: nothing older; `streams`: None for both; `limit_bytes`: how much is shown at most.
    """

    def __init__(
        self,
        *,
        timestamps: bool = False,
        since_ns: int | None = None,
        limit_bytes: int | None = None,
        stream: bytes | None = None,
    ) -> None:
        self._timestamps = timestamps
        self._since_ns = since_ns
        self._left = limit_bytes
        self._stream = stream
        self._parse: Parse | None = None
        self._line_begins = True
        self.was_line = False
        """Whether what was taken last is a line of a log; those alone count as shown."""
        self._goes_on = self._is_part = False  # of a line that comes in parts

    @property
    def done(self) -> bool:
        """Whether no more is shown, because so much was asked for."""
        return self._left is not None and self._left <= 0

    def take(self, raw: bytes) -> bytes:
        """What is shown of the next line. Raises `UnknownFormat` for the first one."""
        line = self._parsed(raw)
        if line is None:
            return b""
        begins, self._line_begins = self._line_begins, line.text[-1:] in (b"", b"\n")
        return self._limited(self._of(line, begins=begins)) if self._wants(line) else b""

    def begin(self, raw: bytes) -> bytes:
        """What is shown of the first part of a line that comes in parts: those of the CRI's format
        are shown as they come, others are left out. Raises as `take`."""
        line = self._parsed(raw)
        self._goes_on = line is not None and self._wants(line)
        if line is None:
            return b""
        self._is_part = _has_no_end(raw)
        begins, self._line_begins = self._line_begins, not self._is_part
        return self._limited(self._of(line, begins=begins)) if self._goes_on else b""

    def go_on(self, raw: bytes) -> bytes:
        """What is shown of another part; the last one has the line's end, if that has one."""
        if not self._goes_on:
            return b""
        return self._limited(raw.removesuffix(b"\n") if self._is_part else raw)

    def _parsed(self, raw: bytes) -> LogLine | None:
        """None: it has another format than the first one. Raises `UnknownFormat`."""
        if self._parse is None:
            self._parse = parser_of(raw)
        try:
            line = self._parse(raw)
        except ValueError:
            line = None
        self.was_line = line is not None
        return line

    def _wants(self, line: LogLine) -> bool:
        if self._since_ns is not None and line.time_ns < self._since_ns:
            return False
        return self._stream is None or line.stream == self._stream

    def _of(self, line: LogLine, *, begins: bool) -> bytes:
        timed = self._timestamps and begins
        return shown_time(line) + b" " + line.text if timed else line.text

    def _limited(self, shown: bytes) -> bytes:
        if self._left is not None:
            shown = shown[: self._left]
            self._left -= len(shown)
        return shown


def _has_no_end(raw: bytes) -> bool:
    """Whether the runtime says of this line that more of it follows in the next (`P`)."""
    words = raw.split(b" ", 3)
    return len(words) == 4 and words[2].split(b":")[0] == b"P"
