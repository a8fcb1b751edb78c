"""Resizes beside static managers and swap, refused ones that are asked for again, and the order in
which they come."""

from typing import Any

from kubelet_conformance.cases.lifecycle.resizing.common import (
    MI,
    NEEDS,
    PENDING,
    RESTARTS,
    api_condition,
    asking,
    main_of,
    requesting,
    resized,
    run_pod,
    until,
    updates,
)
from kubelet_conformance.cases.lifecycle.resizing.pending import free_m, pending, taking
from kubelet_conformance.cases.resources.memory import CONFIG as MEMORY
from kubelet_conformance.cases.resources.topology import SERVER
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

NODE = Feature.NODE_RESOURCES


@conformance(
    id="resize-static-memory", rules=["CG-062.1"], needs=[*NEEDS, NODE], machine=SERVER,
    node_config={**MEMORY, "memoryManagerPolicy": "Static"}, since="1.34",
)  # fmt: skip
async def pinned_memory_cannot_be_resized(node: Node) -> None:
    """Beside the memory manager's policy Static a Guaranteed pod cannot change its memory; its CPU
    and the memory of a Burstable pod can be changed."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    await node.api.resize_pod("web", "main", asking("100m", "128Mi"))
    condition = await pending(node, "web", "Infeasible")
    text = 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"'
    expect_equal(node, condition["message"], text, "message")
    await node.api.resize_pod("web", "main", asking("200m", "64Mi"))
    await resized(node, "web")
    lower: dict[str, Any] = {
        **asking("100m", "64Mi"),
        "requests": {"cpu": "100m", "memory": "32Mi"},
    }
    await run_pod(node, pod("burst", container("main", resources=lower)))
    more: dict[str, Any] = {
        "requests": {"cpu": "100m", "memory": "48Mi"},
        "limits": {"cpu": "100m", "memory": "128Mi"},
    }
    await node.api.resize_pod("burst", "main", more)
    await resized(node, "burst")


@conformance(
    id="resize-with-swap", rules=["CG-062.2"], needs=[*NEEDS, Feature.CGROUP_V2, NODE],
    node_config={"failSwapOn": False, "memorySwap": {"swapBehavior": "LimitedSwap"}},
    machine={"cores": 4, "memory_bytes": 8192 * MI, "swap_bytes": 4096 * MI}, since="1.34",
)  # fmt: skip
async def a_container_that_may_swap_keeps_its_memory_request(node: Node) -> None:
    """The memory request of a container that may swap, by which its swap is measured, is not
    changed in place; its CPU is."""
    before: dict[str, Any] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    await run_pod(node, pod("web", container("main", resources=before)))
    await node.api.resize_pod("web", "main", {"requests": {"cpu": "100m", "memory": "128Mi"}})
    condition = await pending(node, "web", "Infeasible")
    text = "In-place resize of containers with swap is not supported."
    expect_equal(node, condition["message"], text, "message")
    await node.api.resize_pod("web", "main", {"requests": {"cpu": "200m", "memory": "64Mi"}})
    await resized(node, "web")


@conformance(
    id="resize-deferred-again",
    rules=["CG-061.2", "CG-063.1", "CG-063.2", "CG-063.6"],
    needs=NEEDS,
    since="1.35",
)
async def a_resize_that_is_refused_again_changes_nothing(node: Node) -> None:
    """A deferred resize that is tried again, because another pod has left, and refused again, sends
    no second event and keeps the condition's lastTransitionTime. When the spec goes back to what
    the pod has, the condition goes."""
    part = await free_m(node, 0.6)
    await run_pod(node, taking("web", 100))
    await run_pod(node, taking("other", part))
    await run_pod(node, taking("small", 50))
    await node.api.resize_pod("web", "main", requesting(f"{part}m"))
    first = await pending(node, "web", "Deferred")
    await node.run_for(2)
    await node.api.delete_pod("small")
    await node.run_until(
        lambda: node.api.pod("small") is None,
        within_s=limits.STOP_S + 2 * limits.STATUS_PASS_S,
        what="small is gone",
    )
    await node.run_for(limits.STATUS_PASS_S)
    again = await pending(node, "web", "Deferred")
    expect_equal(node, node.event_count("ResizeDeferred", pod="web"), 1, "events ResizeDeferred")
    time = again["lastTransitionTime"]
    expect_equal(node, time, first["lastTransitionTime"], "lastTransitionTime of the condition")
    await node.api.resize_pod("web", "main", requesting("100m"))
    await until(node, lambda: not api_condition(node, "web", PENDING), "no condition any more")
    expect_equal(node, len(updates(node)), 0, "updates of containers")


@conformance(id="resize-order-of-classes", rules=["CG-061.4"], needs=NEEDS, since="1.34")
async def a_guaranteed_pod_gets_the_room_before_a_burstable_one(node: Node) -> None:
    """Of two deferred resizes of pods with the same priority that of the Guaranteed pod is carried
    out, though it came later."""
    part = await free_m(node, 0.55)
    await run_pod(node, taking("burst", 100))
    await run_pod(node, pod("sure", main_of("100m", "64Mi")))
    await run_pod(node, taking("other", part))
    for name, sizes in (("burst", requesting(f"{part}m")), ("sure", asking(f"{part}m", "64Mi"))):
        await node.api.resize_pod(name, "main", sizes)
        await pending(node, name, "Deferred")
    await node.api.delete_pod("other")
    await node.run_until(
        lambda: node.events("ResizeCompleted", pod="sure"),
        within_s=limits.STOP_S + 2 * limits.STATUS_PASS_S,
        what="the resize of sure is done",
    )
    reason = api_condition(node, "burst", PENDING).get("reason")
    expect_equal(node, reason, "Deferred", "reason of burst")


@conformance(
    id="resize-policy-of-the-other-resource",
    rules=["CG-064.3", "CG-064.4"],
    needs=NEEDS,
    since="1.34",
)
async def only_the_resource_of_the_policy_restarts(node: Node) -> None:
    """A container whose resizePolicy wants a restart for memory is updated while it runs when its
    CPU changes."""
    await run_pod(node, pod("web", main_of("100m", "64Mi", resizePolicy=RESTARTS)))
    await node.api.resize_pod("web", "main", asking("200m", "64Mi"))
    await resized(node, "web")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")
    expect_equal(node, len(updates(node)), 1, "updates")


@conformance(
    id="resize-policy-of-one-of-two", rules=["CG-064.3", "CG-064.4"], needs=NEEDS, since="1.34"
)
async def one_resource_that_restarts_is_enough(node: Node) -> None:
    """A container whose resizePolicy wants a restart for memory alone is restarted when both its
    CPU and its memory change."""
    await run_pod(node, pod("web", main_of("100m", "64Mi", resizePolicy=RESTARTS)))
    await node.api.resize_pod("web", "main", asking("200m", "96Mi"))
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=2 * limits.START_S + limits.STOP_S,
        what="a second start",
    )
    expect_equal(node, node.count("StopContainer", pod="web"), 1, "stops")
    expect_equal(node, len(updates(node)), 0, "updates")
