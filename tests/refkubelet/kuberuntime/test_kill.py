"""The order of kills, their hooks and their grace (LIFE-143, LIFE-144)."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from loops import virtual_loop
from pods import make_pod
from runtime_doubles import Events, Failure, ScriptedTarget, Slow, record, status

from refkubelet.cri.client import CriClient
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.kill import ContainerKiller, Kill, termination_prerequisites
from refkubelet.kuberuntime.reading.pod_reader import running_pod
from refkubelet.model.objects import Pod
from simclock import Ids, Rng, VirtualLoop

pytestmark = pytest.mark.virtual_time


class Stage:
    """A killer over a runtime in which stopping container `c` takes `takes[c]` seconds."""

    def __init__(self, loop: VirtualLoop, takes: dict[str, float], **answers: Any) -> None:
        self.loop = loop
        self.takes = takes
        self.stops: list[tuple[float, str, int]] = []
        self.events = Events()
        self.target = ScriptedTarget(StopContainer=self._stop, **answers)
        deps = RuntimeDeps(loop.clock, Ids(Rng(0)), self.events)
        self.killer = ContainerKiller(CriClient(self.target), deps)

    async def _stop(self, request: Any) -> Any:
        name = request.container_id.split("-")[0]
        self.stops.append((self.loop.time(), name, request.timeout))
        await asyncio.sleep(self.takes.get(name, 0.0))
        return cri.StopContainerResponse()

    async def kill_pod(self, pod: Pod, *names: str, override: int | None = None) -> list[Any]:
        running = running_pod(status(*(record(pod, n) for n in names)))
        return await self.killer.kill_pod(pod, running, override)


@pytest.fixture
async def loop() -> VirtualLoop:
    return virtual_loop()


def pre_stop(name: str, **handler: Any) -> dict[str, Any]:
    return {"name": name, "lifecycle": {"preStop": handler}}


async def test_hook_time_is_taken_off_in_whole_seconds_LIFE_143(loop: VirtualLoop) -> None:
    """Grace 30, preStop 10.9 s: StopContainer 20; the other container at once with 30 (s08)."""
    pod = make_pod(
        pre_stop("hook", exec={"command": ["x"]}), "calm", terminationGracePeriodSeconds=30
    )
    stage = Stage(loop, {}, ExecSync=Slow(10.9, cri.ExecSyncResponse()))
    assert await stage.kill_pod(pod, "hook", "calm") == []
    assert stage.stops == [(0.0, "calm", 30), (10.9, "hook", 20)]
    ((_, request, deadline),) = [c for c in stage.target.calls if c[0] == "ExecSync"]
    assert (request.timeout, deadline) == (0, None)
    assert sorted(m for _, r, m, _ in stage.events.seen if r == "Killing") == [
        "Stopping container calm",
        "Stopping container hook",
    ]


async def test_hook_that_never_ends_gets_the_grace_and_no_more_LIFE_143(loop: VirtualLoop) -> None:
    pod = make_pod(pre_stop("main", sleep={"seconds": 100}), terminationGracePeriodSeconds=6)
    stage = Stage(loop, {})
    await stage.kill_pod(pod, "main")
    assert stage.stops == [(6.0, "main", 2)]


async def test_failing_hook_is_an_event_and_the_kill_goes_on_LIFE_143(loop: VirtualLoop) -> None:
    pod = make_pod(pre_stop("main", exec={"command": ["x"]}), terminationGracePeriodSeconds=6)
    stage = Stage(loop, {}, ExecSync=cri.ExecSyncResponse(exit_code=1))
    await stage.kill_pod(pod, "main")
    assert stage.stops == [(0.0, "main", 6)]
    assert ("Warning", "FailedPreStopHook", "PreStopHook failed", "spec.containers{main}") in (
        stage.events.seen
    )


@pytest.mark.parametrize(("override", "timeout"), [(0, 2), (1, 2), (9, 9)])
async def test_override_replaces_grace_and_zero_skips_the_hook_LIFE_143_CRI_065(
    loop: VirtualLoop, override: int, timeout: int
) -> None:
    pod = make_pod(pre_stop("main", exec={"command": ["x"]}), terminationGracePeriodSeconds=30)
    stage = Stage(loop, {})
    await stage.kill_pod(pod, "main", override=override)
    assert stage.stops == [(0.0, "main", timeout)]
    assert ("ExecSync" in stage.target.methods()) is (override > 0)


async def test_sidecars_stop_in_reverse_after_the_regular_ones_LIFE_144(loop: VirtualLoop) -> None:
    """As recorded in s07: grace 20, main takes 1.1 s, then side2 with 19, then side1 with 19."""

    sides = tuple({"name": n, "restartPolicy": "Always"} for n in ("side1", "side2"))
    pod = make_pod("main", init=sides, terminationGracePeriodSeconds=20)
    stage = Stage(loop, {"main": 1.1, "side2": 0.7})
    await stage.kill_pod(pod, "main", "side1", "side2")
    assert [(name, timeout) for _, name, timeout in stage.stops] == [
        ("main", 20),
        ("side2", 19),
        ("side1", 19),
    ]
    assert [t for t, _, _ in stage.stops] == pytest.approx([0.0, 1.1, 1.8])


async def test_sidecar_waits_no_longer_than_its_grace_LIFE_144(loop: VirtualLoop) -> None:
    side = {"name": "side", "restartPolicy": "Always"}
    pod = make_pod("main", init=(side,), terminationGracePeriodSeconds=5)
    stage = Stage(loop, {"main": 60})
    await stage.kill_pod(pod, "main", "side")
    assert stage.stops == [(0.0, "main", 5), (5.0, "side", 2)]


def test_prerequisites_do_not_look_past_a_dead_sidecar_LIFE_144() -> None:
    sides = tuple({"name": n, "restartPolicy": "Always"} for n in ("s1", "s2", "s3"))
    pod = make_pod("main", init=sides)
    assert termination_prerequisites(pod, ["main", "s1", "s3"]) == {
        "s1": ("main",),
        "s3": ("main",),
    }


async def test_one_failed_kill_does_not_stop_the_others_and_not_found_is_success_LIFE_143(
    loop: VirtualLoop,
) -> None:
    def stop(request: Any) -> Any:
        code = {"a": grpc.StatusCode.UNKNOWN, "b": grpc.StatusCode.NOT_FOUND}
        name = request.container_id.split("-")[0]
        return Failure(code[name], "no") if name in code else cri.StopContainerResponse()

    pod = make_pod("a", "b", "c")
    stage = Stage(loop, {})
    stage.target.answers["StopContainer"] = stop
    errors = await stage.kill_pod(pod, "a", "b", "c")
    assert [(e.target, e.reason) for e in errors] == [("a", "KillContainerError")]
    assert len(stage.target.requests("StopContainer")) == 3


async def test_stop_deadline_is_timeout_plus_request_timeout_CRI_006(loop: VirtualLoop) -> None:
    stage = Stage(loop, {})
    pod = make_pod(terminationGracePeriodSeconds=30)
    await stage.killer.kill(pod, Kill("main-0", "main"))
    assert stage.target.calls[0][2] == 150


async def test_an_unexpected_error_before_the_stop_leaves_nothing_running_LIFE_143(
    loop: VirtualLoop,
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage(loop, {})

    def no_event(*_: Any, **__: Any) -> None:
        raise KeyError("surprise")

    stage.events.pod_event = no_event  # type: ignore[method-assign]
    pod = make_pod("a", "b", terminationGracePeriodSeconds=7)
    assert await stage.kill_pod(pod, "a", "b") == []
    assert stage.stops == [(0.0, "a", 7), (0.0, "b", 7)]
    assert caplog.text.count("Traceback") == 2  # once for each container


async def test_a_stop_that_fails_in_a_new_way_does_not_stop_the_others_LIFE_143(
    loop: VirtualLoop,
) -> None:
    def stop(request: Any) -> Any:
        if request.container_id.startswith("a"):
            raise RuntimeError("surprise")
        return cri.StopContainerResponse()

    stage = Stage(loop, {})
    stage.target.answers["StopContainer"] = stop
    errors = await stage.kill_pod(make_pod("a", "b"), "a", "b")
    assert [(e.target, e.message) for e in errors] == [("a", "surprise")]
    assert len(stage.target.requests("StopContainer")) == 2
