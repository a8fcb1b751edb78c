"""Requests passed on over sockets, to a double of a kubelet with TLS."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web
from fakekubeapi_helpers import NODES, PODS, create, pod

from fakekubeapi import CertificateAuthority, FakeApi, ServerOptions
from fakekubeapi.access.serving import kubelet_client_pem, server_context
from fakekubeapi.http import serve
from fakekubeapi.kubelets.options import CredentialsError, KubeletOptions
from simclock import RealClock

POD_A = f"{PODS}/a"
CONTAINER = pod()["spec"]["containers"][0]["name"]
WAIT_S = 120


@dataclass
class Kubelet:
    """Answers what it is asked; `asked` has the requests, `owners` who sent them."""

    asked: list[web.Request] = field(default_factory=list)
    owners: list[Any] = field(default_factory=list)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    more: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        transport = request.transport
        assert transport is not None
        self.owners.append(transport.get_extra_info("peercert"))
        if request.headers.get("Upgrade") == "websocket":
            return await self._echo(request)
        if request.path.startswith("/containerLogs/"):
            return await self._log(request)
        if request.path == "/moved":
            return web.Response(status=302, headers={"Location": "/pods"})
        body = await request.read()
        return web.json_response(
            {"method": request.method, "path": request.path_qs, "body": body.decode()},
            status=int(request.query.get("status", "200")),
        )

    async def _echo(self, request: web.Request) -> web.StreamResponse:
        joined = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
        await joined.prepare(request)
        try:
            async for message in joined:
                await joined.send_bytes(message.data * 2)
        finally:
            self.closed.set()
        return joined

    async def _log(self, request: web.Request) -> web.StreamResponse:
        if "follow" not in request.query:
            return web.Response(text="all\n", status=int(request.query.get("limitBytes", "200")))
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first\n")
        try:
            await self.more.wait()
            await response.write(b"second\n")
        finally:
            self.closed.set()
        return response


@dataclass
class World:
    api: FakeApi
    url: str
    kubelet: Kubelet


@asynccontextmanager
async def world(options: KubeletOptions | None = None, **more: Any) -> AsyncIterator[World]:
    """A server with a pod `a` on the node `n`, whose kubelet is a double."""
    kubelet = Kubelet()
    authority = more.get("authority") or CertificateAuthority.make(RealClock().now())
    runner = web.ServerRunner(
        web.Server(kubelet.handle, handler_cancellation=True), shutdown_timeout=0.5
    )
    await runner.setup()
    tls = server_context(authority, ["127.0.0.1"], RealClock().now())
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    kubelet.port = runner.addresses[0][1]
    api = FakeApi(options=ServerOptions(kubelets=options or KubeletOptions()))
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}},
    }
    try:
        await create(api, NODES, {"metadata": {"name": "n"}, "status": status})
        await create(api, PODS, pod())
        async with await serve(api) as server:
            async with asyncio.timeout(WAIT_S):
                yield World(api, server.url, kubelet)
    finally:
        kubelet.more.set()
        await runner.cleanup()


async def asked(url: str, method: str = "GET", **more: Any) -> tuple[int, Any]:
    """Status and body, decoded if it is JSON."""
    async with aiohttp.ClientSession() as http:
        async with http.request(method, url, allow_redirects=False, **more) as answer:
            text = await answer.text()
            is_json = answer.content_type == "application/json"
            return answer.status, json.loads(text) if is_json else text


async def test_a_log_is_the_kubelet_s() -> None:
    async with world() as w:
        assert await asked(f"{w.url}{POD_A}/log?tailLines=3&timestamps=true") == (200, "all\n")
    wanted = f"/containerLogs/default/a/{CONTAINER}?stream=All&tailLines=3&timestamps=true"
    assert [request.path_qs for request in w.kubelet.asked] == [wanted]


async def test_a_followed_log_comes_as_it_is_written_and_ends_with_its_client() -> None:
    async with world() as w, aiohttp.ClientSession() as http:
        async with http.get(f"{w.url}{POD_A}/log?follow=true") as answer:
            assert answer.content_type == "text/plain"
            assert await answer.content.readline() == b"first\n"
            w.kubelet.more.set()
            assert await answer.content.readline() == b"second\n"
            assert await answer.content.read() == b""
        w.kubelet.more.clear()
        w.kubelet.closed.clear()
        answer = await http.get(f"{w.url}{POD_A}/log?follow=true")
        assert await answer.content.readline() == b"first\n"
        answer.close()
        await w.kubelet.closed.wait()


async def test_the_kubelet_s_refusal_is_told_in_the_server_s_words() -> None:
    async with world() as w:
        status, body = await asked(f"{w.url}{POD_A}/log?limitBytes=500")
    assert (status, body["reason"]) == (500, "InternalError")
    assert body["message"] == "Internal error occurred: all\n"


async def test_a_log_without_a_node_is_empty() -> None:
    async with world() as w:
        await create(w.api, PODS, pod("b", node=None))
        assert await asked(f"{w.url}{PODS}/b/log") == (204, "")


async def test_a_kubelet_that_is_away() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        await _ask_at(int(taken.getsockname()[1]))


async def _ask_at(port: int) -> None:
    async with world() as w:
        closed = {"daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
        body = {"status": closed}
        patched = await w.api.request(
            "PATCH",
            f"{NODES}/n/status",
            body=body,
            content_type="application/merge-patch+json",
        )
        assert patched.ok
        status, log = await asked(f"{w.url}{POD_A}/log")
        path = f"/containerLogs/default/a/{CONTAINER}?stream=All"
        refused = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
        assert (status, log["message"]) == (500, f'Get "https://127.0.0.1:{port}{path}": {refused}')
        assert "reason" not in log
        status, page = await asked(f"{w.url}{NODES}/n/proxy/pods")
        assert (status, page["reason"]) == (503, "ServiceUnavailable")
        assert page["message"] == f"error trying to reach service: {refused}"
        upgrade = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
        status, command = await asked(f"{w.url}{POD_A}/exec?stdout=1", headers=upgrade)
        assert (status, command["message"]) == (500, f"error dialing backend: {refused}")


async def test_what_changes_its_protocol_is_joined_byte_by_byte() -> None:
    async with world() as w, aiohttp.ClientSession() as http:
        url = f"{w.url}{POD_A}/exec?command=cat&stdin=true&stdout=true"
        async with http.ws_connect(url, protocols=("v5.channel.k8s.io",)) as joined:
            assert joined.protocol == "v5.channel.k8s.io"
            for size in (1, 70_000, 300_000):
                await joined.send_bytes(b"x" * size)
                assert await joined.receive_bytes() == b"x" * 2 * size
        await w.kubelet.closed.wait()
    wanted = f"/exec/default/a/{CONTAINER}?command=cat&input=1&output=1"
    assert [request.path_qs for request in w.kubelet.asked] == [wanted]
    assert w.kubelet.asked[0].headers["X-Forwarded-For"] == "127.0.0.1"


async def test_a_joined_connection_ends_with_its_client() -> None:
    async with world() as w:
        parts = urlsplit(w.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        lines = [
            f"GET {POD_A}/attach?stdout=1 HTTP/1.1",
            "Host: x",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version: 13",
            "Authorization: Bearer of-the-client",
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 ")
        writer.close()
        await w.kubelet.closed.wait()
    assert "Authorization" not in w.kubelet.asked[0].headers


async def test_the_end_of_a_joined_connection_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    async with world() as w, aiohttp.ClientSession() as http:
        async with http.ws_connect(f"{w.url}{POD_A}/attach?stdout=1"):
            pass
        await w.kubelet.closed.wait()
    assert [record.getMessage() for record in caplog.records if record.levelno > 20] == []


async def test_exec_wants_an_upgrade() -> None:
    async with world() as w:
        status, body = await asked(f"{w.url}{POD_A}/exec?command=true&stdout=true", "POST")
    assert (status, body["message"]) == (400, "Upgrade request required")
    assert w.kubelet.asked == []


async def test_a_refused_upgrade_is_told_as_the_kubelet_tells_it() -> None:
    async with world() as w:
        upgrade = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
        url = f"{w.url}{NODES}/n/proxy/x?status=403"
        status, body = await asked(url, "POST", headers=upgrade)
        assert (status, body["path"]) == (403, "/x?status=403")
        status, body = await asked(f"{w.url}{POD_A}/exec?stdout=1", "POST", headers=upgrade)
    assert (status, body["message"]) == (500, "invalid upgrade response: status code 200")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
async def test_a_proxy_passes_on_method_path_query_and_body(method: str) -> None:
    async with world() as w:
        url = f"{w.url}{NODES}/n/proxy/a%2Fb/?x=%26"
        body = "text" if method in ("POST", "PUT", "PATCH") else ""
        headers = {"Authorization": "Bearer x", "X-Own": "y"}
        status, found = await asked(url, method, data=body or None, headers=headers)
    assert (status, found["method"], found["body"]) == (200, method, body)
    assert found["path"] == "/a%2Fb/?x=%26"
    seen = w.kubelet.asked[0].headers
    assert ("Authorization" in seen, seen["X-Own"]) == (False, "y")
    assert seen["X-Forwarded-Uri"] == f"{NODES}/n/proxy/a%2Fb/"


async def test_the_root_of_a_proxy_has_a_slash_and_redirections_lead_through() -> None:
    async with world() as w, aiohttp.ClientSession() as http:
        for path, wanted in (
            ("?a=b", f"{NODES}/n/proxy/?a=b"),
            ("/moved", f"{NODES}/n/proxy/pods"),
        ):
            url = f"{w.url}{NODES}/n/proxy{path}"
            async with http.get(url, allow_redirects=False) as answer:
                assert answer.headers["Location"] == wanted


async def test_a_pod_s_own_server_is_not_shown_the_credentials_for_kubelets() -> None:
    authority = CertificateAuthority.make(RealClock().now())
    pem = kubelet_client_pem(authority, RealClock().now())
    async with world(KubeletOptions(client_pem=pem), authority=authority) as w:
        status = {"podIPs": [{"ip": "127.0.0.1"}], "podIP": "127.0.0.1"}
        patched = await w.api.request(
            "PATCH",
            f"{POD_A}/status",
            body={"status": status},
            content_type="application/merge-patch+json",
        )
        assert patched.ok
        url = f"{w.url}{PODS}/https:a:{w.kubelet.port}/proxy/x"
        assert (await asked(url))[0] == 200
        assert (await asked(f"{w.url}{NODES}/n/proxy/x"))[0] == 200
    of_pod, of_node = w.kubelet.owners
    assert not of_pod
    names = {value for part in of_node["subject"] for _, value in part}
    assert names == {"kube-apiserver-kubelet-client", "system:masters"}


async def test_a_kubelet_of_another_authority_is_not_believed(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_text(CertificateAuthority.make(RealClock().now(), "other").root_pem)
    async with world(KubeletOptions(certificate_authority=file)) as w:
        status, body = await asked(f"{w.url}{POD_A}/log")
        assert status == 500
        assert "tls: failed to verify certificate: x509: " in body["message"]
        url = f"{w.url}{POD_A}/log?insecureSkipTLSVerifyBackend=true"
        assert await asked(url) == (200, "all\n")
        upgrade = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
        status, body = await asked(f"{w.url}{POD_A}/exec?stdout=1", headers=upgrade)
        assert "tls: failed to verify certificate: x509: " in body["message"]
    assert len(w.kubelet.asked) == 1


async def test_a_kubelet_of_the_authority_is_believed(tmp_path: Path) -> None:
    authority = CertificateAuthority.make(RealClock().now())
    file = tmp_path / "ca.crt"
    file.write_text(authority.root_pem)
    options = KubeletOptions(certificate_authority=file)
    async with world(options, authority=authority) as w:
        assert await asked(f"{w.url}{POD_A}/log") == (200, "all\n")
    assert options.verifying.verify_mode == ssl.CERT_REQUIRED


def test_files_that_are_no_credentials(tmp_path: Path) -> None:
    file = tmp_path / "x.pem"
    for options in (
        KubeletOptions(certificate_authority=file),
        KubeletOptions(client_certificate=file),
        KubeletOptions(client_key=file),
    ):
        with pytest.raises(CredentialsError, match=r"x\.pem: "):
            options.check()
    file.write_text("nothing")
    with pytest.raises(CredentialsError, match="wanted a certificate and its key as PEM"):
        KubeletOptions(client_certificate=file).check()
    with pytest.raises(CredentialsError, match="wanted certificates of an authority as PEM"):
        KubeletOptions(certificate_authority=file).check()
