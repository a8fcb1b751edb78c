"""Every eviction signal, by a threshold far above what any node has left, so that it works on every
machine."""

from kubelet_conformance.cases.eviction.common import (
    MI,
    evicted_for,
    first_victim,
    has_condition,
    hungry,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, Level, conformance

API, PRESSURE = Feature.API, Feature.PRESSURE
REQUEST = {"memory": "1Mi", "cpu": "1m"}
# A restarted kubelet needs its first stats, a cycle, and the stop of the pod.
EVICTED_S = limits.START_S + 2 * limits.EVICTION_CYCLE_S + limits.STOP_S


async def ends_pods(node: Node, signal: str, resource: str, condition: str) -> None:
    """Put the node under pressure by that signal alone and expect the event, the Node's condition,
    and the end of an ordinary pod.

    The pod is evicted, or refused when the restarted kubelet looked at the node before it looked at
    the pod (EVIC-112).
    """
    await node.api.run_pods(hungry("web", requests=REQUEST))
    async with node.kubelet.pressure(signal):
        await has_condition(node, condition)
        await evicted_for(node, "web", "", within_s=EVICTED_S)
        messages = {e["message"] for e in node.events("EvictionThresholdMet")}
        expect_equal(node, messages, {f"Attempting to reclaim {resource}"}, "events of the node")


def expect_condition(node: Node, kind: str, reason: str, message: str) -> None:
    """Expect that the Node's condition of that type has this reason and message."""
    row = node.api.node_condition(kind)
    expect_equal(node, (row["reason"], row["message"]), (reason, message), "reason and message")


@conformance(
    id="pressure-pids",
    rules=["EVIC-025.1", "EVIC-062.1", "EVIC-062.2", "EVIC-056.3"],
    needs=[API, PRESSURE],
)
async def few_processes_left(node: Node) -> None:
    """Below a threshold of pid.available an ordinary pod is evicted, and the Node has
    PIDPressure."""
    await ends_pods(node, "pid.available", "pids", "PIDPressure")
    message = "kubelet has insufficient PID available"
    expect_condition(node, "PIDPressure", "KubeletHasInsufficientPID", message)


@conformance(
    id="pressure-disk",
    rules=["EVIC-022.1", "EVIC-061.1", "EVIC-061.2", "EVIC-056.3"],
    needs=[API, PRESSURE],
)
async def little_disk_left(node: Node) -> None:
    """Below a threshold of nodefs.available an ordinary pod is evicted, and the Node has
    DiskPressure."""
    await ends_pods(node, "nodefs.available", "ephemeral-storage", "DiskPressure")
    message = "kubelet has disk pressure"
    expect_condition(node, "DiskPressure", "KubeletHasDiskPressure", message)


@conformance(
    id="pressure-inodes", rules=["EVIC-022.1", "EVIC-061.1", "EVIC-056.3"], needs=[API, PRESSURE]
)
async def few_inodes_left(node: Node) -> None:
    """Below a threshold of nodefs.inodesFree an ordinary pod is evicted, and the Node has
    DiskPressure."""
    await ends_pods(node, "nodefs.inodesFree", "inodes", "DiskPressure")


@conformance(
    id="pressure-images", rules=["EVIC-023.1", "EVIC-028.1", "EVIC-061.1"], needs=[API, PRESSURE]
)
async def little_disk_left_for_images(node: Node) -> None:
    """Below a threshold of imagefs.available an ordinary pod is evicted, and the Node has
    DiskPressure."""
    await ends_pods(node, "imagefs.available", "ephemeral-storage", "DiskPressure")


@conformance(id="pressure-image-inodes", rules=["EVIC-023.1", "EVIC-061.1"], needs=[API, PRESSURE])
async def few_inodes_left_for_images(node: Node) -> None:
    """Below a threshold of imagefs.inodesFree an ordinary pod is evicted, and the Node has
    DiskPressure."""
    await ends_pods(node, "imagefs.inodesFree", "inodes", "DiskPressure")


@conformance(
    id="pressure-soft",
    rules=["EVIC-053.4", "EVIC-053.6", "EVIC-087.2"],
    needs=[API, Feature.RESTART],
)
async def below_a_soft_threshold(node: Node) -> None:
    """Below a soft threshold the condition shows at once; after the grace period a pod is evicted
    and has evictionMaxPodGracePeriod to stop."""
    await node.api.run_pods(hungry("web", requests=REQUEST, grace_s=20))
    signal = "memory.available"
    await node.kubelet.restart(
        evictionSoft={signal: "99.9%"},
        evictionSoftGracePeriod={signal: "25s"},
        evictionMaxPodGracePeriod=5,
    )
    began_s = node.now_s
    await has_condition(node, "MemoryPressure")
    expect_equal(node, node.count("StopContainer"), 0, "stops when the condition shows")
    low = "The node was low on resource: memory. Threshold quantity: "
    await evicted_for(node, "web", low, within_s=25 + EVICTED_S)
    stop = node.calls("StopContainer")[0]
    expect_equal(node, stop.request.timeout, 5, "timeout of StopContainer")
    waited_s = node.time_s(stop) - began_s
    expect(node, waited_s >= 25, "the eviction 25 s after the threshold", f"{waited_s:.1f} s")


@conformance(
    id="sandbox-statistics",
    rules=["EVIC-030", "EVIC-080"],
    level=Level.DETAIL,
    needs=[API, Feature.SHORTAGE],
    node_config={
        "evictionHard": {"memory.available": "200Mi"},
        "featureGates": {"PodAndContainerStatsFromCRI": True},
    },
)
async def memory_of_pods_is_what_the_runtime_says(node: Node) -> None:
    """With the gate PodAndContainerStatsFromCRI pods are ranked by the memory that
    ListPodSandboxStats reports, and by how much of it they did not request."""
    large = hungry("a", memory_mi=90, requests={"memory": "80Mi", "cpu": "1m"})
    await node.api.run_pods(large, hungry("b", memory_mi=60, requests=REQUEST))
    await node.machine.run_short("memory.available", 100 * MI)
    expect_equal(node, await first_victim(node), "b", "first victim")
    expect(node, node.count("ListPodSandboxStats"), "a call of ListPodSandboxStats")


@conformance(
    id="pressure-refuses-all",
    rules=["EVIC-110.3", "EVIC-110.6", "EVIC-111.1", "EVIC-111.4"],
    needs=[API, PRESSURE],
)
async def pods_with_requests_are_refused_under_disk_pressure(node: Node) -> None:
    """Under DiskPressure a pod with requests is rejected: it is Failed with reason Evicted, and no
    CRI call is made for it."""
    async with node.kubelet.pressure("nodefs.available"):
        await has_condition(node, "DiskPressure")
        await node.api.create_pod(hungry("web", requests=REQUEST))
        message = "Pod was rejected: The node had condition: [DiskPressure]. "
        within_s = limits.STATUS_PASS_S + limits.START_S
        await evicted_for(node, "web", message, within_s=within_s)
        expect_equal(node, node.count("RunPodSandbox", pod="web"), 0, "sandboxes")
        await node.api.create_pod(hungry("vital", priority=2_000_000_000))
        await node.run_until(
            lambda: node.api.phase("vital") == "Running",
            within_s=limits.START_S,
            what="the critical pod runs",
        )
