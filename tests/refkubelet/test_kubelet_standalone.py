"""The kubelet on a fake runtime in virtual time, with static pods only."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from node_world import Node, running_node
from pods import container, manifest

from fakecri import exits, ignores, replies
from simclock import run_virtual

pytestmark = pytest.mark.virtual_time


async def test_a_manifest_becomes_a_running_pod(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.apply(manifest())
        await node.until(lambda: node.phase("web-golden") == "Running", 5)
        assert node.write_names() == ["RunPodSandbox", "CreateContainer", "StartContainer"]
        status = node.status("web-golden")
        assert status is not None
        assert {c.type: c.status for c in status.conditions or ()} == {
            "PodReadyToStartContainers": "True",
            "Initialized": "True",
            "Ready": "True",
            "ContainersReady": "True",
            "PodScheduled": "True",
        }
        uid = node.kubelet.sources.pods.pods()[0].metadata.uid
        for path in ("volumes", "plugins"):
            directory = node.paths.root / "pods" / str(uid) / path
            assert directory.stat().st_mode & 0o777 == 0o750  # LIFE-070 step 8


async def test_a_removed_manifest_stops_the_pod_and_garbage_goes_LIFE_013_MIRR_005(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        node.apply(manifest())
        await node.until(lambda: node.phase("web-golden") == "Running", 5)
        node.remove()
        await node.until(lambda: "RemoveContainer" in node.write_names(), 70)
        stop = node.cri.calls("StopContainer")[0]
        assert stop.request.timeout == 30
        await node.until(lambda: "RemovePodSandbox" in node.write_names(), 70)
        assert node.write_names()[3:] == [
            "StopContainer",
            "StopPodSandbox",
            "RemoveContainer",
            "StopPodSandbox",
            "RemovePodSandbox",
        ]
        await node.until(lambda: not list((node.paths.root / "pods").iterdir()), 5)


async def test_crash_loop_times_BACK_001_BACK_011(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.cri.behaves(exits(3), container="main")
        node.apply(manifest())
        await node.until(lambda: node.cri.count("StartContainer") == 8, 1500, 0.5)
        times_s = node.cri.times_s("StartContainer")
        gaps_s = [b - a for a, b in pairwise(times_s)]
        for gap_s, delay_s in zip(gaps_s, [0, 10, 20, 40, 80, 160, 300], strict=True):
            extra_s = min(delay_s, 60) * 0.5
            assert delay_s <= gap_s <= delay_s + extra_s + 2.0, gaps_s
        assert len(node.cri.containers()) == 2  # one dead, one new (GC-020)


async def test_a_restarted_kubelet_restarts_nothing_MIRR_008_BACK_007(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.apply(manifest())
        await node.until(lambda: node.phase("web-golden") == "Running", 5)
        before = node.write_names()
        await node.restart(down_s=30)
        await node.until(lambda: node.phase("web-golden") == "Running", 5)
        await node.clock.sleep(200)
        assert node.write_names() == before
        status = node.status("web-golden")
        assert status is not None
        assert (status.containerStatuses or [])[0].restartCount == 0


async def test_a_manifest_removed_while_the_kubelet_was_down_MIRR_009(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.apply(manifest())
        await node.until(lambda: node.phase("web-golden") == "Running", 5)
        await node.stop()
        node.remove()
        await node.start()
        await node.until(lambda: node.cri.count("StopPodSandbox") == 1, 10)
        assert node.cri.calls("StopContainer")[0].request.timeout == 2  # LIFE-072
        assert node.cri.calls("ExecSync") == []


async def test_a_killed_container_is_started_again_at_the_next_relist(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.apply(manifest())
        await node.until(lambda: node.phase("web-golden") == "Running", 5)
        node.cri.kill("main")
        await node.until(lambda: node.cri.count("StartContainer") == 2, 3)
        await node.until(lambda: _restarts(node) == 1, 3)


def _restarts(node: Node) -> int | None:
    status = node.status("web-golden")
    return (status.containerStatuses or [])[0].restartCount if status is not None else None


async def test_a_runtime_that_is_down_stops_the_loop_and_no_pod_NODE_051(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.apply(manifest())
        await node.until(lambda: node.phase("web-golden") == "Running", 5)
        before = node.write_names()
        node.cri.crash()
        await node.clock.sleep(40)
        assert node.kubelet.runtime.state.runtime_errors() is not None
        node.cri.restart()
        await node.until(lambda: node.kubelet.runtime.state.runtime_errors() is None, 10)
        await node.clock.sleep(100)
        assert node.write_names() == before
        assert node.phase("web-golden") == "Running"


async def test_a_runtime_that_is_not_ready_starts_nothing_LIFE_006(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.restart()
        node.cri.crash()
        await node.clock.sleep(6)
        node.apply(manifest())
        await node.clock.sleep(60)
        assert node.cri.count("RunPodSandbox") == 0
        node.cri.restart()
        await node.until(lambda: node.phase("web-golden") == "Running", 12)


async def test_two_edits_during_the_grace_period_start_only_the_newest_MIRR_004(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        node.cri.behaves(ignores("SIGTERM"), container="main")
        node.apply(manifest(terminationGracePeriodSeconds=5))
        await node.until(lambda: node.phase("web-golden") == "Running", 5)
        for number in (1, 2):
            await node.clock.sleep(1)
            edited = container(env=[{"name": "EDIT", "value": str(number)}])
            node.apply(manifest(edited, terminationGracePeriodSeconds=5))
        stopped_s = node.clock.monotonic_s()
        await node.until(lambda: node.cri.count("RunPodSandbox") == 2, 30)
        assert 3 <= node.clock.monotonic_s() - stopped_s <= 25
        created = node.cri.calls("CreateContainer")[-1]
        assert [(e.key, e.value) for e in created.request.config.envs if e.key == "EDIT"] == [
            ("EDIT", b"2")
        ]
        await node.clock.sleep(60)
        assert node.cri.count("RunPodSandbox") == 2


async def test_the_same_manifest_again_while_it_ends_restarts_the_uid_MIRR_006(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        node.cri.behaves(ignores("SIGTERM"), container="main")
        node.apply(manifest(terminationGracePeriodSeconds=5))
        await node.until(lambda: node.phase("web-golden") == "Running", 5)
        node.remove()
        await node.clock.sleep(1)
        node.apply(manifest(terminationGracePeriodSeconds=5))
        await node.until(lambda: node.cri.count("StartContainer") == 2, 15)
        uids = {c.subject.uid for c in node.cri.calls("StartContainer")}
        assert len(uids) == 1


async def test_a_bad_manifest_beside_a_good_one_SRC_005(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        (node.paths.manifests / "bad.yaml").write_text("kind: [")
        node.apply(manifest())
        await node.until(lambda: node.phase("web-golden") == "Running", 5)
        assert node.cri.count("StartContainer") == 1


async def test_events_of_pulls_BACK_204(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.cri.on("PullImage").fails("UNKNOWN", "no route", times=1)
        node.cri.on("PullImage").delays(1.5)
        image = "registry.example/app:1"
        node.apply(manifest(container(image=image)))
        await node.until(lambda: node.phase("web-golden") == "Running", 60)
        told = [e for e in node.events() if "mage" in e or e.startswith("Failed")]
        assert told[:3] == [
            f'Pulling: Pulling image "{image}"',
            f'Failed: Failed to pull image "{image}": no route',
            "Failed: Error: ErrImagePull",
        ]
        wanted = (
            rf'Pulled: Successfully pulled image "{image}" in (\S+) \((\S+) including waiting\)'
        )
        found = re.match(wanted + r"\. Image size: [1-9]\d* bytes\.$", told[-1])
        assert found is not None, told[-1]
        assert found.groups() == ("1.5s", "1.5s")


@pytest.mark.parametrize(
    ("policy", "code", "phase"), [("Never", 1, "Failed"), ("Never", 0, "Succeeded")]
)
async def test_a_pod_that_ends_is_over_LIFE_036(
    tmp_path: Path, policy: str, code: int, phase: str
) -> None:
    async with running_node(tmp_path) as node:
        node.cri.behaves(exits(code, after_s=2), container="main")
        node.apply(manifest(restartPolicy=policy))
        await node.until(lambda: node.phase("web-golden") == phase, 10)
        await node.until(lambda: node.cri.count("StopPodSandbox") == 1, 5)
        await node.clock.sleep(150)
        assert node.cri.count("StartContainer") == 1
        assert node.cri.count("StopContainer") == 0


async def test_liveness_failure_restarts_the_container_LIFE_005(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.cri.behaves(replies(["/bin/live"], exit_code=1), container="main", attempt=0)
        probe = {"exec": {"command": ["/bin/live"]}, "periodSeconds": 2, "failureThreshold": 2}
        node.apply(manifest(container(livenessProbe=probe)))
        await node.until(lambda: node.cri.count("StartContainer") == 2, 30)
        assert node.cri.count("StopContainer") == 1
        assert any("failed liveness probe" in text for text in node.events("Killing"))


async def test_readiness_reaches_the_status_LIFE_005(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        with node.cri.behaves(replies(["/bin/ready"], exit_code=1), container="main"):
            probe = {"exec": {"command": ["/bin/ready"]}, "periodSeconds": 1}
            node.apply(manifest(container(readinessProbe=probe)))
            await node.until(lambda: node.phase("web-golden") == "Running", 5)
            await node.clock.sleep(5)
            assert _ready(node) is False


def _ready(node: Node) -> bool | None:
    status = node.status("web-golden")
    return (status.containerStatuses or [])[0].ready if status is not None else None


async def test_stop_leaves_no_task_behind(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.apply(manifest())
        await node.until(lambda: node.phase("web-golden") == "Running", 5)
        await node.stop()
        assert node.write_names() == ["RunPodSandbox", "CreateContainer", "StartContainer"]
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def trace(directory: Path) -> list[str]:
    """The calls of two minutes; without the UID of the pod, which depends on the directory."""
    directory.mkdir()
    async with running_node(directory) as node:
        node.cri.behaves(exits(1, after_s=1), container="main")
        node.apply(manifest())
        await node.clock.sleep(120)
        told = [f"{c.started_s:.6f} {c.method} {c.subject}" for c in node.cri.calls()]
    return [line.replace(str(directory), "").split("uid=")[0] for line in told]


def test_a_seed_gives_one_trace(tmp_path: Path) -> None:
    first, second = (run_virtual(partial(trace, tmp_path / name)) for name in "ab")
    assert first == second
    assert len(first) > 100


async def test_health_is_the_loop_coming_round_NODE_053_PLEG_203(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        assert node.kubelet.healthy() is None
        await node.clock.sleep(10)
        assert node.kubelet.healthy() is None
        node.cri.crash()
        await node.clock.sleep(400)
        assert "sync loop took longer than expected" in str(node.kubelet.healthy())
        node.cri.restart()
        await node.until(lambda: node.kubelet.healthy() is None, 15)
