"""The HTTP servers on real sockets (SRV-001, SRV-002, SRV-010, MIRR-035)."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import AsyncMock

import aiohttp
import pytest
from pods import make_pod

from refkubelet.config import KubeletConfiguration
from refkubelet.server.http import KubeletServers, ServerError, is_loopback
from refkubelet.server.pages import ServerCallbacks


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def configuration(**changes: object) -> KubeletConfiguration:
    base = KubeletConfiguration(address="127.0.0.1", port=free_port(), healthz_port=free_port())
    return replace(base, **changes)  # type: ignore[arg-type]


POD = make_pod("c", name="web-n1", uid="u", phase="Running")


@asynccontextmanager
async def serving(
    config: KubeletConfiguration, problem: str | None = None
) -> AsyncIterator[KubeletConfiguration]:
    callbacks = ServerCallbacks(lambda: [POD], lambda: problem, lambda: "x 1\n", lambda: "p 1\n")
    servers = KubeletServers(config, callbacks)
    await servers.start()
    try:
        yield config
    finally:
        await servers.stop()


async def get(port: int, path: str, scheme: str = "http") -> tuple[int, str]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:
        async with session.get(f"{scheme}://127.0.0.1:{port}{path}") as response:
            return response.status, await response.text()


async def test_healthz_says_ok_and_nothing_else_SRV_002() -> None:
    async with serving(configuration(), problem="stuck") as config:
        assert await get(config.healthz_port, "/healthz") == (200, "ok")
        assert await get(config.healthz_port, "/healthz/ping") == (200, "ok")
        assert (await get(config.healthz_port, "/pods"))[0] == 404


async def test_pods_is_a_pod_list_of_v1_MIRR_035() -> None:
    async with serving(configuration()) as config:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{config.port}/pods") as response:
                assert response.content_type == "application/json"
                value = await response.json()
    assert (value["kind"], value["apiVersion"]) == ("PodList", "v1")
    item = value["items"][0]
    assert "kind" not in item
    assert item["metadata"]["name"] == "web-n1"
    assert item["status"]["phase"] == "Running"


async def test_the_main_port_tells_about_a_stuck_sync_loop_SRV_002() -> None:
    async with serving(configuration(), problem="sync loop is stuck") as config:
        status, text = await get(config.port, "/healthz")
        assert (status, "sync loop is stuck" in text) == (500, True)
        assert (await get(config.port, "/healthz/ping"))[0] == 200
        assert await get(config.port, "/metrics") == (200, "x 1\n")


async def test_probes_have_metrics_of_their_own_SRV_032() -> None:
    async with serving(configuration(read_only_port=free_port())) as config:
        for port in (config.port, config.read_only_port):
            assert await get(port, "/metrics/probes") == (200, "p 1\n")


async def test_the_read_only_port_shows_pods_but_no_debug_SRV_010() -> None:
    async with serving(configuration(read_only_port=free_port())) as config:
        assert (await get(config.read_only_port, "/pods"))[0] == 200
        found = await get(config.read_only_port, "/exec/default/web/c")
        assert found == (405, "Debug endpoints are disabled.")


async def test_statistics_in_full_and_in_short_SRV_030() -> None:
    answer: dict[str, object] = {"node": {}, "pods": []}
    gone = OSError("imagefs device is not found")
    summary = AsyncMock(side_effect=[answer, answer, answer, gone])
    config = configuration(read_only_port=free_port())
    servers = KubeletServers(config, ServerCallbacks(lambda: [], summary=summary))
    await servers.start()
    try:
        path = "/stats/summary"
        assert await get(config.port, path) == (200, '{"node": {}, "pods": []}')
        assert (await get(config.read_only_port, f"{path}?only_cpu_and_memory=true"))[0] == 200
        assert (await get(config.port, f"{path}?only_cpu_and_memory=false"))[0] == 200
        wrong = await get(config.port, path)
        assert wrong == (500, "Internal Error: imagefs device is not found")
    finally:
        await servers.stop()
    asked = [call.kwargs["only_cpu_and_memory"] for call in summary.call_args_list]
    assert asked == [False, True, False, False]


async def test_servers_can_be_switched_off_SRV_001() -> None:
    async with serving(configuration(enable_server=False, healthz_port=0)) as config:
        with pytest.raises(aiohttp.ClientConnectorError):
            await get(config.port, "/pods")


@pytest.mark.parametrize("field", ["port", "healthz_port", "read_only_port"])
async def test_a_used_port_is_one_clear_error(field: str) -> None:
    """What a second kubelet on one machine sees."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        config = configuration(**{field: port})
        servers = KubeletServers(config, ServerCallbacks(lambda: []))
        wire = {"port": "port", "healthz_port": "healthzPort", "read_only_port": "readOnlyPort"}[
            field
        ]
        with pytest.raises(ServerError) as caught:
            await servers.start()
    assert str(caught.value) == (
        f"{wire}: cannot listen on 127.0.0.1:{port}: the address is in use, "
        f"perhaps by another kubelet; stop it or set another {wire}"
    )
    if field != "port":  # what had started is closed again
        with pytest.raises(aiohttp.ClientConnectorError):
            await get(config.port, "/pods")


async def test_a_configured_certificate_makes_the_main_port_tls(tmp_path: Path) -> None:
    cert, key = str(tmp_path / "tls.crt"), str(tmp_path / "tls.key")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    command += ["-subj", "/CN=n1", "-keyout", key, "-out", cert]
    try:
        await asyncio.get_running_loop().run_in_executor(
            None, lambda: subprocess.run(command, check=True, capture_output=True)
        )
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    config = configuration(tls_cert_file=cert, tls_private_key_file=key)
    async with serving(config):
        assert (await get(config.port, "/pods", "https"))[0] == 200


async def test_unusable_certificates_are_named(tmp_path: Path) -> None:
    (tmp_path / "tls.crt").write_text("no certificate")
    config = configuration(
        tls_cert_file=str(tmp_path / "tls.crt"), tls_private_key_file=str(tmp_path / "no.key")
    )
    with pytest.raises(ServerError, match=r"tlsCertFile .*tls\.crt.*cannot be used"):
        await KubeletServers(config, ServerCallbacks(lambda: [])).start()


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        *(("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("::ffff:127.0.0.1", True)),
        *(("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("::ffff:10.0.0.1", False)),
        *(("", False), ("localhost", False)),
    ],
)
def test_which_addresses_only_this_machine_reaches_SRV_011(address: str, wanted: bool) -> None:
    assert is_loopback(address) is wanted


@pytest.mark.parametrize("mode", ["AlwaysAllow", "Webhook"])
async def test_a_port_that_asks_nobody_who_they_are_stays_on_loopback_SRV_011(mode: str) -> None:
    base = configuration(address="0.0.0.0", healthz_port=0)
    config = replace(base, authorization=replace(base.authorization, mode=mode))
    with pytest.raises(ServerError, match="--insecure-server"):
        await KubeletServers(config, ServerCallbacks(lambda: [])).start()
    with socket.socket() as s:
        assert s.connect_ex(("127.0.0.1", config.port)) != 0
    servers = KubeletServers(config, ServerCallbacks(lambda: []), insecure=True)
    await servers.start()
    try:
        assert (await get(config.port, "/pods"))[0] == 200
    finally:
        await servers.stop()


NO_REQUESTS = {
    "a long line": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    "a long header": b"GET /pods HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    "no HTTP": b"\x16\x03\x01\x02\x00" * 20 + b"\r\n\r\n",
    "odd length": b"POST /stats/summary HTTP/1.1\r\nHost: a\r\nContent-Length: -7\r\n\r\n",
    "odd coding": b"GET /pods HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x, chunked\r\n\r\nzz\r\n",
}


@pytest.mark.parametrize("said", NO_REQUESTS.values(), ids=NO_REQUESTS)
async def test_what_is_no_request_is_answered_and_not_told_SRV_001(
    said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(configuration()) as config:
        for port in (config.port, config.healthz_port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(said)
            writer.write_eof()
            await asyncio.wait_for(reader.read(), 10)
            writer.close()
        assert (await get(config.port, "/pods"))[0] == 200
    assert [r.getMessage() for r in caplog.records if r.levelname == "ERROR"] == []


async def test_a_page_that_fails_is_told_once_and_answered_each_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> str:
        raise KeyError("surprise")

    config = configuration()
    servers = KubeletServers(config, ServerCallbacks(lambda: [], metrics=broken))
    await servers.start()
    try:
        for _ in range(3):
            assert (await get(config.port, "/metrics"))[0] == 500
        assert (await get(config.port, "/pods"))[0] == 200
    finally:
        await servers.stop()
    assert caplog.text.count("Traceback") == 1
