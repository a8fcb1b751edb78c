"""What containers with a cgroup use: one truth in statistics, cgroup files and the node; limits
and the OOM killer; what the kernel says of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from cgroup_pods import MIB, PARENT, Pods, directories, in_a_world
from criapi.v1 import api_pb2 as pb
from hypothesis import given, settings
from hypothesis import strategies as st

from fakecri import CriError, FakeCRI, FakeNode, exits, oom_at, oom_kills_child, prints, ramp, uses
from fakecri.cgroupfs import CgroupFS
from fakecri.core.objects import State
from simtime import run_virtual

VERSIONS = pytest.mark.parametrize("version", [1, 2])
GIB = 1 << 30


async def stats(pods: Pods) -> list[Any]:
    answer: Any = await pods.cri.call("ListContainerStats", pb.ListContainerStatsRequest())
    return list(answer.stats)


def fate(pods: Pods, name: str = "main") -> tuple[State, int, str]:
    found = pods.cri.container(name)
    return found.state, found.exit_code, found.reason


OOM_KILLED = (State.EXITED, 137, "OOMKilled")
RUNNING = (State.RUNNING, 0, "")


# -- one source of truth --------------------------------------------------------------------------


@pytest.mark.parametrize("third", range(1, 10))
def test_a_step_between_two_nanoseconds_is_not_lost(third: int) -> None:
    """The alarm is at a whole one, before or after the step."""

    async def body(pods: Pods) -> None:
        base = pods.cri.node.memory().working_set_bytes
        at_s = third * 4000 / 9
        await pods.started(
            uses(memory_bytes=[(0.0, MIB), (at_s, 70 * MIB)]), prints("now", at_s=at_s)
        )
        await asyncio.sleep(at_s + 1)
        assert pods.cri.node.memory().working_set_bytes == base + 70 * MIB
        assert [line.text for line in pods.cri.container("main").log] == ["now"]

    in_a_world(2, body)


def test_usage_is_seen_everywhere_and_follows_its_curve() -> None:
    async def body(pods: Pods) -> None:
        node = pods.cri.node
        base = node.memory().working_set_bytes
        grows = uses(
            memory_bytes=ramp(0, 100 * MIB, 10, steps=10),
            cache_bytes=5 * MIB,
            cpu_millicores=500,
            pids=[(0, 1), (5, 4)],
            disk_bytes=[(3, 7 * MIB)],
            inodes=9,
        )
        container = await pods.started(grows)
        free = node.filesystem("/")
        before = node.pids().running
        await asyncio.sleep(7.5)
        (row,) = await stats(pods)
        assert row.memory.working_set_bytes.value == 70 * MIB
        assert row.memory.usage_bytes.value == 75 * MIB
        cpu_us = row.cpu.usage_core_nano_seconds.value // 1000
        assert cpu_us == pytest.approx(3_750_000, abs=1)
        assert row.writable_layer.inodes_used.value == 9
        place = f"{PARENT}/{container}"
        for directory in (place, PARENT, "/kubepods"):
            assert int(pods.file("memory.current", of=directory)) == 75 * MIB
            assert f"inactive_file {5 * MIB}" in pods.file("memory.stat", of=directory)
            assert f"usage_usec {cpu_us}" in pods.file("cpu.stat", of=directory)
        assert pods.file("pids.current", of=place) == "4"
        assert pods.file("pids.current") == "5"  # the pause process, too
        assert node.memory().working_set_bytes == base + 70 * MIB
        assert node.pids().running == before + 3
        assert free.available_bytes - node.filesystem("/").available_bytes == 7 * MIB
        root = dict(line.split() for line in pods.file("memory.stat", of="").splitlines())
        whole = int(root["anon"]) + int(root["file"]) - int(root["inactive_file"])
        assert whole == node.memory().working_set_bytes
        pods.cri.exit("main")
        assert f"usage_usec {cpu_us}" in pods.file("cpu.stat")
        assert pods.file("memory.current") == "0"
        assert node.memory().working_set_bytes == base

    in_a_world(2, body)


CURVE = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 90)), max_size=3, unique_by=lambda p: p[0]
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["start", "start bare", "end", "remove", "wait", "limit pod"]),
        st.integers(0, 4),
        CURVE,
    ),
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 2]), STEPS)
def test_stats_files_and_the_node_always_agree(version: Any, steps: list[Any]) -> None:
    async def body(pods: Pods) -> None:
        made: dict[int, str] = {}
        sandbox = await pods.sandbox("in", PARENT)
        bare = await pods.sandbox("bare", "")
        for what, number, curve in steps:
            if what == "wait":
                await asyncio.sleep(number)
            elif what.startswith("start") and number not in made:
                name = f"c{number}"
                in_mib = [(at_s, amount * MIB) for at_s, amount in curve]
                pods.cri.behaves(
                    uses(memory_bytes=in_mib, pids=[(0, 1), *curve[:1]]), container=name
                )
                config, sandbox_id = (sandbox, pods.made[0])
                if what == "start bare":
                    config, sandbox_id = bare, pods.made[1]
                limit = 60 * MIB if number % 2 else 0
                made[number] = await pods.container(
                    config, name, sandbox_id, memory_limit_in_bytes=limit
                )
                await pods.start(made[number])
            elif what == "end" and number in made:
                if pods.cri.container(f"c{number}").state is State.RUNNING:
                    pods.cri.exit(f"c{number}")
            elif what == "remove" and number in made:
                request = pb.RemoveContainerRequest(container_id=made.pop(number))
                await pods.cri.call("RemoveContainer", request)
            elif what == "limit pod":
                name = "memory.max" if version == 2 else "memory/memory.limit_in_bytes"
                try:
                    pods.write(name, str((10 + 30 * number) * MIB))
                except OSError:
                    assert version == 1
            await agree(pods)

    in_a_world(version, body)


async def agree(pods: Pods) -> None:
    """All views of what is used say the same."""
    node, version = pods.cri.node, pods.cri.node.cgroups_version
    rows = {row.attributes.id: row for row in await stats(pods)}
    current = "memory.current" if version == 2 else "memory/memory.usage_in_bytes"
    tasks = "pids.current" if version == 2 else "pids/pids.current"
    used = processes = 0
    for container in pods.cri.containers():
        if container.state is not State.RUNNING:
            continue
        amount = rows[container.id].memory.working_set_bytes.value
        used += amount
        age_s = container.age_s(node.now_ns())
        processes += container.pids_now(age_s)
        if container.cgroup is not None:
            place = f"{PARENT}/{container.id}"
            assert int(pods.file(current, of=place)) == amount
            assert amount == container.plan.memory_bytes(age_s)
            assert int(pods.file(tasks, of=place)) == container.pids_now(age_s)
            limit = container.resources.memory_limit_in_bytes
            assert amount <= (limit or 2**63)
    assert node.memory().working_set_bytes == node.base_memory_used_bytes + used
    assert node.pids().running == node.base_pids + processes + 2
    grouped = [c.id for c in pods.cri.containers() if c.cgroup is not None]
    leaves = [path for path in directories(node) if path.startswith(("/kub", "memory/kub"))]
    assert sum(any(name in path for path in leaves) for name in grouped) == len(grouped)
    assert len(leaves) == 3 + 1 + len(grouped)  # the parents, the pause process


# -- limits ---------------------------------------------------------------------------------------


@VERSIONS
def test_above_its_own_limit_a_container_is_killed_EVIC_123(version: Any) -> None:
    async def body(pods: Pods) -> None:
        node = pods.cri.node
        container = await pods.started(
            uses(memory_bytes=[(0, MIB), (5, 20 * MIB)]), memory_limit_in_bytes=10 * MIB
        )
        pid = pods.cri.container("main").pid
        await asyncio.sleep(4)
        assert fate(pods) == RUNNING
        await asyncio.sleep(2)
        assert fate(pods) == OOM_KILLED
        assert pods.cri.container("main").finished_at_ns == pytest.approx(
            pods.cri.container("main").started_at_ns + 5e9, abs=10
        )
        path = f"{PARENT}/{container}"
        assert node.log.texts[:2] == [
            "eat invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
            f"oom_memcg={path},task_memcg={path},task=eat,pid={pid},uid=0",
        ]
        assert node.log.texts[2].startswith(
            f"Memory cgroup out of memory: Killed process {pid} (eat) total-vm:10240kB"
        )

    in_a_world(version, body)


@VERSIONS
def test_above_the_pods_limit_the_biggest_container_goes(version: Any) -> None:
    async def body(pods: Pods) -> None:
        name = "memory.max" if version == 2 else "memory/memory.limit_in_bytes"
        sandbox = await pods.sandbox()
        pods.write(name, str(50 * MIB))
        pods.cri.behaves(uses(memory_bytes=30 * MIB), container="big")
        pods.cri.behaves(uses(memory_bytes=[(0, 10 * MIB), (9, 25 * MIB)]), container="small")
        for container in ("big", "small"):
            await pods.start(await pods.container(sandbox, container))
        await asyncio.sleep(8)
        assert (fate(pods, "big"), fate(pods, "small")) == (RUNNING, RUNNING)
        await asyncio.sleep(2)
        assert (fate(pods, "big"), fate(pods, "small")) == (OOM_KILLED, RUNNING)
        assert f"oom_memcg={PARENT},task_memcg={PARENT}/" in pods.cri.node.log.texts[1]
        if version == 2:
            assert "oom_kill 1\n" in pods.file("memory.events") + "\n"
        assert pods.cri.sandboxes()[0].ready  # the pause process has -998

    in_a_world(version, body)


def test_with_an_oom_group_all_processes_go_EVIC_122() -> None:
    async def body(pods: Pods) -> None:
        eats = uses(memory_bytes=[(1, 30 * MIB)], pids=3)
        await pods.started(eats, memory_limit_in_bytes=10 * MIB, unified={"memory.oom.group": "1"})
        await asyncio.sleep(2)
        assert fate(pods) == OOM_KILLED
        killed = [line for line in pods.cri.node.log.texts if "Killed process" in line]
        assert len(killed) == 4  # the one that was chosen is told twice
        assert any(line.startswith("Tasks in /kubepods") for line in pods.cri.node.log.texts)

    in_a_world(2, body)


@VERSIONS
def test_a_child_is_killed_and_the_container_goes_on_EVIC_123(version: Any) -> None:
    async def body(pods: Pods) -> None:
        container = await pods.started(oom_kills_child(at_s=3), exits(0, after_s=10))
        await asyncio.sleep(4)
        assert fate(pods) == RUNNING
        assert pods.cri.container("main").oom_killed
        events = "memory.events" if version == 2 else "memory/memory.oom_control"
        assert "oom_kill 1" in pods.file(events, of=f"{PARENT}/{container}")
        assert len([t for t in pods.cri.node.log.texts if "Killed process" in t]) == 1
        await asyncio.sleep(7)
        assert fate(pods) == (State.EXITED, 0, "OOMKilled")

    in_a_world(version, body)


@VERSIONS
def test_no_more_processes_than_pids_max_allows(version: Any) -> None:
    async def body(pods: Pods) -> None:
        prefix = "pids/" if version == 1 else ""
        sandbox = await pods.sandbox()
        pods.write(f"{prefix}pids.max", "4")
        pods.cri.behaves(uses(pids=10), container="forks")
        await pods.start(await pods.container(sandbox, "forks"))
        assert pods.file(f"{prefix}pids.current") == "4"
        assert pods.cri.node.pids().running == pods.cri.node.base_pids + 4
        with pytest.raises(CriError, match="resource temporarily unavailable"):
            await pods.start(await pods.container(sandbox, "late"))
        assert fate(pods, "late") == (State.EXITED, 128, "StartError")

    in_a_world(version, body)


# -- who else kills -------------------------------------------------------------------------------


@VERSIONS
def test_killing_the_processes_of_a_pod_ends_it_CG_042(version: Any) -> None:
    async def body(pods: Pods) -> None:
        container = await pods.started(exits(7, after_s=100))
        prefix = "memory/" if version == 1 else ""
        for place in (f"{PARENT}/{container}", f"{PARENT}/{pods.made[0]}"):
            pods.cri.node.kill_process(int(pods.file(f"{prefix}cgroup.procs", of=place)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert fate(pods) == (State.EXITED, 137, "Error")
        assert not pods.cri.sandboxes()[0].ready
        assert pods.file(f"{prefix}cgroup.procs") == ""

    in_a_world(version, body)


def test_a_stop_waits_for_a_process_that_somebody_else_kills() -> None:
    async def body(pods: Pods) -> None:
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

    in_a_world(2, body)


@pytest.mark.parametrize(("version", "reason"), [(1, "Error"), (2, "OOMKilled")])
def test_the_machine_out_of_memory_takes_the_highest_score(version: Any, reason: str) -> None:
    async def body(pods: Pods) -> None:
        for name, size, adj in (("big", 2 * GIB, 2), ("pushed", GIB, 900), ("safe", GIB, -1000)):
            await pods.started(
                uses(memory_bytes=size), name=name, parent=f"/{name}", oom_score_adj=adj
            )
        victim = pods.cri.oom()
        assert (victim.name, victim.pid) == ("eat", pods.cri.container("pushed").pid)
        assert fate(pods, "pushed") == (State.EXITED, 137, reason)
        assert fate(pods, "big") == fate(pods, "safe") == RUNNING
        choice, killed = pods.cri.node.log.texts[1:]
        assert "CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom" in choice
        assert ",task_memcg=/pushed/" in choice
        assert killed.startswith(f"Out of memory: Killed process {victim.pid} (eat)")
        assert pods.cri.oom().pid == pods.cri.container("big").pid

    in_a_world(version, body)


def test_a_container_without_a_cgroup_may_be_the_victim() -> None:
    async def body(pods: Pods) -> None:
        await pods.started(uses(memory_bytes=GIB), parent="")
        assert pods.cri.oom().memory_bytes == GIB
        assert fate(pods) == OOM_KILLED

    in_a_world(2, body)


def test_a_process_outside_of_all_pods() -> None:
    node = FakeNode()
    with pytest.raises(LookupError, match="no process may be killed"):
        node.oom()
    assert node.log.texts == []
    assert node.oom("java", 4711).pid == 4711
    assert node.log.texts[-1].startswith("Out of memory: Killed process 4711 (java) total-vm:")


@VERSIONS
@pytest.mark.parametrize("limit", [0, 10 * MIB])
def test_oom_at_a_time(version: Any, limit: int) -> None:
    async def body(pods: Pods) -> None:
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

    in_a_world(version, body)


def test_oom_at_a_time_without_a_cgroup() -> None:
    async def body(pods: Pods) -> None:
        await pods.started(oom_at(30), parent="")
        await asyncio.sleep(31)
        assert fate(pods) == OOM_KILLED

    in_a_world(2, body)


# -- nothing stays --------------------------------------------------------------------------------


@VERSIONS
def test_a_thousand_runs_leave_no_cgroup_and_no_process(version: Any) -> None:
    async def body(pods: Pods) -> None:
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

    in_a_world(version, body)


@VERSIONS
@pytest.mark.parametrize("loss", ["drop", "crash", "reboot", "kill_sandbox"])
def test_what_is_lost_leaves_no_process(version: Any, loss: str) -> None:
    async def body(pods: Pods) -> None:
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
        assert left == {"drop": ["pause"], "kill_sandbox": ["eat"]}.get(loss, [])
        if loss == "reboot":
            assert directories(cri.node) == []

    in_a_world(version, body)


def test_a_stale_answer_shows_what_was_used_then() -> None:
    async def body(pods: Pods) -> None:
        await pods.started(uses(memory_bytes=[(0, MIB), (5, 9 * MIB)]))
        with pods.cri.on("ListContainerStats").goes_stale():
            await asyncio.sleep(6)
            assert (await stats(pods))[0].memory.usage_bytes.value == MIB
        assert (await stats(pods))[0].memory.usage_bytes.value == 9 * MIB

    in_a_world(2, body)


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


def test_a_machine_without_the_memory_controller() -> None:
    async def main() -> None:
        node = FakeNode()
        node.cgroups = CgroupFS(2, controllers=["pids"])
        pods = Pods(FakeCRI(node=node))
        await pods.started(uses(memory_bytes=MIB), oom_at(5), memory_limit_in_bytes=GIB)
        assert (await stats(pods))[0].memory.usage_bytes.value == MIB
        await asyncio.sleep(6)
        assert fate(pods)[:2] == (State.EXITED, 137)
        with pytest.raises(CriError, match=r"memory\.high: no such file"):
            await pods.started(name="x", unified={"memory.high": "1"})

    run_virtual(main)
