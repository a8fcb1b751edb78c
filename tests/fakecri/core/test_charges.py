"""What containers with a cgroup use: one truth in statistics, cgroup files and the node; limits
and the OOM killer; what the kernel says of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from cgroup_pods import MIB, PARENT, Pods, directories, world
from charge_files import OOM_KILLED, RUNNING, VERSIONS, fate, stats
from hypothesis import given, settings
from hypothesis import strategies as st
from kubecri.v1 import api_pb2 as pb

from fakecri import CriError, exits, oom_kills_child, prints, ramp, uses
from fakecri.core.objects import State


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
        if container.run.cgroup is not None:
            place = f"{PARENT}/{container.id}"
            assert int(pods.file(current, of=place)) == amount
            assert amount == container.run.plan.memory_bytes(age_s)
            assert int(pods.file(tasks, of=place)) == container.pids_now(age_s)
            limit = container.resources.memory_limit_in_bytes
            assert amount <= (limit or 2**63)
    assert node.memory().working_set_bytes == node.base_memory_used_bytes + used
    assert node.pids().running == node.base_pids + processes + 2
    grouped = [c.id for c in pods.cri.containers() if c.run.cgroup is not None]
    leaves = [path for path in directories(node) if path.startswith(("/kub", "memory/kub"))]
    assert sum(any(name in path for path in leaves) for name in grouped) == len(grouped)
    assert len(leaves) == 3 + 1 + len(grouped)  # the parents, the pause process


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


@pytest.mark.virtual_time
@pytest.mark.parametrize("third", range(1, 10))
async def test_a_step_between_two_nanoseconds_is_not_lost(third: int) -> None:
    """The alarm is at a whole one, before or after the step."""

    pods = world(2)
    base = pods.cri.node.memory().working_set_bytes
    at_s = third * 4000 / 9
    await pods.started(uses(memory_bytes=[(0.0, MIB), (at_s, 70 * MIB)]), prints("now", at_s=at_s))
    await asyncio.sleep(at_s + 1)
    assert pods.cri.node.memory().working_set_bytes == base + 70 * MIB
    assert [line.text for line in pods.cri.container("main").log] == ["now"]


@pytest.mark.virtual_time
async def test_usage_is_seen_everywhere_and_follows_its_curve() -> None:
    pods = world(2)
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


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 2]), STEPS)
@pytest.mark.virtual_time
async def test_stats_files_and_the_node_always_agree(version: Any, steps: list[Any]) -> None:
    pods = world(version)
    made: dict[int, str] = {}
    sandbox = await pods.sandbox("in", PARENT)
    bare = await pods.sandbox("bare", "")
    for what, number, curve in steps:
        if what == "wait":
            await asyncio.sleep(number)
        elif what.startswith("start") and number not in made:
            name = f"c{number}"
            in_mib = [(at_s, amount * MIB) for at_s, amount in curve]
            pods.cri.behaves(uses(memory_bytes=in_mib, pids=[(0, 1), *curve[:1]]), container=name)
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


@pytest.mark.virtual_time
@VERSIONS
async def test_above_its_own_limit_a_container_is_killed_EVIC_123(version: Any) -> None:
    pods = world(version)
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


@pytest.mark.virtual_time
@VERSIONS
async def test_above_the_pods_limit_the_biggest_container_goes(version: Any) -> None:
    pods = world(version)
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


@pytest.mark.virtual_time
async def test_with_an_oom_group_all_processes_go_EVIC_122() -> None:
    pods = world(2)
    eats = uses(memory_bytes=[(1, 30 * MIB)], pids=3)
    await pods.started(eats, memory_limit_in_bytes=10 * MIB, unified={"memory.oom.group": "1"})
    await asyncio.sleep(2)
    assert fate(pods) == OOM_KILLED
    killed = [line for line in pods.cri.node.log.texts if "Killed process" in line]
    assert len(killed) == 4  # the one that was chosen is told twice
    assert any(line.startswith("Tasks in /kubepods") for line in pods.cri.node.log.texts)


@pytest.mark.virtual_time
@VERSIONS
async def test_a_child_is_killed_and_the_container_goes_on_EVIC_123(version: Any) -> None:
    pods = world(version)
    container = await pods.started(oom_kills_child(at_s=3), exits(0, after_s=10))
    await asyncio.sleep(4)
    assert fate(pods) == RUNNING
    assert pods.cri.container("main").oom_killed
    events = "memory.events" if version == 2 else "memory/memory.oom_control"
    assert "oom_kill 1" in pods.file(events, of=f"{PARENT}/{container}")
    assert len([t for t in pods.cri.node.log.texts if "Killed process" in t]) == 1
    await asyncio.sleep(7)
    assert fate(pods) == (State.EXITED, 0, "OOMKilled")


@pytest.mark.virtual_time
@VERSIONS
async def test_no_more_processes_than_pids_max_allows(version: Any) -> None:
    pods = world(version)
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
