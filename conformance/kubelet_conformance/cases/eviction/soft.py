"""Soft thresholds, minimum reclaim, and how long pressure is remembered."""

from fakecri import uses
from kubelet_conformance.cases.eviction.common import (
    CYCLE_S,
    MI,
    evicted_for,
    first_victim,
    has_condition,
    hungry,
    nothing_happens,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import ignores_term
from kubelet_conformance.registry import Feature, KnownBug, conformance

API, NODE = Feature.API, Feature.NODE_RESOURCES
SHORT = Feature.SHORTAGE
MEMORY = "memory.available"
GRACE_S = 25
SOFT = {
    "evictionHard": {MEMORY: "10Mi"},
    "evictionSoft": {MEMORY: "200Mi"},
    "evictionSoftGracePeriod": {MEMORY: f"{GRACE_S}s"},
}
LOW = "The node was low on resource: memory. "


@conformance(
    id="soft-waits", rules=["EVIC-053.4", "EVIC-053.6"], needs=[API, SHORT], node_config=SOFT
)  # fmt: skip
async def a_soft_threshold_waits_for_its_grace_period(node: Node) -> None:
    """Below a soft threshold the condition shows at once, and a pod is evicted after the grace
    period."""
    await node.api.run_pods(hungry("web", memory_mi=50))
    await node.machine.run_short(MEMORY, 100 * MI)
    began_s = node.now_s
    await has_condition(node, "MemoryPressure")
    expect_equal(node, node.count("StopContainer"), 0, "stops when the condition shows")
    message = f"{LOW}Threshold quantity: 200Mi, available: 100Mi. "
    await evicted_for(node, "web", message, within_s=GRACE_S + 2 * CYCLE_S)
    waited_s = node.times_s("StopContainer", pod="web")[0] - began_s
    expect(node, waited_s >= GRACE_S, f"the eviction after {GRACE_S} s", f"{waited_s:.1f} s")


@conformance(
    id="soft-recovers", rules=["EVIC-053.3"], needs=[API, NODE, Feature.VIRTUAL_TIME],
    node_config=SOFT,
)  # fmt: skip
async def recovery_restarts_the_grace_period(node: Node) -> None:
    """When memory comes back before the grace period is over, no pod is evicted, and the next grace
    period begins anew."""
    await node.api.run_pods(hungry("web", memory_mi=50))
    for _ in range(3):
        node.machine.leave_memory(100 * MI)
        await node.run_for(GRACE_S - 6)
        node.machine.leave_memory(500 * MI)
        await node.run_for(limits.EVICTION_CYCLE_S + 1)
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(
    id="soft-grace-of-pods", rules=["EVIC-087.2", "EVIC-089.2"], needs=[API, SHORT],
    node_config={**SOFT, "evictionSoftGracePeriod": {MEMORY: "1s"},
                 "evictionMaxPodGracePeriod": 14},
    bugs=[KnownBug("122890", "A soft eviction gives a pod all of evictionMaxPodGracePeriod, "
                   "even if its own grace period is shorter", fixed="1.32")],
)  # fmt: skip
async def a_soft_eviction_leaves_the_pod_some_time(node: Node) -> None:
    """A soft threshold stops a pod with the shorter of evictionMaxPodGracePeriod and its own grace
    period; one that takes all of it ends in time, and no event says otherwise."""
    slow = container("main", ignores_term(uses(memory_bytes=90 * MI)))
    patient = pod("patient", slow, grace_s=60)
    await node.api.run_pods(patient, hungry("quick", memory_mi=50, grace_s=3))
    await node.machine.run_short(MEMORY, 20 * MI)
    for name in ("patient", "quick"):
        await evicted_for(node, name, LOW, within_s=4 * CYCLE_S + 30)
    timeouts = [c.request.timeout for c in node.calls("StopContainer")]
    expect_equal(node, timeouts, [14, 3], "timeouts of StopContainer")
    expect_equal(node, node.event_count("ExceededGracePeriod"), 0, "events ExceededGracePeriod")


@conformance(
    id="soft-zero-is-hard", rules=["EVIC-004.4", "EVIC-087.1"], needs=[API, SHORT],
    node_config={**SOFT, "evictionSoftGracePeriod": {MEMORY: "0s"},
                 "evictionMaxPodGracePeriod": 7},
)  # fmt: skip
async def a_soft_threshold_without_grace_is_a_hard_one(node: Node) -> None:
    """A soft threshold with a grace period of 0 s acts at once and leaves pods no time to stop."""
    await node.api.run_pods(hungry("web", memory_mi=50, grace_s=30))
    await node.machine.run_short(MEMORY, 100 * MI)
    await evicted_for(node, "web", LOW, within_s=2 * CYCLE_S)
    timeouts = [c.request.timeout for c in node.calls("StopContainer")]
    expect_equal(node, timeouts, [2], "timeout of StopContainer")
    await node.run_until(
        lambda: node.events("EvictionThresholdMet"), within_s=limits.EVENTS_S, what="its event"
    )
    expect_equal(node, node.event_count("EvictionThresholdMet"), 1, "acting cycles")


@conformance(
    id="minimum-reclaim", rules=["EVIC-053.1", "EVIC-053.2"], needs=[API, NODE],
    node_config={"evictionHard": {MEMORY: "200Mi"},
                 "evictionMinimumReclaim": {MEMORY: "300Mi"}},
)  # fmt: skip
async def evictions_go_on_until_the_minimum_is_reclaimed(node: Node) -> None:
    """Once the threshold is crossed, pods are evicted until the threshold plus the minimum reclaim
    is free."""
    plans = [hungry(name, memory_mi=size) for name, size in (("a", 250), ("b", 200), ("c", 90))]
    await node.api.run_pods(*plans)
    node.machine.leave_memory(350 * MI)
    await nothing_happens(node, for_s=limits.EVICTION_CYCLE_S + limits.NODE_STATUS_S)
    node.machine.leave_memory(100 * MI)
    await evicted_for(node, "a", LOW, within_s=2 * CYCLE_S)  # 350 MiB are free, 500 are wanted
    await evicted_for(node, "b", LOW, within_s=2 * CYCLE_S + 30)
    await node.run_for(3 * limits.EVICTION_CYCLE_S)
    expect_equal(node, node.api.phase("c"), "Running", "phase of c")
    expect_equal(node, len(node.events("Evicted")), 2, "evictions")


@conformance(
    id="no-minimum-reclaim", rules=["EVIC-053.2", "EVIC-086.1"], needs=[API, NODE],
    node_config={"evictionHard": {MEMORY: "200Mi"}},
)  # fmt: skip
async def without_a_minimum_the_threshold_is_enough(node: Node) -> None:
    """Without a minimum reclaim no second pod is evicted once the threshold is free."""
    await node.api.run_pods(hungry("a", memory_mi=110), hungry("b", memory_mi=90))
    node.machine.leave_memory(100 * MI)
    expect_equal(node, await first_victim(node), "a", "victim")
    await node.run_for(3 * limits.EVICTION_CYCLE_S)
    expect_equal(node, len(node.events("Evicted")), 1, "evictions")


@conformance(
    id="restart-forgets-pressure", rules=["EVIC-112.1", "EVIC-112.2"],
    needs=[API, NODE, Feature.VIRTUAL_TIME], node_config={"evictionHard": {MEMORY: "200Mi"}},
)  # fmt: skip
async def a_restarted_kubelet_knows_of_no_pressure(node: Node) -> None:
    """Pressure that has ended is remembered for five minutes, but not by a restarted kubelet."""
    node.machine.leave_memory(100 * MI)
    await has_condition(node, "MemoryPressure")
    node.machine.leave_memory(900 * MI)
    await node.run_for(2 * limits.EVICTION_CYCLE_S)
    await node.api.create_pod(pod("early"))
    await node.run_until(
        lambda: node.api.phase("early") == "Failed", within_s=limits.STATUS_PASS_S + limits.START_S
    )
    await node.kubelet.restart()
    await node.api.run_pods(pod("late"))


@conformance(
    id="pressure-admits", rules=["EVIC-110.3", "EVIC-110.4", "EVIC-110.5",
    "LIFE-221.1", "LIFE-221.2"], needs=[API, NODE],
    node_config={"evictionHard": {MEMORY: "200Mi"}},
)  # fmt: skip
async def under_memory_pressure_some_pods_may_start(node: Node) -> None:
    """Under MemoryPressure pods with requests, pods that tolerate it, and critical pods start."""
    node.machine.leave_memory(150 * MI)
    await has_condition(node, "MemoryPressure")
    node.machine.leave_memory(900 * MI)  # the condition stays, and no pod must be evicted
    await node.run_for(limits.EVICTION_CYCLE_S + 1)
    tolerated = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}
    await node.api.run_pods(
        hungry("asks", requests={"memory": "8Mi"}),
        pod("tolerates", tolerations=[tolerated]),
        pod("vital", priority=2_000_000_000),
    )
    expect_equal(node, node.api.node_condition("MemoryPressure").get("status"), "True", "condition")
