"""What another server answers to a request that wants to change protocols."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kubeobjects.tunnel import Refusal, TunnelError, head_of, join


class Writer:
    """Takes what is sent; fails with `problem`."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.problem = problem
        self.sent = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        self.sent += data

    async def drain(self) -> None:
        if self.problem is not None:
            raise self.problem

    def close(self) -> None:
        self.closed = True


async def answered(answer: bytes, writer: Writer) -> Refusal | None:
    """What `join` makes of an answer, after which the other side ends."""
    reader = asyncio.StreamReader(limit=64)
    reader.feed_data(answer)
    reader.feed_eof()
    nobody: Any = SimpleNamespace(transport=None)
    return await join(nobody, b"HEAD", reader, writer)  # type: ignore[arg-type]


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("answer", "body", "headers"),
    [
        (b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nnomore", b"no", {"content-length": "2"}),
        (b"HTTP/1.1 403 No\r\nA: b:c\r\n\r\nno", b"no", {"a": "b:c"}),
        (b"HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\nno", b"", {"content-length": "9"}),
    ],
)
async def test_a_refusal_goes_back_as_it_is_said(
    answer: bytes, body: bytes, headers: dict[str, str]
) -> None:
    writer = Writer()
    refusal = await answered(answer, writer)
    assert refusal is not None
    assert (refusal.status, refusal.body) == (403, body)
    assert {name: text for name, text in refusal.headers.items() if name} == headers
    assert (writer.sent, writer.closed) == (b"HEAD", True)


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("answer", "problem", "text"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", None, "invalid upgrade response: status code 200"),
        (b"SSH-2.0-x\r\n\r\n", None, "malformed HTTP response: no status line"),
        (b"HTTP/1.1 x\r\n\r\n", None, "malformed HTTP response: invalid literal"),
        (b"HTTP/1.1 200", None, "malformed HTTP response: "),
        (b"HTTP/1.1 200 OK\r\nA: " + b"b" * 200, None, "malformed HTTP response: "),
        (b"", ConnectionResetError("reset by peer"), "reset by peer"),
    ],
)
async def test_what_is_no_answer_is_told(
    answer: bytes, problem: Exception | None, text: str
) -> None:
    writer = Writer(problem)
    with pytest.raises(TunnelError, match=f"^{text}"):
        await answered(answer, writer)
    assert writer.closed


def test_a_head_names_whom_it_came_from() -> None:
    headers = [("Upgrade", "SPDY/3.1"), ("Host", "old"), ("X-Forwarded-For", "a")]
    assert head_of("GET", "/x?y", "n1", headers, ("a", "", "b")) == (
        b"GET /x?y HTTP/1.1\r\nHost: n1\r\nUpgrade: SPDY/3.1\r\nX-Forwarded-For: a, b\r\n\r\n"
    )
