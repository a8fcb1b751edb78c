"""What a kubelet wants of its machine before it starts: one clear error each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from manager_world import Told

from fakecri import FakeNode
from fakecri.cgroupfs import CgroupFS
from kubeobjects.quantity import NANO
from kubeobjects.structs import replace
from refkubelet.config import ConfigError
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.container_manager.cgroups.build import (
    check_reservations,
    container_manager,
)
from refkubelet.container_manager.cgroups.manager import (
    ContainerManager,
    ContainerManagerDeps,
    ContainerManagerError,
)
from refkubelet.container_manager.start_checks import (
    WANTED,
    check_driver,
    check_host,
    wrong_kernel_flags,
)
from refkubelet.host.real_machine import RealMachine
from simclock import RealClock

FINE = {f"proc/sys/{flag}": f"{value}\n" for flag, value in WANTED.items()}


def machine(root: Path, files: dict[str, str]) -> RealMachine:
    for name, text in {"proc/meminfo": "MemTotal: 2048 kB\n", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return RealMachine(RealClock(), root)


def configured(**fields: Any) -> KubeletConfiguration:
    return replace(KubeletConfiguration(), **fields)


def build(node: FakeNode, **fields: Any) -> ContainerManager:
    deps = ContainerManagerDeps(RealClock(), Told(), tuple)
    return container_manager(configured(**fields), node, deps)


def test_cgroup_v1_needs_to_be_allowed_CG_014(tmp_path: Path) -> None:
    """CG-014.2."""
    old = machine(tmp_path, {})
    with pytest.raises(ConfigError) as refused:
        check_host(configured(), old)
    assert str(refused.value) == (
        "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is "
        "unsupported and will be removed in a future release\n"
        "  set failCgroupV1: false in the configuration to run here (it is true by default)"
    )
    check_host(configured(fail_cgroup_v1=False), old)
    new = machine(tmp_path / "2", {"sys/fs/cgroup/cgroup.controllers": "cpu\n"})
    check_host(configured(), new)


def test_with_cgroup_v1_the_oom_killer_always_takes_a_single_process_CG_014(tmp_path: Path) -> None:
    old = machine(tmp_path, {})
    new = machine(tmp_path / "2", {"sys/fs/cgroup/cgroup.controllers": "cpu\n"})
    config = configured(fail_cgroup_v1=False)
    with pytest.raises(ConfigError) as refused:
        check_host(replace(config, single_process_oom_kill=False), old)
    assert str(refused.value) == (
        "invalid configuration: singleProcessOOMKill must not be explicitly set to false when "
        "using cgroup v1"
    )
    check_host(replace(config, single_process_oom_kill=True), old)
    check_host(replace(config, single_process_oom_kill=False), new)


def test_swap_needs_to_be_allowed_CG_037(tmp_path: Path) -> None:
    swapping = machine(tmp_path, {"proc/swaps": "Filename Type\n/dev/sda partition\n"})
    allowed = configured(fail_cgroup_v1=False)
    with pytest.raises(ConfigError) as refused:
        check_host(allowed, swapping)
    assert str(refused.value) == (
        "running with swap on is not supported, please disable swap or set --fail-swap-on flag to "
        "false\n  set failSwapOn: false in the configuration to run here (it is true by default)"
    )
    check_host(replace(allowed, fail_swap_on=False), swapping)


def test_kernel_flags_are_only_looked_at_when_they_are_protected_CG_037(tmp_path: Path) -> None:
    flags = {"proc/sys/kernel/panic": "0\n", "proc/sys/vm/panic_on_oom": "1\n"}
    odd = machine(tmp_path, {**FINE, **flags})
    config = configured(fail_cgroup_v1=False)
    check_host(config, odd)
    with pytest.raises(ConfigError) as refused:
        check_host(replace(config, protect_kernel_defaults=True), odd)
    assert str(refused.value) == (
        "protectKernelDefaults is true: [invalid kernel flag: vm/panic_on_oom, expected value: 0, "
        "actual value: 1, invalid kernel flag: kernel/panic, expected value: 10, actual value: 0]\n"
        "  set them in /proc/sys, or protectKernelDefaults: false, with which they are left as "
        "they are"
    )
    right = machine(tmp_path, FINE)
    check_host(replace(config, protect_kernel_defaults=True), right)


def test_every_wrong_flag_is_told_CG_037() -> None:
    def value_of(flag: str) -> int:
        if flag == "vm/panic_on_oom":
            raise FileNotFoundError(2, "No such file or directory")
        return 1

    assert wrong_kernel_flags(value_of) == [
        "cannot read kernel flag vm/panic_on_oom: [Errno 2] No such file or directory",
        "invalid kernel flag: kernel/panic, expected value: 10, actual value: 1",
        "invalid kernel flag: kernel/keys/root_maxkeys, expected value: 1000000, actual value: 1",
        "invalid kernel flag: kernel/keys/root_maxbytes, expected value: 25000000, actual value: 1",
    ]


@pytest.mark.parametrize(
    ("driver", "per_qos", "systemd", "fits"),
    [
        ("systemd", True, True, False),
        ("systemd", True, False, True),
        ("systemd", False, True, True),
        ("cgroupfs", True, True, True),
    ],
)
def test_groups_are_not_made_behind_the_back_of_systemd_CG_013(
    driver: str, per_qos: bool, systemd: bool, fits: bool
) -> None:
    config = configured(cgroup_driver=driver, cgroups_per_qos=per_qos)
    if fits:
        check_driver(config, systemd_is_here=systemd)
        return
    with pytest.raises(ConfigError) as refused:
        check_driver(config, systemd_is_here=systemd)
    assert str(refused.value) == (
        "the cgroup driver is systemd, and refkubelet makes its cgroups without systemd, which "
        "would undo them\n  set cgroupsPerQOS: false and enforceNodeAllocatable: [] in the "
        "configuration, or let the runtime use cgroupfs"
    )


@pytest.mark.parametrize("version", [1, 2])
def test_the_root_must_be_there_CG_015(version: Any) -> None:
    node = FakeNode(cgroups_version=version)
    with pytest.raises(ContainerManagerError, match=r'^invalid configuration: .*"a" "b"'):
        build(node, cgroup_root="/a/b")
    for tree in [node.cgroup_root()] if version == 2 else node.cgroup_root().iterdir():
        (tree / "a" / "b").mkdir(parents=True)
    if version == 2:
        (node.cgroup_root() / "cgroup.subtree_control").write_text("+cpu")
        with pytest.raises(ContainerManagerError, match="has some missing controllers: cpu, cpuse"):
            build(node, cgroup_root="/a/b")
        every = (node.cgroup_root() / "cgroup.controllers").read_text().split()
        for directory in (node.cgroup_root(), node.cgroup_root() / "a"):
            switch = directory / "cgroup.subtree_control"
            switch.write_text(" ".join(f"+{c}" for c in every))
    build(node, cgroup_root="/a/b").start()
    made = node.cgroup_root() / ("cpu/a/b/kubepods" if version == 1 else "a/b/kubepods")
    assert made.is_dir()


def test_the_root_is_a_path_with_either_driver_CG_015() -> None:
    node = FakeNode()
    (node.cgroup_root() / "cgroup.subtree_control").write_text(
        " ".join(f"+{c}" for c in (node.cgroup_root() / "cgroup.controllers").read_text().split())
    )
    (node.cgroup_root() / "a").mkdir()
    manager = build(node, cgroup_root="/a", cgroup_driver="systemd")
    manager.start()
    assert (node.cgroup_root() / "a.slice/a-kubepods.slice").is_dir()


def test_controllers_that_must_be_mounted_CG_037() -> None:
    node = FakeNode()
    node.cgroups = CgroupFS(1, controllers=["cpu", "pids", "systemd"])
    wanted = r"Following Cgroup subsystem not mounted: \[cpuacct cpuset memory\]$"
    with pytest.raises(ContainerManagerError, match=wanted):
        build(node)


def test_a_machine_without_cgroups_CG_037(tmp_path: Path) -> None:
    files = {
        "proc/sys/kernel/pid_max": "5\n",
        "proc/sys/kernel/threads-max": "5\n",
        "proc/loadavg": "0 0 0 1/2 3\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "0\n",
        "sys/fs/cgroup/memory/memory.stat": "",
    }
    bare = machine(tmp_path, files)
    deps = ContainerManagerDeps(RealClock(), Told(), tuple)
    with pytest.raises(ContainerManagerError, match="not mounted"):
        container_manager(configured(), bare, deps)


def test_reservations_must_be_possible_CG_034() -> None:
    capacity = {"cpu": 4 * NANO, "memory": 8 * NANO}
    check_reservations(configured(eviction_hard={}, kube_reserved={"cpu": "4"}), capacity)
    with pytest.raises(ContainerManagerError, match="invalid Node Allocatable configuration"):
        check_reservations(configured(eviction_hard={}, kube_reserved={"cpu": "5"}), capacity)
