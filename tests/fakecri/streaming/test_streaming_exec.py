"""Exec over SPDY and WebSocket, real time and real sockets (CRI-115)."""

from __future__ import annotations

import asyncio
import json

import pytest
from stream_clients import SUCCESS, Node, channels_of, spdy_client, upgraded, websocket

from fakecri import replies
from fakecri.fakesh import Invocation


async def test_exec_over_spdy_carries_bytes_both_ways_CRI_115(node: Node) -> None:
    url = await node.exec("cat", stdin=True, stdout=True, stderr=True)
    blob = bytes(range(256)) * 4096
    async with spdy_client(url) as client:
        error = await client.open(streamType="error")
        stdin = await client.open(streamType="stdin")
        stdout = await client.open(streamType="stdout")
        stderr = await client.open(streamType="stderr")
        await client.send(stdin, b"first")
        await client.until(lambda: client.data[stdout] == b"first")
        sending = asyncio.create_task(client.send(stdin, blob, last=True))
        await client.to_the_end()
        await sending
    assert client.data[stdout] == b"first" + blob
    assert client.data[stderr] == b""
    assert json.loads(client.data[error]) == SUCCESS


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_exec_over_websocket_tells_the_exit_code_CRI_115(node: Node, protocol: str) -> None:
    url = await node.exec("sh", "-c", "echo out; echo err >&2; exit 3")
    async with websocket(url, protocol) as socket:
        found = await channels_of(socket)
    assert found[1] == b"out\n"
    assert found[2] == b"err\n"
    status = json.loads(found[3])
    assert status["reason"] == "NonZeroExitCode"
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


async def test_v5_ends_stdin_alone(node: Node) -> None:
    url = await node.exec("cat", stdin=True, stdout=True)
    async with websocket(url, "v5.channel.k8s.io") as socket:
        await socket.send_bytes(b"\0hello ")
        await socket.send_bytes(b"\0you")
        await socket.send_bytes(bytes((255, 0)))
        await socket.send_bytes(b"\0too late")
        found = await channels_of(socket)
    assert found[1] == b"hello you"
    assert json.loads(found[3]) == SUCCESS


async def test_base64_protocols(node: Node) -> None:
    url = await node.exec("sh", "-c", "echo out; false")
    async with websocket(url, "v4.base64.channel.k8s.io") as socket:
        found = await channels_of(socket)
    assert found[1] == b"out\n"
    assert json.loads(found[3])["status"] == "Failure"


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        ("v4.channel.k8s.io", b'"NonZeroExitCode"'),
        ("v3.channel.k8s.io", b"command terminated with non-zero exit code: exit status 1"),
        ("channel.k8s.io", b"command terminated with non-zero exit code: exit status 1"),
    ],
)
async def test_older_protocols_tell_the_end_in_words(
    node: Node, protocol: str, said: bytes
) -> None:
    async with spdy_client(await node.exec("false", stdout=True), protocol) as client:
        error = await client.open(streamType="error")
        await client.open(streamType="stdout")
        await client.to_the_end()
    assert said in client.data[error]


async def test_the_containers_replies_come_first(node: Node) -> None:
    node.fake.behaves(replies(["cat", "/x"], exit_code=5, stdout="from the rule\n"))
    await node.start("other")
    async with websocket(await node.exec("cat", "/x"), "v5.channel.k8s.io") as socket:
        found = await channels_of(socket)
    assert found[1] == b"from the rule\n"
    assert json.loads(found[3])["details"]["causes"][0]["message"] == "5"


async def test_programs_of_the_test_and_their_errors(node: Node) -> None:
    async def greet(run: Invocation) -> int:
        name = await run.stdin.readline()
        await run.out(f"hello {name.decode().strip()} in {run.container}, A={run.env['A']}\n")
        return 4

    def broken(run: Invocation) -> int:
        raise RuntimeError("boom")

    node.fake.streaming.command("greet", greet)
    node.fake.streaming.command("broken", broken)
    async with websocket(
        await node.exec("/bin/greet", stdin=True, stdout=True), "v5.channel.k8s.io"
    ) as socket:
        await socket.send_bytes(b"\0you\n")
        found = await channels_of(socket)
    assert found[1] == b"hello you in c, A=1\n"
    assert b'"message":"4"' in found[3]
    for command, said in (("broken", "RuntimeError: boom"), ("nope", "executable file not found")):
        async with websocket(await node.exec(command), "v5.channel.k8s.io") as socket:
            found = await channels_of(socket)
        status = json.loads(found[3])
        assert status["reason"] == "InternalError"
        assert said in status["message"]


async def test_a_terminal_has_a_size_and_its_own_line_ends(node: Node) -> None:
    sizes: list[tuple[int, int]] = []

    async def watch(run: Invocation) -> None:
        while len(sizes) < 2:
            sizes.append((run.terminal.columns, run.terminal.rows))
            await run.out("size\n")
            if len(sizes) < 2:
                await run.terminal.changed()

    node.fake.streaming.command("watch", watch)
    async with spdy_client(await node.exec("watch", stdout=True, tty=True)) as client:
        await client.open(streamType="error")
        stdout = await client.open(streamType="stdout")
        resize = await client.open(streamType="resize")
        await client.send(resize, b'{"Width":80,"Height":24}\n')
        await client.until(lambda: client.data[stdout])
        await client.send(resize, b'{"Width":100,"Height":30}\n')
        await client.to_the_end()
    assert sizes == [(80, 24), (100, 30)]
    assert client.data[stdout] == b"size\r\nsize\r\n"


async def test_a_shell_on_a_terminal_echoes_and_ends_with_ctrl_d(node: Node) -> None:
    url = await node.exec("sh", stdin=True, stdout=True, tty=True)
    async with websocket(url, "v5.channel.k8s.io") as socket:
        await socket.send_bytes(b"\4" + b'{"Width":80,"Height":24}')
        await socket.send_bytes(b"\0stty size\r")
        await socket.send_bytes(b"\0\x04")
        found = await channels_of(socket)
    assert b"24 80\r\n" in found[1]
    assert b"stty size\r\n" in found[1]
    assert json.loads(found[3]) == SUCCESS


async def test_a_container_takes_its_commands_along(node: Node) -> None:
    async with websocket(await node.exec("sleep", "3600"), "v5.channel.k8s.io") as socket:
        await socket.receive()  # the streams are there
        node.fake.kill()
        found = await channels_of(socket)
    assert b'"message":"137"' in found[3]


@pytest.mark.parametrize("transport", ["spdy", "websocket"])
async def test_a_caller_that_leaves_ends_its_program(node: Node, transport: str) -> None:
    started, over = asyncio.Event(), asyncio.Event()

    async def wait(run: Invocation) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            over.set()

    node.fake.streaming.command("wait", wait)
    url = await node.exec("wait", stdout=True)
    if transport == "spdy":
        async with spdy_client(url) as client:
            await client.open(streamType="error")
            await client.open(streamType="stdout")
            await started.wait()
    else:
        async with websocket(url, "v5.channel.k8s.io"):
            await started.wait()
    await over.wait()


async def test_streams_nobody_asked_for_are_refused(node: Node) -> None:
    async with spdy_client(await node.exec("true", stdout=True)) as client:
        stdin = await client.open(streamType="stdin")
        error = await client.open(streamType="error")
        await client.open(streamType="stdout")
        await client.to_the_end()
    assert stdin in client.ended
    assert json.loads(client.data[error]) == SUCCESS


async def test_a_caller_that_breaks_spdy_is_cut_off(node: Node) -> None:
    url = await node.exec("sleep", "9")
    async with upgraded(url, "v4.channel.k8s.io") as (head, reader, writer):
        assert head.startswith("HTTP/1.1 101 ")
        writer.write(b"\x80\x02\0\1\0\0\0\0")
        goodbye = await reader.read()
    assert goodbye[:4] == b"\x80\x03\0\x07"  # GOAWAY
