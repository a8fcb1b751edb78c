"""The streaming server, real time and real sockets: SPDY/3.1 and WebSocket clients (CRI-115)."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import grpc
import pytest
from criapi.v1 import api_pb2 as cri

import fakecri
from fakecri import CriError, FakeCRI, prints, replies, runs
from fakecri.invocations.invocation import Invocation
from fakecri.streaming import spdy
from simtime import ManualLoop

SUCCESS = {"metadata": {}, "status": "Success"}


@dataclass
class Node:
    """A fake runtime with one running container in one pod."""

    fake: FakeCRI
    sandbox: str = ""
    container: str = ""

    async def start(self, pod: str = "web", **fields: Any) -> None:
        metadata = cri.PodSandboxMetadata(name=pod, namespace="default", uid=pod)
        config = cri.PodSandboxConfig(metadata=metadata)
        answer: Any = await self.fake.call("RunPodSandbox", cri.RunPodSandboxRequest(config=config))
        self.sandbox = answer.pod_sandbox_id
        wanted = cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name="c"),
            image=cri.ImageSpec(image="localhost/busybox:1"),
            envs=[cri.KeyValue(key="A", value=b"1")],
            **fields,
        )
        create = cri.CreateContainerRequest(
            pod_sandbox_id=self.sandbox, config=wanted, sandbox_config=config
        )
        answer = await self.fake.call("CreateContainer", create)
        self.container = answer.container_id
        start = cri.StartContainerRequest(container_id=self.container)
        await self.fake.call("StartContainer", start)

    async def exec(self, *command: str, **streams: bool) -> str:
        streams = streams or {"stdout": True, "stderr": True}
        request = cri.ExecRequest(container_id=self.container, cmd=command, **streams)
        return str((await self.fake.call("Exec", request)).url)  # type: ignore[attr-defined]

    async def attach(self, **streams: bool) -> str:
        request = cri.AttachRequest(container_id=self.container, **streams)
        return str((await self.fake.call("Attach", request)).url)  # type: ignore[attr-defined]

    async def forward(self, *ports: int) -> str:
        request = cri.PortForwardRequest(pod_sandbox_id=self.sandbox, port=ports)
        answer: Any = await self.fake.call("PortForward", request)
        return str(answer.url)


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    made = Node(FakeCRI())
    await made.start()
    yield made
    await made.fake.stop_streaming()


# -- a SPDY client, on the same sans-I/O session ---------------------------------------------------


@dataclass
class SpdyClient:
    """What came on each stream; `ended` has the streams that are over."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    session: spdy.Session = field(default_factory=lambda: spdy.Session(client=True))
    data: dict[int, bytes] = field(default_factory=dict)
    accepted: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    closed: bool = False

    async def open(self, **headers: str) -> int:
        stream = self.session.open(tuple((k.lower(), v) for k, v in headers.items()))
        self.data[stream] = b""
        await self.flush()
        await self.until(lambda: stream in self.accepted or stream in self.ended)
        return stream

    async def send(self, stream: int, data: bytes, *, last: bool = False) -> None:
        self.session.send(stream, data, last=last)
        await self.flush()

    async def flush(self) -> None:
        self.writer.write(self.session.outgoing())
        await self.writer.drain()

    async def until(self, done: Any) -> None:
        """Take what comes until `done()` or the end of the connection."""
        while not done() and not self.closed:
            raw = await self.reader.read(65536)
            self.closed = not raw
            for event in self.session.receive(raw):
                match event:
                    case spdy.Accepted(stream):
                        self.accepted.append(stream)
                    case spdy.Received(stream, data):
                        self.data[stream] += data
                    case spdy.Ended(stream) | spdy.WasReset(stream):
                        self.ended.append(stream)

    async def to_the_end(self) -> None:
        await self.until(lambda: False)


@asynccontextmanager
async def upgraded(
    url: str, *protocols: str
) -> AsyncIterator[tuple[str, asyncio.StreamReader, asyncio.StreamWriter]]:
    """The head of the answer to a request for SPDY, and the connection."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    lines = [f"POST {parts.path} HTTP/1.1", f"Host: {parts.netloc}"]
    lines += ["Connection: Upgrade", "Upgrade: SPDY/3.1"]
    lines += [f"X-Stream-Protocol-Version: {protocol}" for protocol in protocols]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    try:
        yield (await reader.readuntil(b"\r\n\r\n")).decode(), reader, writer
    finally:
        writer.close()


async def head_of(url: str, *protocols: str) -> str:
    """The head of the answer alone."""
    async with upgraded(url, *protocols) as (head, _, _):
        return head


@asynccontextmanager
async def spdy_client(url: str, *protocols: str) -> AsyncIterator[SpdyClient]:
    protocols = protocols or ("v5.channel.k8s.io", "v4.channel.k8s.io", "portforward.k8s.io")
    async with upgraded(url, *protocols) as (head, reader, writer):
        assert head.startswith("HTTP/1.1 101 "), head
        yield SpdyClient(reader, writer)


@asynccontextmanager
async def websocket(url: str, protocol: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, protocols=(protocol,)) as socket,
    ):
        assert socket.protocol == protocol
        yield socket


async def channels_of(socket: aiohttp.ClientWebSocketResponse) -> dict[int, bytes]:
    """Everything until the server closes, by channel."""
    found: dict[int, bytes] = {}
    async for message in socket:
        raw = message.data
        if isinstance(raw, str):
            number, data = int(raw[0]), base64.b64decode(raw[1:])
        else:
            number, data = raw[0], raw[1:]
        found[number] = found.get(number, b"") + data
    return found


# -- URLs ------------------------------------------------------------------------------------------


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


# -- exec ------------------------------------------------------------------------------------------


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


def test_streams_work_while_the_clock_stands() -> None:
    """Over sockets with `clock="manual"` only what the test asked to last waits for time."""

    async def main() -> dict[int, bytes]:
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
        return client.data

    loop = ManualLoop()
    try:
        assert b"hi\n" in loop.run_until_complete(main()).values()
    finally:
        loop.close()


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


# -- attach ----------------------------------------------------------------------------------------


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


# -- port-forward ----------------------------------------------------------------------------------


async def brackets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends back what comes, in brackets."""
    while data := await reader.read(65536):
        writer.write(b"<" + data + b">")
        await writer.drain()


async def pair_of(client: SpdyClient, port: str, request: str) -> tuple[int, int]:
    error = await client.open(streamType="error", port=port, requestID=request)
    return error, await client.open(streamType="data", port=port, requestID=request)


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


def _close_after(handler: Any) -> Any:
    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await handler(reader, writer)
        writer.close()

    return run


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
