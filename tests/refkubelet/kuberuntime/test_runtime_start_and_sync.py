"""Starting containers and whole syncs over a scripted runtime (LIFE-122, LIFE-130..142, BACK-*)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from criapi.v1 import api_pb2 as cri
from runtime_doubles import (
    IMAGE,
    Events,
    Failure,
    Probes,
    ScriptedTarget,
    make_pod,
    record,
    sandbox,
    status,
)

from refkubelet.cri.client import CriClient
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.containers import next_attempt_by_logs
from refkubelet.kuberuntime.manager import RuntimeManager
from refkubelet.kuberuntime.results import PodSyncResult
from refkubelet.model.image_names import InvalidImageNameError, with_default_tag
from refkubelet.model.probe_results import ProbeResult
from simtime import Ids, Rng, VirtualLoop, run_virtual

UNKNOWN = grpc.StatusCode.UNKNOWN
EMPTY = status(sandboxes=())
ABSENT = cri.ImageStatusResponse()
START_OF_A_POD = [
    "RunPodSandbox",
    "PodSandboxStatus",
    "ImageStatus",
    "ImageStatus",
    "CreateContainer",
    "StartContainer",
]


class Bench:
    """A runtime manager over a scripted target, in virtual time."""

    def __init__(self, root: Path, *, terminating: bool = False, **answers: Any) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.clock = loop.clock
        self.target = ScriptedTarget(**answers)
        self.events = Events()
        options = RuntimeOptions(
            root_dir=root / "kubelet", pod_logs_dir=root / "logs", container_logs_dir=None
        )
        deps = RuntimeDeps(
            self.clock, Ids(Rng(0)), self.events, terminating=lambda pod_uid: terminating
        )
        self.manager = RuntimeManager(CriClient(self.target), deps, options)

    async def sync(
        self, pod: Any, state: Any, probes: Probes | None = None, **more: Any
    ) -> PodSyncResult:
        return await self.manager.sync_pod(pod, state, probes or Probes(), **more)


@pytest.fixture
def virtual(tmp_path: Path) -> Callable[..., None]:
    def run(main: Callable[[Bench], Awaitable[None]], **answers: Any) -> None:
        async def body() -> None:
            await main(Bench(tmp_path, **answers))

        run_virtual(body)

    return run


Run = Callable[..., None]


def test_calls_of_a_new_pod_LIFE_130_LIFE_131(virtual: Run) -> None:
    """The order recorded in s01, and its deadlines (CRI-006)."""

    async def main(bench: Bench) -> None:
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

    virtual(main)


def test_failed_container_does_not_stop_the_next_LIFE_122(virtual: Run) -> None:
    def create(request: Any) -> Any:
        if request.config.metadata.name == "a":
            return Failure(UNKNOWN, "no such device")
        return cri.CreateContainerResponse(container_id="b")

    async def main(bench: Bench) -> None:
        result = await bench.sync(make_pod("a", "b"), EMPTY)
        assert [(e.target, e.reason, e.message) for e in result.errors] == [
            ("a", "CreateContainerError", "no such device")
        ]
        assert [r.container_id for r in bench.target.requests("StartContainer")] == ["b"]
        assert bench.manager.reason_cache.get("u-1", "a") == (
            "CreateContainerError",
            "no such device",
        )
        assert ("Warning", "Failed", "Error: no such device", "spec.containers{a}") in (
            bench.events.seen
        )
        await bench.sync(make_pod("b"), EMPTY)
        assert bench.manager.reason_cache.get("u-1", "b") is None

    virtual(main, CreateContainer=create)


def test_failed_plain_init_container_ends_the_sync_LIFE_122(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        pod = make_pod(init=({"name": "side", "restartPolicy": "Always"},))
        state = status(record(pod, "side", "exited", 1))
        result = await bench.sync(pod, state)
        assert [e.reason for e in result.errors] == ["RunContainerError"]

    virtual(main, StartContainer=Failure(UNKNOWN, "bad"))


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
def test_failed_sandbox_starts_nothing_LIFE_243_CRI_008(
    virtual: Run, answers: dict[str, Any], reason: str, event: str
) -> None:
    async def main(bench: Bench) -> None:
        result = await bench.sync(make_pod(), EMPTY)
        assert [e.reason for e in result.errors] == [reason]
        assert event in bench.events.reasons()
        assert "CreateContainer" not in bench.target.methods()

    virtual(main, **answers)


def test_lost_sandbox_kills_stops_all_and_starts_over_LIFE_101_LIFE_130(virtual: Run) -> None:
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

    async def main(bench: Bench) -> None:
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

    virtual(main, ContainerStatus=described)


def test_failed_kill_ends_the_sync_LIFE_130(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        pod = make_pod()
        state = status(record(pod, "main"), sandboxes=(sandbox(0, ready=False),))
        result = await bench.sync(pod, state)
        assert [e.reason for e in result.errors] == ["KillContainerError"]
        assert bench.target.methods() == ["StopContainer", "StopPodSandbox"]

    virtual(main, StopContainer=Failure(UNKNOWN, "stuck"))


def test_liveness_failure_kills_and_restarts_in_one_sync_s10_BACK_017(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        pod = make_pod("main", "calm", terminationGracePeriodSeconds=5)
        state = status(record(pod, "main"), record(pod, "calm"))
        failed = Probes(liveness={"main-0": ProbeResult.FAILURE})
        assert (await bench.sync(pod, state, failed)).ok
        assert bench.target.methods() == ["StopContainer", *START_OF_A_POD[2:]]
        assert bench.target.requests("StopContainer")[0].timeout == 5
        assert bench.target.requests("CreateContainer")[0].config.metadata.attempt == 1

    virtual(main)


def test_crash_loop_waits_and_says_until_when_BACK_008_BACK_009(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        pod = make_pod()
        dead = record(pod, "main", "exited", 1, finished_at_ns=bench.clock.wall_ns())
        assert (await bench.sync(pod, status(dead))).ok  # the first restart is immediate
        await asyncio.sleep(2)
        again = record(pod, "main", "exited", 1, attempt=1, finished_at_ns=bench.clock.wall_ns())
        result = await bench.sync(pod, status(again))
        message = "back-off 10s restarting failed container=main pod=web_default(u-1)"
        assert bench.manager.reason_cache.get("u-1", "main") == ("CrashLoopBackOff", message)
        assert result.min_backoff_expiry_s() == pytest.approx(12.0)
        assert (
            "Warning",
            "BackOff",
            "Back-off restarting failed container main in pod web_default(u-1)",
            "spec.containers{main}",
        ) in bench.events.seen
        await asyncio.sleep(10)
        assert (await bench.sync(pod, status(again))).ok

    virtual(main)


def test_restart_times_of_a_crash_loop_BACK_001(virtual: Run) -> None:
    """Resyncing exactly at each expiry gives starts at 0, 0, 10, 30, 70, 150, 310 s."""

    async def main(bench: Bench) -> None:
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

    virtual(main)


def test_created_leftover_is_replaced_without_back_off_BACK_006_LIFE_131(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        pod = make_pod()
        for attempt in range(3):
            state = status(record(pod, "main", "created", attempt=attempt))
            assert (await bench.sync(pod, state)).ok
        attempts = [r.config.metadata.attempt for r in bench.target.requests("CreateContainer")]
        assert attempts == [1, 2, 3]
        assert "StopContainer" not in bench.target.methods()

    virtual(main)


def test_post_start_failure_kills_the_container_LIFE_142(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        hook = {"postStart": {"exec": {"command": ["/bin/false"]}}}
        pod = make_pod(
            {"name": "main", "lifecycle": hook}, "later", terminationGracePeriodSeconds=4
        )
        result = await bench.sync(pod, EMPTY)
        assert [e.reason for e in result.errors] == ["PostStartHookError"]
        assert result.errors[0].message == (
            'Exec lifecycle hook ([/bin/false]) for Container "main" in Pod "web_default(u-1)" '
            "failed - error: command '/bin/false' exited with 7: , message: \"broken\\n\""
        )
        methods = bench.target.methods()
        assert methods[5:8] == ["StartContainer", "ExecSync", "StopContainer"]
        assert methods.count("StartContainer") == 2  # the next container starts all the same
        texts = [(reason, message) for _, reason, message, _ in bench.events.seen]
        assert ("FailedPostStartHook", "PostStartHook failed") in texts
        assert ("Killing", "FailedPostStartHook") in texts

    virtual(main, ExecSync=cri.ExecSyncResponse(exit_code=7, stdout=b"broken\n"))


@pytest.mark.parametrize(
    ("method", "reason"),
    [("StopContainer", "KillContainerError"), ("RemoveContainer", "RemoveContainerError")],
)
def test_a_reset_that_fails_is_no_reset_LIFE_125(tmp_path: Path, method: str, reason: str) -> None:
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    trigger = {"name": "b", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    pod = make_pod("a", trigger)
    state = status(record(pod, "a"), record(pod, "b", "exited", 42))

    async def main() -> None:
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

    run_virtual(main)


def test_nothing_starts_in_a_pod_that_was_just_killed_LIFE_117(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        debug = [{"name": "debug", "image": IMAGE}]
        side = {"name": "side", "restartPolicy": "Always"}
        pod = make_pod("a", init=(side,), policy="Never", ephemeralContainers=debug)
        state = status(record(pod, "side"), record(pod, "a", "exited"))
        assert (await bench.sync(pod, state)).ok
        assert bench.target.methods() == ["StopContainer", "StopPodSandbox"]

    virtual(main)


def test_a_reset_waits_for_a_new_sandbox_LIFE_110(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        pod = make_pod("a")
        state = status(record(pod, "a", "exited"), sandboxes=(sandbox(0, ready=False),))
        result = await bench.sync(pod, state, restarting_all=True)
        assert not result.containers_reset
        methods = bench.target.methods()
        assert [m for m in methods if m in ("RemoveContainer", "RunPodSandbox")] == [
            "RunPodSandbox"
        ]
        assert "CreateContainer" not in methods

    virtual(main)


def test_a_failed_sandbox_is_no_news_of_a_pod_that_is_to_end_LIFE_130(tmp_path: Path) -> None:
    async def main() -> None:
        failure = Failure(UNKNOWN, "no network")
        quiet = Bench(tmp_path, terminating=True, RunPodSandbox=failure)
        assert (await quiet.sync(make_pod(), EMPTY)).ok
        assert "FailedCreatePodSandBox" not in quiet.events.reasons()
        loud = Bench(tmp_path, RunPodSandbox=failure)
        assert not (await loud.sync(make_pod(), EMPTY)).ok
        assert "FailedCreatePodSandBox" in loud.events.reasons()

    run_virtual(main)


# -- images --------------------------------------------------------------------------------------


def test_never_and_absent_BACK_202(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        pod = make_pod({"name": "main", "imagePullPolicy": "Never"})
        result = await bench.sync(pod, EMPTY)
        text = f'Container image "{IMAGE}" is not present with pull policy of Never'
        assert [(e.reason, e.message) for e in result.errors] == [("ErrImageNeverPull", text)]
        events = [(kind, reason, message) for kind, reason, message, _ in bench.events.seen]
        assert ("Warning", "ErrImageNeverPull", text) in events
        assert ("Warning", "Failed", "Error: ErrImageNeverPull") in events
        assert "PullImage" not in bench.target.methods()

    virtual(main, ImageStatus=ABSENT)


def test_always_pulls_without_looking_first_BACK_202_BACK_213(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        pod = make_pod({"name": "main", "imagePullPolicy": "Always"})
        assert (await bench.sync(pod, EMPTY)).ok
        assert bench.target.methods()[2:6] == [
            "PullImage",
            "ImageStatus",
            "ImageStatus",
            "CreateContainer",
        ]
        assert bench.target.calls[2][2] is None  # no deadline
        assert bench.target.requests("CreateContainer")[0].config.image.image == "ref"
        message = next(m for _, r, m, _ in bench.events.seen if r == "Pulled")
        assert message.startswith(f'Successfully pulled image "{IMAGE}" in ')
        assert message.endswith("Image size: 5 bytes.")

    virtual(main, PullImage=cri.PullImageResponse(image_ref="ref"))


def test_pull_back_off_counts_from_the_last_failure_BACK_206_BACK_207(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        pod = make_pod({"name": "main", "imagePullPolicy": "IfNotPresent"})
        pulls = []
        for _ in range(32):
            result = await bench.sync(pod, EMPTY)
            assert result.min_backoff_expiry_s() is None
            pulls.append((bench.clock.monotonic_s(), result.errors[0].reason))
            await asyncio.sleep(5)
        attempts = [t for t, reason in pulls if reason == "ErrImagePull"]
        assert attempts == [0, 10, 30, 70, 150]
        waiting = bench.manager.reason_cache.get("u-1", "main")
        assert waiting == (
            "ImagePullBackOff",
            f'Back-off pulling image "{IMAGE}": ErrImagePull: not there',
        )
        assert (
            "Normal",
            "BackOff",
            f'Back-off pulling image "{IMAGE}"',
            "spec.containers{main}",
        ) in (bench.events.seen)

    virtual(main, ImageStatus=ABSENT, PullImage=Failure(UNKNOWN, "not there"))


@pytest.mark.parametrize(
    ("code", "details", "reason", "message"),
    [
        (UNKNOWN, "boom", "ErrImagePull", "boom"),
        (
            grpc.StatusCode.UNAVAILABLE,
            "RegistryUnavailable: x",
            "ErrImagePull",
            "rpc error: code = Unavailable desc = RegistryUnavailable: x",
        ),
        (
            UNKNOWN,
            "RegistryUnavailable: x",
            "RegistryUnavailable",
            f"image pull failed for {IMAGE} because the registry is unavailable: x",
        ),
        (
            UNKNOWN,
            "SignatureValidationFailed: y",
            "SignatureValidationFailed",
            f"image pull failed for {IMAGE} because the signature validation failed: y",
        ),
    ],
)
def test_pull_errors_BACK_205(
    virtual: Run, code: grpc.StatusCode, details: str, reason: str, message: str
) -> None:
    async def main(bench: Bench) -> None:
        result = await bench.sync(make_pod(), EMPTY)
        assert [(e.reason, e.message) for e in result.errors] == [(reason, message)]

    virtual(main, ImageStatus=ABSENT, PullImage=Failure(code, details))


def test_image_without_size_is_an_inspect_error_BACK_203(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        result = await bench.sync(make_pod(), EMPTY)
        assert [e.reason for e in result.errors] == ["ImageInspectError"]
        assert any(
            r == "InspectFailed" and m.startswith('Failed to inspect image "": ')
            for _, r, m, _ in bench.events.seen
        )

    virtual(main, ImageStatus=cri.ImageStatusResponse(image=cri.Image(id="x")))


def test_pulls_are_serial_by_default_BACK_208(virtual: Run) -> None:
    running = {"now": 0, "most": 0}

    async def pull(request: Any) -> Any:
        running["now"] += 1
        running["most"] = max(running.values())
        await asyncio.sleep(3)
        running["now"] -= 1
        return cri.PullImageResponse(image_ref="ref")

    async def main(bench: Bench) -> None:
        pods = [make_pod(meta={"uid": f"u{n}", "name": f"p{n}"}) for n in range(3)]
        await asyncio.gather(*(bench.sync(pod, EMPTY) for pod in pods))
        assert running["most"] == 1
        assert bench.clock.monotonic_s() == 9
        messages = [m for _, r, m, _ in bench.events.seen if r == "Pulled"]
        assert "in 3s (9s including waiting)" in messages[-1]

    virtual(main, ImageStatus=ABSENT, PullImage=pull)


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("busybox", "busybox:latest"),
        ("UPPER/bad:1", "UPPER/bad:1"),  # an upper-case first part is a domain (s14b)
        ("localhost:5000/x", "localhost:5000/x:latest"),
        ("x@sha256:" + "a" * 64, "x@sha256:" + "a" * 64),
        ("x@sha384:" + "a" * 96, "x@sha384:" + "a" * 96),
        ("x:1@sha512:" + "a" * 128, "x:1@sha512:" + "a" * 128),
        ("a_b.c/d", "a_b.c/d:latest"),
        ("REG.io:5000/x", "REG.io:5000/x:latest"),
        ("reg.io/" + "x" * 255, "reg.io/" + "x" * 255 + ":latest"),
    ],
)
def test_image_names_BACK_201(name: str, full: str) -> None:
    assert with_default_tag(name) == full


TOO_LONG = "x" * 256


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("localhost/BAD:1", "invalid reference format: repository name (BAD) must be lowercase"),
        (
            "Busybox",
            "invalid reference format: repository name (library/Busybox) must be lowercase",
        ),
        ("a_B.c/d", "repository name must be lowercase"),
        ("http://x/y", "invalid reference format"),
        ("", "invalid reference format"),
        ("x:", "invalid reference format"),
        (
            "a" * 64,
            f"invalid repository name ({'a' * 64}), cannot specify 64-byte hexadecimal strings",
        ),
        (f"reg.io/{TOO_LONG}", "repository name must not be more than 255 characters"),
        ("x@md5:" + "a" * 32, "unsupported digest algorithm"),
        ("x@sha256:" + "a" * 32, "invalid checksum digest length"),
        ("x@sha256:" + "A" * 64, "invalid checksum digest format"),
    ],
)
def test_invalid_image_names_BACK_201(name: str, why: str, virtual: Run) -> None:
    with pytest.raises(InvalidImageNameError) as raised:
        with_default_tag(name)
    assert str(raised.value) == why

    async def main(bench: Bench) -> None:
        result = await bench.sync(make_pod({"name": "main", "image": name}), EMPTY)
        assert [e.reason for e in result.errors] == ["InvalidImageName"]
        assert "ImageStatus" not in bench.target.methods()

    virtual(main)


def test_attempt_from_log_files_LIFE_132_BACK_020(tmp_path: Path) -> None:
    assert next_attempt_by_logs(tmp_path / "none") == 0
    for name in ("0.log", "3.log.20260101-000000.gz", "2.log", "x"):
        (tmp_path / name).touch()
    assert next_attempt_by_logs(tmp_path) == 4
