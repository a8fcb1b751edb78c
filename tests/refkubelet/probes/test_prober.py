"""What the answers of exec, http, tcp and grpc mean (PROBE-060..073)."""

from __future__ import annotations

from typing import Any

import pytest
from probe_world import BAD, OK, drain, old_kubelet, rpc_error

from refkubelet.host.network import HttpAnswer, HttpRequest, NetworkError
from refkubelet.model.probe_results import ProbeResult

pytestmark = pytest.mark.virtual_time


async def test_a_timeout_is_a_failure_PROBE_063_PROBE_065() -> None:
    world = await old_kubelet(
        rpc_error("DEADLINE_EXCEEDED"), liveness={"failureThreshold": 1, "timeoutSeconds": 2}
    )
    assert (await drain(world.manager.liveness, 2))[1] == ("id0", BAD)
    assert len(world.calls) == 1
    assert world.events[0][1] == (
        'Liveness probe failed: command timed out: "check 1" timed out after 2s'
    )
    await world.manager.stop()


async def test_other_errors_are_tried_three_times_and_discarded_PROBE_060_PROBE_018() -> None:
    world = await old_kubelet(rpc_error("UNAVAILABLE"), liveness={"failureThreshold": 1})
    await world.at(105)
    assert world.times_s == [100, 100, 100]
    assert world.manager.liveness.get("id0") is OK
    assert world.events == [
        (
            "Unhealthy",
            "Liveness probe errored and resulted in unknown state: "
            "rpc error: code = Unavailable desc = no answer",
            "spec.containers{c}",
        )
    ]
    await world.manager.stop()


async def test_the_first_try_without_error_counts_PROBE_060() -> None:
    world = await old_kubelet(rpc_error("UNKNOWN"), 1, liveness={"failureThreshold": 1})
    assert (await drain(world.manager.liveness, 2))[1] == ("id0", BAD)
    assert world.times_s == [100, 100]
    await world.manager.stop()


class FakeNetwork:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.urls: list[str] = []

    async def http_get(self, request: HttpRequest, timeout_s: float | None) -> HttpAnswer:
        self.urls.append(request.url)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]

    async def grpc_health(self, address: str, service: str, timeout_s: float) -> str:
        self.urls.append(f"{address} {service}")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]

    async def tcp_connect(self, host: str, port: int, timeout_s: float) -> None:
        self.urls.append(f"{host}:{port}")
        if isinstance(self.answer, Exception):
            raise self.answer


HTTP = {"exec": None, "httpGet": {"port": 80, "path": "/h", "host": "10.9.8.7"}}
TCP = {"exec": None, "tcpSocket": {"port": 81, "host": "10.9.8.7"}}


@pytest.mark.parametrize(
    ("probe", "answer", "wanted", "event"),
    [
        (HTTP, HttpAnswer(204), OK, None),
        (HTTP, HttpAnswer(302, body="b"), OK, "Probe terminated redirects, Response body: b"),
        (HTTP, HttpAnswer(500), BAD, "HTTP probe failed with statuscode: 500"),
        (HTTP, NetworkError("refused"), BAD, 'Get "http://10.9.8.7:80/h": refused'),
        (TCP, None, OK, None),
        (TCP, NetworkError("refused"), BAD, "refused"),
    ],
)
async def test_network_outcomes_PROBE_068_PROBE_071(
    probe: Any, answer: Any, wanted: ProbeResult, event: str | None
) -> None:
    network = FakeNetwork(answer)
    world = await old_kubelet(0, network=network, startup={"failureThreshold": 1, **probe})
    assert (await drain(world.manager.startup, 2))[1] == ("id0", wanted)
    assert network.urls == ["http://10.9.8.7:80/h" if "httpGet" in probe else "10.9.8.7:81"]
    kind = "Startup probe warning" if wanted is OK else "Startup probe failed"
    assert [e[1] for e in world.events] == ([f"{kind}: {event}"] if event else [])
    await world.manager.stop()


async def test_a_probe_that_cannot_be_run_says_so_and_changes_nothing_PROBE_018() -> None:
    world = await old_kubelet(0, liveness={"exec": None, "grpc": {"port": 1}})
    await world.at(101)
    assert "this kubelet has no network to probe over" in world.events[0][1]
    assert world.manager.liveness.get("id0") is OK
    await world.manager.stop()


@pytest.mark.parametrize(
    ("answer", "wanted", "event"),
    [
        ("SERVING", OK, None),
        ("NOT_SERVING", BAD, 'service unhealthy (responded with "NOT_SERVING")'),
        (NetworkError("timeout: late"), BAD, "timeout: late"),
    ],
)
async def test_grpc_outcomes_PROBE_072_PROBE_073(
    answer: Any, wanted: Any, event: str | None
) -> None:
    network = FakeNetwork(answer)
    grpc = {"exec": None, "grpc": {"port": 9, "service": "db"}, "failureThreshold": 1}
    world = await old_kubelet(0, network=network, startup=grpc)
    assert (await drain(world.manager.startup, 2))[1] == ("id0", wanted)
    assert network.urls == [":9 db"]  # the pod has no address in this world
    assert [e[1] for e in world.events] == ([f"Startup probe failed: {event}"] if event else [])
    await world.manager.stop()


async def test_a_body_that_breaks_off_is_an_error_PROBE_070_PROBE_081() -> None:
    network = FakeNetwork(HttpAnswer(500, body="x", broken="unexpected EOF"))
    world = await old_kubelet(0, network=network, liveness={"failureThreshold": 1, **HTTP})
    await world.at(101)
    assert len(network.urls) == 3  # PROBE-060
    text = "Liveness probe errored and resulted in failure state: unexpected EOF"
    assert [e[1] for e in world.events] == [text]
    assert world.manager.liveness.get("id0") is OK
    await world.manager.stop()


async def test_a_probe_without_handler_is_an_error_PROBE_060() -> None:
    world = await old_kubelet(0, liveness={"exec": None})
    await world.at(101)
    text = "Liveness probe errored and resulted in unknown state: missing probe handler for "
    assert world.events[0][1] == f"{text}web_default(u):c"
    await world.manager.stop()


@pytest.mark.parametrize("probe", [HTTP, TCP])
async def test_an_unknown_port_is_an_error_PROBE_061(probe: Any) -> None:
    (kind,) = [k for k in probe if k != "exec"]
    named = {**probe, kind: {**probe[kind], "port": "nope"}}
    world = await old_kubelet(0, network=FakeNetwork(None), liveness=named)
    await world.at(101)
    assert "errored and resulted in unknown state: strconv.Atoi" in world.events[0][1]
    await world.manager.stop()


async def test_output_is_cut_to_ten_kibibytes_PROBE_064() -> None:
    world = await old_kubelet(1, liveness={"failureThreshold": 1})
    world.stdout = b"x" * 20000
    await world.at(101)
    assert world.events[0][1] == "Liveness probe failed: " + "x" * 10240
    await world.manager.stop()
