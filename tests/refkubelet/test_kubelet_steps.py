"""Worker steps, handlers and housekeeping where something goes wrong (LIFE-010..015, 070..073)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from node_world import PODS, Node, running_node
from pods import manifest
from runtime_calls import left_by_a_kubelet

from fakecri import exits

pytestmark = pytest.mark.virtual_time


def network_is_down(answer: Any) -> None:
    for condition in answer.status.conditions:
        if condition.type == "NetworkReady":
            condition.status = False
            condition.reason = "NoCni"
            condition.message = "no network"


def runtime_is_not_ready(answer: Any) -> None:
    for condition in answer.status.conditions:
        if condition.type == "RuntimeReady":
            condition.status = False


async def test_pods_wait_for_the_network_but_host_network_pods_do_not_LIFE_070(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        rule = node.cri.on("Status").changes_answer(network_is_down)
        await node.clock.sleep(6)
        node.apply(manifest(name="waits"), "waits.yaml")
        node.apply(manifest(name="host", hostNetwork=True), "host.yaml")
        await node.until(lambda: node.phase("host-golden") == "Running", 10)
        await node.clock.sleep(10)
        assert node.phase("waits-golden") == "Pending"
        texts = node.events("NetworkNotReady")
        assert texts
        assert texts[0].startswith("network is not ready: container runtime network not ready: ")
        rule.remove()
        await node.until(lambda: node.phase("waits-golden") == "Running", 10)


async def test_without_a_network_what_runs_runs_on_and_the_rest_is_tried_each_second_NODE_052(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        node.apply(manifest(name="runs"), "runs.yaml")
        await node.until(lambda: node.phase("runs-golden") == "Running", 10)
        node.cri.on("Status").changes_answer(network_is_down)
        await node.clock.sleep(6)
        node.apply(manifest(name="waits"), "waits.yaml")
        await node.until(lambda: bool(node.events("NetworkNotReady")), 5)
        before = len(node.events("NetworkNotReady"))
        await node.clock.sleep(15)
        tries = len(node.events("NetworkNotReady")) - before
        assert 15 / 2.5 <= tries <= 15  # 1 to 1.5 s, then the next look at what is due
        assert node.phase("runs-golden") == "Running"
        assert node.cri.count("StopContainer") == node.cri.count("StopPodSandbox") == 0


async def test_a_runtime_that_says_not_ready_stops_the_loop_LIFE_006(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        rule = node.cri.on("Status").changes_answer(runtime_is_not_ready)
        await node.clock.sleep(6)
        node.apply(manifest())
        await node.clock.sleep(30)
        assert node.cri.count("RunPodSandbox") == 0
        rule.remove()
        await node.until(lambda: node.phase("web-golden") == "Running", 12)


async def test_directories_that_cannot_be_made_are_an_event_and_a_retry_LIFE_070(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        root = node.paths.root
        root.mkdir(exist_ok=True)
        (root / "pods").write_text("in the way")
        node.apply(manifest())
        await node.until(lambda: node.events("Failed"), 10)
        assert node.events("Failed")[0].startswith("error making pod data directories: ")
        assert node.cri.count("RunPodSandbox") == 0
        (root / "pods").unlink()
        await node.until(lambda: node.phase("web-golden") == "Running", 20)


async def test_a_kill_that_fails_is_an_event_and_a_retry_LIFE_071(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.apply(manifest())
        await node.until(lambda: node.phase("web-golden") == "Running", 5)
        node.cri.on("StopContainer").fails("UNKNOWN", "stuck", times=1)
        node.remove()
        await node.until(lambda: node.cri.count("StopPodSandbox") == 2, 30)
        texts = node.events("FailedKillPod")
        assert texts
        assert texts[0].startswith("error killing pod: ")


async def test_a_runtime_that_lies_about_stopping_is_not_believed_LIFE_071(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.apply(manifest())
        await node.until(lambda: node.phase("web-golden") == "Running", 5)
        stop = node.cri.on("StopContainer").answers(cri.StopContainerResponse())
        sandbox = node.cri.on("StopPodSandbox").answers(cri.StopPodSandboxResponse())
        uid = node.kubelet.sources.pods.pods()[0].metadata.uid
        node.remove()
        await node.until(lambda: node.cri.count("StopContainer") == 2, 40)
        assert not node.kubelet.work.workers.is_pod_known_terminated(str(uid))
        stop.remove()
        sandbox.remove()
        await node.until(lambda: not node.cri.containers(), 90)


async def test_a_failing_list_ends_housekeeping_and_kills_nothing_LIFE_015(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.apply(manifest())
        await node.until(lambda: node.phase("web-golden") == "Running", 5)
        await node.stop()
        node.remove()
        rule = node.cri.on("ListPodSandbox").fails("UNKNOWN", "no list")
        await node.start()
        await node.clock.sleep(20)
        assert node.cri.count("StopContainer") == 0
        rule.remove()
        await node.until(lambda: node.cri.count("StopContainer") == 1, 15)


async def test_the_last_step_publishes_and_leaves_containers_to_the_collector_LIFE_073(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        node.cri.behaves(exits(3))
        node.apply(manifest(restartPolicy="Never"))
        await node.until(lambda: node.phase("web-golden") == "Failed", 10)
        uid = str(node.kubelet.sources.pods.pods()[0].metadata.uid)
        await node.until(lambda: node.kubelet.work.workers.should_pod_be_finished(uid), 10)
        writes = node.write_names()
        status = node.status("web-golden")
        assert status is not None
        ended = (status.containerStatuses or [])[0].state
        assert ended is not None
        assert ended.terminated is not None
        assert ended.terminated.exitCode == 3
        await node.clock.sleep(50)
        assert node.write_names() == writes
        assert [c.name for c in node.cri.containers()] == ["main"]


async def test_a_stranger_in_the_runtime_is_killed_LIFE_072(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await left_by_a_kubelet(node.cri, "ghost", "main")
        await node.until(lambda: node.cri.count("StopPodSandbox") == 1, 10)
        assert [c.request.timeout for c in node.cri.calls("StopContainer")] == [2]
        await node.until(lambda: not node.cri.sandboxes(), 70)


async def is_ready(node: Node, status: str) -> bool:
    """Whether the API server shows that status of the pod's condition Ready."""
    pod = await node.live("web")
    assert pod.status is not None
    return ("Ready", status) in [(c.type, c.status) for c in pod.status.conditions or ()]


async def test_a_readiness_gate_is_followed_LIFE_014(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        assert node.api is not None
        await node.create(manifest(readinessGates=[{"conditionType": "example.com/up"}]))
        await node.until(lambda: node.phase("web") == "Running", 5)
        await node.clock.sleep(5)
        assert await is_ready(node, "False")
        up = {"conditions": [{"type": "example.com/up", "status": "True"}]}
        await node.api.request(
            "PATCH",
            f"{PODS}/web/status",
            body={"status": up},
            content_type="application/strategic-merge-patch+json",
        )

        await node.until(lambda: is_ready(node, "True"), 5)


async def test_a_broken_container_touches_only_its_own_pod(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        hang = node.cri.on("RunPodSandbox", pod="hangs-golden").hangs()
        node.cri.on("CreateContainer", pod="fails-golden").fails("UNKNOWN", "boom")
        for name in ("hangs", "fails", "fine"):
            node.apply(manifest(name=name), f"{name}.yaml")
        await node.until(lambda: node.phase("fine-golden") == "Running", 5)
        await node.clock.sleep(300)
        assert node.cri.count("CreateContainer", pod="fails-golden") > 5
        node.cri.kill("main", pod="fine-golden")
        await node.until(lambda: node.cri.count("StartContainer", pod="fine-golden") == 2, 5)
        hang.remove()
        await node.until(lambda: node.phase("hangs-golden") == "Running", 300)


async def test_a_sandbox_is_published_before_its_containers_STAT_043(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.cri.on("StartContainer").delays(3)
        node.apply(manifest())
        await node.until(lambda: node.cri.calls("StartContainer"), 5)
        status = node.status("web-golden")
        assert status is not None
        conditions = {c.type: c.status for c in status.conditions or ()}
        assert conditions["PodReadyToStartContainers"] == "True"
        assert conditions["Ready"] == "False"
