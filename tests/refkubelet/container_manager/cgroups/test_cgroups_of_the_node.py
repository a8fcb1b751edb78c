"""The cgroups above those of pods, on the fake kernel: start, every minute, what is missing."""

from __future__ import annotations

import asyncio
import errno
import logging
from typing import Any

import pytest
from manager_world import GI, World
from pods import container, make_pod

from fakecri.cgroupfs import CgroupFS, CgroupPath
from kubeobjects.quantity import NANO
from refkubelet.container_manager.cgroups.manager import ContainerManagerError
from refkubelet.container_manager.cgroups.node_config import ReservedCgroup
from refkubelet.container_manager.cgroups.tree import CgroupTree
from refkubelet.model.cgroups.limits import ResourceConfig, Version
from refkubelet.model.objects import decode_pod

pytestmark = pytest.mark.virtual_time

ENFORCED = ("Normal", "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods")
SURE = make_pod(container(cpu="300m/300m", memory="100Mi/100Mi"), uid="sure")


async def test_the_groups_above_pods_v1_CG_024_CG_025_CG_026_CG_044() -> None:
    world = World(CgroupFS(1))
    world.manager.start()
    assert world.told.node == [ENFORCED]
    for tree in world.fs.path("/").iterdir():
        for name in ("", "/burstable", "/besteffort"):
            of_the_runtime = tree.name == "devices"
            assert (tree / f"kubepods{name}").is_dir() != of_the_runtime, tree
    assert world.read("/cpu/kubepods/cpu.shares") == "4096"
    assert world.read("/memory/kubepods/memory.limit_in_bytes") == str(8 * GI)
    assert world.read("/pids/kubepods/pids.max") == "1000"
    assert world.read("/cpu/kubepods/burstable/cpu.shares") == "2"
    assert world.read("/cpu/kubepods/besteffort/cpu.shares") == "2"
    assert world.read("/cpuset/kubepods/besteffort/cpuset.cpus") == "0-3"
    for name in ("", "/burstable", "/besteffort"):
        file = f"/hugetlb/kubepods{name}/hugetlb.2MB.limit_in_bytes"
        assert world.read(file) == str(1 << 62)


async def test_the_groups_above_pods_v2_CG_016_CG_017_CG_021_CG_024() -> None:
    world = World(CgroupFS(2))
    world.manager.start()
    assert world.told.node == [ENFORCED]
    assert world.read("/kubepods/cpu.weight") == "157"
    assert world.read("/kubepods/memory.max") == str(8 * GI)
    assert world.read("/kubepods/pids.max") == "1000"
    assert world.read("/kubepods/burstable/cpu.weight") == "1"
    file = "/kubepods/burstable/hugetlb.1GB.rsvd.max"
    assert world.read(file) == str(1 << 62)
    world.manager.update_qos()
    assert world.read(file) == str(1 << 62)
    every = world.read("/cgroup.controllers").split()
    assert world.read("/cgroup.subtree_control").split() == every
    assert world.read("/kubepods/burstable/cgroup.controllers").split() == every
    assert world.read("/kubepods/burstable/cgroup.subtree_control") == ""


async def test_hybrid_machines_and_shared_trees_CG_044() -> None:
    controllers = ["cpu,cpuacct", "cpuset", "memory", "pids", "systemd"]
    fs = CgroupFS(1, controllers=controllers, unified=["hugetlb"])

    world = World(fs)
    world.manager.start()
    world.manager.ensure(SURE)
    assert world.read("/cpu,cpuacct/kubepods/podsure/cpu.shares") == "307"
    assert fs.path("/unified/kubepods/podsure").is_dir()
    assert world.manager.exists(SURE)
    await world.manager.destroy(SURE)
    assert not fs.path("/unified/kubepods/podsure").exists()


async def test_a_kernel_without_limits_of_reserved_huge_pages_CG_030() -> None:
    class Old(CgroupPath):
        """A path to a kernel without these files: creating one is forbidden (CG-101)."""

        def __truediv__(self, name: Any) -> CgroupPath:
            return Old(self.fs, super().__truediv__(name).parts)

        def write_text(self, data: str, *args: Any) -> int:
            if ".rsvd." in self.name:
                raise PermissionError(errno.EACCES, "Permission denied", str(self))
            return super().write_text(data)

        def exists(self) -> bool:
            return ".rsvd." not in self.name and super().exists()

    fs = CgroupFS(2)

    world = World(fs, root=Old(fs, ()))
    world.manager.start()
    assert world.told.node == [ENFORCED]
    assert world.read("/kubepods/burstable/hugetlb.2MB.max") == str(1 << 62)


async def test_a_second_kubelet_finds_the_groups_and_limits_them_anew_CG_035(world: World) -> None:
    world.manager.start()
    world.manager.ensure(SURE)
    file = "cpu.shares" if world.fs.version == 1 else "cpu.weight"
    for path in ("/kubepods", "/kubepods/burstable", "/kubepods/podsure"):
        (world.group("cpu", path) / file).write_text("77")
    World(world.fs).manager.start()
    shares = [
        int((world.group("cpu", path) / file).read_text())
        for path in ("/kubepods", "/kubepods/burstable", "/kubepods/podsure")
    ]
    assert shares == ([4096, 2, 77] if world.fs.version == 1 else [157, 1, 77])


@pytest.mark.parametrize("version", [1, 2])
async def test_reserved_groups_are_limited_CG_035(version: Version) -> None:
    limits = {"cpu": NANO, "memory": GI * NANO}
    groups = (
        ReservedCgroup("System Reserved", "/sys", limits, cpu_only=False),
        ReservedCgroup("Kube Reserved", "/kube", limits, cpu_only=True),
    )

    world = World(CgroupFS(version), reserved_cgroups=groups)
    for path in ("/sys", "/kube"):
        world.tree.create((path[1:],), ResourceConfig())
    world.manager.start()
    assert world.told.node[1:] == [
        ("Normal", "NodeAllocatableEnforced", "Updated limits on system reserved cgroup /sys"),
        ("Normal", "NodeAllocatableEnforced", "Updated limits on kube reserved cgroup /kube"),
    ]
    assert world.tree.memory_usage_bytes(("sys",)) == 0
    file = "memory.limit_in_bytes" if world.fs.version == 1 else "memory.max"
    assert (world.group("memory", "/sys") / file).read_text() == f"{GI}\n"
    assert (world.group("memory", "/kube") / file).read_text() != f"{GI}\n"


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        (1, r'"/no": cgroup \["no"\] has some missing paths: .*/cpu/no, '),
        (2, r'"/no": could not read controllers for cgroup \["no"\]: no such file or directory'),
    ],
)
async def test_a_reserved_group_must_be_there_CG_035(version: int, wanted: str) -> None:
    group = ReservedCgroup("Kube Reserved", "/no", {"cpu": NANO}, cpu_only=False)

    world = World(CgroupFS(version), reserved_cgroups=(group,))
    with pytest.raises(ContainerManagerError, match=wanted):
        world.manager.start()
    kind, reason, message = world.told.node[-1]
    assert (kind, reason) == ("Warning", "FailedNodeAllocatableEnforcement")
    assert message.startswith("Failed to enforce Kube Reserved Cgroup Limits on")


async def test_a_node_whose_groups_cannot_be_made_CG_015() -> None:
    world = World(CgroupFS(2))
    world.fs.path("/cgroup.max.descendants")
    world.fs.path("/kubepods").mkdir()
    (world.fs.path("/kubepods") / "cgroup.max.descendants").write_text("0")
    with pytest.raises(ContainerManagerError, match=r"mkdir .*/kubepods/burstable: "):
        world.manager.start()


async def test_a_read_only_root_CG_015() -> None:
    class ReadOnly(CgroupPath):
        def __truediv__(self, name: Any) -> CgroupPath:
            return ReadOnly(self.fs, super().__truediv__(name).parts)

        def mkdir(self, *args: Any, **fields: Any) -> None:
            raise OSError(errno.EROFS, "Read-only file system", str(self))

    fs = CgroupFS(2)

    world = World(fs, root=ReadOnly(fs, ()))
    with pytest.raises(ContainerManagerError, match=r"^mkdir /kubepods: read-only file system$"):
        world.manager.start()


async def test_a_node_whose_controllers_are_kept_back_CG_015() -> None:
    world = World(CgroupFS(2), name=("a", "kubepods"))
    world.fs.path("/a").mkdir()
    world.fs.spawn("/a")  # with a process in it, it can give no controller away (CG-112)
    wanted = r"error validating root container \[a kubepods\] : .* has some missing controllers"
    with pytest.raises(ContainerManagerError, match=wanted):
        world.manager.start()


# Every minute


async def test_the_classes_are_set_right_every_minute_CG_036(world: World) -> None:
    asking = {"a": "500m", "b": "250m"}
    world.pods = [*(make_pod(container(cpu=cpu), uid=uid) for uid, cpu in asking.items()), SURE]
    world.manager.start()
    running = asyncio.create_task(world.manager.run())
    file = "cpu.shares" if world.fs.version == 1 else "cpu.weight"
    burstable = world.group("cpu", "/kubepods/burstable") / file
    wanted = "768\n" if world.fs.version == 1 else "30\n"
    assert burstable.read_text() == wanted
    burstable.write_text("99")
    pages = world.group("hugetlb", "/kubepods/besteffort")
    pages = pages / f"hugetlb.2MB.{'limit_in_bytes' if world.fs.version == 1 else 'max'}"
    pages.write_text("0")
    await world.clock.sleep(59.9)
    assert burstable.read_text() == "99\n"
    await world.clock.sleep(0.2)
    assert burstable.read_text() == wanted
    assert pages.read_text() == f"{1 << 62}\n"
    world.pods = world.pods[1:]
    await world.clock.sleep(60)
    assert burstable.read_text() == ("256\n" if world.fs.version == 1 else "10\n")
    running.cancel()


async def test_a_limit_below_the_usage_is_tried_every_minute_CG_035() -> None:
    world = World(CgroupFS(1))
    world.tree.create(("kubepods",), ResourceConfig())
    eater = world.process("/kubepods")
    eater.set_usage(memory_bytes=9 * GI)
    world.manager.start()
    running = asyncio.create_task(world.manager.run())
    message = (
        'Failed to update Node Allocatable Limits ["kubepods"]: unable to set memory limit to '
        f"{8 * GI} (current usage: {9 * GI}, peak usage: {9 * GI})"
    )
    failed = ("Warning", "FailedNodeAllocatableEnforcement", message)
    assert world.told.node == [failed]
    await world.clock.sleep(60.1)
    assert world.told.node == [failed, failed]
    eater.set_usage(memory_bytes=0)
    await world.clock.sleep(180)
    assert world.told.node == [failed, failed, ENFORCED]
    running.cancel()


async def test_classes_that_cannot_be_updated_are_told_of_once_CG_036(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    world = World(CgroupFS(2))
    world.manager.start()
    world.fs.path("/kubepods/burstable").rmdir()
    world.manager.update_qos()
    world.manager.update_qos()
    assert caplog.text.count("cannot update the cgroups of the QoS classes") == 1
    world.fs.path("/kubepods/burstable").mkdir()
    world.manager.update_qos()
    assert "cannot update the cgroups of the QoS classes: no longer" in caplog.text


# What is not there


def test_a_place_without_cgroups_CG_015(tmp_path: Any) -> None:
    with pytest.raises(FileNotFoundError, match=r"cgroup\.controllers"):
        CgroupTree(tmp_path, 2, "cgroupfs")
    assert CgroupTree(tmp_path, 1, "cgroupfs").controllers == ()


async def test_a_controller_in_no_tree_cannot_be_limited_CG_044() -> None:
    world = World(CgroupFS(1, controllers=["cpu", "cpuset", "memory"]))
    assert world.tree.create(("a",), ResourceConfig(pids_limit=5)) == (
        "failed to write '5' to pids: no such hierarchy"
    )


async def test_a_pod_without_spec_has_a_group_too_CG_029(world: World) -> None:
    world.manager.start()
    bare = decode_pod({"metadata": {"uid": "bare"}})
    world.manager.ensure(bare)
    assert world.manager.exists(bare)
