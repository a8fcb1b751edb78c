"""What /metrics/cadvisor says of cgroups (SRV-034), read from plain files of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from refkubelet.cri.records import (
    ContainerState,
    ListedContainer,
    RuntimePod,
)
from refkubelet.host.real_machine import RealMachine
from refkubelet.server.pages.cgroup_metrics import counted, page
from simclock import RealClock

POD = "/kubepods/podu"
UNLIMITED = "9223372036854771712\n"
V1 = {
    "cpuacct/cpuacct.stat": "user 250\nsystem 3\n",
    "memory/memory.stat": "cache 1\nmapped_file 1\ntotal_cache 10\ntotal_mapped_file 11\n"
    "total_active_file 12\ntotal_inactive_file 13\n",
    "memory/memory.max_usage_in_bytes": "14\n",
    "memory/memory.failcnt": "15\n",
    "memory/memory.kmem.usage_in_bytes": "16\n",
    "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 17\n",
    "memory/memory.limit_in_bytes": "18\n",
    "memory/memory.soft_limit_in_bytes": UNLIMITED,
    "memory/memory.memsw.limit_in_bytes": UNLIMITED,
    "memory/cgroup.procs": "7\n8\n",
    "pids/pids.current": "19\n",
    "pids/pids.max": "max\n",
    "cpu/cpu.cfs_quota_us": "-1\n",
    "cpu/cpu.cfs_period_us": "100000\n",
    "cpu/cpu.shares": "2\n",
    "cpu/cpu.stat": "nr_periods 20\nnr_throttled 21\nthrottled_time 2500000000\n",
}
OF_V1 = {
    "container_cpu_user_seconds_total": 2.5,
    "container_cpu_system_seconds_total": 0.03,
    "container_memory_cache": 10,
    "container_memory_mapped_file": 11,
    "container_memory_total_active_file_bytes": 12,
    "container_memory_total_inactive_file_bytes": 13,
    "container_memory_max_usage_bytes": 14,
    "container_memory_failcnt": 15,
    "container_memory_kernel_usage": 16,
    "container_oom_events_total": 17,
    "container_processes": 2,
    "container_threads": 19,
    "container_threads_max": 0,
    "container_spec_cpu_period": 100000,
    "container_spec_cpu_shares": 2,
    "container_spec_memory_limit_bytes": 18,
    "container_spec_memory_reservation_limit_bytes": 0,
    "container_spec_memory_swap_limit_bytes": 0,
}
V2 = {
    "cgroup.controllers": "cpu memory pids\n",
    "cpu.stat": "usage_usec 9\nuser_usec 2500000\nsystem_usec 30000\n"
    "nr_periods 20\nnr_throttled 21\nthrottled_usec 2500000\n",
    "memory.stat": "anon 1\nfile 10\nkernel 16\nfile_mapped 11\ninactive_file 13\nactive_file 12\n",
    "memory.peak": "14\n",
    "memory.events": "low 0\noom 1\noom_kill 17\n",
    "memory.max": "18\n",
    "memory.low": "0\n",
    "memory.swap.max": "max\n",
    "cgroup.procs": "7\n8\n",
    "pids.current": "19\n",
    "pids.max": "max\n",
    "cpu.max": "max 100000\n",
    "cpu.weight": "1\n",
}
OF_V2 = {metric: value for metric, value in OF_V1.items() if metric != "container_memory_failcnt"}
THROTTLED = {
    "container_cpu_cfs_periods_total": 20,
    "container_cpu_cfs_throttled_periods_total": 21,
    "container_cpu_cfs_throttled_seconds_total": 2.5,
}


def machine(root: Path, files: dict[str, str], group: str = f"{POD}/c1") -> RealMachine:
    """A tree of one cgroup."""
    top = root / "sys/fs/cgroup"
    for name, text in files.items():
        controller, _, file = name.rpartition("/")
        place = top / controller / group.strip("/") / file
        if file == "cgroup.controllers":
            place = top / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return RealMachine(RealClock(), root)


@pytest.mark.parametrize(("files", "wanted"), [(V1, OF_V1), (V2, OF_V2)], ids=["v1", "v2"])
def test_what_the_kernel_counts_SRV_034(
    tmp_path: Path, files: dict[str, str], wanted: dict[str, float]
) -> None:
    assert dict(counted(machine(tmp_path, files), f"{POD}/c1")) == wanted


@pytest.mark.parametrize(
    ("files", "limit"),
    [(V1, {"cpu/cpu.cfs_quota_us": "5000\n"}), (V2, {"cpu.max": "5000 100000\n"})],
    ids=["v1", "v2"],
)
def test_only_a_cpu_limit_brings_throttling_SRV_034(
    tmp_path: Path, files: dict[str, str], limit: dict[str, str]
) -> None:
    found = dict(counted(machine(tmp_path, files | limit), f"{POD}/c1"))
    assert found["container_spec_cpu_quota"] == 5000
    assert found.items() >= THROTTLED.items()


@pytest.mark.parametrize(("weight", "shares"), [("1", 2), ("39", 998), ("10000", 262144)])
def test_weights_are_told_as_shares_SRV_034(tmp_path: Path, weight: str, shares: int) -> None:
    found = dict(counted(machine(tmp_path, V2 | {"cpu.weight": weight}), f"{POD}/c1"))
    assert found["container_spec_cpu_shares"] == shares


def test_what_is_missing_or_no_number_is_left_out_SRV_034(tmp_path: Path) -> None:
    files = {"pids/pids.current": "what\n", "pids/pids.max": "5\n", "cpu/cpu.shares": "\n"}
    assert dict(counted(machine(tmp_path, files), f"{POD}/c1")) == {"container_threads_max": 5}
    assert dict(counted(machine(tmp_path, {}), "/gone")) == {}


@pytest.mark.parametrize("name", ["abc", "cri-containerd-abc.scope"])
def test_a_container_is_found_below_its_pod_SRV_034(tmp_path: Path, name: str) -> None:
    files = {"memory/memory.failcnt": "15\n", "pids/pids.current": "19\n"}
    real = machine(tmp_path, files, f"{POD}/{name}")
    states = (ContainerState.RUNNING,) * 2
    containers = tuple(
        ListedContainer(own, f"n-{own}", state)
        for own, state in zip(("abc", "gone"), states, strict=True)
    )
    pods = [RuntimePod("u", "web", "default", (), containers)]
    text = page(real, [*pods, RuntimePod("other", "x", "default")], {"u": POD}, 7_900_000_000)
    labels = f'container="n-abc",id="{POD}/abc",image="",name="abc",namespace="default",pod="web"'
    assert [line for line in text.splitlines() if not line.startswith("# HELP")] == [
        "# TYPE container_last_seen gauge",
        f"container_last_seen{{{labels}}} 7.0",
        "# TYPE container_memory_failcnt gauge",
        f"container_memory_failcnt{{{labels}}} 15.0",
        "# TYPE container_threads gauge",
        f"container_threads{{{labels}}} 19.0",
    ]
