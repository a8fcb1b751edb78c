"""Port-forward over SPDY and WebSocket, real time and real sockets (CRI-115)."""

from __future__ import annotations

import asyncio
from typing import Any

from runtime_calls import create, pod_config, start
from stream_clients import Node, SpdyClient, spdy_client, websocket

from fakecri import serves
from fakecri.streaming import spdy


def _close_after(handler: Any) -> Any:
    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await handler(reader, writer)
        writer.close()

    return run


async def pair_of(client: SpdyClient, port: str, request: str) -> tuple[int, int]:
    error = await client.open(streamType="error", port=port, requestID=request)
    return error, await client.open(streamType="data", port=port, requestID=request)


async def brackets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends back what comes, in brackets."""
    while data := await reader.read(65536):
        writer.write(b"<" + data + b">")
        await writer.drain()


async def test_port_forward_reaches_a_handler_CRI_115(node: Node) -> None:
    node.fake.streaming.forward(80, to=brackets, pod="web")
    async with spdy_client(await node.forward()) as client:
        pairs = [await pair_of(client, "80", str(i)) for i in range(3)]
        for i, (_, data) in enumerate(pairs):
            await client.send(data, b"%d" % i, last=True)
        await client.until(lambda: all(error in client.ended for error, _ in pairs))
        assert [client.data[data] for _, data in pairs] == [b"<0>", b"<1>", b"<2>"]
        assert [client.data[error] for error, _ in pairs] == [b"", b"", b""]


async def test_port_forward_reaches_a_local_port_and_needs_no_request_id(node: Node) -> None:
    server = await asyncio.start_server(_close_after(brackets), "127.0.0.1", 0)
    async with server:
        node.fake.streaming.forward(80, to=server.sockets[0].getsockname()[1])
        async with spdy_client(await node.forward()) as client:
            error = await client.open(streamType="error", port="80")
            data = await client.open(streamType="data", port="80")
            await client.send(data, b"x", last=True)
            await client.until(lambda: error in client.ended)
    assert client.data[data] == b"<x>"


async def test_port_forward_reaches_what_a_container_serves_CRI_115(node: Node) -> None:
    node.fake.behaves(serves(80, body="shop"), serves(81, "tcp"), container="shop")
    await start(node.fake, await create(node.fake, node.sandbox, pod_config(), "shop"))
    async with spdy_client(await node.forward()) as client:
        error, data = await pair_of(client, "80", "1")
        await client.send(data, b"GET / HTTP/1.0\r\n\r\n")
        await client.until(lambda: error in client.ended)
        assert client.data[data].startswith(b"HTTP/1.0 200 OK")
        assert client.data[data].endswith(b"shop")
        error, data = await pair_of(client, "81", "2")
        await client.until(lambda: error in client.ended)
        assert client.data[error] == b""


async def test_a_port_where_nothing_listens_says_so(node: Node) -> None:
    def boom(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise RuntimeError("boom")

    node.fake.streaming.forward(82, to=boom)
    async with spdy_client(await node.forward()) as client:
        for port, text in (("81", b"connection refused"), ("82", b"RuntimeError: boom")):
            error, _ = await pair_of(client, port, port)
            await client.until(lambda error=error: error in client.ended)
            assert text in client.data[error]
        bad = await client.open(streamType="data", port="0")
        await client.until(lambda: bad in client.ended)
        assert bad in client.ended


async def test_port_forward_over_websocket_channels_SRV_026(node: Node) -> None:
    """Both channels of a port begin with its number, little-endian."""
    node.fake.streaming.forward(8080, to=brackets)
    async with websocket(await node.forward(8080, 81), "v4.channel.k8s.io") as socket:
        found: dict[int, bytes] = {}
        await socket.send_bytes(b"\0hi")
        while found.get(0) != b"\x90\x1f<hi>" or b"refused" not in found.get(3, b""):
            raw = (await socket.receive()).data
            found[raw[0]] = found.get(raw[0], b"") + raw[1:]
    assert found[1] == b"\x90\x1f"
    assert found[2] == b"\x51\0"


async def test_port_forward_tunnels_spdy_through_a_websocket_SRV_026(node: Node) -> None:
    node.fake.streaming.forward(80, to=brackets)
    async with websocket(await node.forward(), "SPDY/3.1+portforward.k8s.io") as socket:
        session = spdy.Session(client=True)
        for kind in ("error", "data"):
            session.open((("streamtype", kind), ("port", "80"), ("requestid", "0")))
        session.send(3, b"hi", last=True)
        await socket.send_bytes(session.outgoing())
        got = b""
        while spdy.State.CLOSED is not session.state(3):
            for event in session.receive((await socket.receive()).data):
                got += event.data if isinstance(event, spdy.Received) else b""
    assert got == b"<hi>"
