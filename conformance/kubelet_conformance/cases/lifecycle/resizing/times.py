"""When lastTransitionTime of the conditions of a resize moves: with their reason."""

from kubelet_conformance.cases.lifecycle.resizing.common import (
    IN_PROGRESS,
    NEEDS,
    RESIZE_S,
    api_condition,
    requesting,
    run_pod,
    until,
)
from kubelet_conformance.cases.lifecycle.resizing.pending import pending, taking, too_much_now
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance


@conformance(id="resize-pending-time", rules=["CG-063.6"], needs=NEEDS, since="1.34")
async def another_resize_that_waits_keeps_the_time(node: Node) -> None:
    """When another resize is asked for, and is Deferred as the one before, PodResizePending has
    its generation, and lastTransitionTime stays."""
    too_much = await too_much_now(node)
    await run_pod(node, taking("web", 100))
    await node.api.resize_pod("web", "main", requesting(too_much))
    first = await pending(node, "web", "Deferred")
    await node.run_for(3)
    less = f"{int(too_much.removesuffix('m')) - 10}m"
    await node.api.resize_pod("web", "main", requesting(less))
    await node.run_until(
        lambda: api_condition(node, "web", first["type"]).get("observedGeneration") == 3,
        within_s=RESIZE_S,
        what="a condition of the second resize",
    )
    again = api_condition(node, "web", first["type"])
    expect(node, again["message"] != first["message"], "another message", again["message"])
    reason_and_time = (again["reason"], again["lastTransitionTime"])
    expect_equal(
        node, reason_and_time, ("Deferred", first["lastTransitionTime"]), "reason and time"
    )


@conformance(
    id="resize-in-progress-time",
    rules=["CG-063.6"],
    needs=[*NEEDS, Feature.FAULTS],
    since="1.34",
)
async def an_error_of_a_resize_moves_the_time_and_another_error_does_not(node: Node) -> None:
    """PodResizeInProgress has a new lastTransitionTime when its reason becomes Error, which stays
    when the resize is tried again and fails with another message."""
    await run_pod(node, taking("web", 100))
    call = node.runtime.on("UpdateContainerResources", container="main")
    with call.fails("UNKNOWN", "busy 1"), call.delays(3.0):
        await node.api.resize_pod("web", "main", requesting("200m"))
        await until(node, lambda: api_condition(node, "web", IN_PROGRESS), "a resize in progress")
        first = api_condition(node, "web", IN_PROGRESS)
        expect_equal(node, first.get("reason"), None, "reason at first")
        await failed(node, "busy 1", limits.NOTICE_S + 3)
        error = api_condition(node, "web", IN_PROGRESS)
        since = error["lastTransitionTime"]
        moved = since > first["lastTransitionTime"]
        expect(node, moved, "a new lastTransitionTime with the error", [first, error])
    with call.fails("UNKNOWN", "busy 2"):
        await failed(node, "busy 2", limits.SYNC_ERROR_S + RESIZE_S)
        time_shown = api_condition(node, "web", IN_PROGRESS)["lastTransitionTime"]
        expect_equal(node, time_shown, since, "lastTransitionTime with the other error")


async def failed(node: Node, text: str, within_s: float) -> None:
    """Run until the condition of the resize in progress ends with this error."""
    await node.run_until(
        lambda: api_condition(node, "web", IN_PROGRESS).get("message", "").endswith(text),
        within_s=within_s,
        what=f"the error {text}",
    )
