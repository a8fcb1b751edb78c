"""What else kills the processes of containers, and that nothing of them stays."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from cgroup_pods import MIB, PARENT, Pods, directories, world
from charge_files import OOM_KILLED, RUNNING, VERSIONS, fate, stats
from kubecri.v1 import api_pb2 as pb

from fakecri import CriError, FakeCRI, FakeNode, exits, oom_at, uses
from fakecri.cgroupfs import CgroupFS
from fakecri.core.objects import State

GIB = 1 << 30


@pytest.mark.virtual_time
@VERSIONS
async def test_killing_the_processes_of_a_pod_ends_it_CG_042(version: Any) -> None:
    pods = world(version)
    container = await pods.started(exits(7, after_s=100))
    prefix = "memory/" if version == 1 else ""
    for place in (f"{PARENT}/{container}", f"{PARENT}/{pods.made[0]}"):
        pods.cri.node.kill_process(int(pods.file(f"{prefix}cgroup.procs", of=place)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert fate(pods) == (State.EXITED, 137, "Error")
    assert not pods.cri.sandboxes()[0].ready
    assert pods.file(f"{prefix}cgroup.procs") == ""


@pytest.mark.virtual_time
async def test_a_stop_waits_for_a_process_that_somebody_else_kills() -> None:
    pods = world(2)
    container = await pods.started()
    pods.cri.behaves(exits(0, after_s=1000))
    loop = asyncio.get_running_loop()
    pid = pods.cri.container("main").pid
    loop.call_later(3, pods.cri.node.kill_process, pid)
    async with asyncio.timeout(5):
        while pods.cri.containers() and fate(pods)[0] is State.RUNNING:
            with pods.cri.changes() as changed:
                await changed.wait()
    assert loop.time() < 3.001
    assert container not in str(directories(pods.cri.node))


@pytest.mark.virtual_time
@pytest.mark.parametrize(("version", "reason"), [(1, "Error"), (2, "OOMKilled")])
async def test_the_machine_out_of_memory_takes_the_highest_score(version: Any, reason: str) -> None:
    pods = world(version)
    for name, size, adj in (("big", 2 * GIB, 2), ("pushed", GIB, 900), ("safe", GIB, -1000)):
        await pods.started(uses(memory_bytes=size), name=name, parent=f"/{name}", oom_score_adj=adj)
    victim = pods.cri.oom()
    assert (victim.name, victim.pid) == ("eat", pods.cri.container("pushed").pid)
    assert fate(pods, "pushed") == (State.EXITED, 137, reason)
    assert fate(pods, "big") == fate(pods, "safe") == RUNNING
    choice, killed = pods.cri.node.log.texts[1:]
    assert "CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom" in choice
    assert ",task_memcg=/pushed/" in choice
    assert killed.startswith(f"Out of memory: Killed process {victim.pid} (eat)")
    assert pods.cri.oom().pid == pods.cri.container("big").pid


@pytest.mark.virtual_time
async def test_a_container_without_a_cgroup_may_be_the_victim() -> None:
    pods = world(2)
    await pods.started(uses(memory_bytes=GIB), parent="")
    assert pods.cri.oom().memory_bytes == GIB
    assert fate(pods) == OOM_KILLED


def test_a_process_outside_of_all_pods() -> None:
    node = FakeNode()
    with pytest.raises(LookupError, match="no process may be killed"):
        node.oom()
    assert node.log.texts == []
    assert node.oom("java", 4711).pid == 4711
    assert node.log.texts[-1].startswith("Out of memory: Killed process 4711 (java) total-vm:")


@pytest.mark.virtual_time
@VERSIONS
@pytest.mark.parametrize("limit", [0, 10 * MIB])
async def test_oom_at_a_time(version: Any, limit: int) -> None:
    pods = world(version)
    await pods.started(
        uses(memory_bytes=MIB, cache_bytes=2 * MIB), oom_at(30), memory_limit_in_bytes=limit
    )
    await asyncio.sleep(29)
    assert fate(pods) == RUNNING
    await asyncio.sleep(2)
    kernel = pods.cri.node.log.texts[-1]
    assert kernel.startswith("Memory cgroup out" if limit else "Out of memory: Killed")
    known = version == 2 or limit
    assert fate(pods) == (OOM_KILLED if known else (State.EXITED, 137, "Error"))


@pytest.mark.virtual_time
async def test_oom_at_a_time_without_a_cgroup() -> None:
    pods = world(2)
    await pods.started(oom_at(30), parent="")
    await asyncio.sleep(31)
    assert fate(pods) == OOM_KILLED


@pytest.mark.virtual_time
@VERSIONS
async def test_a_thousand_runs_leave_no_cgroup_and_no_process(version: Any) -> None:
    pods = world(version)
    await pods.sandbox()
    node = pods.cri.node
    kept = directories(node), len(node.cgroups.processes.processes)
    pods.cri.behaves(uses(pids=3), exits(1), container="main")
    pods.cri.behaves(oom_at(), container="main", pod="hungry")
    for number in range(1000):
        sandbox = await pods.sandbox("hungry" if number % 3 == 0 else "fed")
        await pods.start(await pods.container(sandbox, memory_limit_in_bytes=MIB))
        request = pb.RemovePodSandboxRequest(pod_sandbox_id=pods.made[-1])
        await pods.cri.call("RemovePodSandbox", request)
    assert (directories(node), len(node.cgroups.processes.processes)) == kept
    fs = node.cgroups
    assert len(fs.processes.tasks) == kept[1]
    assert [*fs.open_files, *fs.eventfds, *fs.processes.pending] == []


@pytest.mark.virtual_time
@VERSIONS
@pytest.mark.parametrize("loss", ["drop", "crash", "reboot", "kill_sandbox"])
async def test_what_is_lost_leaves_no_process(version: Any, loss: str) -> None:
    pods = world(version)
    await pods.started(uses(memory_bytes=MIB, cpu_millicores=5))
    cri = pods.cri
    acts = {
        "drop": lambda: cri.drop("main"),
        "crash": lambda: cri.crash(loses_state=True),
        "reboot": cri.reboot,
        "kill_sandbox": cri.kill_sandbox,
    }
    acts[loss]()
    left = [p.name for p in cri.node.cgroups.processes.processes.values() if p.name]
    assert left == {"drop": ["pause"]}.get(loss, [])
    if loss == "reboot":
        assert directories(cri.node) == []


@pytest.mark.virtual_time
async def test_a_stale_answer_shows_what_was_used_then() -> None:
    pods = world(2)
    await pods.started(uses(memory_bytes=[(0, MIB), (5, 9 * MIB)]))
    with pods.cri.on("ListContainerStats").goes_stale():
        await asyncio.sleep(6)
        assert (await stats(pods))[0].memory.usage_bytes.value == MIB
    assert (await stats(pods))[0].memory.usage_bytes.value == 9 * MIB


def test_memory_of_others_fires_thresholds_of_the_root() -> None:
    node = FakeNode(cgroups_version=1)
    FakeCRI(node=node)
    root = node.cgroups.path("/memory")
    event = node.cgroups.eventfd()
    usage = (root / "memory.usage_in_bytes").open()
    (root / "cgroup.event_control").write_text(f"{event.fd} {usage.fd} {4 * GIB}")
    node.use_memory(5 * GIB)
    assert event.read() == 1
    assert int((root / "memory.usage_in_bytes").read_text()) == 5 * GIB


@pytest.mark.virtual_time
async def test_a_machine_without_the_memory_controller() -> None:
    node = FakeNode()
    node.cgroups = CgroupFS(2, controllers=["pids"])
    pods = Pods(FakeCRI(node=node))
    await pods.started(uses(memory_bytes=MIB), oom_at(5), memory_limit_in_bytes=GIB)
    assert (await stats(pods))[0].memory.usage_bytes.value == MIB
    await asyncio.sleep(6)
    assert fate(pods)[:2] == (State.EXITED, 137)
    with pytest.raises(CriError, match=r"memory\.high: no such file"):
        await pods.started(name="x", unified={"memory.high": "1"})
