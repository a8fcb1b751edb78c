"""The parts of a summary: every field, what is left out, and the times."""

from __future__ import annotations

from kubeobjects.machine import FilesystemStats, MemoryStats, PidStats
from kubeobjects.structs import replace
from refkubelet.cri.usage import ContainerUsage, FilesystemUsage
from refkubelet.host.disk_use import DiskUse
from refkubelet.stats import wire
from refkubelet.stats.usage import CgroupMemory

DISK = FilesystemStats(
    device="disk",
    capacity_bytes=100,
    available_bytes=70,
    inodes=50,
    inodes_free=45,
    time_ns=1_000_000_000,
)
ROOM = {"availableBytes": 70, "capacityBytes": 100, "inodesFree": 45, "inodes": 50}
FIRST, SECOND = "1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z"
IDLE = ContainerUsage("c-1", "main", "u-1", "web", "default")
BUSY = ContainerUsage(
    "c-1",
    "main",
    "u-1",
    "web",
    "default",
    memory_time_ns=1_000_000_000,
    memory_available_bytes=1,
    memory_usage_bytes=2,
    memory_working_set_bytes=3,
    memory_rss_bytes=4,
    memory_page_faults=5,
    memory_major_page_faults=6,
    swap_time_ns=2_000_000_000,
    swap_usage_bytes=7,
    swap_available_bytes=8,
)
MEMORY = {
    "availableBytes": 1,
    "usageBytes": 2,
    "workingSetBytes": 3,
    "rssBytes": 4,
    "pageFaults": 5,
    "majorPageFaults": 6,
}


def test_a_time_that_never_was_is_null() -> None:
    assert wire.shown_time(0) is None
    assert wire.shown_time(1_000_000_000) == FIRST


def test_no_memory_is_available_without_a_limit_SRV_033() -> None:
    unlimited = ContainerUsage("c", "main", "u", "web", "default", memory_available_bytes=0)
    assert "availableBytes" not in wire.container_memory(unlimited, 1)
    assert wire.container_memory(BUSY, 1)["availableBytes"] == 1


def test_space_kept_for_root_is_not_used_SRV_033() -> None:
    disk = FilesystemStats("1:1", 100, 70, 20, 15, 10**9, kept_bytes=5)
    found = wire.filesystem(disk)
    assert (found["usedBytes"], found["availableBytes"]) == (25, 70)


def test_a_filesystem_shows_what_is_used_of_it_EVIC_024() -> None:
    assert wire.filesystem(DISK) == {"time": FIRST, **ROOM, "usedBytes": 30, "inodesUsed": 5}
    assert wire.filesystem(DISK, DiskUse(7, 8), 2_000_000_000) == {
        "time": SECOND,
        **ROOM,
        "usedBytes": 7,
        "inodesUsed": 8,
    }
    assert wire.filesystem(DISK, DiskUse(7, 8), 0)["time"] is None


def test_a_filesystem_that_is_gone_shows_what_was_used_EVIC_029() -> None:
    assert wire.filesystem(None) == {"time": None}
    assert wire.filesystem(None, DiskUse(7, 8), 1_000_000_000) == {
        "time": FIRST,
        "usedBytes": 7,
        "inodesUsed": 8,
    }


def test_a_filesystem_of_images_is_measured_by_both_EVIC_028() -> None:
    told = FilesystemUsage("/disk", used_bytes=7, inodes_used=8, time_ns=2_000_000_000)
    assert wire.image_filesystem(DISK, told) == {
        "time": SECOND,
        **ROOM,
        "usedBytes": 7,
        "inodesUsed": 8,
    }


def test_cpu_shows_what_is_known_EVIC_029() -> None:
    assert wire.cpu(1_000_000_000, 2, 3) == {
        "time": FIRST,
        "usageNanoCores": 3,
        "usageCoreNanoSeconds": 2,
    }
    assert wire.cpu(0, None, 0) == {"time": None, "usageNanoCores": 0}


def test_the_node_s_memory_is_that_of_its_root_with_the_machine_s_room_EVIC_022() -> None:
    root = {"time": SECOND, "usageBytes": 5, "availableBytes": 6, "workingSetBytes": 7}
    stats = MemoryStats(100, 30, 1_000_000_000)
    assert wire.node_memory(stats, root) == {
        "time": FIRST,
        "usageBytes": 5,
        "availableBytes": 70,
        "workingSetBytes": 30,
    }


def test_memory_of_a_cgroup_EVIC_027() -> None:
    memory = CgroupMemory(
        usage_bytes=2,
        working_set_bytes=3,
        limit_bytes=4,
        rss_bytes=4,
        page_faults=5,
        major_page_faults=6,
    )
    assert wire.cgroup_memory(memory, 1_000_000_000) == {"time": FIRST, **MEMORY}
    assert wire.cgroup_memory(CgroupMemory(2, 3), 0) == {
        "time": None,
        "usageBytes": 2,
        "workingSetBytes": 3,
        "rssBytes": 0,
        "pageFaults": 0,
        "majorPageFaults": 0,
    }


def test_memory_and_swap_of_a_container_EVIC_029() -> None:
    assert wire.container_memory(BUSY, 1) == {"time": FIRST, **MEMORY}


def test_what_the_runtime_tells_nothing_of_is_0_now_SRV_030() -> None:
    now_ns = 2_000_000_000
    nothing = {"usageBytes": 0, "workingSetBytes": 0, "rssBytes": 0}
    assert wire.container_memory(IDLE, now_ns) == {"time": SECOND, **nothing}
    nothing = {"usageNanoCores": 0, "usageCoreNanoSeconds": 0}
    assert wire.container_cpu(IDLE, None, now_ns) == {"time": SECOND, **nothing}
    assert wire.container_io(IDLE, now_ns) == {"time": SECOND}
    used = replace(IDLE, cpu_time_ns=1_000_000_000, memory_time_ns=1_000_000_000)
    assert wire.container_memory(used, now_ns) == {"time": FIRST}
    assert wire.container_cpu(used, None, now_ns) == {"time": FIRST}

    now_ns = 1_000_000_000
    wanted = {"time": SECOND, "swapAvailableBytes": 8, "swapUsageBytes": 7}
    assert wire.swap(BUSY, now_ns) == wanted
    nothing = {"time": FIRST, "swapAvailableBytes": 0, "swapUsageBytes": 0}
    assert wire.swap(IDLE, now_ns) == nothing


def test_processes_of_the_node_EVIC_025() -> None:
    shown = wire.rlimit(PidStats(limit=5, running=3, time_ns=1_000_000_000))
    assert shown == {"time": FIRST, "maxpid": 5, "curproc": 3}


def test_pressure_is_put_beside_what_is_there_SRV_030() -> None:
    assert wire.pressured({"a": 1}, {"full": 2}) == {"a": 1, "psi": {"full": 2}}


def test_the_short_form_SRV_030() -> None:
    little = {"startTime": 1, "cpu": 2, "memory": 3, "swap": 4}
    more = {"fs": 5, "rlimit": 6, "ephemeral-storage": 7, "network": 8, "rootfs": 9, "logs": 10}
    node = {"nodeName": "n", "systemContainers": [], **little}
    pod = {"podRef": {"name": "web"}, **little}
    full = {
        "node": {**node, **more},
        "pods": [{**pod, **more, "containers": [{"name": "c", **little, **more}, {"name": "d"}]}],
    }
    assert wire.only_cpu_and_memory(full) == {
        "node": node,
        "pods": [{**pod, "containers": [{"name": "c", **little}, {"name": "d"}]}],
    }
