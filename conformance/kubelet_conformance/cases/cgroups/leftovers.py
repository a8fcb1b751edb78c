"""Processes that are left in the cgroup of a pod that ends: they are killed, and the pod is not
gone before its cgroup is."""

from functools import partial

from kubelet_conformance.cases.cgroups.life import is_deleted
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.machines.idle_processes import IdleProcess
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, CGROUPS, V1 = Feature.API, Feature.CGROUPS, Feature.CGROUP_V1
TRIES_S = 1.0
"""How long one removal of a cgroup is tried (CG-042)."""
GONE_S = 3 * limits.STOP_S


def with_volume(name: str) -> PodPlan:
    """A pod with an emptyDir."""
    mounts = [{"name": "data", "mountPath": "/data"}]
    volumes = [{"name": "data", "emptyDir": {}}]
    return pod(name, container("main", volumeMounts=mounts), volumes=volumes)


def leave_process(node: Node, name: str) -> tuple[IdleProcess, tuple[str, ...]]:
    """Start a process in a group below the cgroup of the pod (with v1 in the tree of memory).
    Returns it, and the cgroup of the pod."""
    group = node.cgroups.of_pod(name)
    node.cgroups.make(*group, "left")
    return node.cgroups.start_process(*group, "left"), group


@conformance(id="cgroup-leftover-killed", rules=["CG-042.2", "CG-042.3"], needs=[API, CGROUPS])
async def processes_that_are_left_are_killed(node: Node) -> None:
    """A process in a group below the cgroup of a deleted pod, which no container of the pod has
    started, is killed, and the cgroup is removed with all below it."""
    await node.api.create_pod(with_volume("web"))
    await node.wait_running("web")
    process, group = leave_process(node, "web")
    await node.api.delete_pod("web")
    await node.run_until(partial(is_deleted, node, "web"), within_s=GONE_S, what="web is gone")
    expect_equal(node, node.cgroups.is_gone(*group), True, "the cgroup of web is gone")
    expect_equal(node, process.was_killed(), True, "the process was killed")


async def freeze(node: Node, process: IdleProcess) -> None:
    """Freeze the process, which keeps it from dying until `thaw`."""
    node.cgroups.make("ice")
    node.cgroups.write("freezer", "cgroup.procs", process.pid, "ice")
    node.cgroups.write("freezer", "freezer.state", "FROZEN", "ice")
    await node.run_until(
        lambda: node.cgroups.read("freezer", "freezer.state", "ice").strip() == "FROZEN",
        within_s=limits.NOTICE_S,
        what="the process is frozen",
    )


def thaw(node: Node) -> None:
    """Let the frozen process go on, and die if it was killed."""
    node.cgroups.write("freezer", "freezer.state", "THAWED", "ice")


async def delete_until_the_volume_is_gone(node: Node, name: str) -> None:
    """Delete the pod and run until its volume is removed, which is done before its cgroup is."""
    volume = node.machine.volume_path(name, "data")
    expect_equal(node, volume.exists(), True, "the volume exists")
    await node.api.delete_pod(name)
    await node.run_until(
        lambda: not volume.exists(),
        within_s=GONE_S,
        what=f"the volume of {name} is removed while its cgroup cannot be",
    )


@conformance(
    id="cgroup-busy",
    rules=["CG-042.1", "CG-042.4", "CG-042.5", "LIFE-073.4", "LIFE-073.5"],
    needs=[API, CGROUPS, V1],
)
async def a_pod_stays_while_its_cgroup_does(node: Node) -> None:
    """While a process in the cgroup of a deleted pod cannot die (it is frozen), the volumes of the
    pod are removed, but neither its cgroup nor its API object; both go when the process dies."""
    await node.api.create_pod(with_volume("web"))
    await node.wait_running("web")
    process, group = leave_process(node, "web")
    await freeze(node, process)
    await delete_until_the_volume_is_gone(node, "web")
    await node.run_for(2 * TRIES_S + limits.NOTICE_S)
    expect_equal(node, node.cgroups.is_gone(*group), False, "the cgroup of web is gone")
    expect_equal(node, is_deleted(node, "web"), False, "web is gone from the API")
    thaw(node)
    await node.run_until(
        partial(is_deleted, node, "web"),
        within_s=limits.SYNC_ERROR_S + limits.STOP_S,
        what="web is gone",
    )
    expect_equal(node, node.cgroups.is_gone(*group), True, "the cgroup of web is gone")
    node.cgroups.remove("ice")


@conformance(
    id="cgroup-busy-shortly",
    rules=["CG-042.3", "CG-044.3", "CG-102.1"],
    needs=[API, CGROUPS, V1],
)
async def a_busy_cgroup_is_tried_again_at_once(node: Node) -> None:
    """A cgroup that is busy for a moment, because a process takes some time to die, is removed in
    the same second: the kubelet does not wait for the next try of the whole step.

    This is tried with three pods, one after the other: housekeeping, which runs every 2 s, removes
    leftover cgroups too, but would be too late for at least one of them.
    """
    for name in ("one", "two", "three"):
        await node.api.create_pod(with_volume(name))
        await node.wait_running(name)
        process, group = leave_process(node, name)
        await freeze(node, process)
        await delete_until_the_volume_is_gone(node, name)
        thaw(node)
        await node.run_until(
            partial(node.cgroups.is_gone, *group),
            within_s=0.6 * TRIES_S,
            what=f"the cgroup of {name} is gone",
        )
        node.cgroups.remove("ice")
        await node.run_for(0.7)
