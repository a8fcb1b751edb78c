"""The HTTP server and its command: real sockets, real time."""

import asyncio
import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import lightkube
import pytest
import yaml
from fakekubeapi_helpers import PODS, pod
from lightkube.config.kubeconfig import KubeConfig
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Node, Pod

from fakekubeapi import FakeApi
from fakekubeapi.cli import UsageError, kubeconfig, main, parse_listen
from fakekubeapi.http import serve


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - real sockets: nothing tells when
            await asyncio.sleep(0.005)


async def test_create_patch_watch_delete_over_http() -> None:
    async with await serve(FakeApi()) as server, aiohttp.ClientSession(server.url) as http:
        async with http.post(PODS, json=pod()) as answer:
            assert answer.status == 201
            made = await answer.json()
        watch = {"watch": "true", "resourceVersion": made["metadata"]["resourceVersion"]}
        async with http.get("/api/v1/pods", params=watch) as stream:
            body = json.dumps({"status": {"phase": "Running"}})
            headers = {"Content-Type": "application/strategic-merge-patch+json"}
            async with http.patch(f"{PODS}/a/status", data=body, headers=headers) as answer:
                assert answer.status == 200
            event = json.loads(await stream.content.readline())
            assert event["type"] == "MODIFIED"
            assert event["object"]["status"]["phase"] == "Running"
            async with http.delete(f"{PODS}/a", json={"gracePeriodSeconds": 0}) as answer:
                assert answer.status == 200
            kinds = [json.loads(await stream.content.readline())["type"] for _ in range(2)]
            assert kinds == ["MODIFIED", "DELETED"]
        async with http.get(f"{PODS}/a") as answer:
            assert (answer.status, (await answer.json())["reason"]) == (404, "NotFound")


async def test_lightkube_over_http() -> None:
    async with await serve(FakeApi()) as server:
        config = KubeConfig.from_dict(yaml.safe_load(kubeconfig(server.url)))
        async with lightkube.AsyncClient(config) as client:
            await client.create(Node(metadata=ObjectMeta(name="n")))
            watch = client.watch(Pod, namespace="*")
            following = asyncio.ensure_future(anext(watch))
            async with aiohttp.ClientSession(server.url) as http:
                async with http.post(PODS, json=pod()) as answer:
                    assert answer.status == 201
            kind, found = await following
            assert (kind, found.metadata.name) == ("ADDED", "a")
            await watch.aclose()


async def test_health_discovery_and_refusals() -> None:
    async with await serve(FakeApi()) as server, aiohttp.ClientSession(server.url) as http:
        async with http.get("/healthz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok")
        async with http.get("/api/v1") as answer:
            assert (await answer.json())["kind"] == "APIResourceList"
        kubectl = {"Accept": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}
        async with http.get("/openapi/v2", headers=kubectl) as answer:
            assert (answer.status, answer.content_type) == (406, "text/plain")
        cbor = {"Content-Type": "application/cbor"}
        async with http.post(PODS, data=b"\xd9\xd9\xf7\xa0", headers=cbor) as answer:
            assert answer.status == 415
        async with http.put(PODS, json={}) as answer:
            assert answer.status == 405
        large = {
            "data": io.BytesIO(b"x" * 4_000_000),
            "headers": {"Content-Type": "application/json"},
        }
        async with http.post(PODS, **large) as answer:
            assert (answer.status, (await answer.json())["reason"]) == (
                413,
                "RequestEntityTooLarge",
            )


async def test_a_post_compacts_the_history() -> None:
    async with await serve(FakeApi()) as server, aiohttp.ClientSession(server.url) as http:
        async with http.post(PODS, json=pod()) as answer:
            assert answer.status == 201
        async with http.post("/fakekubeapi/compact") as answer:
            assert answer.status == 200
        params = {"watch": "true", "resourceVersion": "1"}
        async with http.get("/api/v1/pods", params=params) as stream:
            event = json.loads(await stream.content.readline())
            assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


async def test_down_breaks_connections() -> None:
    api = FakeApi()
    async with await serve(api) as server, aiohttp.ClientSession(server.url) as http:
        async with http.get("/api/v1/pods", params={"watch": "true"}) as stream:
            with api.down():
                with pytest.raises(aiohttp.ClientError):
                    await http.get("/api/v1/pods")
                with pytest.raises(aiohttp.ClientError):
                    await stream.content.readline()
        async with http.get("/api/v1/pods") as answer:
            assert answer.status == 200


async def test_a_client_that_goes_away_ends_its_watch() -> None:
    api = FakeApi()
    async with await serve(api) as server:
        async with aiohttp.ClientSession(server.url) as http:
            stream = await http.get("/api/v1/pods", params={"watch": "true"})
            await until(lambda: bool(api.store._feeds._by_place))
            stream.close()
        await until(lambda: not api.store._feeds._by_place)


async def test_close_ends_open_watches() -> None:
    server = await serve(FakeApi())
    async with aiohttp.ClientSession(server.url) as http:
        async with http.get("/api/v1/pods", params={"watch": "true"}) as stream:
            async with asyncio.timeout(60):
                await server.close()
                with pytest.raises(aiohttp.ClientError):
                    await stream.content.readline()


def start_cli(*args: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fakekubeapi.cli", *args]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def test_serve_writes_a_kubeconfig_and_stops_on_sigterm(tmp_path: Path) -> None:
    out = tmp_path / "kubeconfig"
    with start_cli("serve", "--listen", "127.0.0.1:0", "--kubeconfig-out", str(out)) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = line.removeprefix("fakekubeapi: serving on ").strip()
        server = KubeConfig.from_file(out).get().cluster.server
        assert server == url
        os.kill(process.pid, signal.SIGTERM)
        _, errors = process.communicate(timeout=200)
    assert (process.returncode, errors) == (0, "")


def test_a_used_port_is_one_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["serve", "--listen", address]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"fakekubeapi: cannot listen on {address}: ")
    assert "--listen 127.0.0.1:0" in message
    assert "Traceback" not in message


def test_an_unwritable_kubeconfig_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "missing" / "kubeconfig"
    assert main(["serve", "--listen", "127.0.0.1:0", "--kubeconfig-out", str(out)]) == 2
    assert f"--kubeconfig-out: cannot write {out}" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["8001", "host:", ":1", "host:port", "host:70000", ""])
def test_wrong_listen_addresses(text: str) -> None:
    with pytest.raises(UsageError, match="--listen: wanted HOST:PORT"):
        parse_listen(text)


def test_an_ipv6_listen_address() -> None:
    assert parse_listen("[::1]:80") == ("::1", 80)


async def test_what_is_no_request_is_answered_and_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with await serve(FakeApi()) as server:
        url = urlsplit(server.url)
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        writer.write(b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b" 400 Bad Request" in await reader.read()
        writer.close()
    assert caplog.records == []


async def test_requests_and_why_they_were_refused_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "fakekubeapi.requests")
    async with await serve(FakeApi()) as server, aiohttp.ClientSession(server.url) as http:
        await http.post(PODS, json=pod())
        await http.get(f"{PODS}/no", params={"pretty": "true"})
        await http.get("/api/v1/pods", headers={"Accept": "text/html"})
        await http.get("/api/v1/nodes/no/proxy/pods")
    said = [line.rpartition(" (")[0] for line in caplog.messages]
    assert said[:2] == [
        f"POST {PODS} -> 201",
        f'GET {PODS}/no?pretty=true -> 404: pods "no" not found',
    ]
    assert said[2].startswith("GET /api/v1/pods -> 406: 406: Not Acceptable Available")
    assert said[3] == 'GET /api/v1/nodes/no/proxy/pods -> 404: nodes "no" not found'


async def test_without_a_reader_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with await serve(FakeApi()) as server, aiohttp.ClientSession(server.url) as http:
        await http.get(f"{PODS}/no")
    assert caplog.messages == []
