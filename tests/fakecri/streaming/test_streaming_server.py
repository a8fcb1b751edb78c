"""The streaming server, real time and real sockets: SPDY/3.1 and WebSocket clients (CRI-115)."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import aiohttp
import grpc
import pytest
from stream_clients import SUCCESS, Node, channels_of, spdy_client, upgraded, websocket

import fakecri
from fakecri import CriError, FakeCRI


async def head_of(url: str, *protocols: str) -> str:
    """The head of the answer alone."""
    async with upgraded(url, *protocols) as (head, _, _):
        return head


async def test_urls_lead_to_a_token_that_serves_once_CRI_115(node: Node) -> None:
    url = await node.exec("true")
    parts = urlsplit(url)
    assert parts.scheme == "http"
    assert parts.hostname == "127.0.0.1"
    assert parts.path[:6] == "/exec/"
    assert len(parts.path) == 6 + 8
    assert (await head_of(url, "v4.channel.k8s.io")).startswith("HTTP/1.1 101 ")
    assert (await head_of(url, "v4.channel.k8s.io")).startswith("HTTP/1.1 404 ")
    assert "/attach/" in await node.attach(stdout=True)
    assert "/portforward/" in await node.forward()


async def test_a_token_is_good_for_its_own_method_only_CRI_115(node: Node) -> None:
    url = (await node.exec("true")).replace("/exec/", "/attach/")
    assert (await head_of(url, "v4.channel.k8s.io")).startswith("HTTP/1.1 404 ")


@pytest.mark.parametrize(
    ("protocols", "status"), [((), 400), (("v9.channel.k8s.io",), 403), (("v4.x",), 403)]
)
async def test_upgrades_that_cannot_be_SRV_025(
    node: Node, protocols: tuple[str, ...], status: int
) -> None:
    async with upgraded(await node.exec("true"), *protocols) as (head, reader, _):
        assert head.startswith(f"HTTP/1.1 {status} ")
        assert b"unable to upgrade" in await reader.read()
    if status == 403:
        assert "X-Accepted-Stream-Protocol-Versions: v4.channel.k8s.io" in head


async def test_plain_requests_and_foreign_websockets_are_refused(node: Node) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(await node.exec("true")) as answer:
            assert answer.status == 400
        base = await node.exec("true")
        async with session.get(base[: base.rindex("/")] + "/nope") as answer:
            assert answer.status == 404
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await session.ws_connect(await node.exec("true"), protocols=("v9.channel.k8s.io",))
        assert caught.value.status == 403


@pytest.mark.parametrize(
    ("streams", "code"),
    [
        ({"stdin": False}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"stdout": True, "stderr": True, "tty": True}, grpc.StatusCode.INVALID_ARGUMENT),
    ],
)
async def test_streams_that_make_no_sense_CRI_116(
    node: Node, streams: dict[str, bool], code: grpc.StatusCode
) -> None:
    for start in (node.attach(**streams), node.exec("true", **streams)):
        with pytest.raises(CriError) as caught:
            await start
        assert caught.value.code() is code


async def test_a_container_that_does_not_run_has_no_streams_CRI_116(node: Node) -> None:
    node.fake.kill()
    for start in (node.attach(stdout=True), node.exec("true")):
        with pytest.raises(CriError) as caught:
            await start
        assert caught.value.code() is grpc.StatusCode.UNKNOWN
    assert await node.forward()  # PortForward needs no container, and no ports


async def test_stopping_ends_streams_and_the_next_request_starts_again(node: Node) -> None:
    async with spdy_client(await node.exec("sleep", "3600", stdout=True)) as client:
        await client.open(streamType="error")
        await client.open(streamType="stdout")
        async with websocket(await node.exec("sleep", "3600"), "v5.channel.k8s.io") as socket:
            await node.fake.stop_streaming()
            await channels_of(socket)
        await client.to_the_end()
    async with websocket(await node.exec("true"), "v5.channel.k8s.io") as socket:
        assert json.loads((await channels_of(socket))[3]) == SUCCESS


async def test_a_crash_breaks_streams_and_forgets_urls(node: Node) -> None:
    url = await node.exec("true")
    async with spdy_client(await node.exec("sleep", "3600", stdout=True)) as client:
        await client.open(streamType="error")
        await client.open(streamType="stdout")
        async with websocket(await node.exec("sleep", "3600"), "v5.channel.k8s.io") as socket:
            await socket.receive()  # the streams are there
            node.fake.crash()
            await channels_of(socket)
        await client.to_the_end()
    node.fake.restart()
    assert (await head_of(url, "v4.channel.k8s.io")).startswith("HTTP/1.1 404 ")
    async with websocket(await node.exec("true"), "v5.channel.k8s.io") as socket:
        assert json.loads((await channels_of(socket))[3]) == SUCCESS


@pytest.mark.manual_time
async def test_streams_work_while_the_clock_stands() -> None:
    """Over sockets with `clock="manual"` only what the test asked to last waits for time."""
    node = Node(FakeCRI())
    await node.start()
    async with spdy_client(await node.exec("echo", "hi", stdout=True)) as client:
        await client.open(streamType="error")
        await client.open(streamType="stdout")
        await client.to_the_end()
    async with websocket(await node.exec("sleep", "3600"), "v5.channel.k8s.io") as socket:
        await socket.receive()
        node.fake.kill()
        await channels_of(socket)
    await node.fake.stop_streaming()
    assert b"hi\n" in client.data.values()


async def test_rules_of_streams_are_listed_with_the_others(node: Node) -> None:
    program = node.fake.streaming.command("x", lambda run: 0)
    assert node.fake.rules() == node.fake.unused_rules() == [program]
    async with websocket(await node.exec("x"), "v5.channel.k8s.io") as socket:
        await channels_of(socket)
    assert node.fake.unused_rules() == []


def test_a_fake_in_the_background_has_streams() -> None:
    with fakecri.serve() as served:
        with served.streaming.forward(80, to=8080) as rule:
            assert rule.hits == 0
            assert "port 80" in repr(rule)
        assert served.rules() == []
