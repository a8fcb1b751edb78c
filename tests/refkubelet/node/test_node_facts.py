"""The facts about a node: its name, its machine, its versions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kubeobjects.machine import FilesystemStats, MemoryStats
from kubeobjects.quantity import NANO
from kubeobjects.structs import replace
from kubeobjects.topology import HugePages, MachineTopology, NumaNode
from refkubelet.config import ConfigError, KubeletConfiguration
from refkubelet.container_manager.cgroups.allocatable import allocatable_of
from refkubelet.container_manager.cgroups.node_config import reservations_of
from refkubelet.daemon import host_ips
from refkubelet.host.real_machine import MachineError, RealMachine
from refkubelet.node.facts import NodeNameError, node_facts, node_name
from refkubelet.node.updated import NodeReport, updated_status
from refkubelet.node.versions import runtime_version
from simclock import RealClock


class Machine(RealMachine):
    """This machine with 4 cores, 1000 bytes of memory and a disk of 2000."""

    def cpu_count(self) -> int:
        return 4

    def memory(self) -> MemoryStats:
        return MemoryStats(1000, 0, 0)

    def filesystem(self, path: str) -> FilesystemStats:
        return FilesystemStats(
            device="disk",
            capacity_bytes=2000,
            available_bytes=0,
            inodes=0,
            inodes_free=0,
            time_ns=0,
        )

    def boot_id(self) -> str:
        return "boot"

    swap: int = 0

    def swap_bytes(self) -> int:
        return self.swap

    def topology(self) -> MachineTopology:
        return MachineTopology((), (NumaNode(0, 1000, (HugePages(2 << 20, 3),)),))


@pytest.mark.parametrize(
    ("settings", "pods", "disk"),
    [
        ({}, 110, 2000),
        ({"pods_per_core": 10}, 40, 2000),
        ({"pods_per_core": 50}, 110, 2000),
        ({"local_storage_capacity_isolation": False}, 110, None),
    ],
)
def test_capacity_of_a_node_NODE_030(settings: Any, pods: int, disk: int | None) -> None:
    config = KubeletConfiguration(eviction_hard={}, **settings)
    facts = node_facts(config, "n1", Machine(RealClock()), root_dir="/r")
    assert {name: amount // NANO for name, amount in facts.capacity.items()} == {
        "cpu": 4,
        "memory": 1000,
        "hugepages-2Mi": 6 << 20,
        "pods": pods,
    } | ({} if disk is None else {"ephemeral-storage": disk})


def test_what_a_node_says_about_itself_NODE_032_NODE_033() -> None:
    config = KubeletConfiguration(eviction_hard={})
    facts = node_facts(
        config,
        "n1",
        machine=Machine(RealClock()),
        root_dir="/r",
        node_ips=("10.0.0.7",),
        runtime_version="containerd://1.6.20",
    )
    status = updated_status(None, NodeReport(facts, "t1"))
    assert status["addresses"] == [
        {"type": "InternalIP", "address": "10.0.0.7"},
        {"type": "Hostname", "address": "n1"},
    ]
    info = status["nodeInfo"]
    assert info["containerRuntimeVersion"] == "containerd://1.6.20"
    assert (info["bootID"], info["kubeProxyVersion"], info["operatingSystem"]) == (
        "boot",
        "",
        "linux",
    )
    assert info["kernelVersion"] == os.uname().release
    unknown = node_facts(config, "n1", Machine(RealClock()), root_dir="/r")
    assert unknown.info["containerRuntimeVersion"] == "Unknown"


@pytest.mark.parametrize(
    ("flag", "standalone", "wanted"),
    [
        ("10.1.2.3", False, ("10.1.2.3",)),
        ("::1", True, ("::1",)),
        ("fd00::2, 10.1.2.3", False, ("fd00::2", "10.1.2.3")),
        ("", True, ()),
    ],
)
def test_the_address_of_a_node_NODE_032(flag: str, standalone: bool, wanted: Any) -> None:
    assert host_ips(flag, standalone=standalone) == wanted


def test_a_wrong_node_ip_is_a_usage_error_NODE_032() -> None:
    with pytest.raises(ConfigError, match=r"--node-ip 1\.2\.3: wanted an IP address"):
        host_ips("1.2.3", standalone=True)
    with pytest.raises(ConfigError, match=r"a single IP or a dual-stack pair of IPs"):
        host_ips("10.0.0.1,10.0.0.2", standalone=True)


def test_allocatable_leaves_out_reserves_and_thresholds_NODE_031() -> None:
    capacity = {"cpu": 4 * NANO, "memory": 1000 * NANO, "ephemeral-storage": 1000 * NANO}
    config = replace(
        KubeletConfiguration(),
        system_reserved={"cpu": "500m", "memory": "100"},
        kube_reserved={"cpu": "5"},
        eviction_hard={"memory.available": "300", "nodefs.available": "10%"},
    )
    found = allocatable_of(capacity, reservations_of(config, capacity))
    assert found == {"cpu": 0, "memory": 600 * NANO, "ephemeral-storage": 900 * NANO}


def test_the_node_name_is_trimmed_and_lower_case_NODE_001() -> None:
    assert node_name(" Node-A ") == "node-a"
    with pytest.raises(NodeNameError, match="empty hostname is invalid"):
        node_name("  ")
    for wrong in ("a b", "-a", "a..b", "a_b", "x" * 254):
        with pytest.raises(NodeNameError, match="is not a node name"):
            node_name(wrong)
    assert node_name("a-1.example.com") == "a-1.example.com"


def machine(root: Path, **files: str) -> RealMachine:
    for name, text in {"proc/meminfo": "MemTotal:  2048 kB\n", **files}.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return RealMachine(RealClock(), root)


@pytest.mark.parametrize(
    ("files", "working_set"),
    [
        (
            {
                "sys/fs/cgroup/memory/memory.usage_in_bytes": "1000\n",
                "sys/fs/cgroup/memory/memory.stat": "cache 5\ntotal_inactive_file 300\n",
            },
            700,
        ),
        (
            {
                "sys/fs/cgroup/memory.current": "1000\n",
                "sys/fs/cgroup/memory.stat": "anon 600\ninactive_file 1300\n",
            },
            0,
        ),
        ({"sys/fs/cgroup/memory.stat": "anon 600\nfile 500\ninactive_file 100\n"}, 1000),
    ],
)
def test_memory_of_cgroup_v1_v2_and_the_v2_root_EVIC_026(
    tmp_path: Path, files: dict[str, str], working_set: int
) -> None:
    """EVIC-026.4."""
    memory = machine(tmp_path, **files).memory()
    assert (memory.total_bytes, memory.working_set_bytes) == (2048 * 1024, working_set)


def test_unreadable_machine_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"memory\.stat"):
        machine(tmp_path).memory()


def test_this_machine_answers(tmp_path: Path) -> None:
    real = RealMachine(RealClock())
    filesystem = real.filesystem(str(tmp_path))
    assert 0 < filesystem.available_bytes <= filesystem.capacity_bytes
    assert real.filesystem(str(tmp_path)).device == filesystem.device
    with pytest.raises(FileNotFoundError):
        real.filesystem(str(tmp_path / "nothing"))
    facts = node_facts(KubeletConfiguration(), "n1", real, root_dir=str(tmp_path))
    assert facts.capacity["cpu"] == real.cpu_count() * NANO
    assert facts.capacity["pods"] == 110 * NANO


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("1.6.20~ds1", "r://1.6.20"),
        ("1.6.20", "r://1.6.20"),
        ("v2.1.0-rc.1+k3s1", "r://2.1.0-rc.1+k3s1"),
        ("1.7.24-0ubuntu1~24.04", "r://1.7.24"),
        ("1.2", "r://1.2"),
        ("1.02.3", "r://1.2.3"),
        ("1.2.3-01", "r://1.2.3"),
        ("1.2.3-rc.01", "r://1.2.3"),
        ("7", "Unknown"),
        ("01.2.3", "Unknown"),
        ("dev", "Unknown"),
        ("", "Unknown"),
    ],
)
def test_the_runtimes_version_without_a_distributions_suffix_NODE_033(
    version: str, shown: str
) -> None:
    assert runtime_version("r", version) == shown


def test_a_machine_with_swap_tells_how_much_NODE_033() -> None:
    machine = Machine(RealClock())
    assert "swap" not in node_facts(KubeletConfiguration(), "n1", machine, root_dir="/r").info
    machine.swap = 7
    facts = node_facts(KubeletConfiguration(), "n1", machine, root_dir="/r")
    assert facts.info["swap"] == {"capacity": 7}


@pytest.mark.parametrize("isolated", [True, False])
def test_which_capacities_a_node_needs_NODE_022(*, isolated: bool) -> None:
    config = KubeletConfiguration(local_storage_capacity_isolation=isolated)
    required = node_facts(config, "n1", Machine(RealClock()), root_dir="/r").required
    assert required == ("cpu", "memory", "pods", *(["ephemeral-storage"] if isolated else []))
