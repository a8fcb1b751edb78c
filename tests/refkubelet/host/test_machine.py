"""The machine: what a tree of /proc, /sys and /dev says, and that the fake node has its shape."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fakecri import FakeNode, HugePages, uniform_topology
from fakecri.machine.values import Tenant
from kubeobjects.machine import KernelMessage
from kubeobjects.topology import Cpu, MachineTopology, NumaNode
from refkubelet.host.kernel_log import KernelLog
from refkubelet.host.machine import Machine
from refkubelet.host.real_machine import MachineError, RealMachine
from simclock import RealClock

GIB = 1024**3


def tree(root: Path, files: dict[str, str]) -> RealMachine:
    for name, text in {"proc/meminfo": "MemTotal: 2048 kB\nSwapTotal: 0 kB\n", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return RealMachine(RealClock(), root)


# -- cgroups and processes ------------------------------------------------------------------------


def test_the_unified_hierarchy_alone_is_version_2_CG_014(tmp_path: Path) -> None:
    """CG-014.1."""
    two = tree(tmp_path / "2", {"sys/fs/cgroup/cgroup.controllers": "cpu\n"})
    hybrid = tree(tmp_path / "h", {"sys/fs/cgroup/unified/cgroup.controllers": "\n"})
    assert (two.cgroup_version(), hybrid.cgroup_version()) == (2, 1)
    assert two.cgroup_root() == tmp_path / "2/sys/fs/cgroup"


def test_a_process_is_killed_and_one_that_is_gone_is_no_error_CG_042(tmp_path: Path) -> None:
    real = tree(tmp_path, {})
    with subprocess.Popen(["sleep", "60"]) as child:
        real.kill_process(child.pid)
        assert child.wait() == -9
    real.kill_process(child.pid)
    for pid in (0, -1):
        with pytest.raises(ValueError, match="of one process"):
            real.kill_process(pid)


def test_space_for_root_only_is_kept_apart_SRV_033(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = (512, 4096, 100, 30, 20, 1000, 900, 900, 0, 255)
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result(values))
    found = tree(tmp_path, {}).filesystem(str(tmp_path))
    sizes = (found.capacity_bytes, found.available_bytes, found.kept_bytes)
    assert sizes == (100 * 4096, 20 * 4096, 10 * 4096)


@pytest.mark.parametrize(("pid_max", "threads_max", "limit"), [(500, 900, 500), (900, 500, 500)])
def test_tasks_and_the_smaller_limit_EVIC_025(
    tmp_path: Path, pid_max: int, threads_max: int, limit: int
) -> None:
    files = {
        "proc/sys/kernel/pid_max": f"{pid_max}\n",
        "proc/sys/kernel/threads-max": f"{threads_max}\n",
        "proc/loadavg": "0.37 0.75 1.76 1/96 4179\n",
    }
    pids = tree(tmp_path, files).pids()
    assert (pids.limit, pids.running) == (limit, 96)
    (tmp_path / "proc/loadavg").write_text("nonsense\n")
    with pytest.raises(MachineError, match="loadavg"):
        RealMachine(RealClock(), tmp_path).pids()


def test_swap(tmp_path: Path) -> None:
    assert tree(tmp_path, {"proc/meminfo": "SwapTotal: 4 kB\n"}).swap_bytes() == 4096


# -- topology -------------------------------------------------------------------------------------

TWO_SOCKETS = {
    f"sys/devices/system/cpu/cpu{cpu}/topology/{file}": f"{value}\n"
    for cpu in range(4)
    for file, value in (("core_id", cpu % 2), ("physical_package_id", cpu // 2))
} | {
    f"sys/devices/system/node/node{node}/{file}": text
    for node in range(2)
    for file, text in (
        ("meminfo", f"Node {node} MemTotal:       {(node + 1) << 20} kB\n"),
        ("distance", "10 21\n" if node == 0 else "21 10\n"),
        (f"cpu{2 * node}/x", ""),
        (f"cpu{2 * node + 1}/x", ""),
        ("hugepages/hugepages-2048kB/nr_hugepages", f"{512 * node}\n"),
        ("hugepages/hugepages-1048576kB/nr_hugepages", "1\n"),
    )
}


def test_sockets_cores_and_numa_nodes(tmp_path: Path) -> None:
    pages = [(HugePages(2 << 20, 512 * n), HugePages(1 << 30, 1)) for n in range(2)]
    assert tree(tmp_path, TWO_SOCKETS).topology() == MachineTopology(
        (Cpu(0, 0, 0, 0), Cpu(1, 1, 0, 0), Cpu(2, 0, 1, 1), Cpu(3, 1, 1, 1)),
        (
            NumaNode(0, 1 * GIB, pages[0], (10, 21)),
            NumaNode(1, 2 * GIB, pages[1], (21, 10)),
        ),
    )


def test_an_offline_cpu_is_none(tmp_path: Path) -> None:
    files = TWO_SOCKETS | {
        "sys/devices/system/cpu/cpu3/online": "0\n",
        "sys/devices/system/cpu/cpu2/online": "1\n",
        "sys/devices/system/cpu/cpufreq/x": "",
    }
    assert [cpu.cpu for cpu in tree(tmp_path, files).topology().cpus] == [0, 1, 2]


def test_last_level_caches_count_where_they_divide_a_node(tmp_path: Path) -> None:
    shared = {f"cpu{cpu}": ("2-3" if cpu > 1 else f"{cpu}") for cpu in range(4)}
    files = {
        f"sys/devices/system/cpu/{cpu}/cache/index{index}/{file}": text
        for cpu, cpus in shared.items()
        for index in (2, 3)
        for file, text in (
            ("level", f"{index}\n"),
            ("id", f"{5 + int(cpu[-1])}\n"),
            ("shared_cpu_list", f"{cpus if index == 3 else 0}\n"),
        )
    }
    found = tree(tmp_path, TWO_SOCKETS | files).topology()
    assert [cpu.cache for cpu in found.cpus] == [5, 6, None, None]


def test_a_machine_without_numa_has_one_node(tmp_path: Path) -> None:
    found = tree(tmp_path, {"sys/devices/system/cpu/cpu0/topology/core_id": "0\n"}).topology()
    assert found == MachineTopology((Cpu(0, 0, 0, 0),), (NumaNode(0, 2048 * 1024, (), (10,)),))


def test_a_wrong_topology_file_is_named(tmp_path: Path) -> None:
    wrong = tree(tmp_path, TWO_SOCKETS | {"sys/devices/system/node/node1/meminfo": "?\n"})
    with pytest.raises(MachineError, match="node1/meminfo: no MemTotal"):
        wrong.topology()


def test_the_topology_of_this_machine() -> None:
    real = RealMachine(RealClock())
    found = real.topology()
    assert 1 <= len(found.cpus) <= max(cpu.cpu for cpu in found.cpus) + 1
    assert {cpu.node for cpu in found.cpus} <= {node.id for node in found.nodes}
    assert all(node.memory_bytes > 0 for node in found.nodes)
    assert real.pids().limit > 0
    assert real.swap_bytes() >= 0


# -- the kernel's log -----------------------------------------------------------------------------


async def test_records_are_read_as_they_come_EVIC_124() -> None:
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_DIRECT)  # a read gives what a write wrote
    log = KernelLog(reading, RealClock())
    first = asyncio.ensure_future(anext(log))
    await asyncio.sleep(0)
    os.write(writing, b"6,1,100,-;Out of memory: Killed process 7 (x)\n SUBSYSTEM=mm\n")
    os.write(writing, b"no record\n")
    os.write(writing, b"4,2,101,-,caller=T1;second; with a semicolon\n")
    assert (await first).text == "Out of memory: Killed process 7 (x)"
    assert (await anext(log)).text == "second; with a semicolon"
    os.close(writing)
    assert [message async for message in log] == []


async def test_a_reader_that_is_cancelled_leaves_nothing_with_the_loop() -> None:
    reading, writing = os.pipe2(os.O_NONBLOCK)
    log = KernelLog(reading, RealClock())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(log), 0.01)
    assert not asyncio.get_running_loop().remove_reader(reading)
    log.close()
    with pytest.raises(StopAsyncIteration):
        await anext(log)
    os.close(writing)


async def test_a_log_that_is_closed_ends_who_waits_for_it() -> None:
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_DIRECT)
    log = KernelLog(reading, RealClock())
    waiting = asyncio.ensure_future(anext(log, None))
    await asyncio.sleep(0)
    log.close()
    log.close()
    assert await asyncio.wait_for(waiting, 60) is None
    assert not asyncio.get_running_loop().remove_reader(reading)
    os.close(writing)


async def test_a_fake_log_that_is_closed_ends_who_waits_for_it() -> None:
    node = FakeNode()
    log, other = node.kernel_log(), node.kernel_log()
    waiting = asyncio.ensure_future(anext(log, None))
    await asyncio.sleep(0)
    log.close()
    node.kernel_says("after")
    assert await asyncio.wait_for(waiting, 60) is None
    assert await anext(log, None) is None
    assert (await anext(other)).text == "after"


def test_a_log_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        RealMachine(RealClock(), tmp_path).kernel_log()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kmsg").symlink_to(tmp_path / "pipe")
    with pytest.raises(OSError, match="seek"):
        RealMachine(RealClock(), tmp_path).kernel_log()


# -- the fake has the same shape ------------------------------------------------------------------

METHODS = [name for name in vars(Machine) if not name.startswith("_")]


@pytest.mark.parametrize("kind", [RealMachine, FakeNode])
def test_every_method_of_a_machine_is_there(kind: type) -> None:
    assert len(METHODS) == 15
    for name in METHODS:
        wanted, found = (inspect.signature(getattr(c, name)).parameters for c in (Machine, kind))
        assert list(found) == list(wanted), name


@pytest.mark.parametrize("version", [1, 2])
def test_the_fake_node_has_cgroups_of_its_version(version: Any) -> None:
    node = FakeNode(cgroups_version=version, layout=uniform_topology(sockets=2, cores=2))
    assert node.cgroup_version() == node.cgroups.version == version
    cpuset = "cpuset.cpus.effective" if version == 2 else "cpuset/cpuset.effective_cpus"
    assert (node.cgroup_root() / cpuset).read_text() == "0-3\n"
    process = node.cgroups.spawn("/")
    node.kill_process(process.pid)
    assert process.exit_status == -9
    node.kill_process(process.pid)
    node.kill_process(99999)


def test_a_server_of_two_sockets_as_data() -> None:
    pages = HugePages(2 << 20, 512)
    layout = uniform_topology(
        sockets=2, cores=16, threads=2, memory_bytes=64 * GIB, hugepages=(pages,)
    )
    assert len(layout.cpus) == FakeNode(layout=layout).cpu_count() == 64
    assert [c.cpu for c in layout.cpus if (c.socket, c.core) == (1, 3)] == [19, 51]
    assert [(n.id, n.memory_bytes, n.distances) for n in layout.nodes] == [
        (0, 32 * GIB, (10, 20)),
        (1, 32 * GIB, (20, 10)),
    ]
    split = uniform_topology(sockets=1, cores=4, nodes_per_socket=2)
    assert [c.node for c in split.cpus] == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="cannot be shared"):
        uniform_topology(cores=3, nodes_per_socket=2)


class AtSeven(Tenant):
    def now_ns(self) -> int:
        return 7


async def test_every_reader_of_the_fake_log_gets_what_is_said_from_then_on() -> None:
    node = FakeNode(tenant=AtSeven())
    node.kernel_says("before")
    one, two = node.kernel_log(), node.kernel_log()
    node.kernel_says("a")
    waiting = [asyncio.ensure_future(anext(reader)) for reader in (one, two)]
    assert [(await w).text for w in waiting] == ["a", "a"]
    waiting = [asyncio.ensure_future(anext(one))]
    await asyncio.sleep(0)
    node.kernel_says("b")
    assert await waiting[0] == KernelMessage(7, "b")
    assert node.log.texts == ["before", "a", "b"]
    node.log.error = PermissionError(1, "Operation not permitted", "/dev/kmsg")
    with pytest.raises(PermissionError):
        node.kernel_log()
