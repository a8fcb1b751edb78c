"""Resizes that are not possible, or not yet: the condition PodResizePending."""

from typing import Any

from kubelet_conformance.cases.eviction.common import has_condition
from kubelet_conformance.cases.lifecycle.resizing.common import (
    MI,
    NEEDS,
    PENDING,
    api_condition,
    asking,
    main_of,
    message,
    requesting,
    resized,
    run_pod,
    until,
    updates,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, Level, conformance
from kubeobjects.quantity import NANO, parse_nano

STATIC_CPUS = {"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "500m"}}
TOO_MUCH = "1000"


def taking(name: str, cpu_m: int, **spec: Any) -> Any:
    """A pod that requests that much CPU."""
    return pod(name, container("main", resources=requesting(f"{cpu_m}m")), **spec)


async def free_m(node: Node, share: float) -> int:
    """`share` of the CPU that the node can give to pods (0.5: half of it), in millicores."""
    await node.run_until(lambda: node.api.allocatable("cpu"), within_s=limits.START_S)
    return int(1000 * parse_nano(node.api.allocatable("cpu")) // NANO * share)


async def too_much_now(node: Node) -> str:
    """CPU that the node has, but not beside `other`, a pod with half of it that this runs."""
    await run_pod(node, taking("other", await free_m(node, 0.5)))
    return f"{await free_m(node, 0.75)}m"


async def pending(node: Node, pod_name: str, reason: str) -> dict[str, Any]:
    """Run until the condition PodResizePending has that reason, and its event is there."""
    await until(
        node,
        lambda: api_condition(node, pod_name, PENDING).get("reason") == reason,
        f"{PENDING} {reason} of {pod_name}",
    )
    await node.events_arrive()
    return api_condition(node, pod_name, PENDING)


@conformance(
    id="resize-deferred", rules=["CG-062", "CG-063", "LIFE-186"], needs=NEEDS, since="1.36"
)
async def a_resize_without_room_is_deferred(node: Node) -> None:
    """A resize that does not fit is Deferred, even if it asks for more than the node has in all
    (until 1.35 that was Infeasible), and the condition has the message of the refusal.

    The event names the reason of the refusal itself, and the container keeps what it has.
    """
    await run_pod(node, taking("web", 100))
    await node.api.resize_pod("web", "main", requesting(TOO_MUCH))
    condition = await pending(node, "web", "Deferred")
    expect_equal(node, condition["observedGeneration"], 2, "observedGeneration")
    start = "Node didn't have enough resource: cpu, requested: 1000000, used: 0, capacity: "
    expect(node, condition["message"].startswith(start), start, condition["message"])
    words, summary = message(node, "ResizeDeferred", "web")
    expect_equal(node, words, "Pod resize OutOfcpu", "text of the event ResizeDeferred")
    expect_equal(node, summary["error"], condition["message"], "error in the event ResizeDeferred")
    expect_equal(node, summary["generation"], 2, "generation in the event ResizeDeferred")
    status = node.api.container("web", "main")
    expect_equal(node, status["allocatedResources"], {"cpu": "100m"}, "allocated resources")
    expect_equal(node, len(updates(node)), 0, "updates")


@conformance(id="resize-deferred-accepted", rules=["CG-061", "LIFE-186"], needs=NEEDS, since="1.34")
async def a_deferred_resize_comes_when_another_pod_leaves(node: Node) -> None:
    """When another pod has left and there is room, the condition is removed and the resize is
    carried out."""
    part = await free_m(node, 0.6)
    await run_pod(node, taking("web", 100))
    await run_pod(node, taking("other", part))
    await node.api.resize_pod("web", "main", requesting(f"{part}m"))
    await pending(node, "web", "Deferred")
    await node.api.delete_pod("other")
    await node.run_until(
        lambda: node.events("ResizeCompleted", pod="web"),
        within_s=limits.STOP_S + 2 * limits.STATUS_PASS_S,
        what="the resize is done",
    )
    await until(node, lambda: not api_condition(node, "web", PENDING), "no condition any more")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops of web")


@conformance(
    id="resize-deferred-smaller", rules=["CG-061", "LIFE-014.1"], needs=NEEDS, since="1.34"
)
async def a_deferred_resize_comes_when_another_pod_shrinks(node: Node) -> None:
    """A deferred resize is also carried out when the resize of another pod leaves room for it."""
    part = await free_m(node, 0.6)
    await run_pod(node, taking("web", 100))
    await run_pod(node, taking("other", part))
    await node.api.resize_pod("web", "main", requesting(f"{part}m"))
    await pending(node, "web", "Deferred")
    await node.api.resize_pod("other", "main", requesting("100m"))
    await resized(node, "web")


@conformance(id="resize-order", rules=["CG-061"], needs=NEEDS, since="1.34")
async def the_higher_priority_gets_the_room(node: Node) -> None:
    """Of two deferred resizes that of the pod with the higher priority is carried out, though it
    came later; the other stays deferred."""
    part = await free_m(node, 0.55)
    await run_pod(node, taking("low", 100, priority=1))
    await run_pod(node, taking("high", 100, priority=5))
    await run_pod(node, taking("other", part))
    for name in ("low", "high"):
        await node.api.resize_pod(name, "main", requesting(f"{part}m"))
        await pending(node, name, "Deferred")
    await node.api.delete_pod("other")
    await node.run_until(
        lambda: node.events("ResizeCompleted", pod="high"),
        within_s=limits.STOP_S + 2 * limits.STATUS_PASS_S,
        what="the resize of high is done",
    )
    expect_equal(node, api_condition(node, "low", PENDING)["reason"], "Deferred", "reason of low")


PRESSURE = {
    "evictionSoft": {"nodefs.available": "1Gi"},
    "evictionSoftGracePeriod": {"nodefs.available": "1h"},
    "evictionPressureTransitionPeriod": "5s",
}


async def deferred_under_pressure(node: Node) -> None:
    """Expect that a resize of web is deferred while the node has DiskPressure."""
    await run_pod(node, taking("web", 200))
    node.machine.leave_disk(500 * MI)
    await has_condition(node, "DiskPressure")
    await node.api.resize_pod("web", "main", requesting("100m"))
    condition = await pending(node, "web", "Deferred")
    text = "The node had condition: [DiskPressure]. "
    expect_equal(node, condition["message"], text, "message")


@conformance(id="resize-under-pressure", rules=["EVIC-113", "LIFE-186"], level=Level.DETAIL,
             needs=[*NEEDS, Feature.NODE_RESOURCES, Feature.VIRTUAL_TIME], node_config=PRESSURE,
             since="1.34")  # fmt: skip
async def under_pressure_a_resize_is_deferred(node: Node) -> None:
    """While the node has DiskPressure every resize is deferred, even one that asks for less;
    afterwards it is carried out."""
    await deferred_under_pressure(node)
    node.machine.leave_disk(5000 * MI)
    await has_condition(node, "DiskPressure", "False")
    await node.run_until(
        lambda: node.events("ResizeCompleted", pod="web"), within_s=200, what="the resize is done"
    )


@conformance(id="resize-under-pressure-event", rules=["EVIC-113", "LIFE-186"], level=Level.DETAIL,
             needs=[*NEEDS, Feature.NODE_RESOURCES], node_config=PRESSURE,
             since="1.36")  # fmt: skip
async def the_event_names_why_a_resize_is_deferred(node: Node) -> None:
    """The event of a resize that is deferred for DiskPressure says what a refused pod is told:
    Evicted."""
    await deferred_under_pressure(node)
    expect_equal(node, message(node, "ResizeDeferred", "web")[0], "Pod resize Evicted", "text")


@conformance(id="resize-taken-back", rules=["CG-061", "LIFE-186"], needs=NEEDS, since="1.33")
async def a_pending_resize_can_be_taken_back(node: Node) -> None:
    """When the spec again asks for what the pod has, the condition is removed and nothing is
    updated."""
    too_much = await too_much_now(node)
    await run_pod(node, taking("web", 100))
    await node.api.resize_pod("web", "main", requesting(too_much))
    await pending(node, "web", "Deferred")
    await node.api.resize_pod("web", "main", requesting("100m"))
    await until(node, lambda: not api_condition(node, "web", PENDING), "no condition any more")
    expect_equal(node, len(updates(node)), 0, "updates")


@conformance(
    id="resize-infeasible",
    rules=["CG-062", "CG-063"],
    needs=NEEDS,
    node_config=STATIC_CPUS,
    since="1.35",
)
async def a_guaranteed_pod_keeps_its_cpus_under_the_static_policy(node: Node) -> None:
    """With cpuManagerPolicy static a resize of a Guaranteed pod's CPU is Infeasible and not tried
    again; its memory can be resized."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    await node.api.resize_pod("web", "main", asking("200m", "64Mi"))
    condition = await pending(node, "web", "Infeasible")
    text = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
    expect_equal(node, condition["message"], text, "message")
    words, summary = message(node, "ResizeInfeasible", "web")
    expect_equal(node, (words, summary["error"]), ("Pod resize Infeasible", text), "event")
    await node.api.resize_pod("web", "main", asking("100m", "96Mi"))
    await resized(node, "web")
    expect_equal(node, updates(node)[-1].memory_limit_in_bytes, 96 * MI, "memory limit")
    await until(node, lambda: not api_condition(node, "web", PENDING), "no condition any more")
