"""Exec, attach and port-forward through the kubelet's port to the runtime (SRV-025, SRV-026)."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import aiohttp
import pytest
from aiohttp import web
from server_world import EVERYBODY, POD, ask, host, port
from stream_clients import Node, SpdyClient, channels_of

from fakecri import FakeCRI
from kubelet_conformance.harness.kubelets.clients import client_context, make_authority
from refkubelet.cri.records import (
    ContainerState,
    ListedContainer,
    ListedSandbox,
    RuntimePod,
    SandboxState,
)
from refkubelet.server.carrier import Carrier
from refkubelet.server.common.exchange import Request
from refkubelet.server.streams.tunnel import head_of

PLACE = "default/web-n1"
V4 = "v4.channel.k8s.io"


@asynccontextmanager
async def kubelet(tmp_path: Path) -> AsyncIterator[tuple[Node, int]]:
    """The main port with TLS over a fake runtime with one running container."""
    node = Node(FakeCRI())
    await node.start()
    container = ListedContainer(node.container, "c", ContainerState.RUNNING)
    sandbox = ListedSandbox(node.sandbox, SandboxState.READY)
    running = RuntimePod("u", "web-n1", "default", (sandbox,), (container,))
    served = host(pods=(POD,), target=node.fake, running=AsyncMock(return_value=(running,)))
    make_authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "ca.crt", tmp_path / "ca.key")
    runner = web.ServerRunner(Carrier(port(EVERYBODY, served)))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    assert site._server is not None
    number = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    try:
        yield node, number
    finally:
        await runner.cleanup()
        await node.fake.stop_streaming()


@asynccontextmanager
async def spdy(tmp_path: Path, number: int, target: str, *protocols: str) -> AsyncIterator[Any]:
    """The head of the answer to a request for SPDY, and a client on that connection."""
    context = client_context(tmp_path, None)
    reader, writer = await asyncio.open_connection("127.0.0.1", number, ssl=context)
    lines = [f"POST {target} HTTP/1.1", "Host: n1", "Connection: Upgrade", "Upgrade: SPDY/3.1"]
    lines += [f"X-Stream-Protocol-Version: {protocol}" for protocol in protocols]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    try:
        yield (await reader.readuntil(b"\r\n\r\n")).decode(), SpdyClient(reader, writer)
    finally:
        writer.close()


async def test_exec_over_spdy_has_output_input_and_exit_code_SRV_025(tmp_path: Path) -> None:
    """SRV-025.5."""
    async with kubelet(tmp_path) as (node, number):

        async def upper(run: Any) -> int:
            while data := await run.stdin.read(65536):
                await run.stdout.write(data.upper())
            return 3

        node.fake.streaming.command("upper", upper)
        target = f"/exec/{PLACE}/c?command=upper&input=1&output=1"
        async with spdy(tmp_path, number, target, V4, "v3.channel.k8s.io") as (head, client):
            assert head.startswith("HTTP/1.1 101 "), head
            assert V4 in head
            errors = await client.open(streamType="error")
            stdin = await client.open(streamType="stdin")
            stdout = await client.open(streamType="stdout")
            big = b"abc" * 200_000
            sending = asyncio.create_task(client.send(stdin, big, last=True))
            await client.to_the_end()
            await sending
            assert client.data[stdout] == big.upper()
            status = json.loads(client.data[errors])
            assert status["details"]["causes"][0]["message"] == "3"


@pytest.mark.parametrize("protocol", [V4, "v5.channel.k8s.io"])
async def test_exec_over_websocket_SRV_025(tmp_path: Path, protocol: str) -> None:
    """SRV-025.5."""
    async with kubelet(tmp_path) as (node, number):

        async def hello(run: Any) -> None:
            await run.stdout.write(b"hello")

        node.fake.streaming.command("hello", hello)
        url = f"https://127.0.0.1:{number}/exec/{PLACE}/c?command=hello&output=1"
        async with aiohttp.ClientSession() as session:
            async with session.ws_connect(url, protocols=(protocol,), ssl=False) as socket:
                assert socket.protocol == protocol
                found = await channels_of(socket)
        assert found[1] == b"hello"
        assert json.loads(found[3])["status"] == "Success"


async def test_a_stream_that_has_ended_is_no_error_in_the_log_SRV_025(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The runtime closes its connection when the command has ended, the client waits for that."""
    async with kubelet(tmp_path) as (node, number):
        node.fake.streaming.command("nothing", AsyncMock(return_value=None))
        target = f"/exec/{PLACE}/c?command=nothing&output=1"
        async with spdy(tmp_path, number, target, V4) as (_, client):
            for kind in ("error", "stdout"):
                await client.open(streamType=kind)
            await client.to_the_end()
    assert [record for record in caplog.records if record.name.endswith("carrier.http")] == []


async def test_a_port_over_spdy_SRV_026(tmp_path: Path) -> None:
    """SRV-026.1."""
    async with kubelet(tmp_path) as (node, number):

        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.read())

        node.fake.streaming.forward(80, to=echo)
        target = f"/portForward/{PLACE}"
        async with spdy(tmp_path, number, target, "portforward.k8s.io") as (head, client):
            assert head.startswith("HTTP/1.1 101 "), head
            asked = {"port": "80", "requestID": "0"}
            await client.open(streamType="error", **asked)
            data = await client.open(streamType="data", **asked)
            await client.send(data, b"ping", last=True)
            await client.until(lambda: data in client.ended)
            assert client.data[data] == b"ping"


async def test_a_client_that_leaves_ends_the_command_SRV_025(tmp_path: Path) -> None:
    async with kubelet(tmp_path) as (node, number):
        began, ended = asyncio.Event(), asyncio.Event()

        async def waits(run: Any) -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        node.fake.streaming.command("waits", waits)
        target = f"/exec/{PLACE}/c?command=waits&output=1"
        async with spdy(tmp_path, number, target, V4) as (_, client):
            await client.open(streamType="error")
            await client.open(streamType="stdout")
            await asyncio.wait_for(began.wait(), 30)
        await asyncio.wait_for(ended.wait(), 30)


async def test_what_the_runtime_refuses_the_client_is_told_SRV_025(tmp_path: Path) -> None:
    async with kubelet(tmp_path) as (_, number):
        target = f"/exec/{PLACE}/c?command=ls&output=1"
        async with spdy(tmp_path, number, target, "v9.channel.k8s.io") as (head, _client):
            assert head.startswith("HTTP/1.1 403 "), head
        async with spdy(tmp_path, number, target.replace("/c?", "/d?"), V4) as (head, _client):
            assert head.startswith("HTTP/1.1 500 "), head


async def test_a_runtime_that_is_not_there_is_500_SRV_025() -> None:
    on = port(EVERYBODY, host(pods=(POD,)))
    assert (await ask(on, f"/exec/{PLACE}/c?command=ls&output=1"))[0] == 500


def test_the_runtime_gets_the_request_without_secrets() -> None:
    from urllib.parse import urlsplit

    headers = {
        "host": "n1",
        "connection": "Upgrade",
        "x-stream-protocol-version": "v4.channel.k8s.io, v3.channel.k8s.io",
        "x-forwarded-for": "192.0.2.7",
        "content-length": "9",
    }
    request = Request(method="POST", path="/exec/a/b/c", headers=headers)
    head = head_of(request, urlsplit("http://127.0.0.1:99/exec/token?x=1"), "127.0.0.1")
    assert head.decode().split("\r\n") == [
        "POST /exec/token?x=1 HTTP/1.1",
        "Host: n1",
        "connection: Upgrade",
        "x-stream-protocol-version: v4.channel.k8s.io",
        "x-stream-protocol-version: v3.channel.k8s.io",
        "X-Forwarded-For: 192.0.2.7, 127.0.0.1",
        "Content-Length: 0",
        "",
        "",
    ]
