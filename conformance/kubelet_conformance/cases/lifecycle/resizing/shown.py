"""What a status shows of a resize, and what other pods may count on meanwhile."""

from typing import Any

from kubelet_conformance.cases.lifecycle.resizing.common import (
    IN_PROGRESS,
    NEEDS,
    RESIZE_S,
    api_condition,
    asking,
    main_of,
    requesting,
    resized,
    run_pod,
    until,
)
from kubelet_conformance.cases.lifecycle.resizing.pending import (
    free_m,
    pending,
    taking,
    too_much_now,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance


def in_progress(node: Node) -> tuple[Any, ...]:
    """Generation, reason and the end of the message of the condition PodResizeInProgress."""
    row = api_condition(node, "web", IN_PROGRESS)
    return row.get("observedGeneration"), row.get("reason"), row.get("message", "")[-6:]


@conformance(
    id="resize-in-progress-generation",
    rules=["CG-063.6"],
    needs=[*NEEDS, Feature.FAULTS],
    since="1.34",
)
async def the_resize_in_progress_keeps_its_generation(node: Node) -> None:
    """While a resize fails again and again, and a later one is Deferred, PodResizeInProgress has
    the generation of the first one, also when its error is told anew; PodResizePending has the
    later one."""
    too_much = await too_much_now(node)
    await run_pod(node, taking("web", 100))
    call = "UpdateContainerResources"
    with node.runtime.on(call, container="main").fails("UNKNOWN", "busy 1"):
        await node.api.resize_pod("web", "main", requesting("200m"))
        await until(node, lambda: in_progress(node) == (2, "Error", "busy 1"), "reason Error")
    with node.runtime.on(call, container="main").fails("UNKNOWN", "busy 2"):
        await node.api.resize_pod("web", "main", requesting(too_much))
        condition = await pending(node, "web", "Deferred")
        expect_equal(node, condition["observedGeneration"], 3, "generation of PodResizePending")
        await node.run_until(
            lambda: in_progress(node)[2] == "busy 2",
            within_s=limits.SYNC_ERROR_S + RESIZE_S,
            what="the second error is told",
        )
        expect_equal(node, in_progress(node), (2, "Error", "busy 2"), "resize in progress")


@conformance(
    id="resize-pod-level-off", rules=["CG-061.7"], needs=[*NEEDS, Feature.RESTART], since="1.36"
)
async def without_the_gate_no_status_has_resources_of_a_pod(node: Node) -> None:
    """A kubelet that does not resize pods as a whole shows no resources of theirs, and takes away
    what an earlier kubelet has shown."""

    def shown() -> list[bool]:
        status = (node.api.pod("web") or {}).get("status") or {}
        return [name in status for name in ("resources", "allocatedResources")]

    await run_pod(node, pod("web", container("main"), resources=asking("200m", "128Mi")))
    await until(node, lambda: shown() == [True, True], "the status has the pod's resources")
    await node.kubelet.restart(featureGates={"InPlacePodLevelResourcesVerticalScaling": False})
    await until(node, lambda: shown() == [False, False], "the status has them no more")
    await run_pod(node, pod("new", container("main"), resources=asking("230m", "128Mi")))
    await node.run_for(limits.NOTICE_S)
    checkpoint = node.machine.read_root_file("allocated_pods_state")
    expect(node, "230m" not in checkpoint, f"no resources of the pod in {checkpoint!r}")


@conformance(id="resize-status-of-memory", rules=["CG-063.4"], needs=NEEDS, since="1.34")
async def the_memory_request_is_shown_as_it_was_sent(node: Node) -> None:
    """The kubelet sends the memory limit in bytes, as the runtime tells it; the memory request,
    which no runtime tells, as the spec has it until the first resize, and in bytes from then on."""
    await run_pod(node, pod("web", main_of("100m", "100M")))
    expect_sent(node, request="100M", limit="100000000")
    await node.api.resize_pod("web", "main", asking("100m", "200M"))
    await resized(node, "web")
    await node.run_for(limits.STATUS_PASS_S)
    expect_sent(node, request="200000000", limit="200000000")


def expect_sent(node: Node, *, request: str, limit: str) -> None:
    """Expect this memory in the resources of main that the kubelet has sent last: the API server
    writes amounts in one form, whatever it is sent."""
    patches = node.api.requests("PATCH", "/pods/web/status$")
    lists = [patch.body["status"].get("containerStatuses") for patch in patches]
    main = next(containers for containers in reversed(lists) if containers)[0]
    resources = main["resources"]
    memory = resources["requests"]["memory"], resources["limits"]["memory"]
    expect_equal(node, memory, (request, limit), "memory request and limit in the status of main")


@conformance(
    id="resize-room-in-use", rules=["CG-061.6"], needs=[*NEEDS, Feature.FAULTS], since="1.34"
)
async def what_a_pod_still_holds_is_not_given_away(node: Node) -> None:
    """What another pod has been asked to give up counts as used until its container has given it
    up: only then the resize that needs it begins."""
    part = await free_m(node, 0.6)
    await run_pod(node, taking("web", 100))
    await run_pod(node, pod("other", container("large", resources=requesting(f"{part}m"))))
    await node.api.resize_pod("web", "main", requesting(f"{part}m"))
    await pending(node, "web", "Deferred")
    call = "UpdateContainerResources"
    with node.runtime.on(call, container="large").delays(5):
        await node.api.resize_pod("other", "large", requesting("100m"))
        await node.run_until(
            lambda: node.calls(call, container="main"),
            within_s=5 + 2 * RESIZE_S,
            what="web is updated",
        )
        (gave,) = node.calls(call, container="large")
        expect(node, gave.succeeded, "other has been updated before web is")
    await resized(node, "web")
