"""Cgroups of pods on the fake kernel: made, read, removed; orphans."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from manager_world import MI, World
from pods import container, make_pod

from fakecri.cgroupfs import CgroupFS, CgroupPath
from kubeobjects.structs import replace
from refkubelet.container_manager.cgroups import removal
from refkubelet.container_manager.cgroups.removal import CgroupError
from refkubelet.model.cgroups.limits import ResourceConfig
from refkubelet.model.cgroups.names import CgroupNameError, pod_word

pytestmark = pytest.mark.virtual_time

ENFORCED = ("Normal", "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods")
SURE = make_pod(container(cpu="300m/300m", memory="100Mi/100Mi"), uid="sure")


async def test_a_pod_s_group_is_made_once_CG_040(world: World) -> None:
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


@pytest.mark.parametrize(
    "tree", ["cpu", "cpuacct", "cpuset", "memory", "pids", "systemd", "hugetlb"]
)
async def test_a_group_that_lacks_a_tree_is_not_there_CG_015(tree: str) -> None:
    world = World(CgroupFS(1))
    world.manager.start()
    world.manager.ensure(SURE)
    world.fs.path(f"/{tree}/kubepods/podsure").rmdir()
    assert not world.manager.exists(SURE)
    world.manager.ensure(SURE)
    assert world.manager.exists(SURE)


async def test_other_trees_do_not_matter_CG_015() -> None:
    world = World(CgroupFS(1))
    world.manager.start()
    world.manager.ensure(SURE)
    world.fs.path("/freezer/kubepods/podsure").rmdir()
    assert world.manager.exists(SURE)


async def test_a_group_without_its_controllers_is_not_there_CG_015() -> None:
    world = World(CgroupFS(2, controllers=["cpu", "memory", "pids"]))
    world.manager.start()
    world.manager.ensure(SURE)
    (world.fs.path("/kubepods") / "cgroup.subtree_control").write_text("-pids")
    assert not world.manager.exists(SURE)
    world.manager.ensure(SURE)  # and switched on again for it (CG-016)
    assert world.manager.exists(SURE)


async def test_a_refused_limit_is_logged_CG_040(caplog: pytest.LogCaptureFixture) -> None:
    world = World(CgroupFS(1))
    world.manager.start()
    world.fs.path("/cpu/kubepods/cpu.cfs_quota_us").write_text("10000")
    world.manager.ensure(SURE)
    assert world.manager.exists(SURE)
    assert world.read("/cpu/kubepods/podsure/cpu.shares") == "307"
    assert world.read("/cpu/kubepods/podsure/cpu.cfs_quota_us") == "-1"
    assert "cgroup [kubepods podsure] was made without some of its limits: " in caplog.text


async def test_a_period_that_fits_only_the_next_quota_is_written_after_it_CG_031() -> None:
    world = World(CgroupFS(1))
    world.manager.start()
    world.manager.ensure(make_pod(container(cpu="4/4", memory="100Mi/100Mi"), uid="sure"))
    world.fs.path("/cpu/kubepods/cpu.cfs_quota_us").write_text("400000")
    small = ResourceConfig(cpu_quota_us=50_000, cpu_period_us=50_000)
    world.manager.write_config(SURE, small)
    assert world.read("/cpu/kubepods/podsure/cpu.cfs_period_us") == "50000"
    assert world.read("/cpu/kubepods/podsure/cpu.cfs_quota_us") == "50000"


async def test_a_group_that_cannot_be_made_CG_040() -> None:
    world = World(CgroupFS(2))
    world.manager.start()
    (world.fs.path("/kubepods") / "cgroup.max.descendants").write_text("2")
    wanted = r"failed to create container for \[kubepods podsure\] : mkdir /kubepods/podsure: "
    with pytest.raises(CgroupError, match=wanted):
        world.manager.ensure(SURE)


async def test_a_uid_that_is_no_name_CG_011() -> None:
    world = World(CgroupFS(2))
    world.manager.start()
    odd = make_pod(uid="a_b")
    assert not world.manager.exists(odd)
    with pytest.raises(CgroupError, match="container for a_b : invalid character in pod UID"):
        world.manager.ensure(odd)


async def test_what_the_kernel_has_CG_021_CG_067(world: World) -> None:
    v1 = world.fs.version == 1
    world.manager.start()
    one = make_pod(container(cpu="1/1", memory="100Mi/100Mi"), uid="one")
    world.manager.ensure(one)
    shares = 1024 if v1 else 998
    assert world.manager.read_config(one, "cpu") == ResourceConfig(shares, 100_000, 100_000)
    assert world.manager.read_config(one, "memory") == ResourceConfig(memory_limit_bytes=100 * MI)
    world.manager.write_config(one, ResourceConfig(cpu_quota_us=-1, cpu_period_us=100_000))
    assert world.manager.read_config(one, "cpu").cpu_quota_us == -1
    free = make_pod(container(cpu="100m"), uid="free")
    world.manager.ensure(free)
    limit = world.manager.read_config(free, "memory").memory_limit_bytes
    assert limit == (0x7FFFFFFFFFFFF000 if v1 else -1)
    world.process("/kubepods/podone").set_usage(memory_bytes=MI)
    assert world.manager.memory_usage_bytes(one) == MI
    with pytest.raises(OSError, match="No such file or directory"):
        world.manager.read_config(make_pod(uid="gone"), "cpu")


async def test_exclusive_cpus_have_no_quota_CG_031() -> None:
    world = World(CgroupFS(2))
    assert world.manager.config_of(SURE).cpu_quota_us == 30_000
    deps = replace(world.manager._deps, has_exclusive_cpus=lambda p: p is SURE)
    world.manager._deps = deps
    assert world.manager.config_of(SURE).cpu_quota_us == -1


# Ends


async def test_a_group_is_removed_with_all_that_runs_in_it_CG_042(world: World) -> None:
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


async def test_what_dies_slowly_is_waited_for_CG_042() -> None:
    world = World(CgroupFS(2))
    world.manager.start()
    world.manager.ensure(SURE)
    process = world.process("/kubepods/podsure")
    loop = asyncio.get_running_loop()
    world.kills_at_once = False
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


async def test_five_tries_to_kill_CG_042() -> None:
    world = World(CgroupFS(2))
    world.manager.start()
    world.manager.ensure(SURE)
    stubborn, other = (world.process("/kubepods/podsure") for _ in range(2))
    world.unkillable.add(stubborn.pid)
    wanted = f"failed to kill all the processes .*: {stubborn.pid}: operation not permitted"
    with pytest.raises(CgroupError, match=wanted):
        await world.manager.destroy(SURE)
    assert world.killed.count(stubborn.pid) == 5
    assert world.killed.count(other.pid) == 1


async def test_a_pod_that_can_have_no_cgroup_can_end_CG_011_CG_042() -> None:
    world = World(CgroupFS(2))
    world.manager.start()
    with pytest.raises(CgroupNameError):
        pod_word("my_pod")
    await world.manager.destroy(make_pod(uid="my_pod"))


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


async def test_groups_of_no_pod_are_removed_CG_043(world: World) -> None:
    world.manager.start()
    for uid, cpu in (("a", ""), ("b", "100m"), ("c", "")):
        world.manager.ensure(make_pod(container(cpu=cpu), uid=uid))
    world.manager.ensure(SURE)
    for directory in world.tree.directories(("kubepods", "besteffort", "other")):
        directory.mkdir(parents=True)
    remove_orphans(world, "c")
    await world.clock.sleep(0.1)
    assert [n for n in world.tree.children(("kubepods",)) if n.startswith("pod")] == []
    assert world.tree.children(("kubepods", "burstable")) == []
    assert world.tree.children(("kubepods", "besteffort")) == ["other", "podc"]


async def test_an_orphan_in_a_single_tree_is_removed_CG_043() -> None:
    world = World(CgroupFS(1))
    world.manager.start()
    remove_orphans(world)
    world.fs.path("/freezer/kubepods/burstable/pod1").mkdir()
    remove_orphans(world)
    await world.clock.sleep(0.1)
    assert not world.fs.path("/freezer/kubepods/burstable/pod1").exists()


async def test_slices_of_orphans_CG_010_CG_043() -> None:
    world = World(CgroupFS(2), driver="systemd")
    world.manager.start()
    odd = make_pod(uid="1-2-3")
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


async def test_orphans_with_volumes_get_no_cpu_instead_CG_043(world: World) -> None:
    """CG-043.2."""
    world.manager.start()
    world.manager.ensure(SURE)
    remove_orphans(world, volumes=True)
    assert world.manager.read_config(SURE, "cpu").cpu_shares == 2
    assert world.manager.exists(SURE)
    remove_orphans(world)
    await world.clock.sleep(0.1)
    assert not world.manager.exists(SURE)


async def test_an_orphan_that_cannot_be_removed_is_tried_again_CG_043(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(CgroupFS(2))
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


async def test_nothing_is_listed_while_nothing_changes_CG_043() -> None:
    listed: list[str] = []

    class Watched(CgroupPath):
        def __truediv__(self, name: Any) -> CgroupPath:
            return Watched(self.fs, super().__truediv__(name).parts)

        def iterdir(self) -> Any:
            listed.append(str(self))
            return super().iterdir()

    fs = CgroupFS(2)

    world = World(fs, root=Watched(fs, ()))
    world.manager.start()
    world.manager.ensure(SURE)
    for _ in range(5):
        remove_orphans(world, "sure")
    assert len(listed) == 3  # one look at the node's group and at both classes
    fs.path("/kubepods/burstable/podx").mkdir()
    remove_orphans(world, "sure")
    assert len(listed) > 3


async def test_the_end_of_the_kubelet_ends_removals() -> None:
    world = World(CgroupFS(2))
    world.manager.start()
    world.manager.ensure(SURE)
    world.process("/kubepods/podsure")
    world.kills_at_once = False
    remove_orphans(world)
    await asyncio.sleep(0)
    await world.manager.stop()
    assert len(asyncio.all_tasks()) == 1
