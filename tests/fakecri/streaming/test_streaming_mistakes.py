"""Mistakes of callers and of tests on streams: the caller is told, and nothing else breaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import started

from fakecri import FakeCRI
from fakecri.fakesh import Invocation


@pytest.fixture
async def fake() -> AsyncIterator[FakeCRI]:
    fake = FakeCRI()
    await started(fake, "web", "shop")
    yield fake
    await fake.stop_streaming()


async def told(url: str) -> str:
    """What the caller hears at the end."""
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, protocols=("v5.channel.k8s.io",)) as socket,
    ):
        pieces = [message.data async for message in socket]
    ends = [json.loads(piece[1:]) for piece in pieces if piece[:1] == b"\x03" and piece[1:]]
    return str(ends[0]["message"]) if ends else ""


async def test_an_attach_handler_that_fails_is_told(
    fake: FakeCRI, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(run: Invocation) -> int:
        raise LookupError("no such song")

    fake.streaming.attach(broken)
    request = cri.AttachRequest(container_id=fake.container("web").id, stdout=True)
    answer: Any = await fake.call("Attach", request)
    message = await told(answer.url)
    assert message.endswith("error attaching to container: LookupError: no such song")
    assert "an attach handler of the test failed" in caplog.text


async def test_an_exec_without_a_command_is_refused(fake: FakeCRI) -> None:
    request = cri.ExecRequest(container_id=fake.container("web").id, stdout=True)
    answer: Any = await fake.call("Exec", request)
    assert "args must not be empty" in await told(answer.url)


async def test_what_is_no_request_is_answered_and_not_told(
    fake: FakeCRI, caplog: pytest.LogCaptureFixture
) -> None:
    request = cri.ExecRequest(container_id=fake.container("web").id, cmd=["a"], stdout=True)
    answer: Any = await fake.call("Exec", request)
    url = urlsplit(answer.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    await asyncio.wait_for(reader.read(), 10)
    writer.close()
    assert [r for r in caplog.records if r.exc_info] == []
