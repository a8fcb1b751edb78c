"""The real network of probes against real sockets on the loopback interface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from aiohttp import web

from refkubelet.network import HttpRequest, NetworkError, SocketNetwork
from refkubelet.probes.http import http_get, http_headers


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
    with pytest.raises(NetworkError, match="Client.Timeout exceeded"):
        await get(site, "/slow", timeout_s=0.05)


async def test_tcp_connects_or_tells_why_PROBE_071(site: Site) -> None:
    network = SocketNetwork()
    await network.tcp_connect("127.0.0.1", site.port, 5)
    with pytest.raises(NetworkError, match=r"dial tcp 127.0.0.1:1: "):
        await network.tcp_connect("127.0.0.1", 1, 5)
    with pytest.raises(NetworkError, match="connection refused"):
        await network.http_get(HttpRequest("http://127.0.0.1:1/"), 5)


class Health(grpc.GenericRpcHandler):
    """Answers Health/Check by the name of the service that is asked for."""

    def service(self, details: Any) -> Any:
        if details.method != "/grpc.health.v1.Health/Check":
            return None
        return grpc.unary_unary_rpc_method_handler(self._check)

    async def _check(self, request: bytes, context: Any) -> bytes:
        name = request[2:].decode()
        if name == "slow":
            await asyncio.sleep(1)
        if name == "missing":
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        if name == "old":
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "unknown method")
        return b"\x08\x02" if name == "down" else b"\x08\x01"


@pytest_asyncio.fixture
async def health() -> AsyncIterator[str]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Health(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(0)


async def test_grpc_health_answers_PROBE_072(health: str) -> None:
    network = SocketNetwork()
    assert await network.grpc_health(health, "", 5) == "SERVING"
    assert await network.grpc_health(health, "down", 5) == "NOT_SERVING"


@pytest.mark.parametrize(
    ("service", "text"),
    [
        ("slow", "timeout: health rpc did not complete within 300ms"),
        ("old", "error: this server does not implement the grpc health protocol (grpc.health.v1"),
        ("missing", "error: health rpc probe failed: rpc error: code = NotFound desc = unknown"),
    ],
)
async def test_grpc_health_failures_PROBE_073(health: str, service: str, text: str) -> None:
    with pytest.raises(NetworkError) as error:
        await SocketNetwork().grpc_health(health, service, 0.3)
    assert str(error.value).startswith(text)


async def test_grpc_nobody_listens_PROBE_073() -> None:
    with pytest.raises(NetworkError) as error:
        await SocketNetwork().grpc_health("127.0.0.1:1", "", 0.1)
    assert str(error.value) == (
        'timeout: failed to connect service "127.0.0.1:1" within 100ms: context deadline exceeded'
    )
