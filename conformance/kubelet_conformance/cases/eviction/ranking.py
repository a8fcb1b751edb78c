"""The order in which pods are evicted: by request, priority, excess, for each resource."""

from typing import Any

from fakecri import stops, uses
from kubelet_conformance.cases.eviction.common import (
    BY_CONTAINER,
    MI,
    comparable,
    first_victim,
    hungry,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, runs
from kubelet_conformance.registry import Feature, Level, conformance

API, NODE, FAULTS = Feature.API, Feature.NODE_RESOURCES, Feature.FAULTS
SHORT = Feature.SHORTAGE
STATUS = Feature.STATUS
MEMORY = {"evictionHard": {"memory.available": "200Mi"}}
DISK = {"evictionHard": {"nodefs.available": "1Gi"}}
INODES = {"evictionHard": {"nodefs.inodesFree": "1k"}}
PIDS = {"evictionHard": {"pid.available": "1k"}}
SMALL = {"memory": "8Mi", "cpu": "1m"}


@conformance(id="rank-priority-none", rules=["EVIC-080.2"], needs=[API, SHORT], node_config=MEMORY)
async def no_priority_is_priority_zero(node: Node) -> None:
    """A pod without a priority counts as one with priority 0: it is evicted before one with a
    higher priority that exceeds its request by more, and after one with a negative priority."""
    await node.api.run_pods(
        hungry("negative", memory_mi=40, priority=-5),
        hungry("none", memory_mi=60),
        hungry("high", memory_mi=300, priority=5),
    )
    await node.machine.run_short("memory.available", 120 * MI)  # then 160, then 220
    expect_equal(node, await first_victim(node), "negative", "victim")
    await node.run_until(
        lambda: len(node.events("Evicted")) > 1, within_s=limits.EVICTION_CYCLE_S, what="the next"
    )
    expect_equal(node, node.events("Evicted")[1]["involvedObject"]["name"], "none", "next victim")


@conformance(id="rank-allocated", rules=["EVIC-052.2"], needs=[API, SHORT, Feature.CGROUPS],
             node_config=MEMORY, since="1.33",
)  # fmt: skip
async def what_is_allocated_counts(node: Node) -> None:
    """A pod that asks for more memory than the node has is ranked by what it was allocated."""
    asks = hungry("asks", memory_mi=100, requests={**SMALL, "memory": "50Mi"})
    fine = hungry("fine", memory_mi=150, requests={**SMALL, "memory": "200Mi"})
    await node.api.run_pods(asks, fine)
    await node.api.resize_pod("asks", "main", {"requests": {"memory": "500Gi"}})
    await node.run_for(limits.NOTICE_S)
    await node.machine.run_short("memory.available", 150 * MI)
    expect_equal(node, await first_victim(node), "asks", "victim")


@conformance(id="rank-pod-level", rules=["EVIC-080.1", "EVIC-091.5", "EVIC-093.2"],
             needs=[API, SHORT, Feature.CGROUPS], node_config=MEMORY, since="1.34",
)  # fmt: skip
async def what_the_pod_as_a_whole_asks_for_counts(node: Node) -> None:
    """Memory that a pod requests as a whole protects it, and the message about another one that
    exceeds it tells the request of the pod."""
    within, above = ({"requests": {**SMALL, "memory": f"{size}Mi"}} for size in (400, 60))
    await node.api.run_pods(
        hungry("within", memory_mi=300, resources=within),
        hungry("above", memory_mi=100, resources=above),
    )
    await node.machine.run_short("memory.available", 150 * MI)
    expect_equal(node, await first_victim(node), "above", "victim")
    event = node.events("Evicted")[0]
    expected_message = (
        "The node was low on resource: memory. Threshold quantity: 200Mi, available: 150Mi. "
        "Pod above was using 100Mi, request is 60Mi, has larger consumption of memory. "
        "Container main was using 100Mi, request is 0, has larger consumption of memory. "
    )
    message = comparable(node, event["message"])
    expect_equal(node, message, comparable(node, expected_message), "message")
    annotations = {
        "starved_resource": "memory",
        "offending_containers": "main",
        "offending_containers_usage": "100Mi",
        "offending_pod": "above",
        "offending_pod_usage": "100Mi",
    }
    expect_equal(node, event["metadata"].get("annotations"), annotations, "annotations")


@conformance(id="rank-page-cache", rules=["EVIC-026.3", "EVIC-080.3"],
             needs=[API, NODE, Feature.CGROUPS, Feature.CGROUP_V2], node_config=MEMORY)  # fmt: skip
async def page_cache_that_nobody_uses_does_not_count(node: Node) -> None:
    """Inactive page cache is no part of what a pod uses."""
    await node.api.run_pods(hungry("cached", memory_mi=50), hungry("web", memory_mi=80))
    node.cgroups.fill_cache(100 * MI, *node.cgroups.of_pod("cached"))
    node.machine.leave_memory(150 * MI)
    expect_equal(node, await first_victim(node), "web", "victim")


@conformance(id="pods-page-cache", rules=["EVIC-021.1", "EVIC-026.3"],
             needs=[API, NODE, Feature.CGROUPS, Feature.CGROUP_V2],
             node_config={**MEMORY, "kubeReserved": {"memory": "7Gi"}})  # fmt: skip
async def page_cache_is_free_for_all_pods(node: Node) -> None:
    """Inactive page cache is no part of what all pods together use."""
    await node.api.run_pods(hungry("web", memory_mi=700))
    node.cgroups.fill_cache(200 * MI, *node.cgroups.of_pod("web"))
    await node.run_for(2 * limits.EVICTION_CYCLE_S)
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(id="critical-is-skipped", rules=["EVIC-085.1", "EVIC-085.3", "EVIC-085.4"],
             needs=[API, SHORT], node_config=MEMORY)  # fmt: skip
async def the_next_after_critical_pods_is_evicted(node: Node) -> None:
    """Static and critical pods come first in the ranking and are passed over: the next one is
    evicted, though it has the highest priority of a user and stays within its request."""
    await node.apply_static(hungry("static", memory_mi=200))
    await node.api.run_pods(
        hungry("vital", memory_mi=300, priority=2_000_000_000),
        hungry("web", memory_mi=50, requests={"memory": "90Mi"}, priority=1_000_000_000),
    )
    await node.machine.run_short("memory.available", 120 * MI)
    expect_equal(node, await first_victim(node), "web", "victim")
    await node.run_for(2 * limits.EVICTION_CYCLE_S)
    for name in ("vital", "static"):
        expect_equal(node, node.count("StopContainer", pod=name), 0, f"stops of {name}")


@conformance(id="crash-loop-first", rules=["EVIC-029.1", "EVIC-083.1"], needs=[API, SHORT],
             node_config={**BY_CONTAINER, **MEMORY})  # fmt: skip
async def a_pod_between_two_runs_goes_first(node: Node) -> None:
    """A pod whose container waits for its next start has no statistics, and is evicted first."""
    await node.api.create_pod(pod("crashes", container("main", exits(1)), priority=100))
    await node.api.run_pods(hungry("web", memory_mi=300))
    await node.run_for(5)
    await node.machine.run_short("memory.available", 150 * MI)
    expect_equal(node, await first_victim(node), "crashes", "victim")


@conformance(id="disk-no-statistics-first", rules=["EVIC-083.1", "EVIC-093.3"],
             needs=[API, SHORT, FAULTS], node_config={**BY_CONTAINER, **DISK})  # fmt: skip
async def under_disk_pressure_a_waiting_pod_goes_first(node: Node) -> None:
    """Under disk pressure, too, a pod that has not started yet is evicted first, whatever its
    priority; the event has no annotations."""
    await node.api.create_pod(hungry("stuck", requests=SMALL, priority=1000))
    node.runtime.on("CreateContainer", pod="stuck").hangs()
    await node.api.run_pods(hungry("web", disk_mi=300, requests=SMALL))
    await node.machine.run_short("nodefs.available", 500 * MI)
    expect_equal(node, await first_victim(node), "stuck", "victim")
    annotations = node.events("Evicted")[0]["metadata"].get("annotations")
    expect_equal(node, annotations or None, None, "annotations of the event")


@conformance(id="pid-no-statistics", rules=["EVIC-083.2", "EVIC-052.5"], needs=[API, SHORT, FAULTS],
             node_config={**BY_CONTAINER, **PIDS})  # fmt: skip
async def under_pid_pressure_priority_comes_first(node: Node) -> None:
    """Under pid pressure the priority counts before statistics: a pod that has not started yet is
    evicted first among those of its priority only."""
    await node.api.create_pod(hungry("stuck", requests=SMALL, priority=5))
    node.runtime.on("CreateContainer", pod="stuck").hangs()
    await node.api.run_pods(
        hungry("low", requests=SMALL, priority=1),
        hungry("equal", processes=60, requests=SMALL, priority=5),
    )
    await node.machine.run_short("pid.available", 500)
    for number, name in enumerate(("low", "stuck"), start=1):
        await node.run_until(
            lambda number=number: len(node.events("Evicted")) >= number,  # type: ignore[misc]
            within_s=3 * limits.EVICTION_CYCLE_S + limits.STOP_S,
            what=f"eviction {number}",
        )
        victim = node.events("Evicted")[number - 1]["involvedObject"]["name"]
        expect_equal(node, victim, name, f"victim {number}")


@conformance(id="disk-lower-priority-first", rules=["EVIC-081.1", "EVIC-081.2"], needs=[API, SHORT],
             node_config=DISK)  # fmt: skip
async def of_those_above_their_storage_requests_the_least_important(node: Node) -> None:
    """Under disk pressure the pod of lower priority is evicted among those above their requests,
    though it wrote less; one within its request comes after them, whatever its priority."""
    requests = {**SMALL, "ephemeral-storage": "2Gi"}
    await node.api.run_pods(
        hungry("high", disk_mi=900, requests=SMALL, priority=9),
        hungry("low", disk_mi=100, requests=SMALL, priority=5),
        hungry("within", disk_mi=1200, requests=requests, priority=1),
    )
    await node.machine.run_short("nodefs.available", 500 * MI)
    expect_equal(node, await first_victim(node), "low", "victim")


@conformance(id="inodes-are-not-requested", rules=["EVIC-081.4"], level=Level.DETAIL,
             needs=[API, SHORT], node_config=INODES)  # fmt: skip
async def a_storage_request_does_not_lift_a_pod_over_priorities(node: Node) -> None:
    """Nobody can request inodes: with a request of storage a pod is evicted all the same before one
    of higher priority."""
    requests = {**SMALL, "ephemeral-storage": "1Gi"}
    await node.api.run_pods(
        hungry("asked", inodes=10, requests=requests, priority=1),
        hungry("plain", inodes=700, requests=SMALL, priority=2),
    )
    await node.machine.run_short("nodefs.inodesFree", 200)
    expect_equal(node, await first_victim(node), "asked", "victim")


def all_kinds(name: str, layer_mi: int, *, containers: int = 1) -> Any:
    """A pod with an emptyDir, and a writable layer of that size in its last container."""
    mounts = [{"name": "scratch", "mountPath": "/scratch"}]
    work = [runs(stops(1))] * (containers - 1)
    work.append(runs(stops(1), uses(disk_bytes=layer_mi * MI)))
    resources = {"requests": SMALL}
    main_containers = [
        container(f"c{number}", each, resources=resources, volumeMounts=mounts)
        for number, each in enumerate(work)
    ]
    return pod(name, *main_containers, volumes=[{"name": "scratch", "emptyDir": {}}])


async def everything_counts(node: Node, signal: str) -> None:
    """Expect that layers of all containers, logs and volumes are added up, when a pod is evicted
    for the one disk there is."""
    await node.api.run_pods(all_kinds("layer", 5), all_kinds("mixed", 2, containers=2))
    node.machine.write_log("mixed", "c1", "0.log.old", "x" * 2 * MI)
    node.machine.write_volume_file("mixed", "scratch", "file", "x" * 2 * MI)
    await node.run_for(15)  # volumes are measured
    await node.machine.run_short(signal, 500 * MI)
    expect_equal(node, await first_victim(node), "mixed", "victim")


QUICK = {"volumeStatsAggPeriod": "5s"}


@conformance(id="one-disk-nodefs", rules=["EVIC-044.1", "EVIC-029.5", "EVIC-029.6"],
             needs=[API, SHORT, STATUS], node_config={**DISK, **QUICK})  # fmt: skip
async def on_one_disk_everything_counts(node: Node) -> None:
    """With one disk for all, the layers of all containers, logs and volumes count for the disk of
    the kubelet."""
    await everything_counts(node, "nodefs.available")


@conformance(id="one-disk-imagefs", rules=["EVIC-044.2"], needs=[API, SHORT, STATUS],
             node_config={**QUICK, "evictionHard": {"imagefs.available": "1Gi"}})  # fmt: skip
async def on_one_disk_everything_counts_for_images(node: Node) -> None:
    """With one disk for all, layers, logs and volumes count for the disk of the images as well."""
    await everything_counts(node, "imagefs.available")


@conformance(id="local-volumes", rules=["EVIC-044.1"], needs=[API, SHORT, STATUS],
             node_config={**DISK, **QUICK})  # fmt: skip
async def only_volumes_on_the_disk_count(node: Node) -> None:
    """Under disk pressure an emptyDir in memory does not count as use of the disk."""
    mounts = [{"name": "v", "mountPath": "/v"}]
    for name, medium in (("memory", "Memory"), ("disk", "")):
        resources = {"requests": SMALL}
        main = container("main", runs(stops(1)), resources=resources, volumeMounts=mounts)
        volumes = [{"name": "v", "emptyDir": {"medium": medium}}]
        await node.api.run_pods(pod(name, main, volumes=volumes))
    node.machine.write_volume_file("memory", "v", "file", "x" * 2 * MI)
    node.machine.write_volume_file("disk", "v", "file", "x" * 100_000)
    await node.run_for(15)
    await node.machine.run_short("nodefs.available", 500 * MI)
    expect_equal(node, await first_victim(node), "disk", "victim")
