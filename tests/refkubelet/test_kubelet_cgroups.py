"""The cgroups of pods in the running kubelet, where something goes wrong (CG-035, CG-040..043)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from node_world import Node, running_node
from pods import manifest

from refkubelet.container_manager.cgroups.manager import ContainerManagerError
from refkubelet.host.directories import anything_mounted_below as below
from refkubelet.model.pod import uid
from refkubelet.sync_loop import orphan_directories

pytestmark = pytest.mark.virtual_time

BESTEFFORT = "/kubepods/besteffort"


def group(node: Node) -> Any:
    """The cgroup of the only pod, which is BestEffort."""
    return node.cri.node.cgroups.path(f"{BESTEFFORT}/pod{uid(node.kubelet.sources.pods.pods()[0])}")


async def running(node: Node) -> None:
    node.apply(manifest())
    await node.until(lambda: node.phase("web-golden") == "Running", 5)


async def test_a_group_that_stays_busy_repeats_the_last_step_CG_042(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_node(tmp_path) as node:
        await running(node)
        lost = group(node)
        (lost / "stray").mkdir()
        kept = node.cri.node.cgroups.spawn(f"{BESTEFFORT}/{lost.name}/stray")
        monkeypatch.setattr(
            "refkubelet.container_manager.cgroups.removal._kill_all", lambda pids, kill: None
        )
        pod_uid = uid(node.kubelet.sources.pods.pods()[0])
        node.remove()
        await node.until(lambda: node.kubelet.work.workers.is_pod_known_terminated(pod_uid), 10)
        await node.clock.sleep(30)
        assert lost.exists()
        assert not node.kubelet.work.workers.should_pod_be_finished(pod_uid)
        kept.kill()
        await node.until(lambda: not lost.exists(), 30)
        await node.until(lambda: node.kubelet.work.workers.should_pod_be_finished(pod_uid), 30)


async def test_a_pod_that_lost_its_group_and_cannot_be_stopped_gets_it_back_CG_041(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        await running(node)
        lost = group(node)
        for child in [c for c in lost.iterdir() if c.is_dir()]:
            for pid in (child / "cgroup.procs").read_text().split():
                node.cri.node.cgroups.path("/cgroup.procs").write_text(pid)
            child.rmdir()
        lost.rmdir()
        for method in ("StopContainer", "StopPodSandbox"):
            node.cri.on(method).fails("UNKNOWN", "stuck", times=1)
        await node.until(lambda: node.cri.count("StopContainer") == 1, 100)
        await node.clock.sleep(1)
        assert lost.exists()
        assert node.phase("web-golden") == "Running"
        assert node.cri.count("StartContainer") == 1


async def test_an_orphan_with_a_mounted_volume_keeps_its_group_CG_043(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = tmp_path / "kubelet/pods/0123/volumes/kubernetes.io~empty-dir/data"
    table = tmp_path / "mountinfo"
    table.write_text(f"36 35 98:0 /x {mounted} rw - ext4 /dev/sda rw\n")
    monkeypatch.setattr(orphan_directories, "anything_mounted_below", partial(below, table=table))

    async with running_node(tmp_path) as node:
        await running(node)
        mounted.mkdir(parents=True)
        orphan = node.cri.node.cgroups.path(f"{BESTEFFORT}/pod0123")
        orphan.mkdir()
        (orphan / "cpu.weight").write_text("500")
        await node.until(lambda: (orphan / "cpu.weight").read_text() == "1\n", 5)
        assert orphan.exists()
        table.write_text("")
        await node.until(lambda: not orphan.exists(), 5)


async def test_a_node_that_cannot_have_its_groups_ends_the_kubelet_CG_015(tmp_path: Path) -> None:
    async with running_node(tmp_path, started=False) as node:
        top = node.cri.node.cgroups.path("/")
        (top / "kubepods").mkdir()
        (top / "kubepods/cgroup.max.descendants").write_text("0")
        await node.start()
        with pytest.raises(ContainerManagerError, match="mkdir /kubepods/burstable"):
            await node.ended()
        assert node.cri.count("RunPodSandbox") == 0


async def test_without_cgroups_nothing_is_made_CG_012(tmp_path: Path) -> None:
    async with running_node(tmp_path, cgroupsPerQOS=False, enforceNodeAllocatable=[]) as node:
        await running(node)
        assert not node.cri.node.cgroups.path("/kubepods").exists()
        assert node.kubelet.work.cgroups is None
        node.remove()
        await node.until(lambda: node.cri.count("StopPodSandbox") == 1, 10)


async def test_with_v1_there_is_a_warning_about_the_node_CG_014(tmp_path: Path) -> None:
    async with running_node(tmp_path, started=False) as node:
        node.cri.node.cgroups_version = 1
        await node.start()
        await node.clock.sleep(1)
        assert [text[:18] for text in node.events("CgroupV1")] == ["cgroup v1 detected"]
