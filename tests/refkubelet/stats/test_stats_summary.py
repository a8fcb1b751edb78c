"""The summary of a node on the fake: names and numbers of the summary API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from loops import virtual_loop
from pods import make_pod

from fakecri import FakeNode
from fakecri.cgroupfs import CgroupFS
from fakecri.machine.values import InterfaceTraffic as FakeTraffic
from kubeobjects.structs import replace
from refkubelet.cri.records import (
    ContainerState,
    ListedContainer,
    ListedSandbox,
    RuntimePod,
    SandboxState,
)
from refkubelet.cri.target import CriCallError
from refkubelet.cri.usage import ContainerUsage, FilesystemUsage, ImageFilesystems, SandboxUsage
from refkubelet.host.disk_use import DiskUse, VolumeSize
from refkubelet.model.traffic import InterfaceTraffic, Traffic
from refkubelet.stats import wire
from refkubelet.stats.cgroup_stats import CgroupStats, CpuRates
from refkubelet.stats.files import PodFilesReader
from refkubelet.stats.provider import PodStats
from refkubelet.stats.summary import SummaryDeps, SummaryProvider
from simclock import Clock

pytestmark = pytest.mark.virtual_time

MI = 1 << 20
POD = make_pod(
    "main", "side", name="p", namespace="n", uid="u", volumes=[{"name": "v", "emptyDir": {}}]
)


class Runtime:
    """Two containers of one pod, and what they use. `running`: IDs of those that run."""

    def __init__(self) -> None:
        self.running = ["a", "b"]
        self.rows = [row("a", "main", 10 * MI), row("b", "side", 5 * MI)]
        self.refuses = ""
        self.sandboxes = (ListedSandbox("s", SandboxState.READY, created_at_ns=3 * 10**9),)

    async def get_pods(self, *, all_states: bool) -> tuple[RuntimePod, ...]:
        states = {True: ContainerState.RUNNING, False: ContainerState.EXITED}
        containers = tuple(
            ListedContainer(i, i, states[i in self.running], created_at_ns=10**9) for i in "ab"
        )
        return (RuntimePod("u", "p", "n", self.sandboxes, containers),)

    async def container_stats(self) -> tuple[ContainerUsage, ...]:
        return tuple(self.rows)

    async def sandbox_stats(self) -> tuple[SandboxUsage, ...]:
        if self.refuses:
            raise CriCallError("ListPodSandboxStats", self.refuses, "no")
        traffic = Traffic(4 * 10**9, InterfaceTraffic("eth0", rx_bytes=8))
        return (SandboxUsage("u", 3 * MI, 4 * MI, 5, tuple(self.rows[:1]), "s", traffic),)


def row(container: str, name: str, memory: int, cpu_ns: int = 0) -> ContainerUsage:
    return ContainerUsage(
        container_id=container,
        name=name,
        pod_uid="u",
        pod_name="p",
        pod_namespace="n",
        memory_working_set_bytes=memory,
        memory_time_ns=7 * 10**9,
        cpu_usage_core_ns=cpu_ns,
        cpu_time_ns=7 * 10**9,
        rootfs_used_bytes=100,
        rootfs_inodes_used=2,
        rootfs_mountpoint="/var/lib/containerd",
        rootfs_time_ns=6 * 10**9,
    )


def stats(runtime: Runtime, **more: Any) -> PodStats:
    return PodStats(runtime, more.pop("machine", FakeNode()), **more)


async def test_pods_need_a_running_container_and_a_sandbox_EVIC_029() -> None:
    runtime = Runtime()
    assert [c.name for c in (await stats(runtime).of([POD]))["u"].containers] == ["main", "side"]
    runtime.running = ["b"]
    assert [c.name for c in (await stats(runtime).of([POD]))["u"].containers] == ["side"]
    runtime.running = []
    assert await stats(runtime).of([POD]) == {}
    runtime.running, runtime.sandboxes = ["a"], ()
    assert await stats(runtime).of([POD]) == {}


async def test_memory_of_the_pod_s_cgroup_counts_where_there_is_one_EVIC_029() -> None:
    machine = FakeNode()
    machine.cgroups = CgroupFS(1, controllers=["memory"])
    found = stats(Runtime(), machine=machine, pod_cgroup=lambda pod: "/kubepods/podu")
    assert (await found.of([POD], memory=True, processes=True))[
        "u"
    ].memory_bytes == 15 * MI  # none: added up
    group = machine.cgroup_root() / "memory" / "kubepods"
    for name in ("", "podu", "podu/a"):
        (group / name if name else group).mkdir()
    machine.cgroups.spawn("/kubepods/podu").set_usage(memory_bytes=MI)
    machine.cgroups.spawn("/kubepods/podu/a").set_usage(memory_bytes=2 * MI)
    usage = (await found.of([POD], memory=True, processes=True))["u"]
    assert (usage.memory_bytes, usage.processes) == (3 * MI, 1)
    assert (await found.of([POD]))["u"].memory_bytes == 15 * MI  # the cgroup was not asked for


async def test_the_runtime_s_statistics_of_pods_behind_a_gate_EVIC_030() -> None:
    runtime = Runtime()
    found = stats(runtime, by_sandbox=True, pod_cgroup=lambda pod: "/kubepods/podu")
    usage = (await found.of([POD], memory=True, processes=True))["u"]
    assert (usage.memory_bytes, usage.processes) == (3 * MI, 5)
    assert [row.name for row in usage.containers] == ["main"]
    runtime.refuses = "UNIMPLEMENTED"  # then as without the gate
    assert (await found.of([POD]))["u"].memory_bytes == 15 * MI
    runtime.refuses = "UNAVAILABLE"
    with pytest.raises(CriCallError):
        await found.of([POD])


async def test_files_come_with_the_volumes_as_last_measured_EVIC_029(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "n_p_u" / "main" / "0.log"
    log.parent.mkdir(parents=True)
    log.write_text("x")
    volumes = {"v": VolumeSize(DiskUse(5, 1), 9)}
    reader = PodFilesReader(str(tmp_path), str(tmp_path / "logs"))
    found = stats(Runtime(), files=reader, volumes=lambda pod_uid: volumes)
    usage = (await found.of([POD], files=True))["u"]
    assert set(usage.files.logs) == {"main"}
    assert usage.files.volumes == volumes
    assert (await found.of([POD]))["u"].files.volumes == {}


async def image_fs_info() -> ImageFilesystems:
    usage = FilesystemUsage("/var/lib/containerd", 77, 8, 5 * 10**9)
    return ImageFilesystems((usage,), (FilesystemUsage("/other", 66, 7, 5 * 10**9),))


def provider(runtime: Runtime, machine: FakeNode, **more: Any) -> SummaryProvider:
    loop = virtual_loop()

    pods = PodStats(runtime, machine, **more.pop("parts", {}))
    deps = SummaryDeps(
        clock=loop.clock,
        machine=machine,
        node_name="node",
        root_dir="/root",
        stats=pods,
        pods=lambda: [POD],
        image_fs_info=image_fs_info,
        **more,
    )
    return SummaryProvider(deps)


async def test_the_node_s_part_EVIC_020_to_025_SRV_030() -> None:
    machine = FakeNode(base_memory_used_bytes=3 << 30)
    found = (await provider(Runtime(), machine).summary())["node"]
    assert found["nodeName"] == "node"
    assert found["memory"]["availableBytes"] == 5 << 30
    assert found["memory"]["workingSetBytes"] == 3 << 30
    assert found["fs"]["capacityBytes"] == 100 << 30
    assert found["fs"]["usedBytes"] == 20 << 30
    assert found["fs"]["inodesFree"] == 6_053_600
    assert found["fs"]["inodesUsed"] == 500_000
    image_fs = found["runtime"]["imageFs"]
    assert (image_fs["usedBytes"], image_fs["inodesUsed"]) == (77, 8)  # the runtime's
    assert image_fs["availableBytes"] == 80 << 30  # the machine's
    assert image_fs["time"] == "1970-01-01T00:00:05Z"
    assert found["runtime"]["containerFs"] == image_fs
    rlimit = found["rlimit"]
    assert (rlimit["maxpid"], rlimit["curproc"]) == (32768, 100)
    assert found["systemContainers"] == []
    json.dumps(found)


async def test_traffic_of_the_node_and_of_its_pods_SRV_030() -> None:
    runtime, machine = Runtime(), FakeNode(traffic=(FakeTraffic("eth0", 1, 2, 3, 4),))
    found = await provider(runtime, machine).summary()
    assert found["node"]["network"]["txErrors"] == 4
    assert found["node"]["network"]["time"] == "2026-01-01T00:00:00Z"
    (pod,) = found["pods"]
    assert pod["network"] == {"time": "1970-01-01T00:00:04Z", "name": "eth0", "rxBytes": 8}
    assert [c["name"] for c in pod["containers"]] == ["main", "side"]  # those of the cgroups
    runtime.refuses = "UNIMPLEMENTED"
    (pod,) = (await provider(runtime, machine).summary())["pods"]
    assert "network" not in pod
    short = await provider(Runtime(), machine).summary(only_cpu_and_memory=True)
    assert "network" not in short["node"] | short["pods"][0]


async def test_traffic_that_the_runtime_cannot_tell_now_is_left_out_SRV_030() -> None:
    runtime = Runtime()
    runtime.refuses = "UNAVAILABLE"
    (pod,) = (await provider(runtime, FakeNode()).summary())["pods"]
    assert "network" not in pod
    assert [c["name"] for c in pod["containers"]] == ["main", "side"]


@pytest.mark.parametrize(
    ("booted_ns", "shown"),
    [(2 * 10**9, "1970-01-01T00:00:02Z"), (None, "2026-01-01T00:00:00Z")],
)
async def test_the_node_starts_with_its_machine_SRV_030(booted_ns: int | None, shown: str) -> None:
    found = await provider(Runtime(), FakeNode(booted_ns=booted_ns)).summary()
    assert found["node"]["startTime"] == shown


async def test_the_pressure_on_a_container_is_the_runtime_s_SRV_030() -> None:
    psi = {kind: {"total": 1, "avg10": 0, "avg60": 0, "avg300": 0} for kind in ("full", "some")}
    runtime = Runtime()
    pressed = {"cpu_psi": psi, "memory_psi": psi, "io_psi": psi, "io_time_ns": 10**9}
    runtime.rows[0] = replace(runtime.rows[0], **pressed)
    (pod,) = (await provider(runtime, FakeNode()).summary())["pods"]
    main, side = pod["containers"]
    assert main["io"] == {"time": "1970-01-01T00:00:01Z", "psi": psi}
    assert (main["cpu"]["psi"], main["memory"]["psi"]) == (psi, psi)
    assert "psi" not in side["io"] | side["cpu"] | side["memory"]
    assert pod["io"] == {
        "time": "2026-01-01T00:00:00Z"
    }  # the last container's: pressure cannot be added up


async def test_the_pressure_on_a_container_with_a_cgroup_is_that_of_the_cgroup_SRV_030() -> None:
    machine = FakeNode()
    machine.cgroups = CgroupFS(1, controllers=["memory"])
    group = machine.cgroup_root() / "memory" / "kubepods"
    for name in ("", "podu", "podu/a"):
        (group / name if name else group).mkdir()
    parts: dict[str, Any] = {"pod_cgroup": lambda pod: "/kubepods/podu"}
    main, side = await containers_of(provider(Runtime(), machine, parts=parts))
    none = {"total": 0, "avg10": 0.0, "avg60": 0.0, "avg300": 0.0}  # v1 counts none
    zeros = {"full": none, "some": none}
    assert main["io"] == {"time": "2026-01-01T00:00:00Z", "psi": zeros}
    assert (main["cpu"]["psi"], main["memory"]["psi"]) == (zeros, zeros)
    assert "psi" not in side["io"] | side["cpu"] | side["memory"]  # it has no cgroup
    parts["by_sandbox"] = True  # then the runtime alone is asked
    (main,) = await containers_of(provider(Runtime(), machine, parts=parts))
    assert "psi" not in main["io"] | main["cpu"] | main["memory"]


async def containers_of(asked: SummaryProvider) -> list[dict[str, Any]]:
    (pod,) = (await asked.summary())["pods"]
    containers: list[dict[str, Any]] = pod["containers"]
    return containers


async def test_a_disk_for_containers_shows_where_it_is_told_EVIC_024_EVIC_040() -> None:
    found = await provider(Runtime(), FakeNode(), container_disk=True).summary()
    assert found["node"]["runtime"]["containerFs"]["usedBytes"] == 66


async def test_the_group_of_all_pods_is_a_system_container_EVIC_021() -> None:
    machine = FakeNode()
    machine.cgroups = CgroupFS(1, controllers=["memory"])
    group = machine.cgroup_root() / "memory" / "kubepods"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(64 * MI))
    machine.cgroups.spawn("/kubepods").set_usage(memory_bytes=MI)
    found = await provider(Runtime(), machine, pods_cgroup="/kubepods").summary()
    (pods,) = found["node"]["systemContainers"]
    assert pods["name"] == "pods"
    assert pods["memory"]["availableBytes"] == 63 * MI


async def test_the_pod_s_part_EVIC_029_SRV_030() -> None:
    volumes = {"v": VolumeSize(DiskUse(5, 1), 9 * 10**9)}
    reader = PodFilesReader("/nowhere", "/nowhere")
    parts = {"files": reader, "volumes": lambda pod_uid: volumes}
    summary = await provider(Runtime(), FakeNode(), parts=parts).summary()
    (pod,) = summary["pods"]
    assert pod["podRef"] == {"name": "p", "namespace": "n", "uid": "u"}
    assert pod["startTime"] == "1970-01-01T00:00:03Z"
    assert pod["memory"]["workingSetBytes"] == 15 * MI
    assert pod["process_stats"] == {"process_count": 0}
    assert pod["ephemeral-storage"]["usedBytes"] == 205
    (volume,) = pod["volume"]
    assert (volume["name"], volume["usedBytes"], volume["inodesUsed"]) == ("v", 5, 1)
    assert volume["time"] == "1970-01-01T00:00:09Z"
    container = pod["containers"][0]
    assert container["name"] == "main"
    assert container["startTime"] == "1970-01-01T00:00:01Z"
    assert container["memory"] == {
        "time": "1970-01-01T00:00:07Z",
        "workingSetBytes": 10 * MI,
    }
    rootfs = container["rootfs"]
    assert (rootfs["usedBytes"], rootfs["inodesUsed"]) == (100, 2)
    assert rootfs["time"] == "1970-01-01T00:00:06Z"
    assert rootfs["capacityBytes"] == 100 << 30
    assert container["logs"]["usedBytes"] == 0
    nothing = {"swapAvailableBytes": 0, "swapUsageBytes": 0}
    assert container["swap"] == {"time": "2026-01-01T00:00:00Z", **nothing}


async def test_cores_in_use_come_from_two_requests_EVIC_029() -> None:
    runtime = Runtime()
    asked = provider(runtime, FakeNode())
    first = (await asked.summary())["pods"][0]["containers"][0]["cpu"]
    assert "usageNanoCores" not in first
    later = row("a", "main", MI, cpu_ns=10**9)
    runtime.rows[0] = replace(later, cpu_time_ns=9 * 10**9)
    second = (await asked.summary())["pods"][0]["containers"][0]["cpu"]
    assert second["usageNanoCores"] == 500_000_000
    assert second["usageCoreNanoSeconds"] == 10**9


def test_rates_of_cpu_time() -> None:
    rates = CpuRates()
    assert rates.rate("a", 10, 5) is None
    rates.next()
    assert rates.rate("a", 20, 10) == 500_000_000
    assert rates.rate("b", 20, 10) is None
    rates.next()
    assert rates.rate("a", 20, 10) is None  # the same reading
    assert rates.rate("b", 30, 9) is None  # a new container with an old name
    rates.next()
    rates.next()
    assert rates.rate("a", 40, 20) is None  # forgotten


async def test_the_short_form_has_cpu_and_memory_alone_SRV_030() -> None:
    short = await provider(Runtime(), FakeNode()).summary(only_cpu_and_memory=True)
    both = {"startTime", "cpu", "memory", "swap"}
    assert set(short["node"]) == {"nodeName", "systemContainers", *both}
    (pod,) = short["pods"]
    assert set(pod) == {"podRef", "containers", *both}
    assert set(pod["containers"][0]) == {"name", *both}


async def test_pressure_and_swap_of_groups_SRV_030(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "memory.stat").write_text("anon 30\nfile 20\ninactive_file 5\n")
    (tmp_path / "memory.swap.current").write_text("40\n")
    (tmp_path / "memory.swap.max").write_text("100\n")
    text = "some avg10=1.50 avg60=0.20 avg300=0.00 total=77\nfull avg10=0.00 avg60=0.00"
    (tmp_path / "io.pressure").write_text(f"{text} avg300=0.00 total=7\n")

    class Machine(FakeNode):
        def cgroup_root(self) -> Any:
            return tmp_path

    groups = CgroupStats(Machine(), clock)
    found = groups.of("")
    assert found is not None
    assert found["memory"]["usageBytes"] == 50  # the root of v2 adds up (EVIC-026)
    assert found["memory"]["workingSetBytes"] == 45
    assert found["swap"]["swapUsageBytes"] == 40
    assert found["swap"]["swapAvailableBytes"] == 60
    some = {"avg10": 1.5, "avg60": 0.2, "avg300": 0.0, "total": 77}
    assert found["io"]["psi"]["some"] == some
    assert found["io"]["psi"]["full"]["total"] == 7
    assert found["cpu"]["psi"]["some"]["total"] == 0  # no such file
    (tmp_path / "memory.swap.max").write_text("max\n")
    assert "swapAvailableBytes" not in (groups.of("") or {})["swap"]
    assert groups.of("/gone") is None


def test_a_disk_that_is_gone_is_left_out_EVIC_029() -> None:
    assert wire.filesystem(None) == {"time": None}
    assert wire.filesystem(None, DiskUse(5, 1), 10**9) == {
        "time": "1970-01-01T00:00:01Z",
        "usedBytes": 5,
        "inodesUsed": 1,
    }
