"""The container manager on the fake and, with REFKUBELET_CGROUPS=1, on this machine's kernel.

Everything is made below a cgroup of our own, which is the kubelet's cgroupRoot; nothing else on the
machine is touched. What the manager wrote is read back and must be the same on both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from cgroup_kernel import RealSide, why_not_real
from cgroup_sides import fake_side
from cgroupfs_helpers import eventually
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubeobjects.quantity import NANO
from refkubelet.container_manager.cgroups.manager import ContainerManager, ContainerManagerDeps
from refkubelet.container_manager.cgroups.node_config import NodeCgroups
from refkubelet.container_manager.cgroups.removal import CgroupError
from refkubelet.container_manager.cgroups.tree import CgroupTree
from refkubelet.host.machine import CgroupDir
from refkubelet.model.cgroups.limits import ResourceConfig
from refkubelet.model.cgroups.values import PodCgroupSettings
from refkubelet.model.objects import Pod, decode_pod
from simclock import RealClock

MI: Final = 1 << 20
CAPACITY: Final = {"cpu": 2 * NANO, "memory": 4096 * MI * NANO, "pid": 30_000 * NANO}
COMPARED: Final = {
    "cpu": ("cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us"),
    "memory": ("memory.limit_in_bytes", "memory.soft_limit_in_bytes"),
    "pids": ("pids.max",),
    "cpuset": ("cpuset.cpus", "cpuset.mems"),
    "cpuacct": (),
    "freezer": (),
    "systemd": (),
    "blkio": (),
    "unified": ("cgroup.type", "cgroup.subtree_control"),
}


class Silent:
    """Takes events and forgets them; an event of a pod is a failure of the test."""

    def node_event(self, event_type: str, reason: str, message: str) -> None:
        assert event_type == "Normal", message

    def pod_event(self, *args: Any, **fields: Any) -> None:
        raise AssertionError("the manager speaks of the node only")


def container(**resources: dict[str, str]) -> dict[str, Any]:
    return {"name": "c", "resources": resources}


def pod(uid: str, *containers: dict[str, Any]) -> Pod:
    return decode_pod({"metadata": {"uid": uid}, "spec": {"containers": containers}})


class Managed:
    """A manager below that side's own group."""

    def __init__(self, side: Any, kill: Callable[[int], None], driver: str = "cgroupfs") -> None:
        self.side = side
        self.pods: list[Pod] = []
        self.children: dict[int, Any] = {}
        top: CgroupDir = side.root("cpu").parent
        self.own = side.tree("cpu").name
        cpus = (side.root("cpuset") / "cpuset.cpus").read_text().strip()
        self.tree = CgroupTree(top, 1, driver)
        self.manager = ContainerManager(
            NodeCgroups(
                (self.own, "kubepods"),
                CAPACITY,
                all_cpus=cpus,
                pods=PodCgroupSettings(pids_limit=128),
            ),
            self.tree,
            kill,
            ContainerManagerDeps(
                clock=RealClock(),
                recorder=Silent(),
                active_pods=lambda: tuple(self.pods),
            ),
        )

    def child(self, kind: str = "child") -> Any:
        """A process, of that kind."""
        found = getattr(self.side, kind)()
        self.children[found.pid] = found
        return found

    def files(self) -> dict[str, str]:
        """What there is below our own group, by path."""
        found: dict[str, str] = {}

        def look(tree: str, directory: Any, path: str) -> None:
            for file in COMPARED[tree]:
                found[f"{tree}{path}/{file}"] = (directory / file).read_text()
            found[f"{tree}{path}"] = "directory"
            for child in directory.iterdir():
                if child.is_dir():
                    look(tree, child, f"{path}/{child.name}")

        for tree in COMPARED:
            look(tree, self.side.tree(tree), "")
        return found


@pytest.fixture
def managed(side: Any) -> Managed:
    """Kills processes that were started through it, no others."""
    found = Managed(side, lambda pid: found.children[pid].kill())
    return found


SURE: Final = pod("sure", container(limits={"cpu": "300m", "memory": "100Mi"}))
HALF: Final = pod("half", container(requests={"cpu": "500m"}))


def test_the_node_and_its_classes_CG_024_CG_025_CG_026_CG_044(managed: Managed) -> None:
    managed.manager.start()
    files = managed.files()
    assert files["cpu/kubepods/cpu.shares"] == "2048\n"
    assert files["memory/kubepods/memory.limit_in_bytes"] == f"{4096 * MI}\n"
    assert files["pids/kubepods/pids.max"] == "30000\n"
    assert files["cpu/kubepods/burstable/cpu.shares"] == "2\n"
    assert files["cpuset/kubepods/besteffort/cpuset.cpus"] == files["cpuset/cpuset.cpus"]
    for tree in COMPARED:
        assert f"{tree}/kubepods/burstable" in files
    devices = managed.side.root("cpu").parent / "devices" / managed.own
    assert not (devices / "kubepods").exists()  # the runtime's


def test_a_pod_comes_and_goes_CG_036_CG_040_CG_042(managed: Managed) -> None:
    managed.manager.start()
    managed.pods = [HALF, SURE]
    managed.manager.update_qos()
    for made in (HALF, SURE):
        assert not managed.manager.exists(made)
        managed.manager.ensure(made)
        assert managed.manager.exists(made)
    files = managed.files()
    assert files["cpu/kubepods/burstable/cpu.shares"] == "512\n"
    assert files["cpu/kubepods/podsure/cpu.cfs_quota_us"] == "30000\n"
    assert files["memory/kubepods/podsure/memory.limit_in_bytes"] == f"{100 * MI}\n"
    assert files["pids/kubepods/podsure/pids.max"] == "128\n"
    assert files["cpu/kubepods/burstable/podhalf/cpu.cfs_quota_us"] == "-1\n"
    assert managed.manager.read_config(SURE, "cpu") == ResourceConfig(307, 30_000, 100_000)


async def test_what_runs_in_a_pod_is_killed_and_its_group_removed_CG_042(managed: Managed) -> None:
    managed.manager.start()
    managed.manager.ensure(HALF)
    inside = ("kubepods", "burstable", "podhalf", "container")
    assert managed.tree.create((managed.own, *inside), ResourceConfig()) is None
    child = managed.child()
    for tree in COMPARED:
        procs = managed.side.tree(tree) / "/".join(inside) / "cgroup.procs"
        procs.write_text(str(child.pid))
    assert managed.manager.exists(HALF)
    await managed.manager.destroy(HALF)
    assert not managed.manager.exists(HALF)
    assert child.reap() == -9
    assert "cpu/kubepods/burstable/podhalf" not in managed.files()


def test_a_limit_below_the_usage_is_refused_CG_035(managed: Managed) -> None:
    managed.manager.start()
    managed.manager.ensure(SURE)
    hog = managed.child("hog")
    (managed.side.tree("memory") / "kubepods/podsure/cgroup.procs").write_text(str(hog.pid))
    hog.holds(40 * MI)
    with pytest.raises(CgroupError, match=f"unable to set memory limit to {10 * MI} "):
        managed.manager.write_config(SURE, ResourceConfig(memory_limit_bytes=10 * MI))
    assert managed.manager.memory_usage_bytes(SURE) >= 40 * MI
    assert managed.manager.read_config(SURE, "memory").memory_limit_bytes == 100 * MI


def test_names_of_slices_are_directories_CG_010(side: Any) -> None:
    """Without systemd the names are all there is to its driver."""
    managed = Managed(side, lambda pid: None, "systemd")
    name = managed.own.replace("-", "_")
    managed.tree.create((managed.own, "kubepods"), ResourceConfig(cpu_shares=77))
    slices = side.root("cpu") / f"{name}.slice"
    try:
        shares = slices / f"{name}-kubepods.slice" / "cpu.shares"
        assert shares.read_text() == "77\n"
    finally:
        for directory in managed.tree.directories((managed.own, "kubepods")):
            if directory.exists():
                eventually(directory.rmdir)
                eventually(directory.parent.rmdir)


@pytest.fixture(scope="module")
def two_sides() -> Iterator[tuple[Managed, Managed]]:
    """The fake, and the kernel where that is wanted, else a second fake."""
    other: Any = fake_side() if why_not_real() else RealSide()
    both = Managed(fake_side(), lambda pid: None), Managed(other, lambda pid: None)
    for managed in both:
        managed.manager.start()
    yield both
    other.close()


amounts = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["1m", "10m", "99m", "333m", "1", "1500m"]),
        "memory": st.sampled_from(["5000000", "16Mi", "100M", "1Gi"]),
    },
)
pods = st.lists(
    st.builds(lambda requests, limits: container(requests={**limits, **requests}, limits=limits),
              amounts, amounts),
    min_size=1,
    max_size=3,
)  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(pods, min_size=1, max_size=3))
def test_any_pods_get_the_same_on_both_CG_027_CG_028_CG_029(
    two_sides: tuple[Managed, Managed], rows: list[list[dict[str, Any]]]
) -> None:
    made = [pod(f"n{number}", *containers) for number, containers in enumerate(rows)]
    for managed in two_sides:
        managed.pods = made
        managed.manager.update_qos()
        for one in made:
            managed.manager.ensure(one)
    fake, other = (managed.files() for managed in two_sides)
    assert fake == other
    for managed in two_sides:
        for one in made:
            for directory in managed.tree.directories(managed.manager._name(one)):
                if directory.exists():
                    eventually(directory.rmdir)
