"""What housekeeping sees after many rounds in which nothing was new (LIFE-015)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from node_world import Node, running_node
from pods import make_pod, manifest
from runtime_calls import left_by_a_kubelet

from refkubelet.model.objects import PodStatus
from refkubelet.model.pod import uid
from refkubelet.pods.manager import PodManager

pytestmark = pytest.mark.virtual_time

QUIET_S = 30.0
ROUND_S = 2.1


async def quiet(node: Node) -> None:
    """Pods run, and round after round finds nothing to do."""
    node.apply(manifest(name="a"), "a.yaml")
    node.apply(manifest(name="b"), "b.yaml")
    await node.until(lambda: (node.phase("a-golden"), node.phase("b-golden")) == ("Running",) * 2)
    await asyncio.sleep(QUIET_S)


async def test_a_stranger_that_comes_late_is_killed_LIFE_072(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await quiet(node)
        await left_by_a_kubelet(node.cri, "ghost")
        await node.until(lambda: node.cri.count("StopPodSandbox", pod="ghost") == 1, 5)


async def test_an_orphan_directory_that_comes_late_is_removed(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await quiet(node)
        pods = node.paths.root / "pods"
        kept = sorted(path.name for path in pods.iterdir())
        (pods / "gone-uid" / "containers").mkdir(parents=True)
        await asyncio.sleep(ROUND_S)
        assert sorted(path.name for path in pods.iterdir()) == kept


async def test_a_status_of_nobody_that_comes_late_is_forgotten_STAT_011(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await quiet(node)
        ghost = make_pod(name="ghost", uid="g")
        statuses = node.kubelet.work.statuses
        statuses.set_pod_status(ghost, PodStatus(phase="Running"))
        assert statuses.get("g") is not None
        await asyncio.sleep(ROUND_S)
        assert statuses.get("g") is None
        assert node.phase("a-golden") == "Running"


async def test_a_removed_pod_is_ended_and_a_new_one_starts(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await quiet(node)
        node.remove("a.yaml")
        node.apply(manifest(name="c"), "c.yaml")
        await node.until(lambda: node.phase("c-golden") == "Running", 30)
        await node.until(lambda: node.status("a-golden") is None, 60)
        pods = node.paths.root / "pods"
        await node.until(lambda: len(list(pods.iterdir())) == 2, 120)


async def test_a_mirror_by_hand_that_comes_late_is_deleted_MIRR_033(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        await quiet(node)
        marks = {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"}
        await node.create(manifest(name="hand-golden", meta={"annotations": marks}))
        await node.until_gone("hand-golden", 5)


async def test_a_deadline_of_a_late_pod_counts_LIFE_004(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await quiet(node)
        node.apply(manifest(name="late", activeDeadlineSeconds=5), "late.yaml")
        await node.until(lambda: node.phase("late-golden") == "Failed", 20)


def test_lists_of_pods_are_made_anew_when_anything_changes() -> None:
    pods = PodManager()
    lists = [pods.pods(), pods.pods_and_mirrors()]

    def changed() -> bool:
        """Both lists are other ones than before, once, and tell of what there is."""
        now = [pods.pods(), pods.pods_and_mirrors()]
        again = [pods.pods(), pods.pods_and_mirrors()]
        assert all(a is b for a, b in zip(now, again, strict=True))
        others = all(a is not b for a, b in zip(now, lists, strict=True))
        lists[:] = now
        return others

    first, second, other = make_pod(), make_pod(), make_pod(name="other")
    pods.update(first)
    assert changed()
    pods.update(second)
    assert changed()
    assert pods.pods()[0] is second
    pods.update(other)
    assert changed()
    pods.remove(second)
    assert changed()
    assert [uid(pod) for pod in pods.pods()] == ["uid-other"]
