"""The container manager on the fake kernel: start, pods, periods, ends."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from manager_world import GI, MI, World, pod

from fakecri.cgroupfs import CgroupFS, CgroupPath
from refkubelet.container_manager.cgroups import removal
from refkubelet.container_manager.cgroups.manager import ContainerManagerError
from refkubelet.container_manager.cgroups.node_config import ReservedGroup
from refkubelet.container_manager.cgroups.removal import CgroupError
from refkubelet.container_manager.cgroups.tree import CgroupTree
from refkubelet.model.cgroups.limits import ResourceConfig
from refkubelet.model.cgroups.names import CgroupNameError, pod_word
from refkubelet.model.objects import decode_pod
from refkubelet.model.quantity import NANO
from simtime import run_virtual

ENFORCED = ("Normal", "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods")
SURE = pod("sure", "300m", "100Mi", limits=True)


def on_both(body: Callable[[World], Awaitable[None]], **node: Any) -> None:
    for version in (1, 2):
        on(CgroupFS(version), body, **node)


def on(fs: CgroupFS, body: Callable[[World], Awaitable[None]], **node: Any) -> None:
    async def main() -> None:
        await body(World(fs, **node))

    run_virtual(main)


# Start


def test_the_groups_above_pods_v1_CG_024_CG_025_CG_026_CG_044() -> None:
    async def body(world: World) -> None:
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

    on(CgroupFS(1), body)


def test_the_groups_above_pods_v2_CG_016_CG_017_CG_021_CG_024() -> None:
    async def body(world: World) -> None:
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

    on(CgroupFS(2), body)


def test_hybrid_machines_and_shared_trees_CG_044() -> None:
    controllers = ["cpu,cpuacct", "cpuset", "memory", "pids", "systemd"]
    fs = CgroupFS(1, controllers=controllers, unified=["hugetlb"])

    async def body(world: World) -> None:
        world.manager.start()
        world.manager.ensure(SURE)
        assert world.read("/cpu,cpuacct/kubepods/podsure/cpu.shares") == "307"
        assert fs.path("/unified/kubepods/podsure").is_dir()
        assert world.manager.exists(SURE)
        await world.manager.destroy(SURE)
        assert not fs.path("/unified/kubepods/podsure").exists()

    on(fs, body)


def test_a_kernel_without_limits_of_reserved_huge_pages_CG_030() -> None:
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

    async def body(world: World) -> None:
        world.manager.start()
        assert world.told.node == [ENFORCED]
        assert world.read("/kubepods/burstable/hugetlb.2MB.max") == str(1 << 62)

    on(fs, body, root=Old(fs, ()))


def test_a_second_kubelet_finds_the_groups_and_limits_them_anew_CG_035() -> None:
    async def body(world: World) -> None:
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

    on_both(body)


def test_reserved_groups_are_limited_CG_035() -> None:
    limits = {"cpu": NANO, "memory": GI * NANO}
    groups = (
        ReservedGroup("System Reserved", "/sys", limits, cpu_only=False),
        ReservedGroup("Kube Reserved", "/kube", limits, cpu_only=True),
    )

    async def body(world: World) -> None:
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

    on_both(body, reserved_groups=groups)


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        (1, r'"/no": cgroup \["no"\] has some missing paths: .*/cpu/no, '),
        (2, r'"/no": could not read controllers for cgroup \["no"\]: no such file or directory'),
    ],
)
def test_a_reserved_group_must_be_there_CG_035(version: int, wanted: str) -> None:
    group = ReservedGroup("Kube Reserved", "/no", {"cpu": NANO}, cpu_only=False)

    async def body(world: World) -> None:
        with pytest.raises(ContainerManagerError, match=wanted):
            world.manager.start()
        kind, reason, message = world.told.node[-1]
        assert (kind, reason) == ("Warning", "FailedNodeAllocatableEnforcement")
        assert message.startswith("Failed to enforce Kube Reserved Cgroup Limits on")

    on(CgroupFS(version), body, reserved_groups=(group,))


def test_a_node_whose_groups_cannot_be_made_CG_015() -> None:
    async def body(world: World) -> None:
        world.fs.path("/cgroup.max.descendants")
        world.fs.path("/kubepods").mkdir()
        (world.fs.path("/kubepods") / "cgroup.max.descendants").write_text("0")
        with pytest.raises(ContainerManagerError, match=r"mkdir .*/kubepods/burstable: "):
            world.manager.start()

    on(CgroupFS(2), body)


def test_a_read_only_root_CG_015() -> None:
    class ReadOnly(CgroupPath):
        def __truediv__(self, name: Any) -> CgroupPath:
            return ReadOnly(self.fs, super().__truediv__(name).parts)

        def mkdir(self, *args: Any, **fields: Any) -> None:
            raise OSError(errno.EROFS, "Read-only file system", str(self))

    fs = CgroupFS(2)

    async def body(world: World) -> None:
        with pytest.raises(
            ContainerManagerError, match=r"^mkdir /kubepods: read-only file system$"
        ):
            world.manager.start()

    on(fs, body, root=ReadOnly(fs, ()))


def test_a_node_whose_controllers_are_kept_back_CG_015() -> None:
    async def body(world: World) -> None:
        world.fs.path("/a").mkdir()
        world.fs.spawn("/a")  # with a process in it, it can give no controller away (CG-112)
        wanted = r"error validating root container \[a kubepods\] : .* has some missing controllers"
        with pytest.raises(ContainerManagerError, match=wanted):
            world.manager.start()

    on(CgroupFS(2), body, name=("a", "kubepods"))


# Every minute


def test_the_classes_are_set_right_every_minute_CG_036() -> None:
    async def body(world: World) -> None:
        world.pods = [pod("a", "500m"), pod("b", "250m"), SURE]
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

    on_both(body)


def test_a_limit_below_the_usage_is_tried_every_minute_CG_035() -> None:
    async def body(world: World) -> None:
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

    on(CgroupFS(1), body)


def test_classes_that_cannot_be_updated_are_told_of_once_CG_036(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body(world: World) -> None:
        world.manager.start()
        world.fs.path("/kubepods/burstable").rmdir()
        world.manager.update_qos()
        world.manager.update_qos()
        assert caplog.text.count("QoS cgroups not updated") == 1
        world.fs.path("/kubepods/burstable").mkdir()
        world.manager.update_qos()
        assert "QoS cgroups not updated: no longer" in caplog.text

    caplog.set_level(logging.INFO)
    on(CgroupFS(2), body)


# Pods


def test_a_pod_s_group_is_made_once_CG_040() -> None:
    async def body(world: World) -> None:
        world.manager.start()
        assert not world.manager.exists(SURE)
        world.manager.ensure(SURE)
        assert world.manager.exists(SURE)
        file = "cpu.shares" if world.fs.version == 1 else "cpu.weight"
        shares = world.group("cpu", "/kubepods/podsure") / file
        assert shares.read_text() == ("307\n" if world.fs.version == 1 else "12\n")
        shares.write_text("99")
        world.manager.ensure(SURE)
        assert shares.read_text() == "99\n"

    on_both(body)


@pytest.mark.parametrize(
    "tree", ["cpu", "cpuacct", "cpuset", "memory", "pids", "systemd", "hugetlb"]
)
def test_a_group_that_lacks_a_tree_is_not_there_CG_015(tree: str) -> None:
    async def body(world: World) -> None:
        world.manager.start()
        world.manager.ensure(SURE)
        world.fs.path(f"/{tree}/kubepods/podsure").rmdir()
        assert not world.manager.exists(SURE)
        world.manager.ensure(SURE)
        assert world.manager.exists(SURE)

    on(CgroupFS(1), body)


def test_other_trees_do_not_matter_CG_015() -> None:
    async def body(world: World) -> None:
        world.manager.start()
        world.manager.ensure(SURE)
        world.fs.path("/freezer/kubepods/podsure").rmdir()
        assert world.manager.exists(SURE)

    on(CgroupFS(1), body)


def test_a_group_without_its_controllers_is_not_there_CG_015() -> None:
    async def body(world: World) -> None:
        world.manager.start()
        world.manager.ensure(SURE)
        (world.fs.path("/kubepods") / "cgroup.subtree_control").write_text("-pids")
        assert not world.manager.exists(SURE)
        world.manager.ensure(SURE)  # and switched on again for it (CG-016)
        assert world.manager.exists(SURE)

    on(CgroupFS(2, controllers=["cpu", "memory", "pids"]), body)


def test_a_refused_limit_is_logged_CG_040(caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: World) -> None:
        world.manager.start()
        world.fs.path("/cpu/kubepods/cpu.cfs_quota_us").write_text("10000")
        world.manager.ensure(SURE)
        assert world.manager.exists(SURE)
        assert world.read("/cpu/kubepods/podsure/cpu.shares") == "307"
        assert world.read("/cpu/kubepods/podsure/cpu.cfs_quota_us") == "-1"

    on(CgroupFS(1), body)
    assert "cgroup [kubepods podsure] is there, but not with all its limits: " in caplog.text


def test_a_period_that_fits_only_the_next_quota_is_written_after_it_CG_031() -> None:
    async def body(world: World) -> None:
        world.manager.start()
        world.manager.ensure(pod("sure", "4", "100Mi", limits=True))
        world.fs.path("/cpu/kubepods/cpu.cfs_quota_us").write_text("400000")
        small = ResourceConfig(cpu_quota_us=50_000, cpu_period_us=50_000)
        world.manager.write_config(SURE, small)
        assert world.read("/cpu/kubepods/podsure/cpu.cfs_period_us") == "50000"
        assert world.read("/cpu/kubepods/podsure/cpu.cfs_quota_us") == "50000"

    on(CgroupFS(1), body)


def test_a_group_that_cannot_be_made_CG_040() -> None:
    async def body(world: World) -> None:
        world.manager.start()
        (world.fs.path("/kubepods") / "cgroup.max.descendants").write_text("2")
        wanted = r"failed to create container for \[kubepods podsure\] : mkdir /kubepods/podsure: "
        with pytest.raises(CgroupError, match=wanted):
            world.manager.ensure(SURE)

    on(CgroupFS(2), body)


def test_a_uid_that_is_no_name_CG_011() -> None:
    async def body(world: World) -> None:
        world.manager.start()
        odd = pod("a_b")
        assert not world.manager.exists(odd)
        with pytest.raises(CgroupError, match="container for a_b : invalid character in pod UID"):
            world.manager.ensure(odd)

    on(CgroupFS(2), body)


def test_what_the_kernel_has_CG_021_CG_067() -> None:
    async def body(world: World) -> None:
        v1 = world.fs.version == 1
        world.manager.start()
        one = pod("one", "1", "100Mi", limits=True)
        world.manager.ensure(one)
        shares = 1024 if v1 else 998
        assert world.manager.read_config(one, "cpu") == ResourceConfig(shares, 100_000, 100_000)
        assert world.manager.read_config(one, "memory") == ResourceConfig(
            memory_limit_bytes=100 * MI
        )
        world.manager.write_config(one, ResourceConfig(cpu_quota_us=-1, cpu_period_us=100_000))
        assert world.manager.read_config(one, "cpu").cpu_quota_us == -1
        free = pod("free", "100m")
        world.manager.ensure(free)
        limit = world.manager.read_config(free, "memory").memory_limit_bytes
        assert limit == (0x7FFFFFFFFFFFF000 if v1 else -1)
        world.process("/kubepods/podone").set_usage(memory_bytes=MI)
        assert world.manager.memory_usage_bytes(one) == MI
        with pytest.raises(OSError, match="No such file or directory"):
            world.manager.read_config(pod("gone"), "cpu")

    on_both(body)


def test_exclusive_cpus_have_no_quota_CG_031() -> None:
    async def body(world: World) -> None:
        assert world.manager.config_of(SURE).cpu_quota_us == 30_000
        object.__setattr__(world.manager._deps, "has_exclusive_cpus", lambda p: p is SURE)
        assert world.manager.config_of(SURE).cpu_quota_us == -1

    on(CgroupFS(2), body)


# Ends


def test_a_group_is_removed_with_all_that_runs_in_it_CG_042() -> None:
    async def body(world: World) -> None:
        world.manager.start()
        world.manager.ensure(SURE)
        for name in ("one", "two"):
            world.tree.create(("kubepods", "podsure", name), ResourceConfig())
        inside = [world.process(f"/kubepods/podsure/{name}") for name in ("one", "two")]
        outside = world.process("/kubepods/burstable")
        await world.manager.destroy(SURE)
        assert [p.alive for p in (*inside, outside)] == [False, False, True]
        assert sorted(world.killed) == sorted(p.pid for p in inside)
        assert not any(d.exists() for d in world.tree.directories(("kubepods", "podsure")))
        await world.manager.destroy(SURE)  # what is gone is removed

    on_both(body)


def test_what_dies_slowly_is_waited_for_CG_042() -> None:
    async def body(world: World) -> None:
        world.manager.start()
        world.manager.ensure(SURE)
        process = world.process("/kubepods/podsure")
        loop = asyncio.get_running_loop()
        object.__setattr__(world.manager._deps, "kill", lambda pid: None)
        loop.call_later(0.3, process.kill)
        began_s = world.clock.monotonic_s()
        await world.manager.destroy(SURE)
        assert world.clock.monotonic_s() - began_s == pytest.approx(0.511)  # 1, 2, 4 ... 256 ms
        process = None
        world.manager.ensure(SURE)
        world.process("/kubepods/podsure")
        with pytest.raises(CgroupError, match=r"cgroup \[kubepods podsure\] : Failed to remove"):
            await world.manager.destroy(SURE)
        assert world.clock.monotonic_s() - began_s == pytest.approx(0.511 + 1.023)

    on(CgroupFS(2), body)


def test_five_tries_to_kill_CG_042() -> None:
    async def body(world: World) -> None:
        world.manager.start()
        world.manager.ensure(SURE)
        stubborn, other = (world.process("/kubepods/podsure") for _ in range(2))
        world.unkillable.add(stubborn.pid)
        wanted = f"failed to kill all the processes .*: {stubborn.pid}: operation not permitted"
        with pytest.raises(CgroupError, match=wanted):
            await world.manager.destroy(SURE)
        assert world.killed.count(stubborn.pid) == 5
        assert world.killed.count(other.pid) == 1

    on(CgroupFS(2), body)


def test_a_pod_that_can_have_no_cgroup_can_end_CG_011_CG_042() -> None:
    async def body(world: World) -> None:
        world.manager.start()
        with pytest.raises(CgroupNameError):
            pod_word("my_pod")
        await world.manager.destroy(pod("my_pod"))

    on(CgroupFS(2), body)


def test_a_process_of_another_pid_namespace_keeps_no_other_alive_CG_042() -> None:
    def kill(pid: int) -> None:
        killed.append(pid)
        if pid == 0:  # so cgroup.procs shows it, and so RealMachine answers
            raise ValueError("pid 0: not one process")

    killed: list[int] = []
    with pytest.raises(CgroupError, match="0: pid 0: not one process"):
        removal._kill_all([0, 7], kill)
    assert killed[:2] == [0, 7]


# Orphans


def remove_orphans(world: World, *keep: str, volumes: bool = False) -> None:
    world.manager.remove_orphans(keep, lambda uid: volumes)


def test_groups_of_nobody_are_removed_CG_043() -> None:
    async def body(world: World) -> None:
        world.manager.start()
        for uid, cpu in (("a", ""), ("b", "100m"), ("c", "")):
            world.manager.ensure(pod(uid, cpu))
        world.manager.ensure(SURE)
        for directory in world.tree.directories(("kubepods", "besteffort", "other")):
            directory.mkdir(parents=True)
        remove_orphans(world, "c")
        await world.clock.sleep(0.1)
        assert [n for n in world.tree.children(("kubepods",)) if n.startswith("pod")] == []
        assert world.tree.children(("kubepods", "burstable")) == []
        assert world.tree.children(("kubepods", "besteffort")) == ["other", "podc"]

    on_both(body)


def test_an_orphan_in_a_single_tree_is_removed_CG_043() -> None:
    async def body(world: World) -> None:
        world.manager.start()
        remove_orphans(world)
        world.fs.path("/freezer/kubepods/burstable/pod1").mkdir()
        remove_orphans(world)
        await world.clock.sleep(0.1)
        assert not world.fs.path("/freezer/kubepods/burstable/pod1").exists()

    on(CgroupFS(1), body)


def test_slices_of_orphans_CG_010_CG_043() -> None:
    async def body(world: World) -> None:
        world.manager.start()
        odd = pod("1-2-3")
        world.manager.ensure(odd)
        slices = world.fs.path("/kubepods.slice/kubepods-besteffort.slice")
        name = "kubepods-besteffort-pod1_2_3.slice"
        assert (slices / name).is_dir()
        remove_orphans(world, "1-2-3")
        await world.clock.sleep(0.1)
        assert (slices / name).is_dir()
        remove_orphans(world)
        await world.clock.sleep(0.1)
        assert not (slices / name).exists()
        assert slices.is_dir()

    on(CgroupFS(2), body, driver="systemd")


def test_orphans_with_volumes_get_no_cpu_instead_CG_043() -> None:
    async def body(world: World) -> None:
        world.manager.start()
        world.manager.ensure(SURE)
        remove_orphans(world, volumes=True)
        assert world.manager.read_config(SURE, "cpu").cpu_shares == 2
        assert world.manager.exists(SURE)
        remove_orphans(world)
        await world.clock.sleep(0.1)
        assert not world.manager.exists(SURE)

    on_both(body)


def test_an_orphan_that_cannot_be_removed_is_tried_again_CG_043(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body(world: World) -> None:
        world.manager.start()
        world.manager.ensure(SURE)
        process = world.process("/kubepods/podsure")
        world.unkillable.add(process.pid)
        remove_orphans(world)
        remove_orphans(world)  # it is at work already
        await world.clock.sleep(2)
        assert world.killed.count(process.pid) == 5
        assert "failed to kill all the processes" in caplog.text
        world.unkillable.clear()
        remove_orphans(world)
        await world.clock.sleep(2)
        assert not world.manager.exists(SURE)

    on(CgroupFS(2), body)


def test_nothing_is_listed_while_nothing_changes_CG_043() -> None:
    listed: list[str] = []

    class Watched(CgroupPath):
        def __truediv__(self, name: Any) -> CgroupPath:
            return Watched(self.fs, super().__truediv__(name).parts)

        def iterdir(self) -> Any:
            listed.append(str(self))
            return super().iterdir()

    fs = CgroupFS(2)

    async def body(world: World) -> None:
        world.manager.start()
        world.manager.ensure(SURE)
        for _ in range(5):
            remove_orphans(world, "sure")
        assert len(listed) == 3  # one look at the node's group and at both classes
        fs.path("/kubepods/burstable/podx").mkdir()
        remove_orphans(world, "sure")
        assert len(listed) > 3

    on(fs, body, root=Watched(fs, ()))


def test_the_end_of_the_kubelet_ends_removals() -> None:
    async def body(world: World) -> None:
        world.manager.start()
        world.manager.ensure(SURE)
        world.process("/kubepods/podsure")
        object.__setattr__(world.manager._deps, "kill", lambda pid: None)
        remove_orphans(world)
        await asyncio.sleep(0)
        await world.manager.stop()
        assert len(asyncio.all_tasks()) == 1

    on(CgroupFS(2), body)


# What is not there


def test_a_place_without_cgroups_CG_015(tmp_path: Any) -> None:
    with pytest.raises(FileNotFoundError, match=r"cgroup\.controllers"):
        CgroupTree(tmp_path, 2, "cgroupfs")
    assert CgroupTree(tmp_path, 1, "cgroupfs").controllers == ()


def test_a_controller_in_no_tree_cannot_be_limited_CG_044() -> None:
    async def body(world: World) -> None:
        assert world.tree.create(("a",), ResourceConfig(pids_limit=5)) == (
            "failed to write '5' to pids: no such hierarchy"
        )

    on(CgroupFS(1, controllers=["cpu", "cpuset", "memory"]), body)


def test_a_pod_without_spec_has_a_group_too_CG_029() -> None:
    async def body(world: World) -> None:
        world.manager.start()
        bare = decode_pod({"metadata": {"uid": "bare"}})
        world.manager.ensure(bare)
        assert world.manager.exists(bare)

    on_both(body)
