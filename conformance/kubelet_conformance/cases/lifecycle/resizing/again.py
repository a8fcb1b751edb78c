"""What a second resize, a restart of the kubelet and the end of a pod do with what the status says
of an earlier resize."""

from typing import Any

from kubelet_conformance.cases.lifecycle.resizing.common import (
    IN_PROGRESS,
    NEEDS,
    PENDING,
    RESIZE_S,
    api_condition,
    asking,
    main_of,
    run_pod,
    until,
    updates,
)
from kubelet_conformance.cases.lifecycle.resizing.pending import free_m, pending, taking
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance
from kubeobjects.quantity import parse_nano

FAULTS, RESTART = Feature.FAULTS, Feature.RESTART
UPDATE = "UpdateContainerResources"


def error_of(node: Node) -> tuple[Any, Any]:
    """Reason and generation of the condition PodResizeInProgress."""
    condition = api_condition(node, "web", IN_PROGRESS)
    return condition.get("reason"), condition.get("observedGeneration")


async def failed(node: Node) -> None:
    """Run until the resize of the pod web is told to have failed."""
    await until(node, lambda: error_of(node)[0] == "Error", "reason Error")


@conformance(
    id="resize-error-forgotten",
    rules=["LIFE-186.2", "CG-063"],
    needs=[*NEEDS, FAULTS],
    since="1.34",
)
async def the_next_resize_begins_without_an_error(node: Node) -> None:
    """A resize that is admitted while an earlier one fails has a condition of its own, with its own
    generation, and when it succeeds nothing is told of the earlier error. While nothing is admitted
    the error of the first one stays."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    with node.runtime.on(UPDATE, container="main").fails("UNKNOWN", "busy"):
        await node.api.resize_pod("web", "main", asking("200m", "96Mi"))
        await failed(node)
        expect_equal(node, error_of(node), ("Error", 2), "the first resize")
        for _ in range(8):
            await node.run_for(1)
            expect_equal(node, error_of(node), ("Error", 2), "the first resize a while later")
        await node.api.resize_pod("web", "main", asking("300m", "128Mi"))
        await until(node, lambda: error_of(node)[1] == 3, "the second resize")
    await until(node, lambda: not api_condition(node, "web", IN_PROGRESS), "the second is done")


@conformance(
    id="resize-error-over-restart",
    rules=["LIFE-186.3", "CG-063"],
    needs=[*NEEDS, FAULTS, RESTART],
    since="1.35",
)
async def a_restart_keeps_what_is_told_of_resizes(node: Node) -> None:
    """A kubelet that starts takes over both conditions: a resize that fails is still told to fail,
    one that waits still waits, with their generations."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    await run_pod(node, taking("big", 100))
    much = f"{await free_m(node, 3)}m"
    with node.runtime.on(UPDATE, container="main", pod="web").fails("UNKNOWN", "busy"):
        await node.api.resize_pod("web", "main", asking("200m", "96Mi"))
        await failed(node)
        await node.api.resize_pod("big", "main", {"requests": {"cpu": much}})
        await pending(node, "big", "Deferred")
        waits = api_condition(node, "big", PENDING)
        await node.kubelet.restart()
        for _ in range(12):
            await node.run_for(1)
            expect_equal(node, error_of(node), ("Error", 2), "the resize that fails")
            condition = api_condition(node, "big", PENDING)
            condition_fields = (condition.get("reason"), condition.get("observedGeneration"))
            expect_equal(node, condition_fields, ("Deferred", 2), "the resize that waits")
    expect_equal(node, waits["reason"], "Deferred", "reason before the restart")


@conformance(
    id="resize-conditions-at-the-end", rules=["LIFE-186.1"], needs=[*NEEDS, FAULTS], since="1.35"
)
async def a_pod_that_ends_has_no_resize(node: Node) -> None:
    """Both conditions are removed when a pod ends by itself, whatever its resize waits for."""
    brief = container("main", exits(0, after_s=25), resources={"requests": {"cpu": "100m"}})
    await run_pod(node, pod("web", brief, restartPolicy="Never"))
    much = f"{await free_m(node, 3)}m"
    await node.api.resize_pod("web", "main", {"requests": {"cpu": much}})
    await pending(node, "web", "Deferred")
    await node.run_until(
        lambda: node.api.phase("web") == "Succeeded",
        within_s=25 + limits.START_S + RESIZE_S,
        what="web has ended",
    )
    await node.run_for(limits.NOTICE_S)
    for kind in (PENDING, IN_PROGRESS):
        expect_equal(node, api_condition(node, "web", kind), {}, f"condition {kind}")


@conformance(
    id="resize-room-of-the-ended", rules=["CG-061.8", "LIFE-186"], needs=NEEDS, since="1.36"
)
async def a_pod_that_has_ended_makes_room_at_once(node: Node) -> None:
    """A deferred resize is admitted soon after another pod has ended, though the object of that pod
    is still there."""
    part_m = await free_m(node, 0.5)
    brief = container("main", exits(0, after_s=25), resources={"requests": {"cpu": f"{part_m}m"}})
    await run_pod(node, pod("big", brief, restartPolicy="Never"))
    await run_pod(node, taking("web", 100))
    resources = {"requests": {"cpu": f"{await free_m(node, 0.75)}m"}}
    await node.api.resize_pod("web", "main", resources)
    await pending(node, "web", "Deferred")
    await node.run_until(
        lambda: node.api.phase("big") == "Succeeded",
        within_s=25 + limits.START_S + RESIZE_S,
        what="big has ended",
    )
    await until(node, lambda: not api_condition(node, "web", PENDING), "the resize is admitted")
    expect(node, node.api.pod("big"), "the object of big is still there")
    await until(
        node,
        lambda: (
            parse_nano(node.api.container("web", "main")["allocatedResources"]["cpu"])
            == parse_nano(resources["requests"]["cpu"])
        ),
        "the amount is allocated",
    )


@conformance(id="resize-after-the-init", rules=["LIFE-122.1"], needs=[*NEEDS, FAULTS], since="1.36")
async def a_resize_waits_for_an_init_container_that_cannot_start(node: Node) -> None:
    """While a plain init container cannot be created the syncs of its pod end there: the sidecar
    before it is not resized. It is in the sync that starts the init container."""
    side = main_of("100m", "64Mi", name="side", restartPolicy="Always")
    setup = container("setup", exits(0, after_s=30))
    with node.runtime.on("CreateContainer", container="setup").fails("UNKNOWN", "no space"):
        await node.api.create_pod(pod("web", init=[side, setup]))
        await node.run_until(
            lambda: node.count("CreateContainer", container="setup"), within_s=limits.START_S
        )
        await node.api.resize_pod("web", "side", asking("200m", "64Mi"), init=True)
        tries = node.count("CreateContainer", container="setup")
        await node.run_until(
            lambda: node.count("CreateContainer", container="setup") >= tries + 2,
            within_s=2 * limits.SYNC_ERROR_S + limits.NOTICE_S,
            what="two more tries",
        )
        expect_equal(node, len(updates(node, "side")), 0, "updates while setup cannot start")
    await node.run_until(
        lambda: updates(node, "side"),
        within_s=limits.SYNC_ERROR_S + limits.NOTICE_S,
        what="side is resized",
    )
    starts = node.times_s("StartContainer", container="setup")
    updated_s = node.times_s("UpdateContainerResources", container="side")[0]
    expect(node, starts and starts[0] <= updated_s, "setup starts before the resize", starts)
