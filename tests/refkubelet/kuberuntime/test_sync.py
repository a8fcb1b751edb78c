"""Starting containers and whole syncs over a scripted runtime (LIFE-122, LIFE-130..142, BACK-*)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from pods import IMAGE, make_pod
from runtime_doubles import Failure, Probes, record, sandbox, status
from sync_bench import Bench

from refkubelet.kuberuntime.containers import next_attempt_by_logs
from refkubelet.model.probe_results import ProbeResult

pytestmark = pytest.mark.virtual_time

UNKNOWN = grpc.StatusCode.UNKNOWN
EMPTY = status(sandboxes=())
START_OF_A_POD = [
    "RunPodSandbox",
    "PodSandboxStatus",
    "ImageStatus",
    "ImageStatus",
    "CreateContainer",
    "StartContainer",
]


async def test_calls_of_a_new_pod_LIFE_130_LIFE_131(tmp_path: Path) -> None:
    """The order recorded in s01, and its deadlines (CRI-006)."""

    bench = Bench(tmp_path)
    result = await bench.sync(make_pod(), EMPTY)
    assert result.ok
    assert result.actions == 2
    assert bench.target.methods() == START_OF_A_POD
    deadlines = {m: d for m, _, d in bench.target.calls}
    assert deadlines["RunPodSandbox"] == 240
    assert deadlines["StartContainer"] == 120
    first, second = bench.target.requests("ImageStatus")
    assert (first.image.image, second.image.image) == (IMAGE, IMAGE)
    no_dns = ["MissingClusterDNS"] * 2  # about the node, about the pod
    assert bench.events.reasons() == [*no_dns, "Pulled", "Created", "Started"]


async def test_failed_container_does_not_stop_the_next_LIFE_122(tmp_path: Path) -> None:
    def create(request: Any) -> Any:
        if request.config.metadata.name == "a":
            return Failure(UNKNOWN, "no such device")
        return cri.CreateContainerResponse(container_id="b")

    bench = Bench(tmp_path, CreateContainer=create)
    result = await bench.sync(make_pod("a", "b"), EMPTY)
    assert [(e.target, e.reason, e.message) for e in result.errors] == [
        ("a", "CreateContainerError", "no such device")
    ]
    assert [r.container_id for r in bench.target.requests("StartContainer")] == ["b"]
    assert bench.manager.reason_cache.get("uid-web", "a") == (
        "CreateContainerError",
        "no such device",
    )
    assert ("Warning", "Failed", "Error: no such device", "spec.containers{a}") in (
        bench.events.seen
    )
    await bench.sync(make_pod("b"), EMPTY)
    assert bench.manager.reason_cache.get("uid-web", "b") is None


async def test_failed_plain_init_container_ends_the_sync_LIFE_122(tmp_path: Path) -> None:
    bench = Bench(tmp_path, StartContainer=Failure(UNKNOWN, "bad"))
    pod = make_pod(init=({"name": "side", "restartPolicy": "Always"},))
    state = status(record(pod, "side", "exited", 1))
    result = await bench.sync(pod, state)
    assert [e.reason for e in result.errors] == ["RunContainerError"]


@pytest.mark.parametrize(
    ("answers", "reason", "event"),
    [
        (
            {"RunPodSandbox": Failure(UNKNOWN, "x")},
            "CreatePodSandboxError",
            "FailedCreatePodSandBox",
        ),
        (
            {"PodSandboxStatus": Failure(UNKNOWN, "x")},
            "ConfigPodSandboxError",
            "FailedPodSandBoxStatus",
        ),
        (
            {"RunPodSandbox": cri.RunPodSandboxResponse()},
            "CreatePodSandboxError",
            "FailedCreatePodSandBox",
        ),
    ],
)
async def test_failed_sandbox_starts_nothing_LIFE_243_CRI_008(
    tmp_path: Path, answers: dict[str, Any], reason: str, event: str
) -> None:
    bench = Bench(tmp_path, **answers)
    result = await bench.sync(make_pod(), EMPTY)
    assert [e.reason for e in result.errors] == [reason]
    assert event in bench.events.reasons()
    assert "CreateContainer" not in bench.target.methods()


async def test_lost_sandbox_kills_stops_all_and_starts_over_LIFE_101_LIFE_130(
    tmp_path: Path,
) -> None:
    """As recorded in s13: StopContainer, StopPodSandbox of all, remove init, attempt + 1."""

    def described(request: Any) -> Any:
        return cri.ContainerStatusResponse(
            status=cri.ContainerStatus(
                id=request.container_id,
                metadata=cri.ContainerMetadata(name="i1"),
                created_at=1,
                image=cri.ImageSpec(image=IMAGE),
                image_ref="r",
            )
        )

    bench = Bench(tmp_path, ContainerStatus=described)
    pod = make_pod(init=({"name": "i1"},))
    boxes = (sandbox(1, ready=False), sandbox(0, ready=False))
    state = status(record(pod, "i1", "exited"), record(pod, "main"), sandboxes=boxes)
    assert (await bench.sync(pod, state)).ok
    assert bench.target.methods() == [
        "StopContainer",
        "StopPodSandbox",
        "StopPodSandbox",
        "ContainerStatus",
        "RemoveContainer",
        *START_OF_A_POD,
    ]
    assert bench.target.requests("RunPodSandbox")[0].config.metadata.attempt == 2
    created = bench.target.requests("CreateContainer")[0].config
    assert (created.metadata.name, created.metadata.attempt) == ("i1", 1)
    assert "SandboxChanged" in bench.events.reasons()


async def test_failed_kill_ends_the_sync_LIFE_130(tmp_path: Path) -> None:
    bench = Bench(tmp_path, StopContainer=Failure(UNKNOWN, "stuck"))
    pod = make_pod()
    state = status(record(pod, "main"), sandboxes=(sandbox(0, ready=False),))
    result = await bench.sync(pod, state)
    assert [e.reason for e in result.errors] == ["KillContainerError"]
    assert bench.target.methods() == ["StopContainer", "StopPodSandbox"]


async def test_liveness_failure_kills_and_restarts_in_one_sync_s10_BACK_017(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    pod = make_pod("main", "calm", terminationGracePeriodSeconds=5)
    state = status(record(pod, "main"), record(pod, "calm"))
    failed = Probes(liveness={"main-0": ProbeResult.FAILURE})
    assert (await bench.sync(pod, state, failed)).ok
    assert bench.target.methods() == ["StopContainer", *START_OF_A_POD[2:]]
    assert bench.target.requests("StopContainer")[0].timeout == 5
    assert bench.target.requests("CreateContainer")[0].config.metadata.attempt == 1


async def test_crash_loop_waits_and_says_until_when_BACK_008_BACK_009(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    pod = make_pod()
    dead = record(pod, "main", "exited", 1, finished_at_ns=bench.clock.wall_ns())
    assert (await bench.sync(pod, status(dead))).ok  # the first restart is immediate
    await asyncio.sleep(2)
    again = record(pod, "main", "exited", 1, attempt=1, finished_at_ns=bench.clock.wall_ns())
    result = await bench.sync(pod, status(again))
    message = "back-off 10s restarting failed container=main pod=web_default(uid-web)"
    assert bench.manager.reason_cache.get("uid-web", "main") == ("CrashLoopBackOff", message)
    assert result.min_backoff_expiry_s() == pytest.approx(12.0)
    assert (
        "Warning",
        "BackOff",
        "Back-off restarting failed container main in pod web_default(uid-web)",
        "spec.containers{main}",
    ) in bench.events.seen
    await asyncio.sleep(10)
    assert (await bench.sync(pod, status(again))).ok


async def test_restart_times_of_a_crash_loop_BACK_001(tmp_path: Path) -> None:
    """Resyncing exactly at each expiry gives starts at 0, 0, 10, 30, 70, 150, 310 s."""

    bench = Bench(tmp_path)
    pod, starts = make_pod(), [0.0]
    attempt, finished = 0, bench.clock.wall_ns()
    while len(starts) < 7:
        dead = record(pod, "main", "exited", 1, attempt=attempt, finished_at_ns=finished)
        result = await bench.sync(pod, status(dead))
        expiry = result.min_backoff_expiry_s()
        if expiry is not None:
            await asyncio.sleep(expiry - bench.clock.monotonic_s())
            continue
        starts.append(bench.clock.monotonic_s())
        attempt, finished = attempt + 1, bench.clock.wall_ns()
    assert starts == pytest.approx([0, 0, 10, 30, 70, 150, 310])


async def test_created_leftover_is_replaced_without_back_off_BACK_006_LIFE_131(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    pod = make_pod()
    for attempt in range(3):
        state = status(record(pod, "main", "created", attempt=attempt))
        assert (await bench.sync(pod, state)).ok
    attempts = [r.config.metadata.attempt for r in bench.target.requests("CreateContainer")]
    assert attempts == [1, 2, 3]
    assert "StopContainer" not in bench.target.methods()


async def test_post_start_failure_kills_the_container_LIFE_142(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ExecSync=cri.ExecSyncResponse(exit_code=7, stdout=b"broken\n"))
    hook = {"postStart": {"exec": {"command": ["/bin/false"]}}}
    pod = make_pod({"name": "main", "lifecycle": hook}, "later", terminationGracePeriodSeconds=4)
    result = await bench.sync(pod, EMPTY)
    assert [e.reason for e in result.errors] == ["PostStartHookError"]
    assert result.errors[0].message == (
        'Exec lifecycle hook ([/bin/false]) for Container "main" in Pod "web_default(uid-web)" '
        "failed - error: command '/bin/false' exited with 7: , message: \"broken\\n\""
    )
    methods = bench.target.methods()
    assert methods[5:8] == ["StartContainer", "ExecSync", "StopContainer"]
    assert methods.count("StartContainer") == 2  # the next container starts all the same
    texts = [(reason, message) for _, reason, message, _ in bench.events.seen]
    assert ("FailedPostStartHook", "PostStartHook failed") in texts
    assert ("Killing", "FailedPostStartHook") in texts


@pytest.mark.parametrize(
    ("method", "reason"),
    [("StopContainer", "KillContainerError"), ("RemoveContainer", "RemoveContainerError")],
)
async def test_a_reset_that_fails_is_no_reset_LIFE_125(
    tmp_path: Path, method: str, reason: str
) -> None:
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    trigger = {"name": "b", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    pod = make_pod("a", trigger)
    state = status(record(pod, "a"), record(pod, "b", "exited", 42))

    bench = Bench(tmp_path, **{method: Failure(UNKNOWN, "busy")})
    result = await bench.sync(pod, state, restarting_all=True)
    assert not result.containers_reset
    assert [(e.action.value, e.target, e.reason) for e in result.errors] == [
        ("RemoveContainer", "a", reason)
    ]
    good = Bench(tmp_path)
    assert (await good.sync(pod, state, restarting_all=True)).containers_reset
    removed = [r.container_id for r in good.target.requests("RemoveContainer")]
    assert removed == ["a-0", "b-0"]
    assert [r.timeout for r in good.target.requests("StopContainer")] == [2]


async def test_nothing_starts_in_a_pod_that_was_just_killed_LIFE_117(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    debug = [{"name": "debug", "image": IMAGE}]
    side = {"name": "side", "restartPolicy": "Always"}
    pod = make_pod("a", init=(side,), restartPolicy="Never", ephemeralContainers=debug)
    state = status(record(pod, "side"), record(pod, "a", "exited"))
    assert (await bench.sync(pod, state)).ok
    assert bench.target.methods() == ["StopContainer", "StopPodSandbox"]


async def test_a_reset_waits_for_a_new_sandbox_LIFE_110(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    pod = make_pod("a")
    state = status(record(pod, "a", "exited"), sandboxes=(sandbox(0, ready=False),))
    result = await bench.sync(pod, state, restarting_all=True)
    assert not result.containers_reset
    methods = bench.target.methods()
    assert [m for m in methods if m in ("RemoveContainer", "RunPodSandbox")] == ["RunPodSandbox"]
    assert "CreateContainer" not in methods


async def test_a_failed_sandbox_is_no_news_of_a_pod_that_is_to_end_LIFE_130(tmp_path: Path) -> None:
    failure = Failure(UNKNOWN, "no network")
    quiet = Bench(tmp_path, terminating=True, RunPodSandbox=failure)
    assert (await quiet.sync(make_pod(), EMPTY)).ok
    assert "FailedCreatePodSandBox" not in quiet.events.reasons()
    loud = Bench(tmp_path, RunPodSandbox=failure)
    assert not (await loud.sync(make_pod(), EMPTY)).ok
    assert "FailedCreatePodSandBox" in loud.events.reasons()


def test_attempt_from_log_files_LIFE_132_BACK_020(tmp_path: Path) -> None:
    assert next_attempt_by_logs(tmp_path / "none") == 0
    for name in ("0.log", "3.log.20260101-000000.gz", "2.log", "x"):
        (tmp_path / name).touch()
    assert next_attempt_by_logs(tmp_path) == 4
