"""Memory pressure, on a node whose free memory can be set: which pod is evicted, when, and what is
reported."""

from typing import Any

from fakecri import stops, uses
from kubelet_conformance.cases.eviction.common import CYCLE_S, MI, comparable, first_victim
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import runs
from kubelet_conformance.registry import Feature, Level, conformance

API, NODE = Feature.API, Feature.NODE_RESOURCES
SHORT = Feature.SHORTAGE
HARD = {"evictionHard": {"memory.available": "200Mi"}}


def eater(
    name: str, uses_mi: int, *, requests_mi: int = 0, limits_mi: int = 0, **spec: Any
) -> PodPlan:
    """A pod that holds memory, and exits with an error when it is stopped."""
    amounts = {"requests": requests_mi, "limits": limits_mi}
    resources = {kind: {"memory": f"{size}Mi"} for kind, size in amounts.items() if size}
    fields: dict[str, Any] = {"resources": resources} if resources else {}
    work = runs(stops(1), uses(memory_bytes=uses_mi * MI))
    return pod(name, container("main", work, **fields), **spec)


@conformance(
    id="memory-above-threshold", rules=["EVIC-053.1", "EVIC-002.1"], needs=[API, NODE],
    node_config=HARD,
)  # fmt: skip
async def nothing_is_evicted_above_the_threshold(node: Node) -> None:
    """With as much memory available as the threshold says no pod is evicted, and with slightly less
    one is."""
    await node.api.run_pods(eater("web", 50))
    node.machine.leave_memory(200 * MI)
    await node.run_for(3 * limits.EVICTION_CYCLE_S)
    expect_equal(node, node.count("StopContainer"), 0, "stops")
    expect_equal(
        node, node.api.node_condition("MemoryPressure").get("status"), "False", "condition"
    )
    node.machine.leave_memory(200 * MI - 4096)
    expect_equal(node, await first_victim(node), "web", "victim")


@conformance(
    id="memory-over-request-first", rules=["EVIC-080.1"], needs=[API, SHORT], node_config=HARD
)
async def the_pod_above_its_request_is_evicted(node: Node) -> None:
    """A pod that uses more than it requests, though less than its limit, is evicted before a larger
    one of lower priority within its request."""
    await node.api.run_pods(
        eater("within", 300, requests_mi=400, priority=1),
        eater("above", 100, requests_mi=50, limits_mi=200, priority=1000),
    )
    await node.machine.run_short("memory.available", 150 * MI)
    expect_equal(node, await first_victim(node), "above", "victim")
    expect_equal(node, node.count("StopContainer", pod="within"), 0, "stops of the other")


@conformance(
    id="memory-lower-priority-first", rules=["EVIC-080.2"], needs=[API, SHORT], node_config=HARD
)
async def among_those_above_the_lower_priority_is_evicted(node: Node) -> None:
    """Of two pods above their requests the one of lower priority is evicted, though it uses
    less."""
    await node.api.run_pods(eater("important", 300, priority=100), eater("other", 100, priority=1))
    await node.machine.run_short("memory.available", 150 * MI)
    expect_equal(node, await first_victim(node), "other", "victim")


@conformance(id="memory-larger-first", rules=["EVIC-080.3"], needs=[API, SHORT], node_config=HARD)
async def among_equals_the_larger_consumption_is_evicted(node: Node) -> None:
    """At equal priority the pod furthest above its request is evicted, though it uses less."""
    await node.api.run_pods(
        eater("large", 300, requests_mi=250), eater("small", 120, requests_mi=10)
    )
    await node.machine.run_short("memory.available", 150 * MI)
    expect_equal(node, await first_victim(node), "small", "victim")


@conformance(id="memory-class-not-asked", rules=["EVIC-084"], needs=[API, SHORT],
             node_config=HARD)  # fmt: skip
async def the_qos_class_plays_no_role(node: Node) -> None:
    """A Burstable pod far above its request is evicted before a BestEffort pod that uses little."""
    await node.api.run_pods(eater("any", 40), eater("burst", 200, requests_mi=50))
    await node.machine.run_short("memory.available", 150 * MI)
    expect_equal(node, await first_victim(node), "burst", "victim")
    expect_equal(node, node.count("StopContainer", pod="any"), 0, "stops of the other")


@conformance(id="memory-one-per-cycle", rules=["EVIC-086.1"], needs=[API, NODE], node_config=HARD)
async def one_pod_is_evicted_at_a_time(node: Node) -> None:
    """When the first victim frees enough memory, no second pod is evicted."""
    await node.api.run_pods(eater("first", 200), eater("second", 100))
    node.machine.leave_memory(100 * MI)
    expect_equal(node, await first_victim(node), "first", "victim")
    await node.run_for(3 * limits.EVICTION_CYCLE_S)
    expect_equal(node, len(node.events("Evicted")), 1, "evictions")
    expect_equal(node, node.api.phase("second"), "Running", "phase of the second")


@conformance(
    id="memory-message",
    rules=["EVIC-091.1", "EVIC-091.2", "EVIC-090.1"],
    needs=[API, SHORT],
    node_config=HARD,
)
async def the_message_names_threshold_and_consumption(node: Node) -> None:
    """The message of an evicted pod names the resource that was low, the threshold, and what each
    container used."""
    await node.api.run_pods(eater("web", 300, requests_mi=100))
    await node.machine.run_short("memory.available", 50 * MI)
    await node.run_until(lambda: node.api.phase("web") == "Failed", within_s=2 * CYCLE_S)
    message = (node.api.pod("web") or {})["status"]["message"]
    start = "The node was low on resource: memory. Threshold quantity: 200Mi, available: 50Mi. "
    begins = comparable(node, message).startswith(comparable(node, start))
    expect(node, begins, f"message {start!r}...", message)
    ending = "Container main was using 300Mi, request is 100Mi, has larger consumption of memory. "
    expect(node, message.endswith(ending), f"message ...{ending!r}", message)
    await node.events_arrive()
    event = node.events("Evicted")[0]
    event_fields = event["type"], event["message"]
    expect_equal(node, event_fields, ("Warning", message), "type and message of the event")


@conformance(
    id="memory-condition-lasts",
    rules=["EVIC-053.5"],
    needs=[API, NODE, Feature.VIRTUAL_TIME],
    node_config={**HARD, "evictionPressureTransitionPeriod": "60s"},
)
async def the_condition_stays_for_the_transition_period(node: Node) -> None:
    """MemoryPressure stays True for evictionPressureTransitionPeriod after the pressure has
    ended."""
    await node.api.run_pods(eater("web", 10))

    def pressure() -> str:
        return str(node.api.node_condition("MemoryPressure").get("status"))

    node.machine.leave_memory(100 * MI)
    await node.run_until(lambda: pressure() == "True", within_s=25, what="MemoryPressure")
    await node.run_until(lambda: node.api.phase("web") == "Failed", within_s=CYCLE_S)
    await node.run_for(40)
    node.machine.leave_memory(900 * MI)
    await node.run_for(45)
    expect_equal(node, pressure(), "True", "MemoryPressure 45 s after the pressure")
    await node.run_until(lambda: pressure() == "False", within_s=45, what="no MemoryPressure")


@conformance(
    id="evicted-exit-zero",
    rules=["LIFE-163"],
    level=Level.DETAIL,
    needs=[API, SHORT],
    node_config=HARD,
)
async def an_evicted_pod_that_exits_zero_has_succeeded(node: Node) -> None:
    """An evicted pod whose containers all exit 0 on SIGTERM is shown as Succeeded, without a
    reason."""
    await node.api.run_pods(pod("web", container("main", runs(uses(memory_bytes=300 * MI)))))
    await node.machine.run_short("memory.available", 50 * MI)
    await node.run_until(lambda: node.api.phase("web") == "Succeeded", within_s=2 * CYCLE_S)
    expect_equal(node, (node.api.pod("web") or {})["status"].get("reason"), None, "reason")
