"""The other signals, on a node that can be set (processes, allocatable memory, inodes), and what is
reported."""

from kubelet_conformance.cases.eviction.common import (
    BY_CONTAINER,
    MI,
    comparable,
    evicted_for,
    first_victim,
    has_condition,
    hungry,
    nothing_happens,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, Level, conformance

API, NODE = Feature.API, Feature.NODE_RESOURCES
SHORT = Feature.SHORTAGE
REQUEST = {"memory": "8Mi", "cpu": "1m"}
PIDS = {"evictionHard": {"pid.available": "1k"}}
INODES = {"evictionHard": {"nodefs.inodesFree": "1k"}}
EVICTED_S = 2 * limits.EVICTION_CYCLE_S + limits.STOP_S


@conformance(
    id="pid-pressure",
    rules=["EVIC-025.1", "EVIC-056.3", "EVIC-062.1", "EVIC-062.2", "EVIC-091.3", "EVIC-092"],
    needs=[API, SHORT],
    node_config=PIDS,
)
async def processes_run_out(node: Node) -> None:
    """When fewer process IDs are left than the threshold, the Node has PIDPressure and a pod is
    evicted."""
    await node.api.run_pods(hungry("web", requests=REQUEST))
    await node.machine.run_short("pid.available", 500)
    expected = "The node was low on resource: pids. Threshold quantity: 1k, available: 500. "
    await evicted_for(node, "web", expected, within_s=EVICTED_S)
    message = (node.api.pod("web") or {})["status"]["message"]
    actual, expected = comparable(node, message), comparable(node, expected)
    expect_equal(node, actual, expected, "message, which does not name containers")
    await has_condition(node, "PIDPressure")
    condition = node.api.node_condition("PIDPressure")
    text = ("KubeletHasInsufficientPID", "kubelet has insufficient PID available")
    expect_equal(node, (condition["reason"], condition["message"]), text, "reason and message")
    event = node.events("EvictionThresholdMet")[0]
    expect_equal(node, event["message"], "Attempting to reclaim pids", "event of the node")
    await node.events_arrive()
    expect(node, node.events("NodeHasInsufficientPID"), "an event NodeHasInsufficientPID")


@conformance(
    id="pid-lower-priority-first", rules=["EVIC-082.1"], needs=[API, SHORT], node_config=PIDS
)
async def under_pid_pressure_the_lower_priority_goes_first(node: Node) -> None:
    """Of two pods the one of lower priority is evicted, though it has fewer processes."""
    low = hungry("low", processes=2, requests=REQUEST, priority=1)
    await node.api.run_pods(hungry("high", processes=90, requests=REQUEST, priority=9), low)
    await node.machine.run_short("pid.available", 500)
    expect_equal(node, await first_victim(node), "low", "victim")


@conformance(
    id="pid-more-first", rules=["EVIC-082.2", "EVIC-082.3"], needs=[API, SHORT], node_config=PIDS
)
async def under_pid_pressure_the_pod_with_most_processes_goes_first(node: Node) -> None:
    """At equal priority the pod with more processes is evicted, whatever it requests."""
    small = hungry("few", processes=3, memory_mi=50)
    large = hungry("many", processes=40, requests=REQUEST)
    await node.api.run_pods(small, large)
    await node.machine.run_short("pid.available", 500)
    expect_equal(node, await first_victim(node), "many", "victim")


@conformance(
    id="pid-refuses", rules=["EVIC-110.6", "EVIC-111.1"], needs=[API, SHORT], node_config=PIDS
)
async def under_pid_pressure_every_ordinary_pod_is_refused(node: Node) -> None:
    """Under PIDPressure a pod with requests is rejected, too."""
    await node.machine.run_short("pid.available", 500)
    await has_condition(node, "PIDPressure")
    await node.api.create_pod(hungry("web", requests=REQUEST))
    message = "Pod was rejected: The node had condition: [PIDPressure]. "
    await evicted_for(node, "web", message, within_s=limits.STATUS_PASS_S + limits.START_S)
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 0, "sandboxes")


@conformance(
    id="allocatable-memory",
    rules=["EVIC-008.1", "EVIC-021.1", "EVIC-060.1", "EVIC-056.3"],
    needs=[API, NODE],
    node_config={
        "evictionHard": {"memory.available": "200Mi"},
        "kubeReserved": {"memory": "7Gi"},
    },
)
async def pods_may_not_use_what_is_reserved(node: Node) -> None:
    """When all pods together come close to the limit of their cgroup, a pod is evicted, although
    the node has free memory: it is reserved."""
    await node.api.run_pods(hungry("small", memory_mi=300), hungry("large", memory_mi=600))
    message = "The node was low on resource: memory. Threshold quantity: 200Mi, available: 124Mi. "
    await evicted_for(node, "large", message, within_s=EVICTED_S)
    await node.events_arrive()
    messages = {event["message"] for event in node.events("EvictionThresholdMet")}
    expect_equal(node, messages, {"Attempting to reclaim memory"}, "events of the node")
    await has_condition(node, "MemoryPressure")
    await node.run_for(2 * limits.EVICTION_CYCLE_S)
    expect_equal(node, node.api.phase("small"), "Running", "phase of small")


@conformance(
    id="allocatable-not-enforced",
    rules=["EVIC-008.1", "EVIC-027.1", "EVIC-027.2"],
    needs=[API, NODE],
    node_config={
        "evictionHard": {"memory.available": "200Mi", "allocatableMemory.available": "200Mi"},
        "kubeReserved": {"memory": "7Gi"},
        "enforceNodeAllocatable": ["none"],
    },
)
async def without_enforcement_nothing_is_reserved(node: Node) -> None:
    """With enforceNodeAllocatable `none` pods may use all of the node's memory: their cgroup has no
    limit, so that a threshold for it is never met."""
    await node.api.run_pods(hungry("small", memory_mi=300), hungry("large", memory_mi=600))
    await nothing_happens(node)


@conformance(
    id="allocatable-unlimited", rules=["EVIC-027.1", "EVIC-027.2"],
    needs=[API, Feature.CGROUPS],
)  # fmt: skip
async def a_cgroup_without_a_limit_is_not_full(node: Node) -> None:
    """While the cgroup of all pods has no memory limit, because something took it away, nothing is
    known of the memory that is left in it: no pod is evicted, and there is no MemoryPressure."""
    await node.api.run_pods(pod("web"))
    file, text = (
        ("memory.limit_in_bytes", "-1") if node.cgroups.version == 1 else ("memory.max", "max")
    )
    node.cgroups.write("memory", file, text, "kubepods")
    await nothing_happens(node)


@conformance(
    id="inodes-pressure",
    rules=["EVIC-022.1", "EVIC-056.3", "EVIC-061.1", "EVIC-081.3"],
    needs=[API, SHORT],
    node_config=INODES,
)
async def inodes_run_out(node: Node) -> None:
    """When the disk has few inodes left, the pod that has most of them is evicted."""
    small = hungry("small", inodes=10, disk_mi=50, requests=REQUEST)
    await node.api.run_pods(small, hungry("large", inodes=700, requests=REQUEST))
    await node.machine.run_short("nodefs.inodesFree", 200)
    message = "The node was low on resource: inodes. Threshold quantity: 1k, available: 200. "
    await evicted_for(node, "large", message, within_s=EVICTED_S)
    await node.events_arrive()
    event = node.events("EvictionThresholdMet")[0]
    expect_equal(node, event["message"], "Attempting to reclaim inodes", "event of the node")
    await has_condition(node, "DiskPressure")
    condition = node.api.node_condition("DiskPressure")
    text = ("KubeletHasDiskPressure", "kubelet has disk pressure")
    expect_equal(node, (condition["reason"], condition["message"]), text, "reason and message")


@conformance(
    id="inodes-less-storage-requested", rules=["EVIC-081.5"], level=Level.DETAIL,
    needs=[API, SHORT],
    node_config=INODES,
)  # fmt: skip
async def a_storage_request_protects_inodes_too(node: Node) -> None:
    """Of two pods the one without a storage request is evicted, though it has fewer inodes."""
    with_request = hungry("asked", inodes=700, requests={**REQUEST, "ephemeral-storage": "1Gi"})
    await node.api.run_pods(with_request, hungry("plain", inodes=10, requests=REQUEST))
    await node.machine.run_short("nodefs.inodesFree", 200)
    expect_equal(node, await first_victim(node), "plain", "victim")


@conformance(
    id="memory-percent", rules=["EVIC-003.1", "EVIC-009", "EVIC-020.1"], needs=[API, NODE],
    node_config={"evictionHard": {"memory.available": "25%"}},
)  # fmt: skip
async def a_threshold_may_be_a_share(node: Node) -> None:
    """A threshold in percent is a share of the capacity; the event shows it in bytes."""
    await node.api.run_pods(hungry("web", memory_mi=100))
    node.machine.leave_memory(2049 * MI)
    await nothing_happens(node)
    node.machine.leave_memory(2000 * MI)
    message = "The node was low on resource: memory. Threshold quantity: 2Gi, available: 2000Mi. "
    await evicted_for(node, "web", message, within_s=EVICTED_S)


@conformance(
    id="memory-before-disk", rules=["EVIC-055.4"], needs=[API, NODE],
    node_config={"evictionHard": {"nodefs.available": "1Gi", "memory.available": "200Mi"}},
)  # fmt: skip
async def memory_is_more_urgent_than_disk(node: Node) -> None:
    """When memory and disk run out together, memory is reclaimed first."""
    await node.api.run_pods(hungry("web", memory_mi=300), hungry("other", memory_mi=10, disk_mi=50))
    node.machine.leave_disk(100 * MI)
    node.machine.leave_memory(100 * MI)
    expect_equal(node, await first_victim(node), "web", "victim")
    event = node.events("EvictionThresholdMet")[0]
    expect_equal(node, event["message"], "Attempting to reclaim memory", "message of first event")


@conformance(
    id="no-statistics-first",
    rules=["EVIC-083.1", "EVIC-091.6", "EVIC-093.3", "EVIC-052.5"],
    needs=[API, SHORT, Feature.FAULTS],
    node_config={**BY_CONTAINER, "evictionHard": {"memory.available": "200Mi"}},
)
async def a_pod_without_running_containers_goes_first(node: Node) -> None:
    """A pod that has not started yet has no usage to rank by, and is evicted before all that run,
    whatever its priority."""
    await node.api.create_pod(pod("stuck", priority=1000))
    node.runtime.on("CreateContainer", pod="stuck").hangs()
    await node.api.run_pods(hungry("web", memory_mi=300))
    await node.machine.run_short("memory.available", 100 * MI)
    expect_equal(node, await first_victim(node), "stuck", "victim")
    message = comparable(node, node.events("Evicted")[0]["message"])
    text = "The node was low on resource: memory. Threshold quantity: 200Mi, available: 100Mi. "
    expect_equal(node, message, comparable(node, text), "message, which does not name containers")
    annotations = node.events("Evicted")[0]["metadata"].get("annotations")
    expect_equal(node, annotations or None, None, "annotations of the event")


@conformance(
    id="condition-events", rules=["EVIC-063.1", "EVIC-060.2", "EVIC-060.3"], needs=[API, NODE],
    node_config={
        "evictionHard": {"memory.available": "200Mi"},
        "evictionPressureTransitionPeriod": "15s",
    },
)  # fmt: skip
async def changes_of_conditions_are_told(node: Node) -> None:
    """Each change of MemoryPressure, in both directions, is reported in an event about the Node."""
    node.machine.leave_memory(100 * MI)
    await has_condition(node, "MemoryPressure")
    before = node.event_count("NodeHasSufficientMemory")
    await node.run_for(2 * limits.NODE_STATUS_S)
    expect_equal(node, node.event_count("NodeHasInsufficientMemory"), 1, "events of the lack")
    expect_equal(node, node.event_count("NodeHasSufficientMemory"), before, "events of plenty")
    node.machine.leave_memory(900 * MI)
    await has_condition(node, "MemoryPressure", "False")
    await node.run_until(
        lambda: node.event_count("NodeHasSufficientMemory") > before,
        within_s=limits.NOTICE_S,
        what="event NodeHasSufficientMemory",
    )


@conformance(
    id="pressure-sets-no-taints", rules=["EVIC-064"], needs=[API, SHORT],
    node_config={"evictionHard": {"memory.available": "200Mi"}},
)  # fmt: skip
async def the_kubelet_sets_no_taints(node: Node) -> None:
    """Under pressure the kubelet adds no taints to the Node: controllers do that."""
    await node.machine.run_short("memory.available", 100 * MI)
    await has_condition(node, "MemoryPressure")
    await node.run_for(2 * limits.EVICTION_CYCLE_S)
    kinds = {taint["key"] for taint in node.api.taints()}
    expect(node, not any("pressure" in key for key in kinds), "no taints of pressure", kinds)


@conformance(
    id="image-disk-unknown", rules=["EVIC-041.1", "EVIC-041.2"], needs=[API, SHORT],
    node_config={"evictionHard": {"memory.available": "200Mi"}},
)  # fmt: skip
async def an_unknown_image_disk_keeps_the_kubelet_from_looking(node: Node) -> None:
    """While the disk of the images cannot be found, no pod is evicted, not even for memory."""
    node.machine.lose_image_disk()
    await node.api.run_pods(hungry("web", memory_mi=300))
    await node.machine.run_short("memory.available", 100 * MI)
    await nothing_happens(node)


@conformance(
    id="memory-notification", rules=["EVIC-058"], level=Level.DETAIL,
    needs=[API, NODE, Feature.CGROUP_V1, Feature.MEMORY_NOTIFICATION],
    node_config={
        "evictionHard": {"memory.available": "200Mi"}, "kernelMemcgNotification": True,
    },
)  # fmt: skip
async def the_kernel_tells_before_the_next_look(node: Node) -> None:
    """With kernelMemcgNotification and cgroup v1 the kernel notifies the kubelet, which evicts a
    pod as soon as memory runs short."""
    await node.api.run_pods(hungry("web", memory_mi=300))
    await node.run_for(limits.EVICTION_CYCLE_S + 2.5)  # between two looks
    began_s = node.now_s
    node.machine.leave_memory(100 * MI)
    await node.run_until(lambda: node.events("Evicted"), within_s=1, what="an immediate eviction")
    expect(node, node.now_s - began_s < 1, "the eviction within 1 s", node.now_s - began_s)


@conformance(
    id="memory-no-notification", rules=["EVIC-050", "EVIC-058"], level=Level.DETAIL,
    needs=[API, NODE, Feature.CGROUP_V1],
    node_config={"evictionHard": {"memory.available": "200Mi"}},
)  # fmt: skip
async def without_notification_the_kubelet_looks_every_ten_seconds(node: Node) -> None:
    """Without kernelMemcgNotification no pod is evicted before the kubelet's next look, which comes
    every 10 s."""
    await node.api.run_pods(hungry("web", memory_mi=300))
    await node.run_for(limits.EVICTION_CYCLE_S + 2.5)
    node.machine.leave_memory(100 * MI)
    await node.run_for(3)
    expect_equal(node, node.event_count("Evicted"), 0, "evictions before the next cycle")
    expect_equal(node, await first_victim(node), "web", "victim")
