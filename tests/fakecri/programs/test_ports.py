"""What containers serve: asked in virtual time, and over real sockets on loopback addresses."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import grpc
import pytest
from kubecri.health import api_pb2 as health
from kubecri.v1 import api_pb2 as cri
from plain_words import behavior_of
from runtime_calls import create, pod_config, run_pod, sandbox_status, start

from fakecri import FakeCRI, exits, serves
from fakecri.programs.ports import Hung, NoSuchService, NotServed, WrongProtocol
from fakecri.scripts.script import ScriptError
from fakecri.words.word import to_dict


async def address_of(fake: FakeCRI, pod: str = "shop", *, host_network: bool = False) -> str:
    """Start a pod with one container, `web`; its address."""
    config = pod_config(pod)
    if host_network:
        config.linux.security_context.namespace_options.network = cri.NODE
    sandbox = await run_pod(fake, config)
    await start(fake, await create(fake, sandbox, config, "web"))
    return str((await sandbox_status(fake, sandbox)).network.ip)


@pytest.mark.virtual_time
async def test_the_newest_rule_that_fits_answers() -> None:
    fake = FakeCRI()
    fake.behaves(
        serves(80, status=503),
        serves(80, from_s=3, until_s=10),
        serves(80, status=302, path="/old", location="/new"),
        container="web",
    )
    ip = await address_of(fake)
    assert (await fake.ports.http(ip, 80, "/x")).status == 503
    await asyncio.sleep(3.01)
    assert (await fake.ports.http(ip, 80, "/x?y=1")).status == 200
    assert (await fake.ports.http(ip, 80, "/old?y=1")).location == "/new"
    await asyncio.sleep(7.01)
    assert (await fake.ports.http(ip, 80, "/x")).status == 503
    visits = [(round(v.time_s - fake.ports.visits[0].time_s), v.path) for v in fake.ports.visits]
    assert visits == [(0, "/x"), (3, "/x?y=1"), (3, "/old?y=1"), (10, "/x")]


@pytest.mark.virtual_time
async def test_nobody_answers_for_another_pod_or_port() -> None:
    fake = FakeCRI()
    fake.behaves(serves(80), serves(81, "tcp", until_s=5), pod="shop")
    ip, other = await address_of(fake), await address_of(fake, "other")
    assert fake.ports.connect(ip, 81) == "tcp"
    for host, port in ((other, 80), (ip, 82), ("", 80), ("127.0.0.1", 80)):
        with pytest.raises(NotServed):
            fake.ports.connect(host, port)
    await asyncio.sleep(5.01)
    with pytest.raises(NotServed):
        fake.ports.connect(ip, 81)
    fake.kill(pod="shop")
    with pytest.raises(NotServed):
        await fake.ports.http(ip, 80, "/")


@pytest.mark.virtual_time
async def test_pods_on_the_hosts_network_are_at_the_nodes_addresses() -> None:
    fake = FakeCRI()
    fake.node.address = "192.0.2.1"
    fake.behaves(serves(80))
    assert await address_of(fake, host_network=True) == ""
    for host in ("192.0.2.1", "127.0.0.1", "localhost"):
        assert fake.ports.connect(host, 80) == "http"


@pytest.mark.virtual_time
async def test_a_host_port_of_the_node_leads_to_the_pod_CRI_047() -> None:
    fake = FakeCRI()
    fake.behaves(serves(80, body="shop"))
    ip = await mapped(fake, host_port=12000, container_port=80)
    for host, port in ((ip, 80), ("127.0.0.1", 12000)):
        assert (await fake.ports.http(host, port, "/")).body == "shop"
    for host, port in ((ip, 12000), ("127.0.0.1", 80)):
        with pytest.raises(NotServed):
            fake.ports.connect(host, port)


async def mapped(fake: FakeCRI, **ports: int) -> str:
    """The address of a pod with that port mapping, whose container has started."""
    config = pod_config("shop", port_mappings=[cri.PortMapping(**ports)])
    sandbox = await run_pod(fake, config)
    container = await create(fake, sandbox, config, "web")
    await start(fake, container)
    return str((await sandbox_status(fake, sandbox)).network.ip)


async def test_host_ports_and_pods_on_the_hosts_network_listen_at_the_node_CRI_047() -> None:
    fake = FakeCRI(pod_network="127.93.9")
    fake.behaves(serves(18086, body="mapped"))
    try:
        await mapped(fake, host_port=18087, container_port=18086)
        async with aiohttp.ClientSession() as session:
            async with session.get("http://127.0.0.1:18087/") as answer:
                assert await answer.text() == "mapped"
            await address_of(fake, "own", host_network=True)
            async with session.get("http://127.0.0.1:18086/") as answer:
                assert await answer.text() == "mapped"
    finally:
        await fake.stop_streaming()


@pytest.mark.virtual_time
async def test_a_path_or_service_that_is_not_served() -> None:
    fake = FakeCRI()
    fake.behaves(serves(80, path="/a"), serves(9, "grpc", service="db", health="NOT_SERVING"))
    ip = await address_of(fake)
    assert (await fake.ports.http(ip, 80, "/b")).status == 404
    assert await fake.ports.health(ip, 9, "db") == "NOT_SERVING"
    with pytest.raises(NoSuchService):
        await fake.ports.health(ip, 9, "")
    with pytest.raises(WrongProtocol):
        await fake.ports.http(ip, 9, "/")
    with pytest.raises(WrongProtocol):
        await fake.ports.http(ip, 80, "/", tls=True)
    with pytest.raises(WrongProtocol):
        await fake.ports.health(ip, 80, "")
    answers = [(visit.protocol, visit.answer) for visit in fake.ports.visits]
    assert answers == [("http", "404"), ("grpc", "NOT_SERVING"), ("grpc", "NOT_FOUND")]
    away = [(visit.container, visit.protocol, visit.answer) for visit in fake.ports.turned_away]
    assert away == [
        ("web", "http", "speaks grpc"),
        ("web", "https", "speaks http"),
        ("web", "grpc", "speaks http"),
    ]


@pytest.mark.virtual_time
async def test_who_finds_no_listener_is_noted_with_the_pod_of_the_address() -> None:
    fake = FakeCRI()
    ip = await address_of(fake)
    with pytest.raises(NotServed):
        fake.ports.connect(ip, 81)
    (visit,) = fake.ports.turned_away
    assert (visit.pod, visit.container, visit.port) == ("shop", "", 81)
    assert (visit.protocol, visit.answer, visit.ended_s) == (
        *("tcp", "connection refused"),
        visit.time_s,
    )
    assert not fake.ports.visits


@pytest.mark.virtual_time
async def test_a_slow_answer_waits_and_dies_with_its_container() -> None:
    fake = FakeCRI()
    fake.behaves(serves(80, delay_s=3), exits(1, after_s=10))
    ip = await address_of(fake)
    began_s = fake.clock.monotonic_s()
    assert (await fake.ports.http(ip, 80, "/")).status == 200
    assert fake.clock.monotonic_s() == pytest.approx(began_s + 3)
    await asyncio.sleep(6)
    with pytest.raises(Hung):
        await fake.ports.http(ip, 80, "/")
    took = [(v.answer, round((v.ended_s or 0) - v.time_s, 1)) for v in fake.ports.visits]
    assert took == [("200", 3), ("hung up", 1)]


@pytest.mark.virtual_time
async def test_a_client_that_leaves_has_no_answer() -> None:
    fake = FakeCRI()
    fake.behaves(serves(80, delay_s=3))
    ip = await address_of(fake)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await fake.ports.http(ip, 80, "/")
    (visit,) = fake.ports.visits
    assert (visit.answer, round((visit.ended_s or 0) - visit.time_s, 1)) == ("", 1)


async def test_a_client_of_a_socket_that_leaves_has_no_answer() -> None:
    fake = FakeCRI(pod_network="127.93.8")
    fake.behaves(serves(18090, delay_s=30))
    try:
        ip = await address_of(fake)
        async with aiohttp.ClientSession() as session:
            given = aiohttp.ClientTimeout(total=0.2)
            with pytest.raises(TimeoutError):
                await session.get(f"http://{ip}:18090/", timeout=given)
        (visit,) = fake.ports.visits
        async with asyncio.timeout(5):
            while visit.ended_s is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert visit.answer == ""
    finally:
        await fake.stop_streaming()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"port": 0}, "serves.port: wanted a whole number from 1 to 65535, got the number 0"),
        ({"port": 80.5}, "serves.port: wanted a whole number from 1 to 65535, got the number 80.5"),
        (
            {"port": 80, "protocol": "ftp"},
            "serves.protocol: wanted one of grpc, http, https, tcp, got the text 'ftp'",
        ),
        ({"port": 80, "status": 99}, "serves.status: wanted a whole number from 100 to 599"),
        ({"port": 80, "health": "FINE"}, "serves.health: wanted one of NOT_SERVING, SERVICE_"),
        (
            {"port": 80, "lost_bytes": -1},
            "serves.lost_bytes: wanted a whole number from 0, got the number -1",
        ),
        ({"port": 80, "path": []}, "serves.path: wanted a text or nothing, got a list"),
    ],
)
def test_mistakes_name_the_field(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ScriptError) as error:
        behavior_of({"serves": given})
    assert f": {text}" in str(error.value)


def test_serves_as_plain_data() -> None:
    behavior = serves(80, "grpc", health="NOT_SERVING", from_s=3)
    plain = {"serves": {"port": 80, "protocol": "grpc", "health": "NOT_SERVING", "from_s": 3}}
    assert to_dict(behavior) == plain
    assert behavior_of(plain) == behavior


async def test_containers_really_listen_on_loopback_addresses() -> None:
    fake = FakeCRI(pod_network="127.93.7")
    fake.behaves(
        serves(18080, status=302, location="/b", body="gone"),
        serves(18081, "tcp"),
        serves(18082, "grpc", service="db"),
        serves(18083, from_s=0.3),
        serves(18084, body="abc", lost_bytes=5),
        serves(18085, status=302, location="http://{ip}:1/"),
    )
    try:
        ip = await address_of(fake)
        assert ip.startswith("127.93.7.")
        async with aiohttp.ClientSession() as session:
            url = f"http://{ip}:18080/a?b=1"
            async with session.get(url, headers={"X": "1"}, allow_redirects=False) as answer:
                seen = (answer.status, answer.headers["Location"], await answer.text())
                assert seen == (302, "/b", "gone")
            async with session.get(f"http://{ip}:18084/") as answer:
                with pytest.raises(aiohttp.ClientPayloadError):
                    await answer.read()
            async with session.get(f"http://{ip}:18085/", allow_redirects=False) as answer:
                assert answer.headers["Location"] == f"http://{ip}:1/"
            visit = fake.ports.visits[0]
            assert (visit.pod, visit.path, visit.header("x")) == ("shop", "/a?b=1", ["1"])
            assert [v.answer for v in list(fake.ports.visits)[:2]] == ["302", "200, broken off"]
            reader, writer = await asyncio.open_connection(ip, 18081)
            assert await reader.read() == b""
            writer.close()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(ip, 18083)
            await _until_listening(ip, 18083)
        async with grpc.aio.insecure_channel(f"{ip}:18082") as channel:
            call = channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                request_serializer=health.HealthCheckRequest.SerializeToString,
                response_deserializer=health.HealthCheckResponse.FromString,
            )
            answer = await call(health.HealthCheckRequest(service="db"))
            assert answer.status == health.HealthCheckResponse.SERVING
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await call(health.HealthCheckRequest(service="other"))
            assert error.value.code() is grpc.StatusCode.NOT_FOUND
        fake.kill()
        await asyncio.sleep(0)
        await _until_refused(ip, 18080)
    finally:
        await fake.stop_streaming()


async def _until_listening(ip: str, port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection(ip, port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return


async def _until_refused(ip: str, port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection(ip, port)
            except ConnectionRefusedError:
                return
            writer.close()
            await asyncio.sleep(0.02)


async def test_a_taken_port_is_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    fake = FakeCRI(pod_network="127.93.8")
    fake.behaves(serves(18080), serves(18443, "https"))
    server = await asyncio.start_server(lambda _, w: w.close(), "127.93.8.2", 18080)
    try:
        assert await address_of(fake) == "127.93.8.2"
        assert "cannot listen on 127.93.8.2:18080" in caplog.text
        assert "127.93.8.2:18443: https needs a certificate" in caplog.text
    finally:
        server.close()
        await fake.stop_streaming()
