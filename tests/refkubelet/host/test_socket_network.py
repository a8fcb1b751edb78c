"""The real network of probes against real sockets on the loopback interface."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any
from unittest.mock import AsyncMock

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from aiohttp import web
from kubecri.health import api_pb2 as pb

from kubelet_conformance.harness.runtimes.fake import server_context
from refkubelet.host.http_get import http_get, http_headers
from refkubelet.host.network import HttpRequest, NetworkError, SocketNetwork, sent_headers


class Site:
    """One web server; `seen` keeps the requests."""

    def __init__(self) -> None:
        self.seen: list[web.Request] = []
        self.port = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request)
        if request.path == "/slow":
            await asyncio.sleep(0.3)
        if request.path == "/loop":
            return web.Response(status=302, headers={"Location": "/loop"})
        if request.path == "/here":
            return web.Response(status=302, headers={"Location": "/done"})
        if request.path == "/away":
            return web.Response(
                status=302, text="gone", headers={"Location": "http://other.invalid/"}
            )
        return web.Response(status=200, text="x" * 20000)


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    found = Site()
    app = web.Application()
    app.router.add_get("/{path:.*}", found.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.port = runner.addresses[0][1]
    yield found
    await runner.cleanup()


async def get(site: Site, path: str, timeout_s: float = 5) -> tuple[int, str]:
    url = f"http://127.0.0.1:{site.port}{path}"
    request = HttpRequest(url, http_headers([("Host", "me")]))
    answer = await http_get(SocketNetwork(), request, timeout_s)
    return answer.status, answer.body


async def test_get_sends_the_probes_headers_PROBE_067(site: Site) -> None:
    status, body = await get(site, "/x?a=1")
    assert (status, len(body)) == (200, 10 * 1024)  # PROBE-070
    (request,) = site.seen
    sent = {name: request.headers.get(name) for name in ("User-Agent", "Accept", "Host")}
    assert sent == {"User-Agent": "kube-probe/1.36", "Accept": "*/*", "Host": "me"}
    assert "Accept-Encoding" not in request.headers
    assert request.path_qs == "/x?a=1"


async def test_redirects_stay_on_the_host_PROBE_069(site: Site) -> None:
    assert (await get(site, "/here"))[0] == 200
    assert await get(site, "/away") == (302, "gone")
    with pytest.raises(NetworkError, match="stopped after 10 redirects"):
        await get(site, "/loop")


async def test_time_limit_covers_the_whole_exchange_PROBE_066(site: Site) -> None:
    with pytest.raises(NetworkError, match=r"Client\.Timeout exceeded"):
        await get(site, "/slow", timeout_s=0.05)


class Script:
    """A server that answers every request with the same bytes, in parts, and keeps the requests."""

    def __init__(
        self, *parts: bytes, hangs: bool = False, tls: ssl.SSLContext | None = None
    ) -> None:
        self.parts, self.hangs, self.tls = parts, hangs, tls
        self.requests: list[bytes] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, ssl=self.tls)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await asyncio.gather(*self._tasks)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.append(task)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            for part in self.parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0.02)
            if self.hangs:
                await reader.read()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"


async def test_the_body_is_read_to_its_end_PROBE_070() -> None:
    async with Script(HEAD, b"abc", b"def") as url:
        answer = await SocketNetwork().http_get(HttpRequest(url), 5)
    assert (answer.body, answer.broken) == ("abcdef", "")


@pytest.mark.parametrize(
    ("hangs", "broken"), [(False, "unexpected EOF"), (True, "Client.Timeout or context canc")]
)
async def test_a_body_that_breaks_off_is_no_failed_exchange_PROBE_070(
    hangs: bool, broken: str
) -> None:
    async with Script(HEAD, b"abc", hangs=hangs) as url:
        answer = await SocketNetwork().http_get(HttpRequest(url), 2)
    assert (answer.status, answer.body) == (200, "abc")
    assert broken in answer.broken


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((), "EOF"),
        ((b"hello there\r\n\r\n",), "net/http: HTTP/1.x transport connection broken: "),
    ],
)
async def test_what_is_no_answer_PROBE_068(parts: tuple[bytes, ...], text: str) -> None:
    async with Script(*parts) as url:
        with pytest.raises(NetworkError) as error:
            await SocketNetwork().http_get(HttpRequest(url), 5)
    assert str(error.value).startswith(text)
    assert "\n" not in str(error.value)


async def test_nothing_is_added_to_the_headers_PROBE_067(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1/")
    server = Script(b"HTTP/1.1 204 No\r\n\r\n")
    async with server as url:
        headers = (("X-A", "1"), ("X-A", "2"), ("Connection", "close"))
        assert (await SocketNetwork().http_get(HttpRequest(url, headers), None)).status == 204
    lines = server.requests[0].decode().split("\r\n")
    host = url.removeprefix("http://").removesuffix("/")
    assert lines == [
        "GET / HTTP/1.1",
        f"Host: {host}",
        "X-A: 1",
        "X-A: 2",
        "Connection: close",
        "",
        "",
    ]


def test_the_host_header_keeps_its_port_PROBE_066() -> None:
    assert sent_headers(HttpRequest("http://10.0.0.1:80/")) == (("Host", "10.0.0.1:80"),)
    assert sent_headers(HttpRequest("http://[fd00::1]:443/")) == (("Host", "[fd00::1]:443"),)


async def test_https_takes_any_certificate_PROBE_066() -> None:
    context = server_context()
    if context is None:
        pytest.skip("needs the program openssl")

    async with Script(b"HTTP/1.1 204 No\r\n\r\n", tls=context) as url:
        request = HttpRequest(url.replace("http:", "https:"))
        assert (await SocketNetwork().http_get(request, 5)).status == 204
    async with Script(b"HTTP/1.1 400 Bad\r\n\r\n") as url:
        plain = HttpRequest(url.replace("http:", "https:"))
        with pytest.raises(NetworkError):
            await SocketNetwork().http_get(plain, 0.5)


async def test_a_name_that_nobody_knows_PROBE_068(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    look_up = AsyncMock(side_effect=unknown)
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    text = "dial tcp: lookup nowhere.invalid: no such host"
    with pytest.raises(NetworkError, match=text):
        await SocketNetwork().tcp_connect("nowhere.invalid", 80, 5)
    with pytest.raises(NetworkError, match=text):
        await SocketNetwork().http_get(HttpRequest("http://nowhere.invalid:80/"), 5)


@pytest.fixture
def dead_port() -> Iterator[int]:
    """A port of 127.0.0.1 that is taken, and on which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


async def test_tcp_connects_or_tells_why_PROBE_071(site: Site, dead_port: int) -> None:
    network = SocketNetwork()
    await network.tcp_connect("127.0.0.1", site.port, 5)
    with pytest.raises(NetworkError, match=f"dial tcp 127.0.0.1:{dead_port}: "):
        await network.tcp_connect("127.0.0.1", dead_port, 5)
    with pytest.raises(NetworkError, match="connection refused"):
        await network.http_get(HttpRequest(f"http://127.0.0.1:{dead_port}/"), 5)


async def test_tcp_sends_nothing_PROBE_071() -> None:
    """PROBE-071.3: the connection is closed at once, without a byte."""
    received: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.set_result(await reader.read())
        writer.close()

    async with await asyncio.start_server(read, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        await SocketNetwork().tcp_connect("127.0.0.1", port, 5)
        assert await asyncio.wait_for(received, 5) == b""


class Health(grpc.GenericRpcHandler):
    """Answers Health/Check by the name of the service that is asked for."""

    def __init__(self) -> None:
        self.agents: list[str] = []

    def service(self, details: Any) -> Any:
        if details.method != "/grpc.health.v1.Health/Check":
            return None
        self.agents += [value for key, value in details.invocation_metadata if key == "user-agent"]
        return grpc.unary_unary_rpc_method_handler(
            self._check, request_deserializer=pb.HealthCheckRequest.FromString
        )

    async def _check(self, request: Any, context: Any) -> bytes:
        name = request.service
        if name == "slow":
            await asyncio.sleep(1)
        if name == "missing":
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        if name == "old":
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "unknown method")
        # By hand: a number without a name, and the default, which is not written at all.
        answers = {"down": b"\x08\x02", "odd": b"\x08\x2a", "unknown": b""}
        return answers.get(name, b"\x08\x01")


HEALTH = Health()


@pytest_asyncio.fixture
async def health() -> AsyncIterator[str]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((HEALTH,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(0)


async def test_grpc_health_answers_PROBE_072(health: str) -> None:
    """PROBE-072.4: with the agent of probes, too."""
    network = SocketNetwork()
    assert await network.grpc_health(health, "", 5) == "SERVING"
    assert await network.grpc_health(health, "down", 5) == "NOT_SERVING"
    assert await network.grpc_health(health, "odd", 5) == "42"
    assert await network.grpc_health(health, "unknown", 5) == "UNKNOWN"
    assert await network.grpc_health(health, "x" * 300, 5) == "SERVING"
    assert all(agent.startswith("kube-probe/1.36 ") for agent in HEALTH.agents)


@pytest.mark.parametrize(
    ("service", "text"),
    [
        ("slow", "timeout: health rpc did not complete within 300ms"),
        ("old", "error: this server does not implement the grpc health protocol (grpc.health.v1"),
        ("missing", "error: health rpc probe failed: rpc error: code = NotFound desc = unknown"),
    ],
)
async def test_grpc_health_failures_PROBE_073(health: str, service: str, text: str) -> None:
    """PROBE-073.3, PROBE-073.4, PROBE-073.5."""
    with pytest.raises(NetworkError) as error:
        await SocketNetwork().grpc_health(health, service, 0.3)
    assert str(error.value).startswith(text)


async def test_grpc_nobody_listens_PROBE_073(dead_port: int) -> None:
    address = f"127.0.0.1:{dead_port}"
    with pytest.raises(NetworkError) as error:
        await SocketNetwork().grpc_health(address, "", 0.1)
    assert str(error.value) == (
        f'timeout: failed to connect service "{address}" within 100ms: context deadline exceeded'
    )
