"""The kubelet with an API server, in virtual time: mirror pods, statuses, deletion, rejection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from node_world import PODS, Node, running_node
from pods import container, manifest

from fakecri import exits, ignores, uses
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid

pytestmark = pytest.mark.virtual_time


def requests(node: Node, method: str, path: str = "") -> list[Any]:
    assert node.api is not None
    return node.api.requests(method, path)


async def test_a_pod_runs_and_the_api_hears_of_it(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        await node.create(manifest())
        await node.until_live("web", "Running", 5)
        pod = await node.live("web")
        assert pod.status is not None
        assert [(c.type, c.status) for c in pod.status.conditions or ()] == [
            ("PodReadyToStartContainers", "True"),
            ("Initialized", "True"),
            ("Ready", "True"),
            ("ContainersReady", "True"),
            ("PodScheduled", "True"),
        ]
        patches = len(requests(node, "PATCH", "/pods/"))
        await node.clock.sleep(300)
        assert len(requests(node, "PATCH", "/pods/")) == patches


async def test_deletion_goes_from_stop_to_patch_to_delete_LIFE_200_STAT_030(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        await node.create(manifest(terminationGracePeriodSeconds=20))
        await node.until_live("web", "Running", 5)
        await node.delete("web", grace_s=4)
        await node.until_gone("web", 30)
        stop = node.cri.calls("StopContainer")[0]
        assert stop.request.timeout == 4
        deletes = requests(node, "DELETE", "/pods/web")
        assert [d.body.get("gracePeriodSeconds") for d in deletes] == [4, 0]
        assert deletes[1].body["preconditions"]["uid"]
        phases = [p.body["status"].get("phase") for p in requests(node, "PATCH", "/pods/web")]
        assert phases[-1] in ("Succeeded", "Failed")
        assert stop.ended_s is not None
        assert requests(node, "PATCH", "/pods/web")[-1].started_s >= stop.ended_s


async def test_force_deletion_stops_with_the_last_grace_LIFE_201(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        await node.create(manifest(terminationGracePeriodSeconds=20))
        await node.until_live("web", "Running", 5)
        await node.delete("web", grace_s=0)
        await node.until(lambda: node.cri.count("StopPodSandbox") == 1, 30)
        # the watch's last object carries grace 0, so the recorded kubelet stops with 2 (golden s21)
        assert node.cri.calls("StopContainer")[0].request.timeout == 2


async def test_a_finished_pod_is_never_restarted_LIFE_206(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        node.cri.behaves(exits(0, after_s=1))
        await node.create(manifest(restartPolicy="Never"))
        await node.until_live("web", "Succeeded", 15)
        await node.restart()
        await node.clock.sleep(130)
        assert node.cri.count("StartContainer") == 1
        assert await node.live_phase("web") == "Succeeded"


async def test_active_deadline_LIFE_204(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        await node.create(manifest(activeDeadlineSeconds=10, terminationGracePeriodSeconds=3))
        await node.until_live("web", "Failed", 20)
        pod = await node.live("web")
        assert pod.status is not None
        assert pod.status.reason == "DeadlineExceeded"
        assert pod.status.message == (
            "Pod was active on the node longer than the specified deadline"
        )
        assert node.cri.calls("StopContainer")[0].request.timeout == 3
        assert node.events("DeadlineExceeded")


async def test_a_rejected_pod_fails_without_a_cri_call_LIFE_011(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        await node.create(manifest(os={"name": "windows"}))
        await node.until_live("web", "Failed", 15)
        pod = await node.live("web")
        assert pod.status is not None
        assert pod.status.reason == "PodOSNotSupported"
        assert (pod.status.message or "").startswith("Pod was rejected: ")
        assert node.events("PodOSNotSupported")
        assert node.write_names() == []


async def test_too_many_pods_LIFE_225(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True, maxPods=1) as node:
        await node.create(manifest(name="a"))
        await node.until_live("a", "Running", 5)
        await node.create(manifest(name="b"))
        await node.until_live("b", "Failed", 15)
        pod = await node.live("b")
        assert pod.status is not None
        assert pod.status.reason == "OutOfpods"


async def test_a_static_pod_gets_a_mirror_that_shows_its_status_MIRR_021_MIRR_022(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, api=True) as node:
        node.apply(manifest())
        await node.until_live("web-golden", "Running", 15)
        mirror = await node.live("web-golden")
        static = node.kubelet.sources.pods.pods()[0]
        assert mirror.metadata is not None
        assert static.metadata is not None
        assert mirror.metadata.uid != static.metadata.uid
        marks = mirror.metadata.annotations or {}
        assert marks["kubernetes.io/config.mirror"] == marks["kubernetes.io/config.hash"]
        owners = mirror.metadata.ownerReferences or []
        assert [(o.kind, o.name, o.controller) for o in owners] == [("Node", "golden", True)]
        created_s = requests(node, "POST", "/pods$")[0].started_s
        assert created_s <= node.cri.times_s("RunPodSandbox")[0]
        assert {c.subject.uid for c in node.cri.calls("StartContainer")} == {static.metadata.uid}


async def test_the_runtime_knows_the_static_uid_and_mirrors_no_generation_MIRR_001_MIRR_037(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, api=True) as node:
        node.apply(manifest())
        await node.until_live("web-golden", "Running", 20)
        mirror = await node.live("web-golden")
        static = uid(node.kubelet.sources.pods.pods()[0])
        assert uid(mirror) != static
        config = node.cri.calls("RunPodSandbox")[0].request.config
        assert config.metadata.uid == static
        assert config.labels["io.kubernetes.pod.uid"] == static
        assert [d.name for d in (node.paths.root / "pods").iterdir()] == [static]
        assert mirror.metadata is not None
        assert mirror.metadata.generation == 1
        assert mirror.status is not None
        assert mirror.status.observedGeneration is None


async def test_a_deleted_mirror_comes_back_and_no_container_is_touched_MIRR_029_MIRR_030(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, api=True) as node:
        node.apply(manifest())
        await node.until_live("web-golden", "Running", 15)
        first = await node.live("web-golden")
        await node.delete("web-golden", grace_s=30)
        await node.until(lambda: is_other(node, first), 3)
        second = await node.live("web-golden")
        await node.delete("web-golden", grace_s=0)
        await node.until(lambda: is_other(node, second), 120)
        await node.until_live("web-golden", "Running", 15)
        assert node.write_names() == ["RunPodSandbox", "CreateContainer", "StartContainer"]


async def is_other(node: Node, before: Pod) -> bool:
    """Whether there is a mirror, and another one than `before`."""
    now = await node.find("web-golden")
    return uid(now) != uid(before) if now is not None else False


async def test_the_mirror_stays_until_the_static_pod_has_stopped_MIRR_031(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        node.cri.behaves(ignores("SIGTERM"))
        node.apply(manifest(terminationGracePeriodSeconds=8))
        await node.until_live("web-golden", "Running", 15)
        node.remove()
        await node.clock.sleep(7)
        assert await node.find("web-golden") is not None
        await node.until_gone("web-golden", 7)
        stop = node.cri.calls("StopContainer")[0]
        assert stop.ended_s is not None
        assert requests(node, "DELETE", "/pods/")[-1].started_s >= stop.ended_s


async def test_a_hand_made_mirror_is_deleted_MIRR_033(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        pod = manifest(name="fake")
        pod["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
        await node.create(pod)
        await node.until_gone("fake", 5)
        assert node.write_names() == []


async def test_a_failing_api_never_delays_a_static_pod_MIRR_021(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        assert node.api is not None
        with node.api.fails("POST", "/pods$", status=500):
            node.apply(manifest())
            await node.until(lambda: node.phase("web-golden") == "Running", 5)
        await node.until_live("web-golden", "Running", 130)


async def test_with_the_api_down_removals_wait_SRC_072(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        assert node.api is not None
        await node.stop()
        with node.api.fails("GET", "/api/v1/pods", status=500):
            await node.start()
            node.apply(manifest())
            await node.until(lambda: node.phase("web-golden") == "Running", 10)
            node.remove()
            await node.clock.sleep(120)
            assert node.cri.count("StopContainer") == 0
        await node.until(lambda: node.cri.count("StopContainer") == 1, 60)


async def test_an_image_change_restarts_one_container_in_place(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        assert node.api is not None
        await node.create(manifest())
        await node.until_live("web", "Running", 5)
        patch = {"spec": {"containers": [{"name": "main", "image": "localhost/busybox:2"}]}}
        await node.api.request(
            "PATCH",
            f"{PODS}/web",
            body=patch,
            content_type="application/strategic-merge-patch+json",
        )
        await node.until(lambda: node.cri.count("StartContainer") == 2, 10)
        assert node.cri.count("RunPodSandbox") == 1
        assert "Container main definition changed, will be restarted" in node.events("Killing")


async def test_a_restart_of_the_kubelet_changes_nothing_at_the_api_MIRR_008(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        node.apply(manifest())
        await node.create(manifest(name="plain"))
        await node.until_live("web-golden", "Running", 15)
        await node.until_live("plain", "Running", 15)
        mirror, plain = await node.live("web-golden"), await node.live("plain")
        writes = node.write_names()
        await node.restart(down_s=20)
        await node.clock.sleep(120)
        again = await node.live("web-golden")
        assert mirror.metadata is not None
        assert again.metadata is not None
        assert again.metadata.uid == mirror.metadata.uid
        assert await node.live_phase("web-golden") == "Running"
        after = await node.live("plain")
        assert plain.status is not None
        assert after.status is not None
        assert after.status.startTime == plain.status.startTime  # STAT-002
        assert node.write_names() == writes


async def test_deletion_that_was_under_way_goes_on_after_a_restart_LIFE_202(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        node.cri.behaves(ignores("SIGTERM"))
        await node.create(manifest(terminationGracePeriodSeconds=10))
        await node.until_live("web", "Running", 5)
        await node.delete("web")
        await node.clock.sleep(3)
        await node.restart()
        await node.until_gone("web", 40)
        assert [c.request.timeout for c in node.cri.calls("StopContainer")] == [10, 10]


async def test_a_pod_gone_from_the_api_while_the_kubelet_was_down_LIFE_203(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        await node.create(manifest())
        await node.until_live("web", "Running", 5)
        await node.stop()
        await node.delete("web", grace_s=0)
        await node.start()
        await node.until(lambda: node.cri.count("StopPodSandbox") == 1, 10)
        assert node.cri.calls("StopContainer")[0].request.timeout == 2


async def test_two_containers_of_one_pod(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        node.cri.behaves(exits(1, after_s=1), container="b")
        await node.create(manifest("a", "b"))
        await node.until(lambda: node.cri.count("StartContainer", container="b") == 3, 40)
        assert node.cri.count("StartContainer", container="a") == 1


async def has_ready(node: Node, status: str) -> bool:
    """Whether the node's condition Ready has that status."""
    assert node.api is not None
    answer = await node.api.request("GET", "/api/v1/nodes/golden")
    conditions = (answer.body.get("status") or {}).get("conditions") or []
    return [c["status"] for c in conditions if c["type"] == "Ready"] == [status]


async def test_the_node_becomes_ready_and_not_ready_NODE_051(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        await node.until(lambda: has_ready(node, "True"), 25)
        node.cri.crash()
        await node.until(lambda: has_ready(node, "False"), 45)
        node.cri.restart()
        await node.until(lambda: has_ready(node, "True"), 25)


async def test_an_evicted_pod_shows_failed_when_it_has_stopped_LIFE_190_LIFE_230(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, api=True, evictionHard={"memory.available": "100Mi"}) as node:
        total = node.cri.node.memory_bytes
        node.cri.behaves(ignores("SIGTERM"), uses(memory_bytes=[(0, 0), (5, total)]))
        await node.create(manifest(terminationGracePeriodSeconds=30))
        await node.until_live("web", "Running", 5)
        await node.until(lambda: node.cri.count("StopContainer") == 1, 40)
        stop = node.cri.calls("StopContainer")[0]
        assert stop.request.timeout == 2  # hard eviction: grace 1, never below 2
        assert await node.live_phase("web") == "Running"
        await node.until_live("web", "Failed", 10)
        assert stop.ended_s is not None
        pod = await node.live("web")
        assert pod.status is not None
        assert pod.status.reason == "Evicted"
        conditions = {c.type: c for c in pod.status.conditions or ()}
        assert conditions["DisruptionTarget"].reason == "TerminationByKubelet"
        await node.until(lambda: node.cri.count("RemoveContainer") == 1, 5)  # LIFE-057


async def test_files_in_a_volume_count_against_its_limit_EVIC_100_EVIC_052(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        volume = {"name": "scratch", "emptyDir": {"sizeLimit": "64Ki"}}
        mounts = [{"name": "scratch", "mountPath": "/scratch"}]
        pod = await node.create(manifest(container(volumeMounts=mounts), volumes=[volume]))
        await node.until_live("web", "Running", 5)
        pods = node.paths.root / "pods" / uid(pod)
        (pods / "volumes/kubernetes.io~empty-dir/scratch/big").write_bytes(b"x" * 100_000)
        await node.until_live("web", "Failed", 190)  # measured every 60 to 120 s
        assert node.events("Evicted") == [
            'Usage of EmptyDir volume "scratch" exceeds the limit "64Ki". '
        ]
        await node.clock.sleep(60)  # over, and no candidate any more
        assert len(node.events("Evicted")) == 1


async def test_mirrors_come_as_soon_as_the_node_is_visible_MIRR_024_MIRR_028(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, api=True) as node:
        assert node.api is not None
        await node.stop()
        with node.api.fails("GET", "/api/v1/nodes$", status=500):
            await node.start()
            node.apply(manifest())
            await node.until(lambda: node.phase("web-golden") == "Running", 5)
            await node.clock.sleep(2)
            assert await node.find("web-golden") is None
        await node.until_live("web-golden", "Running", 20)


async def test_a_server_that_does_not_answer_hardly_delays_a_static_pod_MIRR_021(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, api=True) as node:
        assert node.api is not None
        await node.clock.sleep(20)
        with node.api.hangs("POST", "/pods"):
            node.apply(manifest())
            await node.until(lambda: node.phase("web-golden") == "Running", 7)
        await node.until_live("web-golden", "Running", 100)


async def test_orphan_mirrors_that_cannot_be_deleted_do_not_stop_the_loop_MIRR_031(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, api=True) as node:
        assert node.api is not None
        for name in ("a", "b", "c"):
            node.apply(manifest(name=name), f"{name}.yaml")
        await node.until_live("c-golden", "Running", 20)
        with node.api.hangs("DELETE", "/pods/"):
            for name in ("a", "b", "c"):
                node.remove(f"{name}.yaml")
            await node.clock.sleep(20)
            node.apply(manifest(name="new"), "new.yaml")
            await node.until(lambda: node.phase("new-golden") == "Running", 20)
        await node.until_gone("a-golden", 30)
