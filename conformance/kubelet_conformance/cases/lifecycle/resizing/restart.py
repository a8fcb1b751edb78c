"""Resizes over a restart of the kubelet: what it knows of them, and the checkpoints it keeps."""

import json
from typing import Any

from lightkube.models.core_v1 import ResourceRequirements

from kubelet_conformance.cases.lifecycle.resizing.common import (
    MI,
    NEEDS,
    PENDING,
    api_condition,
    asking,
    main_of,
    requesting,
    resized,
    run_pod,
    until,
    updates,
)
from kubelet_conformance.cases.lifecycle.resizing.pending import pending, taking, too_much_now
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance
from refkubelet.allocation.checkpoint import decode, encode
from refkubelet.allocation.resources import PodResources

FIRST_RETRY_S = 30.0
FILES = ("allocated_pods_state", "actuated_pods_state")


@conformance(
    id="resize-deferred-restart", rules=["CG-060"], needs=[*NEEDS, Feature.RESTART], since="1.34"
)
async def a_deferred_resize_survives_a_restart_of_the_kubelet(node: Node) -> None:
    """A restarted kubelet admits a pod with the resources that were allocated to it, not with those
    of its spec, which the node does not have left: the pod keeps running, and its resize is still
    Deferred."""
    too_much = await too_much_now(node)
    await run_pod(node, taking("web", 100))
    await node.api.resize_pod("web", "main", requesting(too_much))
    await pending(node, "web", "Deferred")
    await node.kubelet.restart()
    await node.run_for(2 * limits.NOTICE_S)
    await node.run_until(lambda: node.running("web"), within_s=limits.START_S)
    expect_equal(node, node.api.phase("web"), "Running", "phase")
    expect_equal(node, api_condition(node, "web", PENDING)["reason"], "Deferred", "reason")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")
    await node.api.resize_pod("web", "main", requesting("200m"))
    await resized(node, "web")


@conformance(
    id="resize-restart-done",
    rules=["CG-060", "CG-064"],
    needs=[*NEEDS, Feature.RESTART],
    since="1.34",
)
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


@conformance(
    id="resize-while-down",
    rules=["CG-060", "CG-061"],
    needs=[*NEEDS, Feature.RESTART],
    since="1.35",
)
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
    await until(node, lambda: node.events("ResizeStarted", pod="web"), "the event ResizeStarted")
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.event_count("ResizeStarted", pod="web"), 1, "events ResizeStarted")


@conformance(
    id="resize-order-of-decreases",
    rules=["CG-061.3", "CG-061.4"],
    needs=[*NEEDS, Feature.RESTART],
    since="1.35",
)
async def what_asks_for_less_comes_before_what_asks_for_more(node: Node) -> None:
    """Two resizes that an earlier kubelet left are looked at together, 30 s after the start: that
    of the pod that asks for less comes first, though the other pod has the higher priority."""
    await run_pod(node, taking("more", 100, priority=5))
    await run_pod(node, taking("less", 200, priority=1))
    await node.kubelet.stop()
    await node.api.resize_pod("more", "main", requesting("200m"))
    await node.api.resize_pod("less", "main", requesting("100m"))
    started_s = node.now_s
    await node.kubelet.start()
    await node.run_until(
        lambda: node.event_count("ResizeStarted") == 2,
        within_s=FIRST_RETRY_S + limits.SETTLE_S + limits.NOTICE_S,
        what="both resizes are begun",
    )
    took_s = node.now_s - started_s
    expect(node, took_s > FIRST_RETRY_S / 2, "nothing is begun in the first 15 s", took_s)
    pods = [e["involvedObject"]["name"] for e in node.events("ResizeStarted")]
    expect_equal(node, pods, ["less", "more"], "pods of the events ResizeStarted")


@conformance(
    id="resize-killed-in-between",
    rules=["CG-060", "CG-065"],
    needs=[*NEEDS, Feature.RESTART, Feature.FAULTS],
    since="1.34",
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
        lambda: len(updates(node)) == 3, within_s=limits.START_S + limits.NOTICE_S, what="CPU too"
    )
    amounts = [(r.memory_limit_in_bytes // MI, r.cpu_quota) for r in updates(node)]
    expect_equal(node, amounts, [(96, 10_000), (96, 20_000), (96, 20_000)], "memory, CPU quota")
    await resized(node, "web")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")


@conformance(id="resize-checkpoint", rules=["CG-060"], needs=NEEDS, since="1.34")
async def the_checkpoint_has_what_was_allocated(node: Node) -> None:
    """`allocated_pods_state` and `actuated_pods_state` hold the resources of each container, and
    change with a resize."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    expect_equal(node, noted(node), [asking("100m", "64Mi")] * 2, "resources in the two files")
    await node.api.resize_pod("web", "main", asking("200m", "64Mi"))
    await resized(node, "web")
    expect_equal(node, noted(node), [asking("200m", "64Mi")] * 2, "resources in the two files")


def noted(node: Node) -> list[Any]:
    """The resources of the container main in both files; the checksum must be a number."""
    resources = []
    for file in FILES:
        whole = json.loads(node.machine.read_root_file(file))
        expect(node, whole["checksum"] > 0, "a checksum that is not 0", whole["checksum"])
        (entry,) = json.loads(whole["data"])["entries"].values()
        resources.append(entry["ContainerResources"]["main"])
    return resources


@conformance(
    id="resize-checkpoint-used", rules=["CG-060"], needs=[*NEEDS, Feature.RESTART], since="1.35"
)
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
        allocated = {"main": ResourceRequirements(**asking("150m", "64Mi"))}
        node.machine.write_root_file(file, encode({uid: PodResources(allocated)}))
    await node.kubelet.start()
    await node.run_until(
        lambda: updates(node), within_s=FIRST_RETRY_S + limits.NOTICE_S, what="an update"
    )
    expect_equal(node, [r.cpu_quota for r in updates(node)], [10_000], "CPU quota")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")


@conformance(
    id="resize-checkpoint-corrupt", rules=["CG-060"], needs=[*NEEDS, Feature.RESTART], since="1.34"
)
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
