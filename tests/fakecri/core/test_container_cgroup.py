"""Containers with a cgroup_parent: their directories and limits, v1 and v2."""

from __future__ import annotations

from typing import Any

import pytest
from cgroup_pods import MIB, PARENT, Pods, directories, world
from kubecri.v1 import api_pb2 as pb

from fakecri import CriError, uses
from fakecri.cgroupfs import CgroupFS
from fakecri.core.objects import State

VERSIONS = pytest.mark.parametrize("version", [1, 2])


# -- directories ----------------------------------------------------------------------------------


@pytest.mark.virtual_time
@VERSIONS
async def test_sandbox_and_container_have_directories_side_by_side_while_they_run_CRI_044(
    version: Any,
) -> None:
    pods = world(version)
    sandbox = await pods.sandbox()
    container = await pods.container(sandbox)
    prefix = "memory/" if version == 1 else ""
    procs = f"{prefix}cgroup.procs"
    pause = pods.file(procs, of=f"{PARENT}/{pods.made[0]}")
    assert pause.isdecimal()
    assert not any(container in path for path in directories(pods.cri.node))
    await pods.start(container)
    pid = pods.cri.container("main").pid
    assert pods.file(procs, of=f"{PARENT}/{container}") == str(pid) != pause
    mounts = 1 if version == 2 else len(pods.cri.node.cgroups.mounts)
    assert len([p for p in directories(pods.cri.node) if container in p]) == mounts
    pods.cri.exit("main")
    assert not any(container in path for path in directories(pods.cri.node))
    await pods.cri.call("StopPodSandbox", pb.StopPodSandboxRequest(pod_sandbox_id=pods.made[0]))
    assert pods.file(procs) == ""
    assert not any(pods.made[0] in path for path in directories(pods.cri.node))


@pytest.mark.virtual_time
@VERSIONS
async def test_a_container_ends_where_its_directories_were_taken_away(version: Any) -> None:
    """Its processes were moved and its group removed: no other group is touched at its end."""

    pods = world(version)
    container = await pods.started()
    fs, main = pods.cri.node.cgroups, pods.cri.container("main")
    mounts = [f"/{mount}" if mount else "" for mount in fs.mounts]
    for mount in mounts:
        fs.path(f"{mount}/cgroup.procs").write_text(str(main.pid))
        fs.path(f"{mount}{PARENT}/{container}").rmdir()
    others = directories(pods.cri.node)
    stop = pb.StopContainerRequest(container_id=container, timeout=0)
    await pods.cri.call("StopContainer", stop)
    assert pods.cri.container("main").state is State.EXITED
    assert directories(pods.cri.node) == others
    assert str(main.pid) not in fs.path(f"{mounts[0]}/cgroup.procs").read_text().split()


@pytest.mark.virtual_time
async def test_a_scope_below_a_slice_CG_010() -> None:
    parent = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice"

    pods = world(2)
    container = await pods.started(parent=parent)
    assert f"{parent}/cri-containerd-{container}.scope" in directories(pods.cri.node)


@pytest.mark.virtual_time
async def test_a_pod_without_a_parent_costs_nothing() -> None:
    pods = world(2)
    await pods.started(parent="")
    assert pods.cri.node._cgroups is None


# -- limits ---------------------------------------------------------------------------------------

WANTED = {
    "cpu_shares": 512,
    "cpu_quota": 50_000,
    "cpu_period": 100_000,
    "memory_limit_in_bytes": 64 * MIB,
    "cpuset_cpus": "1-2",
    "cpuset_mems": "0",
}


@pytest.mark.virtual_time
async def test_limits_of_v2_are_written_CG_022() -> None:
    pods = world(2)
    sandbox = await pods.sandbox()
    unified = {"memory.oom.group": "1", "memory.high": "1048576"}
    pages = [pb.HugepageLimit(page_size="2MB", limit=4 * MIB)]
    container = await pods.container(sandbox, **WANTED, unified=unified, hugepage_limits=pages)
    await pods.start(container)
    files = {
        "cpu.weight": "20",
        "cpu.max": "50000 100000",
        "memory.max": str(64 * MIB),
        "memory.swap.max": "0",
        "memory.high": "1048576",
        "memory.oom.group": "1",
        "cpuset.cpus": "1-2",
        "hugetlb.2MB.max": str(4 * MIB),
    }
    for name, text in files.items():
        assert pods.file(name, of=f"{PARENT}/{container}") == text, name


@pytest.mark.virtual_time
async def test_limits_of_v1_are_written() -> None:
    pods = world(1)
    sandbox = await pods.sandbox()
    container = await pods.start(await pods.container(sandbox, **WANTED))
    files = {
        "cpu/cpu.shares": "512",
        "cpu/cpu.cfs_quota_us": "50000",
        "memory/memory.limit_in_bytes": str(64 * MIB),
        "memory/memory.memsw.limit_in_bytes": str(64 * MIB),
        "cpuset/cpuset.cpus": "1-2",
        "cpuset/cpuset.mems": "0",
    }
    for name, text in files.items():
        assert pods.file(name, of=f"{PARENT}/{container}") == text, name


async def update(pods: Pods, container: str, **resources: Any) -> None:
    request = pb.UpdateContainerResourcesRequest(
        container_id=container, linux=pb.LinuxContainerResources(**resources)
    )
    await pods.cri.call("UpdateContainerResources", request)


@pytest.mark.virtual_time
@VERSIONS
async def test_an_update_writes_new_limits(version: Any) -> None:
    pods = world(version)
    container = await pods.started(memory_limit_in_bytes=10 * MIB)
    name = "memory/memory.limit_in_bytes" if version == 1 else "memory.max"
    for size in (30 * MIB, 20 * MIB):
        await update(pods, container, memory_limit_in_bytes=size)
        assert pods.file(name, of=f"{PARENT}/{container}") == str(size)


@pytest.mark.virtual_time
async def test_v1_refuses_a_limit_below_the_usage_and_the_resources_stay() -> None:
    pods = world(1)
    container = await pods.started(uses(memory_bytes=20 * MIB), memory_limit_in_bytes=30 * MIB)
    with pytest.raises(CriError, match=r"unable to set memory limit to \d+ \(current usage"):
        await update(pods, container, memory_limit_in_bytes=10 * MIB)
    assert pods.cri.container("main").resources.memory_limit_in_bytes == 30 * MIB
    assert pods.cri.container("main").state is State.RUNNING


@pytest.mark.virtual_time
async def test_v2_kills_below_the_usage() -> None:
    pods = world(2)
    container = await pods.started(uses(memory_bytes=20 * MIB), memory_limit_in_bytes=30 * MIB)
    await update(pods, container, memory_limit_in_bytes=10 * MIB)
    found = pods.cri.container("main")
    assert (found.state, found.exit_code, found.reason) == (State.EXITED, 137, "OOMKilled")


@pytest.mark.virtual_time
@VERSIONS
async def test_a_cgroup_that_cannot_be_made_is_a_failed_start(version: Any) -> None:
    pods = world(version)
    sandbox = await pods.sandbox()
    container = await pods.container(sandbox, cpuset_cpus="77")
    with pytest.raises(CriError, match=r'failed to write "77": write /sys/fs/cgroup/.*: num'):
        await pods.start(container)
    found = pods.cri.container("main")
    assert (found.state, found.exit_code, found.reason) == (State.EXITED, 128, "StartError")
    assert not any(container in path for path in directories(pods.cri.node))


@pytest.mark.virtual_time
@VERSIONS
async def test_a_place_that_has_no_room_is_a_failed_start(version: Any) -> None:
    pods = world(version)
    sandbox = await pods.sandbox()
    before = directories(pods.cri.node)
    mount = "unified" if version == 1 else ""
    node = pods.cri.node
    if version == 2:
        pods.write("cgroup.max.descendants", "1")
        text = r"unable to apply cgroup configuration: mkdir /sys/fs/cgroup/kubepods/.*: resource"
        with pytest.raises(CriError, match=text):
            await pods.start(await pods.container(sandbox))
    else:
        node.cgroups = CgroupFS(1, unified=[])
        await pods.started(name="first")
        node.cgroups.path(f"/{mount}{PARENT}/cgroup.max.descendants").write_text("2")
        before = directories(node)
        with pytest.raises(CriError, match=r"mkdir /sys/fs/cgroup/unified/.*unavailable"):
            await pods.start(await pods.container(sandbox))
    assert directories(node) == before


@pytest.mark.virtual_time
async def test_v1_memory_grows_from_the_top_and_shrinks_from_the_bottom() -> None:
    pods = world(1)
    container = await pods.started(memory_limit_in_bytes=10 * MIB)
    files = ("memory/memory.limit_in_bytes", "memory/memory.memsw.limit_in_bytes")
    for limit, with_swap in ((20, 30), (5, 8), (6, 6), (-1, 0), (9, 9)):
        size = {"memory_limit_in_bytes": limit, "memory_swap_limit_in_bytes": with_swap}
        await update(pods, container, **{k: v * MIB if v > 0 else v for k, v in size.items()})
        found = [int(pods.file(file, of=f"{PARENT}/{container}")) for file in files]
        wanted = [limit, with_swap] if limit > 0 else [2**43 - 1, 2**43 - 1]
        assert [amount // MIB for amount in found] == wanted
