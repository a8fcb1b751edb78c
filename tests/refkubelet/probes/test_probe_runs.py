"""Probe workers in virtual time, against a scripted container."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from refkubelet.cri.records import ContainerRecord, ContainerState, ExecResult, RuntimePodStatus
from refkubelet.cri.target import CriCallError
from refkubelet.host.network import HttpAnswer, HttpRequest, NetworkError
from refkubelet.model.objects import Pod, PodStatus, decode_pod
from refkubelet.model.probe_results import ProbeResult, ProbeType, ResultManager
from refkubelet.probes.manager import ProbeDeps, ProbeManager
from refkubelet.status.generate import StatusInputs, generate_pod_status
from simtime import Clock, Rng, VirtualLoop, run_virtual

OK, BAD, UNSURE = ProbeResult.SUCCESS, ProbeResult.FAILURE, ProbeResult.UNKNOWN
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class World:
    """One pod with one running container, its status as a kubelet would keep it, and a script of
    exec answers: an exit code, an exception, or the last answer again."""

    def __init__(self, *answers: Any, started_s: float = 0, network: Any = None, **probes: Any):
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.clock: Clock = loop.clock
        self.answers = list(answers)
        self.calls: list[tuple[float, str, tuple[str, ...], float]] = []
        self.events: list[tuple[str, str, str]] = []
        self.took_s = 0.0
        self.stdout = b"out"
        self.network = network
        self.container_id = "id0"
        self.started_ns = self.clock.wall_ns() + round((started_s - self.clock.monotonic_s()) * 1e9)
        self.pod = make_pod(probes)
        self.phase: str | None = None
        self.previous: PodStatus | None = None
        deps = ProbeDeps(
            clock=self.clock,
            rng=Rng(1),
            exec_runner=self,
            events=self,
            pod_status=self.status,
            network=network,
        )
        self.manager = ProbeManager(deps)

    async def exec_sync(
        self, container_id: str, command: Sequence[str], timeout_s: int = 0
    ) -> ExecResult:
        self.calls.append((self.clock.monotonic_s(), container_id, tuple(command), timeout_s))
        await asyncio.sleep(self.took_s)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return ExecResult(answer, self.stdout, b"err")

    def pod_event(self, pod: Pod, event_type: Any, reason: str, message: str, **more: Any) -> None:
        self.events.append((reason, message, more["field_path"]))

    def node_event(self, event_type: Any, reason: str, message: str) -> None:
        raise AssertionError("probes say nothing about the node")

    def restart(self, container_id: str) -> None:
        self.container_id, self.started_ns = container_id, self.clock.wall_ns()

    def status(self, pod_uid: str) -> PodStatus | None:
        record = ContainerRecord(
            self.container_id, "c", ContainerState.RUNNING, started_at_ns=self.started_ns
        )
        runtime = RuntimePodStatus("u", containers=(record,))
        inputs = StatusInputs(self.clock.now(), self.manager)
        status = generate_pod_status(self.pod, runtime, self.previous, inputs)
        self.previous = status
        return msgspec.structs.replace(status, phase=self.phase) if self.phase else status

    def started(self) -> None:
        self.manager.add_pod(self.pod)

    async def at(self, when_s: float) -> None:
        await asyncio.sleep(when_s - self.clock.monotonic_s())

    @property
    def times_s(self) -> list[float]:
        return [round(call[0], 3) for call in self.calls]


def make_pod(probes: dict[str, Any]) -> Pod:
    exec_probe = {"exec": {"command": ["check", "$(A)"]}}
    named = {f"{kind}Probe": exec_probe | values for kind, values in probes.items()}
    container = {"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}], **named}
    meta = {"name": "p", "namespace": "n", "uid": "u"}
    return decode_pod({"metadata": meta, "spec": {"containers": [container]}})


def virtual(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        run_virtual(test)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def drain(results: ResultManager, count: int) -> list[tuple[str, ProbeResult]]:
    updates = [await results.updates.get() for _ in range(count)]
    return [(u.container_id, u.result) for u in updates]


async def old_kubelet(*answers: Any, **more: Any) -> World:
    """A world whose kubelet has been up for 100 s when the container starts."""
    world = World(*answers, started_s=100, **more)
    await asyncio.sleep(100)
    world.started()
    return world


@virtual
async def test_runs_at_once_and_then_once_per_period_PROBE_004_PROBE_005() -> None:
    world = await old_kubelet(0, liveness={"periodSeconds": 7, "timeoutSeconds": 3})
    await world.at(122)
    assert world.times_s == [100, 107, 114, 121]
    assert world.calls[0][1:] == ("id0", ("check", "1"), 3)  # PROBE-062
    await world.manager.stop()


@virtual
async def test_a_young_kubelet_spreads_first_runs_over_a_period_PROBE_004() -> None:
    worlds = [World(0, liveness={"periodSeconds": 10}) for _ in range(2)]
    for world in worlds:
        world.started()
    await asyncio.sleep(40)
    (first, *rest), other = worlds[0].times_s, worlds[1].times_s
    assert 0 < first < 10
    assert rest == [round(first + 10 * i, 3) for i in (1, 2, 3)][: len(rest)]
    assert other == worlds[0].times_s  # one seed, one beat
    for world in worlds:
        await world.manager.stop()


@virtual
async def test_a_run_longer_than_the_period_swallows_ticks_PROBE_005() -> None:
    world = await old_kubelet(0, liveness={"periodSeconds": 2})
    world.took_s = 5
    await world.at(121)
    assert world.times_s == [100, 105, 110, 115, 120]
    await world.manager.stop()


@virtual
async def test_initial_delay_from_the_containers_start_PROBE_016() -> None:
    world = await old_kubelet(0, readiness={"periodSeconds": 5, "initialDelaySeconds": 12})
    await world.at(121)
    assert world.times_s == [115, 120]
    await world.manager.stop()


@virtual
async def test_liveness_failure_holds_until_a_new_container_PROBE_020() -> None:
    world = await old_kubelet(1, liveness={"periodSeconds": 5, "failureThreshold": 3})
    assert await drain(world.manager.liveness, 2) == [("id0", OK), ("id0", BAD)]
    assert world.times_s == [100, 105, 110]
    await world.at(148)
    assert world.times_s == [100, 105, 110]
    world.restart("id1")
    await world.at(151)
    assert world.times_s == [100, 105, 110, 150]
    assert world.manager.liveness.get("id0") is None
    await world.manager.stop()


@virtual
async def test_failures_of_the_last_container_count_for_the_next_PROBE_027() -> None:
    world = await old_kubelet(1, liveness={"periodSeconds": 5, "failureThreshold": 3})
    await world.at(106)
    world.restart("id1")
    await world.at(111)
    assert world.times_s == [100, 105, 110]
    assert world.manager.liveness.get("id1") is BAD
    await world.manager.stop()


@virtual
async def test_every_failure_leaves_one_event_PROBE_081_PROBE_025() -> None:
    world = await old_kubelet(1, liveness={"periodSeconds": 5, "failureThreshold": 2})
    await world.at(130)
    text = "Liveness probe failed: outerr"
    assert world.events == [("Unhealthy", text, "spec.containers{c}")] * 2
    await world.manager.stop()


@virtual
async def test_startup_gates_and_readiness_follows_at_once_PROBE_017_PROBE_007() -> None:
    world = await old_kubelet(
        1, 1, 0, startup={"periodSeconds": 4}, readiness={"periodSeconds": 60}
    )
    await drain(world.manager.startup, 2)
    assert world.clock.monotonic_s() == 108
    status = world.status("u")
    assert status is not None
    world.manager.trigger_readiness(world.pod, status)
    await drain(world.manager.readiness, 2)
    assert world.clock.monotonic_s() == 108
    await world.at(169)
    assert world.times_s == [100, 104, 108, 108, 168]  # the beat restarted with the trigger
    await world.manager.stop()


@virtual
async def test_readiness_flips_with_its_thresholds_and_never_holds_PROBE_026_PROBE_036() -> None:
    probe = {"periodSeconds": 1, "failureThreshold": 2, "successThreshold": 2}
    world = await old_kubelet(0, 0, 1, 0, 1, 1, 1, 0, 0, readiness=probe)
    assert await drain(world.manager.readiness, 4) == [
        ("id0", BAD),
        ("id0", OK),
        ("id0", BAD),
        ("id0", OK),
    ]
    assert world.times_s == list(range(100, 109))
    await world.manager.stop()


def rpc_error(code: str) -> CriCallError:
    return CriCallError("ExecSync", code, "no answer")


@virtual
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


@virtual
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


@virtual
async def test_the_first_try_without_error_counts_PROBE_060() -> None:
    world = await old_kubelet(rpc_error("UNKNOWN"), 1, liveness={"failureThreshold": 1})
    assert (await drain(world.manager.liveness, 2))[1] == ("id0", BAD)
    assert world.times_s == [100, 100]
    await world.manager.stop()


@virtual
async def test_termination_stops_liveness_and_leaves_readiness_PROBE_091_PROBE_092() -> None:
    world = await old_kubelet(0, liveness={"periodSeconds": 5}, readiness={"periodSeconds": 5})
    await world.at(101)
    world.manager.stop_liveness_and_startup(world.pod)
    await world.at(111)
    assert world.times_s == [100, 100, 105, 110]
    world.manager.remove_pod(world.pod)
    await world.at(200)
    assert len(world.calls) == 4
    assert world.manager.readiness.get("id0") is None  # PROBE-094
    assert not world.manager.has_worker("u", "c", ProbeType.READINESS)


@virtual
async def test_housekeeping_ends_workers_of_other_pods_PROBE_094() -> None:
    world = await old_kubelet(0, readiness={"periodSeconds": 5})
    await world.at(101)
    world.manager.cleanup_pods(["u"])
    await world.at(106)
    world.manager.cleanup_pods([])
    await world.at(130)
    assert world.times_s == [100, 105]


@virtual
async def test_results_tell_changes_only_and_a_full_queue_blocks_PROBE_031() -> None:
    results = ResultManager()
    for result in (ProbeResult.SUCCESS, ProbeResult.SUCCESS, ProbeResult.FAILURE):
        await results.set("id0", result, "u")
    results.remove("id0")
    assert results.get("id0") is None
    await results.set("id0", ProbeResult.FAILURE, "u")  # initial values are told too
    told = await drain(results, results.updates.qsize())
    assert [result.value for _, result in told] == ["success", "failure", "failure"]
    for number in range(20):
        await results.set(f"id{number}", ProbeResult.SUCCESS, "u")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await results.set("one more", ProbeResult.SUCCESS, "u")


@virtual
async def test_a_worker_that_waits_for_its_first_run_ends_at_once_PROBE_094() -> None:
    world = World(0, readiness={"periodSeconds": 1000})
    world.started()
    await world.at(1)
    world.manager.remove_pod(world.pod)
    await world.at(2)
    assert not world.manager.has_worker("u", "c", ProbeType.READINESS)
    assert world.times_s == []


@virtual
async def test_a_finished_pod_ends_its_workers_PROBE_011() -> None:
    world = await old_kubelet(0, readiness={"periodSeconds": 5})
    await world.at(101)
    world.phase = "Succeeded"
    await world.at(130)
    assert world.times_s == [100]


@virtual
async def test_add_pod_twice_makes_one_worker_PROBE_002() -> None:
    world = await old_kubelet(0, readiness={"periodSeconds": 5})
    world.started()
    await world.at(101)
    assert world.times_s == [100]
    await world.manager.stop()


@virtual
async def test_a_container_found_running_is_not_unready_at_first_PROBE_051() -> None:
    await asyncio.sleep(100)
    world = World(0, started_s=50, readiness={"periodSeconds": 5})
    assert world.manager.predates_kubelet(EPOCH + timedelta(microseconds=world.started_ns // 1000))
    world.started()
    assert await drain(world.manager.readiness, 1) == [("id0", OK)]
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
def test_network_outcomes_PROBE_068_PROBE_071(
    probe: Any, answer: Any, wanted: ProbeResult, event: str | None
) -> None:
    async def body() -> None:
        network = FakeNetwork(answer)
        world = await old_kubelet(0, network=network, startup={"failureThreshold": 1, **probe})
        assert (await drain(world.manager.startup, 2))[1] == ("id0", wanted)
        assert network.urls == ["http://10.9.8.7:80/h" if "httpGet" in probe else "10.9.8.7:81"]
        kind = "Startup probe warning" if wanted is OK else "Startup probe failed"
        assert [e[1] for e in world.events] == ([f"{kind}: {event}"] if event else [])
        await world.manager.stop()

    run_virtual(body)


@virtual
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
def test_grpc_outcomes_PROBE_072_PROBE_073(answer: Any, wanted: Any, event: str | None) -> None:
    async def body() -> None:
        network = FakeNetwork(answer)
        grpc = {"exec": None, "grpc": {"port": 9, "service": "db"}, "failureThreshold": 1}
        world = await old_kubelet(0, network=network, startup=grpc)
        assert (await drain(world.manager.startup, 2))[1] == ("id0", wanted)
        assert network.urls == [":9 db"]  # the pod has no address in this world
        assert [e[1] for e in world.events] == ([f"Startup probe failed: {event}"] if event else [])
        await world.manager.stop()

    run_virtual(body)


@virtual
async def test_a_broken_run_ends_only_itself_PROBE_083() -> None:
    world = await old_kubelet(RuntimeError("oops"), 0, readiness={"periodSeconds": 5})
    await world.at(111)
    assert world.times_s == [100, 105, 110]
    assert world.manager.readiness.get("id0") is OK
    await world.manager.stop()


@virtual
async def test_a_run_in_flight_finishes_PROBE_095() -> None:
    world = await old_kubelet(0, 1, liveness={"periodSeconds": 5, "failureThreshold": 1})
    world.took_s = 3
    await world.at(109)
    world.manager.stop_liveness_and_startup(world.pod)
    assert await drain(world.manager.liveness, 2) == [("id0", OK), ("id0", BAD)]
    await world.at(200)
    assert world.times_s == [100, 105]
    assert not world.manager.has_worker("u", "c", ProbeType.LIVENESS)


@virtual
async def test_probes_of_sidecars_run_to_the_end_PROBE_093() -> None:
    world = await old_kubelet(0, liveness={"periodSeconds": 5})
    main = world.pod.spec.containers[0]
    side = msgspec.structs.replace(main, name="side", restartPolicy="Always")
    spec = msgspec.structs.replace(world.pod.spec, initContainers=[side])
    pod = msgspec.structs.replace(world.pod, spec=spec)
    await world.at(101)
    await world.manager.stop()
    world.manager.add_pod(pod)
    world.manager.stop_liveness_and_startup(pod)
    await world.at(111)
    assert world.manager.has_worker("u", "side", ProbeType.LIVENESS)
    assert not world.manager.has_worker("u", "c", ProbeType.LIVENESS)
    world.manager.remove_pod(pod)
    await world.at(120)
    assert not world.manager.has_worker("u", "side", ProbeType.LIVENESS)


@virtual
async def test_a_container_is_seen_at_the_next_tick_PROBE_006() -> None:
    world = await old_kubelet(0, liveness={"periodSeconds": 5})
    await world.at(103)
    world.restart("id1")
    await world.at(106)
    assert [(round(at_s), name) for at_s, name, *_ in world.calls] == [(100, "id0"), (105, "id1")]
    await world.manager.stop()


@virtual
async def test_triggers_before_the_first_run_change_nothing_PROBE_004_PROBE_007() -> None:
    world = World(0, readiness={"periodSeconds": 10})
    world.started()
    status = world.status("u")
    assert status is not None
    await world.at(0.01)
    world.manager.trigger_readiness(world.pod, status)
    world.manager.trigger_readiness(world.pod, status)
    await world.at(30)
    first, second, *rest = world.times_s
    assert first > 0.01
    assert second == first  # the trigger that was left waiting
    assert rest[0] == round(first + 10, 3)
    await world.manager.stop()


@virtual
async def test_runs_are_counted_with_their_durations_PROBE_082() -> None:
    world = await old_kubelet(0, 1, rpc_error("UNKNOWN"), readiness={"periodSeconds": 5})
    world.took_s = 2
    await world.at(113)
    text = world.manager.metrics.text()
    assert 'probe_type="Readiness",result="successful"} 1.0' in text
    assert 'probe_type="Readiness",result="failed"} 1.0' in text
    assert "prober_probe_duration_seconds_sum" in text
    assert 'probe_type="Readiness"} 2.0' in text
    world.manager.remove_pod(world.pod)
    await world.at(130)
    assert "Readiness" not in world.manager.metrics.text()


@virtual
async def test_a_body_that_breaks_off_is_an_error_PROBE_070_PROBE_081() -> None:
    network = FakeNetwork(HttpAnswer(500, body="x", broken="unexpected EOF"))
    world = await old_kubelet(0, network=network, liveness={"failureThreshold": 1, **HTTP})
    await world.at(101)
    assert len(network.urls) == 3  # PROBE-060
    text = "Liveness probe errored and resulted in failure state: unexpected EOF"
    assert [e[1] for e in world.events] == [text]
    assert world.manager.liveness.get("id0") is OK
    await world.manager.stop()


@virtual
async def test_a_probe_without_handler_is_an_error_PROBE_060() -> None:
    world = await old_kubelet(0, liveness={"exec": None})
    await world.at(101)
    text = "Liveness probe errored and resulted in unknown state: missing probe handler for "
    assert world.events[0][1] == f"{text}p_n(u):c"
    await world.manager.stop()


@pytest.mark.parametrize("probe", [HTTP, TCP])
def test_an_unknown_port_is_an_error_PROBE_061(probe: Any) -> None:
    async def body() -> None:
        (kind,) = [k for k in probe if k != "exec"]
        named = {**probe, kind: {**probe[kind], "port": "nope"}}
        world = await old_kubelet(0, network=FakeNetwork(None), liveness=named)
        await world.at(101)
        assert "errored and resulted in unknown state: strconv.Atoi" in world.events[0][1]
        await world.manager.stop()

    run_virtual(body)


@virtual
async def test_output_is_cut_to_ten_kibibytes_PROBE_064() -> None:
    world = await old_kubelet(1, liveness={"failureThreshold": 1})
    world.stdout = b"x" * 20000
    await world.at(101)
    assert world.events[0][1] == "Liveness probe failed: " + "x" * 10240
    await world.manager.stop()
