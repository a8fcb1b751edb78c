"""Attach over SPDY and WebSocket, real time and real sockets (CRI-115)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from stream_clients import SUCCESS, Node, channels_of, spdy_client, websocket

from fakecri import FakeCRI, prints, runs
from fakecri.fakesh import Invocation


@pytest.fixture
async def talker() -> AsyncIterator[Node]:
    """Its container prints a line every 50 ms."""
    made = Node(FakeCRI())
    made.fake.behaves(*(prints(f"line {i}", at_s=i / 20) for i in range(100)))
    made.fake.behaves(
        *(prints(f"line {i}", at_s=i / 20, stream=("stdout", "stderr")[i % 2]) for i in range(100))
    )
    await made.start()
    yield made
    await made.fake.stop_streaming()


async def test_attach_streams_what_is_printed_until_the_end_CRI_115(talker: Node) -> None:
    async with spdy_client(await talker.attach(stdout=True, stderr=True)) as client:
        error = await client.open(streamType="error")
        stdout = await client.open(streamType="stdout")
        stderr = await client.open(streamType="stderr")
        await client.until(lambda: client.data[stdout] and client.data[stderr])
        talker.fake.kill()
        await client.to_the_end()
    assert client.data[stdout].startswith(b"line ")
    assert json.loads(client.data[error]) == SUCCESS


async def test_attach_can_talk_to_the_test(node: Node) -> None:
    async def upper(run: Invocation) -> None:
        while line := await run.stdin.readline():
            await run.out(line.decode().upper())

    node.fake.streaming.attach(upper, container="c")
    url = await node.attach(stdin=True, stdout=True)
    async with websocket(url, "v5.channel.k8s.io") as socket:
        await socket.send_bytes(b"\0hello\n")
        await socket.send_bytes(bytes((255, 0)))
        found = await channels_of(socket)
    assert found[1] == b"HELLO\n"


async def test_attach_talks_to_a_main_process_that_the_fake_runs() -> None:
    node = Node(FakeCRI())
    node.fake.behaves(runs())
    await node.start(command=["sh"], stdin=True, stdin_once=True)
    url = await node.attach(stdin=True, stdout=True)
    async with websocket(url, "v5.channel.k8s.io") as socket:
        await socket.send_bytes(b"\0echo -n hello; exit 4\n")
        found = await channels_of(socket)
    assert found[1] == b"hello"  # at once, not when its line ends
    assert node.fake.container().exit_code == 4
    await node.fake.stop_streaming()


async def test_a_shell_with_input_answers_whoever_is_attached_and_ends_with_him_CRI_115() -> None:
    """What critest does: no behaviour says that it runs."""
    node = Node(FakeCRI())
    await node.start(command=["/bin/sh"], stdin=True, stdin_once=True)
    url = await node.attach(stdin=True, stdout=True)
    async with websocket(url, "v5.channel.k8s.io") as socket:
        await socket.send_bytes(b"\0echo hello\n")
        await socket.send_bytes(bytes((255, 0)))
        found = await channels_of(socket)
    assert found[1] == b"hello\n"
    assert node.fake.container().exit_code == 0
    await node.fake.stop_streaming()
