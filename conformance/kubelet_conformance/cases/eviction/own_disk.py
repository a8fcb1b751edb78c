"""A disk that really fills up, and memory that is really used: on this machine, or on the fake
one."""

from typing import Any

from fakecri import stops
from kubelet_conformance.cases.eviction.common import MI, evicted_for, has_condition, hungry
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import runs
from kubelet_conformance.registry import Feature, conformance

API, STATUS, DISK = Feature.API, Feature.STATUS, Feature.OWN_DISK
LOW = "The node was low on resource: "
QUICK: dict[str, Any] = {
    "volumeStatsAggPeriod": "5s",
    "evictionPressureTransitionPeriod": "15s",
}
# Volumes are measured, a cycle looks at them, the pod stops.
EVICTED_S = 2 * 5 + 3 * limits.EVICTION_CYCLE_S + limits.STOP_S


def with_volume(name: str) -> PodPlan:
    """A pod with an emptyDir on the kubelet's disk."""
    mounts = [{"name": "scratch", "mountPath": "/scratch"}]
    main = container("main", runs(stops(1)), volumeMounts=mounts)
    return pod(name, main, volumes=[{"name": "scratch", "emptyDir": {}}])


@conformance(
    id="disk-full", rules=["EVIC-022", "EVIC-061", "EVIC-081", "EVIC-091"],
    needs=[API, STATUS, DISK],
    node_config={**QUICK, "evictionHard": {"nodefs.available": "100Mi"}},
)  # fmt: skip
async def the_pod_that_wrote_most_is_evicted_from_a_full_disk(node: Node) -> None:
    """When the disk with the volumes has too little room left, the pod that wrote most into an
    emptyDir is evicted; that frees enough, so the condition ends and the other pod keeps
    running."""
    node.machine.leave_disk(300 * MI)
    await node.api.run_pods(with_volume("big"), with_volume("small"))
    node.machine.write_volume_file("big", "scratch", "file", "x" * 40 * MI)
    node.machine.write_volume_file("small", "scratch", "file", "x" * MI)
    await node.run_for(15)  # measured
    expect_equal(node, node.count("StopContainer"), 0, "stops while there is room")
    node.machine.leave_disk(80 * MI)
    await has_condition(node, "DiskPressure")
    await evicted_for(node, "big", f"{LOW}ephemeral-storage. Threshold quantity: 100Mi, available:",
                      within_s=EVICTED_S)  # fmt: skip
    await node.run_for(15)
    await has_condition(node, "DiskPressure", "False")
    expect_equal(node, node.api.phase("small"), "Running", "phase of the pod that wrote little")


@conformance(
    id="disk-without-inodes", rules=["EVIC-022", "EVIC-081"], needs=[API, STATUS, DISK],
    node_config={**QUICK, "evictionHard": {"nodefs.inodesFree": "1000"}},
)  # fmt: skip
async def the_pod_with_most_files_is_evicted_when_inodes_end(node: Node) -> None:
    """When the disk has too few inodes left, the pod with most files in an emptyDir is evicted, and
    its files are removed."""
    node.machine.leave_inodes(2000)
    await node.api.run_pods(with_volume("many"), with_volume("few"))
    for number in range(300):
        node.machine.write_volume_file("many", "scratch", f"file-{number}", "x")
    await node.run_for(15)
    node.machine.leave_inodes(900)
    await has_condition(node, "DiskPressure")
    await evicted_for(node, "many", f"{LOW}inodes. Threshold quantity: 1", within_s=EVICTED_S)
    await node.run_for(15)
    await has_condition(node, "DiskPressure", "False")
    expect_equal(node, node.api.phase("few"), "Running", "phase of the pod with few files")


@conformance(
    id="memory-used-up", rules=["EVIC-020", "EVIC-080", "EVIC-091"],
    needs=[API, STATUS, Feature.PRESSURE, Feature.MEMORY_USE],
    node_config={"evictionPressureTransitionPeriod": "1s"},
)  # fmt: skip
async def the_pod_that_takes_the_free_memory_is_evicted(node: Node) -> None:
    """With a threshold just below what is available, a pod that takes much memory is evicted, and
    one that takes little keeps running."""
    asks = {"memory": "1Mi", "cpu": "1m"}
    await node.api.run_pods(hungry("modest", memory_mi=4, requests=asks))
    free = (await node.kubelet.summary())["node"]["memory"]["availableBytes"]
    await node.kubelet.restart(evictionHard={"memory.available": f"{free // MI - 200}Mi"})
    await node.api.run_pods(hungry("eater", memory_mi=400, requests=asks))
    await evicted_for(node, "eater", f"{LOW}memory. Threshold quantity: ", within_s=EVICTED_S)
    message = (node.api.pod("eater") or {})["status"]["message"]
    expect(node, "Container main was using" in message, "the container's usage", message)
    await has_condition(node, "MemoryPressure", "False")
    expect_equal(node, node.api.phase("modest"), "Running", "phase of the modest pod")
