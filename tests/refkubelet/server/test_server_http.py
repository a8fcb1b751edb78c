"""The HTTP servers on real sockets (SRV-001, SRV-002, SRV-003, SRV-010, MIRR-035)."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import aiohttp
import pytest
from server_world import EVERYBODY, OPEN, ask, host, port

from kubelet_conformance.harness.kubelets.clients import client_context, make_authority
from kubeobjects.structs import replace
from refkubelet.config import KubeletConfiguration
from refkubelet.config.schema.kubelet_config import AnonymousAuthentication, X509Authentication
from refkubelet.server import system_logs
from refkubelet.server.common.exchange import Request, as_json
from refkubelet.server.common.health import all_checks, one_check
from refkubelet.server.http import (
    KubeletServers,
    Ports,
    ServerError,
    check_servers,
    is_loopback,
)
from refkubelet.server.port import read_only_port
from refkubelet.server.tls.names import cipher_string, version_of
from simclock import RealClock


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def configuration(**changes: Any) -> KubeletConfiguration:
    base = replace(EVERYBODY, address="127.0.0.1", port=free_port(), healthz_port=free_port())
    return replace(base, **changes)


PKI: dict[str, str] = {}


@pytest.fixture(autouse=True, scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One directory for certificates that are made: making one takes a while."""
    PKI["directory"] = str(tmp_path_factory.mktemp("pki"))


def servers_of(config: KubeletConfiguration, **parts: Any) -> Any:
    served = host(**parts)
    return KubeletServers(
        config,
        Ports(lambda: port(config, served), lambda: read_only_port(served)),
        RealClock(),
        certificates=PKI["directory"],
        host_name="n1",
    )


@asynccontextmanager
async def serving(
    config: KubeletConfiguration, problem: str | None = None, **parts: Any
) -> AsyncIterator[KubeletConfiguration]:
    checks = {"ping": lambda: None, "syncloop": lambda: problem}
    servers = servers_of(config, checks=checks, **parts)
    await servers.start()
    try:
        yield config
    finally:
        await servers.stop()


async def get(number: int, path: str, tls: ssl.SSLContext | bool | None = None) -> tuple[int, str]:
    """GET with HTTPS, unless `tls` is False; None: whatever the certificate is."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls or False)) as session:
        scheme = "http" if tls is False else "https"
        async with session.get(f"{scheme}://127.0.0.1:{number}{path}") as response:
            return response.status, await response.text()


async def test_healthz_says_ok_and_nothing_else_SRV_002() -> None:
    async with serving(configuration(), problem="stuck") as config:
        assert await get(config.healthz_port, "/healthz", False) == (200, "ok")
        assert await get(config.healthz_port, "/healthz/ping", False) == (200, "ok")
        assert (await get(config.healthz_port, "/pods", False))[0] == 404


async def test_pods_is_a_pod_list_of_v1_MIRR_035() -> None:
    async with serving(configuration()) as config:
        context = client_context(Path(PKI["directory"]), None)
        async with aiohttp.ClientSession() as session:
            url = f"https://127.0.0.1:{config.port}/pods"
            async with session.get(url, ssl=context) as response:
                assert response.content_type == "application/json"
                value = await response.json()
    assert (value["kind"], value["apiVersion"]) == ("PodList", "v1")
    item = value["items"][0]
    assert "kind" not in item
    assert item["metadata"]["name"] == "web-n1"
    assert item["status"]["phase"] == "Running"


async def test_the_main_port_tells_about_a_stuck_sync_loop_SRV_002() -> None:
    on = port(served=host(checks={"ping": lambda: None, "syncloop": lambda: "is stuck"}))
    assert await ask(on, "/healthz") == (
        500,
        "[+]ping ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n",
    )
    assert await ask(on, "/healthz/syncloop") == (500, "internal server error: is stuck\n")
    assert await ask(on, "/healthz/ping") == (200, "ok")
    assert await ask(on, "/healthz?exclude=syncloop") == (200, "ok")
    assert await ask(on, "/healthz?exclude=syncloop&exclude=x&verbose") == (
        200,
        "[+]ping ok\n[+]syncloop excluded: ok\nwarn: some health checks cannot be excluded: "
        'no matches for "x"\nhealthz check passed\n',
    )


def test_health_pages_are_plain_text_and_nothing_else_SRV_002() -> None:
    checks = {"ping": lambda: None, "stuck": lambda: "for a while"}
    verbose = Request(path="/healthz", query=(("verbose", ""), ("exclude", "stuck")))
    odd = Request(path="/healthz", query=(("exclude", "b"), ("exclude", "stuck"), ("exclude", "a")))
    pages = [all_checks(checks, request) for request in (Request(path="/"), verbose, odd)]
    assert [(page.status, page.content_type, dict(page.headers)) for page in pages] == [
        (status, "text/plain; charset=utf-8", {"X-Content-Type-Options": "nosniff"})
        for status in (500, 200, 200)
    ]
    assert pages[2].body == b"ok"
    odd = Request(path="/", query=(*odd.query, ("verbose", "1")))
    assert b'no matches for "a", "b"\n' in all_checks(checks, odd).body
    plain = one_check(checks, Request(path="/healthz/ping"))
    assert (plain.status, plain.body, dict(plain.headers)) == (200, b"ok", {})


def test_parameters_of_requests_and_json_answers_SRV_001() -> None:
    request = Request(path="/", query=(("a", "1"), ("b", "2"), ("a", "3")))
    assert (request.first("a"), request.first("c")) == ("1", "")
    assert (request.every("a"), request.every("c")) == (("1", "3"), ())
    shown = as_json({"a": [1, None]})
    assert (shown.body, shown.content_type) == (b'{"a":[1,null]}', "application/json")


@pytest.mark.parametrize(
    ("headers", "upgrade", "websocket", "protocols"),
    [
        ({}, False, False, ()),
        ({"connection": "close", "upgrade": "websocket"}, False, False, ()),
        ({"connection": "keep-alive, UPGRADE"}, True, False, ()),
        ({"connection": "Upgrade", "upgrade": "SPDY/3.1"}, True, False, ()),
        ({"connection": "Upgrade", "upgrade": "WebSocket"}, True, True, ()),
        ({"sec-websocket-protocol": " a,, b ,"}, False, False, ("a", "b")),
    ],
)
def test_which_protocol_a_request_wants_SRV_025(
    headers: dict[str, str], upgrade: bool, websocket: bool, protocols: tuple[str, ...]
) -> None:
    request = Request(path="/", headers=headers)
    assert (request.is_upgrade, request.is_websocket) == (upgrade, websocket)
    assert request.websocket_protocols == protocols


async def test_pages_of_metrics_SRV_031_SRV_032() -> None:
    on = port()
    for path, wanted in (("", "x 1\n"), ("/probes", "p 1\n"), ("/cadvisor", "c 1\n")):
        assert await ask(on, f"/metrics{path}") == (200, wanted)
    assert "resource_scrape_error 0.0" in (await ask(on, "/metrics/resource"))[1]
    broken = port(served=host(summary=AsyncMock(side_effect=OSError("no disk"))))
    code, text = await ask(broken, "/metrics/resource")
    assert code == 200
    assert "resource_scrape_error 1.0" in text


async def test_the_read_only_port_shows_pods_but_no_debug_SRV_010() -> None:
    on = read_only_port(host())
    assert (await ask(on, "/pods"))[0] == 200
    disabled = (405, "Debug endpoints are disabled.\n")
    for path in ("run/x", "exec/a/b/c", "attach/x", "portForward/a/b", "containerLogs/a/b/c"):
        assert await ask(on, f"/{path}") == disabled
    for path in ("runningpods/", "debug/pprof/", "logs/", "logs/x"):
        assert await ask(on, f"/{path}", "POST") == disabled
    for path in ("configz", "checkpoint/a/b/c", "nope"):
        assert await ask(on, f"/{path}") == (404, "404 page not found\n")


@pytest.mark.parametrize(
    ("field", "path", "answer"),
    [
        ("enable_debugging_handlers", "/exec/a/b/c", (405, "Debug endpoints are disabled.\n")),
        ("enable_debugging_handlers", "/logs/x", (405, "Debug endpoints are disabled.\n")),
        ("enable_debugging_handlers", "/configz", (404, "404 page not found\n")),
        ("enable_system_log_handler", "/logs/", (405, "logs endpoint is disabled.\n")),
        ("enable_profiling_handler", "/debug/pprof/", (405, "profiling endpoint is disabled.\n")),
    ],
)
async def test_handlers_that_are_switched_off_SRV_010(
    field: str, path: str, answer: tuple[int, str]
) -> None:
    off: Any = {field: False}
    assert await ask(port(replace(EVERYBODY, **off)), path) == answer


@pytest.mark.parametrize(
    "path",
    [
        "/runningpods",
        "/logs/../etc/passwd",
        "/logs/a/../../etc/passwd",
        "//etc/passwd",
        "/logs//x",
        "/./pods",
    ],
)
async def test_paths_that_are_not_clean_lead_to_the_clean_one(path: str) -> None:
    code, text = await ask(port(), path)
    assert code == 307
    assert "Temporary Redirect" in text


async def test_statistics_in_full_and_in_short_SRV_030() -> None:
    answer: dict[str, object] = {"node": {}, "pods": []}
    gone = OSError("imagefs device is not found")
    summary = AsyncMock(side_effect=[answer, answer, answer, gone])
    on = port(served=host(summary=summary))
    path = "/stats/summary"
    assert await ask(on, path) == (200, '{"node":{},"pods":[]}')
    assert (await ask(on, f"{path}?only_cpu_and_memory=true", "POST"))[0] == 200
    assert (await ask(on, f"{path}?only_cpu_and_memory=false"))[0] == 200
    assert await ask(on, path) == (500, "Internal Error: imagefs device is not found")
    asked = [call.kwargs["only_cpu_and_memory"] for call in summary.call_args_list]
    assert asked == [False, True, False, False]


async def test_files_of_the_system_and_nothing_else(tmp_path: Path) -> None:
    logs = tmp_path / "log"
    (logs / "pods").mkdir(parents=True)
    (logs / "a&b.log").write_text("lines\n")
    (logs / "pods" / "x").write_bytes(b"\0\1")
    (tmp_path / "secret").write_text("s")
    (logs / "out").symlink_to("/etc/passwd")
    (logs / "up").symlink_to("../secret")
    (logs / "in").symlink_to("pods/x")
    on = port(served=host(system_logs=str(logs)))
    assert await ask(on, "/logs/a&b.log") == (200, "lines\n")
    assert await ask(on, "/logs/in") == (200, "\0\1")
    page = (await ask(on, "/logs/"))[1]
    assert '<a href="a%26b.log">a&amp;b.log</a>' in page
    assert '<a href="pods/">pods/</a>' in page
    assert (await ask(on, "/logs/pods"))[0] == 301
    for name in ("out", "up", "nope", "a&b.log/x", "\0"):
        assert (await ask(on, f"/logs/{name}"))[0] == 404


@pytest.mark.parametrize("lost", [True, False])
async def test_a_list_that_cannot_be_read_keeps_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    """Whether the work never begins or fails in its middle."""

    async def never(what: str, steps: Generator[object, None, object]) -> object:
        steps.close()
        raise TimeoutError(110, "Earlier work there still has no answer", what)

    def broken(directory: int) -> list[str]:
        raise OSError(5, "Input/output error")

    on = port(served=host(system_logs=str(tmp_path)))
    assert (await ask(on, "/logs/"))[0] == 200
    if lost:
        monkeypatch.setattr(system_logs, "aside", never)
    else:
        monkeypatch.setattr(system_logs, "listed", broken)
    for _ in range(3):
        status, text = await ask(on, "/logs/")
        assert status == 503
        assert text.startswith("the directory cannot be read now: ")
    of_directory = [name for name in os.listdir("/proc/self/fd") if shown(name) == str(tmp_path)]
    assert of_directory == []


def shown(descriptor: str) -> str:
    """The path that a descriptor is of; empty: it is closed."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""


async def test_servers_can_be_switched_off_SRV_001() -> None:
    """SRV-001.1, SRV-001.2, SRV-001.3."""
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
        number = other.getsockname()[1]
        config = configuration(**{field: number})
        servers = servers_of(config)
        wire = {"port": "port", "healthz_port": "healthzPort", "read_only_port": "readOnlyPort"}[
            field
        ]
        with pytest.raises(ServerError) as caught:
            await servers.start()
    assert str(caught.value) == (
        f"{wire}: cannot listen on 127.0.0.1:{number}: the address is in use, "
        f"perhaps by another kubelet; stop it or set another {wire}"
    )
    if field != "port":  # what had started is closed again
        with pytest.raises(aiohttp.ClientConnectorError):
            await get(config.port, "/pods")


async def test_a_certificate_is_made_once_and_belongs_to_the_node_SRV_003(tmp_path: Path) -> None:
    """SRV-003.1."""
    from cryptography import x509

    async with serving(configuration()) as config:
        assert (await get(config.port, "/pods"))[0] == 200
    certificate, key = (Path(PKI["directory"]) / f"kubelet.{end}" for end in ("crt", "key"))
    first, authority = x509.load_pem_x509_certificates(certificate.read_bytes())
    names = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["n1"]
    assert first.issuer == authority.subject
    assert key.stat().st_mode & 0o777 == 0o600
    before = certificate.read_bytes()
    async with serving(configuration()):
        assert certificate.read_bytes() == before


async def test_certificates_may_change_while_the_server_runs_SRV_003(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    make_authority(first)
    make_authority(second)
    used = tmp_path / "used"
    make_authority(used)
    config = configuration(
        tls_cert_file=str(used / "ca.crt"), tls_private_key_file=str(used / "ca.key")
    )

    async def shown() -> bytes:
        context = client_context(used, None)
        address = ("127.0.0.1", config.port)
        _, writer = await asyncio.open_connection(*address, ssl=context)
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return bytes(found)

    clock = Ahead()
    served = host()
    servers = KubeletServers(
        config,
        Ports(lambda: port(config, served), lambda: read_only_port(served)),
        clock,
        certificates="/nowhere",
        host_name="n1",
    )
    await servers.start()
    try:
        before = await shown()
        for end in ("crt", "key"):
            (first / f"ca.{end}").rename(used / f"ca.{end}")
        assert await shown() == before
        clock.ahead_s = 2
        changed = await shown()
        assert changed != before
        (used / "ca.crt").write_text("no certificate")
        clock.ahead_s = 4
        assert await shown() == changed
    finally:
        await servers.stop()


class Ahead(RealClock):
    """A clock that only a test sets forward."""

    ahead_s = 0.0

    def monotonic_s(self) -> float:
        return self.ahead_s


async def test_client_certificates_are_verified_SRV_013(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    authentication = replace(
        OPEN,
        x509=X509Authentication(str(make_authority(ours))),
        anonymous=AnonymousAuthentication(enabled=False),
    )
    config = configuration(authentication=authentication)
    async with serving(config):
        assert (await get(config.port, "/pods"))[0] == 401
        owner = ("kube", ("masters",))
        assert (await get(config.port, "/pods", client_context(ours, owner)))[0] == 200
        with pytest.raises(aiohttp.ClientError):
            await get(config.port, "/pods", client_context(theirs, owner))


async def test_unusable_certificates_are_named(tmp_path: Path) -> None:
    (tmp_path / "tls.crt").write_text("no certificate")
    config = configuration(
        tls_cert_file=str(tmp_path / "tls.crt"), tls_private_key_file=str(tmp_path / "no.key")
    )
    with pytest.raises(ServerError, match=r"tlsCertFile .*tls\.crt.*cannot be used"):
        await servers_of(config).start()
    missing = replace(OPEN, x509=X509Authentication(str(tmp_path / "no.crt")))
    with pytest.raises(ServerError, match=r"clientCAFile .*no\.crt.*cannot be used"):
        await servers_of(configuration(authentication=missing)).start()


def test_names_of_versions_and_suites_SRV_003() -> None:
    assert version_of("") is ssl.TLSVersion.TLSv1_2
    assert version_of("VersionTLS13") is ssl.TLSVersion.TLSv1_3
    names = ("TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")
    assert cipher_string(names) == "ECDHE-RSA-AES128-GCM-SHA256"
    assert cipher_string([*names, "TLS_RSA_WITH_AES_128_CBC_SHA"]) == (
        "ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA"
    )
    with pytest.raises(ValueError, match="Cipher suite X not supported or doesn't exist"):
        cipher_string(["X"])
    with pytest.raises(ValueError, match='unknown tls version "TLS12"'):
        version_of("TLS12")


async def test_the_oldest_version_is_that_of_the_configuration_SRV_003() -> None:
    async with serving(configuration(tls_min_version="VersionTLS13")) as config:
        context = client_context(Path(PKI["directory"]), None)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(aiohttp.ClientError):
            await get(config.port, "/pods", context)
        assert (await get(config.port, "/pods"))[0] == 200


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


def test_a_port_where_everybody_may_do_everything_stays_on_loopback_SRV_011() -> None:
    config = replace(EVERYBODY, address="0.0.0.0")
    with pytest.raises(ServerError, match="--insecure-server"):
        check_servers(config, has_api=False, insecure=False)
    check_servers(config, has_api=False, insecure=True)
    check_servers(replace(config, address="127.0.0.1"), has_api=True, insecure=False)
    check_servers(replace(config, enable_server=False), has_api=True, insecure=False)
    asks = KubeletConfiguration()
    check_servers(replace(config, authentication=asks.authentication), has_api=True, insecure=False)
    check_servers(replace(config, authorization=asks.authorization), has_api=True, insecure=False)


async def test_what_cannot_be_authenticated_is_one_clear_error_SRV_014() -> None:
    config = configuration(authentication=KubeletConfiguration().authentication)
    with pytest.raises(ServerError, match="no client provided, cannot use webhook authentication"):
        await servers_of(config).start()


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
        for number in (config.port, config.healthz_port):
            context = client_context(Path(PKI["directory"]), None)
            tls = context if number == config.port else None
            reader, writer = await asyncio.open_connection("127.0.0.1", number, ssl=tls)
            writer.write(said)
            if writer.can_write_eof():
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

    on = port(served=host(metrics=broken))
    for _ in range(3):
        assert (await ask(on, "/metrics"))[0] == 500
    assert (await ask(on, "/pods"))[0] == 200
    assert caplog.text.count("Traceback") == 1


async def exchanged(config: KubeletConfiguration, said: bytes) -> bytes:
    """What the main port answers to these bytes."""
    context = client_context(Path(PKI["directory"]), None)
    reader, writer = await asyncio.open_connection("127.0.0.1", config.port, ssl=context)
    writer.write(said)
    found = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return found


async def test_odd_targets_and_hosts_get_what_they_name_SRV_001() -> None:
    end = b" HTTP/1.1\r\nHost: x y/z\r\nConnection: close\r\n\r\n"
    async with serving(configuration()) as config:
        for target, status in (
            (b"http://elsewhere/pods", b"200"),
            (b"/%70ods", b"200"),
            (b"/pods%", b"400"),
            (b"/pods%zz", b"400"),
            (b"/logs/%00", b"400"),
            (b"/pods%ff", b"400"),
            (b"*", b"400"),
        ):
            answer = await exchanged(config, b"GET " + target + end)
            assert answer.split(b" ")[1] == status, target


async def test_a_client_that_says_nothing_is_left_SRV_001(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refkubelet.server.carrier.SILENCE_S", 0.05)
    async with serving(configuration()) as config:
        assert await exchanged(config, b"GET /pods HTTP/1.1\r\nHost: ") == b""


async def test_chunks_come_as_they_are_made_SRV_020() -> None:
    more = asyncio.Event()

    async def page() -> Any:
        from refkubelet.server.common.exchange import Answer

        async def chunks() -> AsyncIterator[bytes]:
            yield b"first"
            await more.wait()
            yield b"second"

        return Answer(chunks=chunks())

    config = configuration()
    served = port(config)

    async def answer(request: Any) -> Any:
        return await page()

    served.answer = answer  # type: ignore[method-assign]
    servers = KubeletServers(
        config,
        Ports(lambda: served, lambda: served),
        RealClock(),
        certificates=PKI["directory"],
        host_name="n1",
    )
    await servers.start()
    try:
        async with aiohttp.ClientSession() as session:
            url = f"https://127.0.0.1:{config.port}/containerLogs/a/b/c"
            async with session.get(url, ssl=False) as response:
                assert response.headers["Transfer-Encoding"] == "chunked"
                assert "Content-Length" not in response.headers
                assert await response.content.readany() == b"first"
                more.set()
                assert await response.content.readany() == b"second"
    finally:
        await servers.stop()
