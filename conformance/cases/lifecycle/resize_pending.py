"""Resizes that are not possible, or not yet, and what a restart of the kubelet does to them."""

import json
from typing import Any

from lightkube.models.core_v1 import ResourceRequirements

from conformance.cases.eviction.common import has_condition
from conformance.cases.lifecycle.resize import (
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
from conformance.harness import limits
from conformance.harness.expect import expect, expect_equal
from conformance.harness.manifests import container, pod
from conformance.harness.node import Node
from conformance.registry import Feature, Level, conformance
from refkubelet.allocation.checkpoint import decode, encode
from refkubelet.allocation.resources import PodResources
from refkubelet.model.quantity import NANO, parse_nano

STATIC_CPUS = {"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "500m"}}
FIRST_RETRY_S = 30.0
TOO_MUCH = "1000"


def taking(name: str, cpu_m: int, **spec: Any) -> Any:
    """A pod that requests that much CPU."""
    return pod(name, container("main", resources=requesting(f"{cpu_m}m")), **spec)


async def free_m(node: Node, share: float) -> int:
    """That percentage of the CPU that the node can give to pods, in millicores."""
    await node.run_until(lambda: node.api.allocatable("cpu"), within_s=limits.START_S)
    return int(1000 * parse_nano(node.api.allocatable("cpu")) // NANO * share)


async def pending(node: Node, pod_name: str, reason: str) -> dict[str, Any]:
    """Run until the condition PodResizePending has that reason."""
    await until(
        node,
        lambda: api_condition(node, pod_name, PENDING).get("reason") == reason,
        f"{PENDING} {reason} of {pod_name}",
    )
    return api_condition(node, pod_name, PENDING)


@conformance(id="resize-deferred", rules=["CG-062", "CG-063", "LIFE-186"], needs=NEEDS)
async def a_resize_without_room_is_deferred(node: Node) -> None:
    """A resize that does not fit is Deferred, even if it asks for more than the node has in all,
    and the condition has the message of the refusal.

    The event names the reason of the refusal itself, and the container keeps what it has.
    """
    await run_pod(node, taking("web", 100))
    await node.api.resize_pod("web", "main", requesting(TOO_MUCH))
    condition = await pending(node, "web", "Deferred")
    expect_equal(node, condition["observedGeneration"], 2, "observedGeneration")
    wanted = "Node didn't have enough resource: cpu, requested: 1000000, used: 0, capacity: "
    expect(node, condition["message"].startswith(wanted), wanted, condition["message"])
    words, summary = message(node, "ResizeDeferred", "web")
    expect_equal(node, words, "Pod resize OutOfcpu", "words of ResizeDeferred")
    expect_equal(node, summary["error"], condition["message"], "error of ResizeDeferred")
    expect_equal(node, summary["generation"], 2, "generation of ResizeDeferred")
    told = node.api.container("web", "main")
    expect_equal(node, told["allocatedResources"], {"cpu": "100m"}, "allocated resources")
    expect_equal(node, len(updates(node)), 0, "updates")


@conformance(id="resize-deferred-accepted", rules=["CG-061", "LIFE-186"], needs=NEEDS)
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


@conformance(id="resize-deferred-smaller", rules=["CG-061"], needs=NEEDS)
async def a_deferred_resize_comes_when_another_pod_shrinks(node: Node) -> None:
    """A deferred resize is also carried out when the resize of another pod leaves room for it."""
    part = await free_m(node, 0.6)
    await run_pod(node, taking("web", 100))
    await run_pod(node, taking("other", part))
    await node.api.resize_pod("web", "main", requesting(f"{part}m"))
    await pending(node, "web", "Deferred")
    await node.api.resize_pod("other", "main", requesting("100m"))
    await resized(node, "web")


@conformance(id="resize-order", rules=["CG-061"], needs=NEEDS)
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


@conformance(
    id="resize-under-pressure",
    rules=["EVIC-113", "LIFE-186"],
    level=Level.DETAIL,
    needs=[*NEEDS, Feature.NODE_RESOURCES],
    node_config={
        "evictionSoft": {"nodefs.available": "1Gi"},
        "evictionSoftGracePeriod": {"nodefs.available": "1h"},
        "evictionPressureTransitionPeriod": "5s",
    },
)
async def under_pressure_a_resize_is_deferred(node: Node) -> None:
    """While the node has DiskPressure every resize is deferred, even one that asks for less;
    afterwards it is carried out."""
    await run_pod(node, taking("web", 200))
    node.machine.leave_disk(500 * MI)
    await has_condition(node, "DiskPressure")
    await node.api.resize_pod("web", "main", requesting("100m"))
    condition = await pending(node, "web", "Deferred")
    text = "The node had condition: [DiskPressure]. "
    expect_equal(node, condition["message"], text, "message")
    expect_equal(node, message(node, "ResizeDeferred", "web")[0], "Pod resize Evicted", "words")
    node.machine.leave_disk(5000 * MI)
    await has_condition(node, "DiskPressure", "False")
    await node.run_until(
        lambda: node.events("ResizeCompleted", pod="web"), within_s=200, what="the resize is done"
    )


@conformance(id="resize-taken-back", rules=["CG-061", "LIFE-186"], needs=NEEDS)
async def a_pending_resize_can_be_taken_back(node: Node) -> None:
    """When the spec again asks for what the pod has, the condition is removed and nothing is
    updated."""
    await run_pod(node, taking("web", 100))
    await node.api.resize_pod("web", "main", requesting(TOO_MUCH))
    await pending(node, "web", "Deferred")
    await node.api.resize_pod("web", "main", requesting("100m"))
    await until(node, lambda: not api_condition(node, "web", PENDING), "no condition any more")
    expect_equal(node, len(updates(node)), 0, "updates")


@conformance(
    id="resize-infeasible", rules=["CG-062", "CG-063"], needs=NEEDS, node_config=STATIC_CPUS
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


@conformance(id="resize-deferred-restart", rules=["CG-060"], needs=[*NEEDS, Feature.RESTART])
async def a_deferred_resize_survives_a_restart_of_the_kubelet(node: Node) -> None:
    """A restarted kubelet admits a pod with the resources that were allocated to it, not with those
    of its spec, which the node does not have: the pod keeps running, and its resize is still
    Deferred."""
    await run_pod(node, taking("web", 100))
    await node.api.resize_pod("web", "main", requesting(TOO_MUCH))
    await pending(node, "web", "Deferred")
    await node.kubelet.restart()
    await node.run_for(2 * limits.NOTICE_S)
    await node.run_until(lambda: node.running("web"), within_s=limits.START_S)
    expect_equal(node, node.api.phase("web"), "Running", "phase")
    expect_equal(node, api_condition(node, "web", PENDING)["reason"], "Deferred", "reason")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")
    await node.api.resize_pod("web", "main", requesting("200m"))
    await resized(node, "web")


@conformance(id="resize-restart-done", rules=["CG-060", "CG-064"], needs=[*NEEDS, Feature.RESTART])
async def a_finished_resize_is_not_done_again_after_a_restart(node: Node) -> None:
    """A restarted kubelet knows the resources that its containers were given, and neither updates
    nor restarts them."""
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    await run_pod(node, pod("web", main_of("100m", "64Mi", resizePolicy=policy)))
    await node.api.resize_pod("web", "main", asking("100m", "96Mi"))
    await resized(node, "web")
    before = (node.count("StopContainer", pod="web"), node.count("UpdateContainerResources"))
    await node.kubelet.restart()
    await node.run_for(3 * limits.NOTICE_S)
    after = (node.count("StopContainer", pod="web"), node.count("UpdateContainerResources"))
    expect_equal(node, after, before, "stops and updates")


@conformance(id="resize-while-down", rules=["CG-060", "CG-061"], needs=[*NEEDS, Feature.RESTART])
async def a_resize_made_while_the_kubelet_is_down_is_done_by_the_next(node: Node) -> None:
    """A restarted kubelet finds a spec that differs from what is allocated and resizes the running
    container, after 30 s unless something makes it look earlier."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    await node.kubelet.stop()
    await node.api.resize_pod("web", "main", asking("200m", "64Mi"))
    await node.kubelet.start()
    await node.run_until(
        lambda: updates(node), within_s=FIRST_RETRY_S + limits.NOTICE_S, what="an update"
    )
    expect_equal(node, [r.cpu_quota for r in updates(node)], [20_000], "CPU quota")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")
    started = node.events("ResizeStarted", pod="web")
    expect_equal(node, len(started), 1, "events ResizeStarted")


@conformance(
    id="resize-killed-in-between",
    rules=["CG-060", "CG-065"],
    needs=[*NEEDS, Feature.RESTART, Feature.FAULTS],
)
async def a_resize_goes_on_after_the_kubelet_was_killed_in_between(node: Node) -> None:
    """When the kubelet is killed after memory was updated and before CPU was, the next kubelet
    updates CPU."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    with node.runtime.on("UpdateContainerResources", container="main").delays(1.5):
        await node.api.resize_pod("web", "main", asking("200m", "96Mi"))
        await until(node, lambda: len(updates(node)) == 2, "memory was updated, CPU is under way")
        await node.kubelet.kill()
    await node.kubelet.start()
    await node.run_until(
        lambda: len(updates(node)) == 3, within_s=limits.START_S + limits.NOTICE_S, what="the rest"
    )
    seen = [(r.memory_limit_in_bytes // MI, r.cpu_quota) for r in updates(node)]
    expect_equal(node, seen, [(96, 10_000), (96, 20_000), (96, 20_000)], "memory, CPU quota")
    await resized(node, "web")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")


@conformance(id="resize-checkpoint", rules=["CG-060"], needs=NEEDS)
async def the_checkpoint_has_what_was_allocated(node: Node) -> None:
    """`allocated_pods_state` and `actuated_pods_state` hold the resources of each container, and
    change with a resize."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    expect_equal(node, noted(node), [asking("100m", "64Mi")] * 2, "allocated, actuated")
    await node.api.resize_pod("web", "main", asking("200m", "64Mi"))
    await resized(node, "web")
    expect_equal(node, noted(node), [asking("200m", "64Mi")] * 2, "allocated, actuated")


FILES = ("allocated_pods_state", "actuated_pods_state")


def noted(node: Node) -> list[Any]:
    """The resources of the container main in both files; the checksum must be a number."""
    found = []
    for file in FILES:
        whole = json.loads(node.machine.read_root_file(file))
        expect(node, whole["checksum"] > 0, "a checksum", whole["checksum"])
        (entry,) = json.loads(whole["data"])["entries"].values()
        found.append(entry["ContainerResources"]["main"])
    return found


@conformance(id="resize-checkpoint-used", rules=["CG-060"], needs=[*NEEDS, Feature.RESTART])
async def the_checkpoint_counts_not_the_spec(node: Node) -> None:
    """Checkpoints that another program wrote are read at the start: the pod has the resources that
    they hold, and 30 s later its spec is found to ask for others."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    await node.kubelet.stop()
    for file in FILES:
        text = node.machine.read_root_file(file)
        entries = decode(text)
        expect_equal(node, encode(entries), text, f"text of {file}, written by the suite")
        (uid,) = entries
        given = {"main": ResourceRequirements(**asking("150m", "64Mi"))}
        node.machine.write_root_file(file, encode({uid: PodResources(given)}))
    await node.kubelet.start()
    await node.run_until(
        lambda: updates(node), within_s=FIRST_RETRY_S + limits.NOTICE_S, what="an update"
    )
    expect_equal(node, [r.cpu_quota for r in updates(node)], [10_000], "CPU quota")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")


@conformance(id="resize-checkpoint-corrupt", rules=["CG-060"], needs=[*NEEDS, Feature.RESTART])
async def a_corrupt_checkpoint_stops_the_start(node: Node) -> None:
    """With a checkpoint whose checksum does not fit its data the kubelet does not start, and pods
    keep running."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    for file in FILES:
        text = node.machine.read_root_file(file)
        node.machine.write_root_file(file, json.dumps({**json.loads(text), "checksum": 1}))
        await node.kubelet.refused_start()
        node.machine.write_root_file(file, text)
        await node.kubelet.start()
    await node.run_until(lambda: node.running("web"), within_s=limits.START_S)
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")
