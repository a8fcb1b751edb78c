"""What garbage collection does with leftovers that are not as usual: several dead instances,
removals that fail, containers that never ran, containers in an unknown state."""

from functools import partial
from typing import Any

from kubecri.v1 import api_pb2 as cri

from fakecri import stops
from kubelet_conformance.cases.eviction.preemption.victims import CRITICAL
from kubelet_conformance.cases.pleg.collection import run_unknown_container
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, ignores_term, in_turn, runs
from kubelet_conformance.registry import Feature, Level, conformance

STATUS, VIRTUAL, FAULTS = Feature.STATUS, Feature.VIRTUAL_TIME, Feature.FAULTS
API = Feature.API
ROUND_S = limits.GC_PERIOD_S + limits.NOTICE_S
CRASHES = in_turn(exits(1), exits(1, after_s=2), runs())


def removed(node: Node, pod: str) -> set[tuple[str, int]]:
    """The containers of the pod that were removed: name and attempt."""
    calls = [c for c in node.calls("RemoveContainer", pod=pod) if c.error is None]
    return {(c.container, c.attempt) for c in calls}


@conformance(
    id="collection-keeps-newest",
    rules=["GC-003.2", "GC-002.1", "GC-020"],
    needs=[STATUS, FAULTS, VIRTUAL],
)
async def the_newest_dead_instance_of_each_container_is_kept(node: Node) -> None:
    """When several dead instances of a container are left, garbage collection removes all but the
    newest, of each container of each pod; one that cannot be removed holds up no other."""

    def ended_twice(name: str) -> bool:
        return node.count("StartContainer", pod=name) == 4 and all(
            not node.running(name, each) for each in ("one", "two")
        )

    with node.runtime.on("RemoveContainer").fails("UNKNOWN", "busy"):
        for name in ("web", "next"):
            two = (container("one", CRASHES), container("two", CRASHES))
            await node.apply_static(pod(name, *two))
        for name in ("web", "next"):
            await node.run_until(
                partial(ended_twice, name),
                within_s=limits.START_S + 2 + 2 * limits.NOTICE_S,
                what=f"both containers of {name} have ended twice",
            )
        await node.run_for(limits.NOTICE_S)
    with node.runtime.on("RemoveContainer", pod="web", container="one").fails("UNKNOWN", "busy"):
        await node.run_until(
            lambda: removed(node, "next") and removed(node, "web"),
            within_s=ROUND_S,
            what="removed containers of both pods",
        )
        await node.run_for(1)
    expect_equal(node, removed(node, "next"), {("one", 0), ("two", 0)}, "removed of next")
    expect_equal(node, removed(node, "web"), {("two", 0)}, "removed of web")


@conformance(
    id="created-container-collected",
    rules=["GC-002.1", "GC-003.1"],
    needs=[STATUS, VIRTUAL],
    alone=True,
)
async def a_container_that_never_ran_is_collected(node: Node) -> None:
    """A container that was created and never started is collected with its pod."""
    ghost = await run_unknown_container(node, start=False)
    await node.run_until(
        lambda: any(c.request.container_id == ghost for c in node.calls("RemoveContainer")),
        within_s=2 * limits.GC_PERIOD_S + limits.NOTICE_S,
        what="RemoveContainer of the created container",
    )


@conformance(
    id="unknown-state-collected", rules=["GC-002.3"], needs=[STATUS, FAULTS, VIRTUAL], alone=True
)
async def a_container_in_an_unknown_state_is_stopped_first(node: Node) -> None:
    """A container in state UNKNOWN is stopped before it is removed, and not removed while that
    fails."""
    ghost = await run_unknown_container(node, start=False)

    def forget(answer: Any) -> None:
        for item in answer.containers:
            if item.id == ghost:
                item.state = cri.CONTAINER_UNKNOWN

    def of_ghost(method: str) -> list[Any]:
        return [c for c in node.calls(method) if c.request.container_id == ghost]

    with node.runtime.on("ListContainers").changes_answer(forget):
        with node.runtime.on("StopContainer").fails("UNKNOWN", "no shim"):
            await node.run_until(
                lambda: of_ghost("StopContainer"),
                within_s=2 * limits.GC_PERIOD_S,
                what="StopContainer of the container",
            )
            await node.run_for(limits.NOTICE_S)
            expect_equal(node, of_ghost("RemoveContainer"), [], "removals after a failed stop")
        await node.run_until(
            lambda: of_ghost("RemoveContainer"), within_s=ROUND_S, what="RemoveContainer"
        )
    stop, remove = of_ghost("StopContainer")[-1], of_ghost("RemoveContainer")[0]
    expect(node, node.ended_s(stop) <= node.time_s(remove), "a stop before the removal", stop)


@conformance(
    id="running-not-collected", rules=["GC-002.2"], needs=[STATUS, FAULTS, VIRTUAL], alone=True
)
async def a_running_container_is_never_removed(node: Node) -> None:
    """A container of an unknown pod that cannot be stopped is not removed while it runs."""
    with node.runtime.on("StopContainer").fails("UNKNOWN", "no shim"):
        ghost = await run_unknown_container(node)
        await node.run_for(2 * limits.GC_PERIOD_S)
        calls = [c for c in node.calls("RemoveContainer") if c.request.container_id == ghost]
        expect_equal(node, calls, [], "removals of the running container")
    await node.run_until(
        lambda: node.count("RemoveContainer"), within_s=2 * ROUND_S, what="RemoveContainer"
    )


@conformance(id="sandbox-waits", rules=["GC-010.1", "GC-010.4"], needs=[STATUS, FAULTS, VIRTUAL])
async def a_sandbox_goes_after_its_containers_and_its_stop(node: Node) -> None:
    """The sandbox of a removed pod is not removed while a container of it is left, nor while it
    cannot be stopped; that holds up no other pod's, older or younger."""
    names = ("one", "two", "three", "four")
    for name in names:
        await node.apply_static(pod(name, grace_s=1))
        await node.wait_running(name)
    keep = node.runtime.on("RemoveContainer", pod="one").fails("UNKNOWN", "busy")
    for name in names:
        await node.remove_static(name)
    await node.run_until(
        lambda: all(node.count("StopPodSandbox", pod=name) for name in names),
        within_s=limits.STOP_S,
        what="stopped sandboxes",
    )
    stuck = node.runtime.on("StopPodSandbox", pod="three").fails("UNKNOWN", "network is busy")
    with keep, stuck:
        await node.run_until(
            lambda: all(node.count("RemovePodSandbox", pod=name) for name in ("two", "four")),
            within_s=limits.GC_PERIOD_S + ROUND_S,
            what="RemovePodSandbox of two and four",
        )
        await node.run_for(ROUND_S)
        expect_equal(node, node.count("RemovePodSandbox", pod="one"), 0, "removals with containers")
        removed = node.count("RemovePodSandbox", pod="three")
        expect_equal(node, removed, 0, "removals without a stop")
    await node.run_until(
        lambda: all(node.count("RemovePodSandbox", pod=name) for name in ("one", "three")),
        within_s=2 * ROUND_S,
        what="RemovePodSandbox of one and three",
    )


@conformance(
    id="old-sandbox-collected",
    rules=["GC-010.3", "GC-010.1"],
    needs=[STATUS, Feature.OUTSIDE_KILL, VIRTUAL],
)
async def an_old_sandbox_without_containers_goes(node: Node) -> None:
    """Of a pod that is still wanted the older sandboxes are removed once they have no containers;
    one with the newest dead container stays."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")

    def started(times: int) -> bool:
        return node.count("StartContainer", pod="web") == times

    for count in (2, 3):
        await node.runtime.stop_sandbox("web")
        await node.run_until(
            partial(started, count),
            within_s=limits.restart_after(10).high_s + limits.START_S,
            what=f"start {count}",
        )
    await node.run_until(
        lambda: node.count("RemovePodSandbox"), within_s=ROUND_S, what="RemovePodSandbox"
    )
    await node.run_for(ROUND_S)
    attempts = {c.attempt for c in node.calls("RemovePodSandbox", pod="web")}
    expect_equal(node, attempts, {0}, "attempts of removed sandboxes")
    await node.wait_running("web")


@conformance(
    id="only-sandbox-kept",
    rules=["GC-010.3"],
    needs=[STATUS, FAULTS, Feature.OUTSIDE_KILL, VIRTUAL],
)
async def the_newest_sandbox_of_a_pod_stays(node: Node) -> None:
    """The newest sandbox of a pod that is still wanted is not removed, although it is dead and has
    no containers, while no other can be made."""
    with node.runtime.on("CreateContainer").fails("UNKNOWN", "no space"):
        await node.apply_static(pod("web"))
        await node.run_until(lambda: node.count("CreateContainer"), within_s=limits.START_S)
        with node.runtime.on("RunPodSandbox").fails("UNKNOWN", "no address"):
            await node.runtime.stop_sandbox("web")
            await node.run_for(limits.GC_PERIOD_S + limits.NOTICE_S)
            expect_equal(node, node.count("RemovePodSandbox"), 0, "removed sandboxes")


@conformance(
    id="log-that-stays",
    rules=["GC-005"],
    level=Level.SHOULD,
    needs=[STATUS, FAULTS, VIRTUAL],
    alone=True,
)
async def a_container_whose_log_cannot_be_deleted_stays(node: Node) -> None:
    """While a file of its log cannot be deleted a dead container is kept."""
    await node.apply_static(pod("web", container("main", CRASHES)))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.START_S + limits.NOTICE_S,
        what="a second start",
    )
    node.machine.write_log("web", "main", "0.log.directory/file", "in the way")
    await node.run_for(2 + limits.GC_PERIOD_S + limits.NOTICE_S)
    expect_equal(node, removed(node, "web"), set(), "removed containers")


@conformance(
    id="evicted-pod-collected",
    rules=["GC-003.1", "GC-010.2"],
    needs=[Feature.API, STATUS, Feature.SHORTAGE, VIRTUAL],
    node_config={"evictionHard": {"memory.available": "1Gi"}},
)
async def what_is_left_of_an_evicted_pod_goes(node: Node) -> None:
    """The containers and the sandbox of an evicted pod are removed although the pod is not
    deleted."""
    work = runs(stops(1))
    await node.api.create_pod(pod("web", container("main", work), grace_s=1))
    await node.run_until(lambda: node.api.phase("web") == "Running", within_s=limits.START_S)
    await node.machine.run_short("memory.available", 1024**2)
    await node.run_until(
        lambda: node.api.phase("web") == "Failed",
        within_s=2 * limits.EVICTION_CYCLE_S + limits.START_S,
        what="web is evicted",
    )
    await node.run_until(
        lambda: node.count("RemovePodSandbox", pod="web"),
        within_s=ROUND_S + limits.STOP_S,
        what="RemovePodSandbox",
    )
    expect_equal(node, removed(node, "web"), {("main", 0)}, "removed containers")


@conformance(id="preempted-not-collected", rules=["GC-002.2", "PREE-007.2"], needs=[API, VIRTUAL],
             node_config={"maxPods": 1})  # fmt: skip
async def a_container_of_a_preempted_pod_is_not_removed_while_it_runs(node: Node) -> None:
    """Garbage collection may remove everything of a pod that was preempted, but not a container
    that still runs, as long as its grace period lasts."""
    await node.api.run_pods(pod("web", container("main", ignores_term()), grace_s=100))
    await node.api.create_pod(pod("vital", **CRITICAL))
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"), within_s=limits.START_S, what="the stop"
    )
    stop = node.calls("StopContainer", pod="web")[0]
    await node.run_until(
        lambda: node.count("RemoveContainer", pod="web"),
        within_s=100 + limits.STOP_S + ROUND_S,
        what="RemoveContainer",
    )
    end = node.calls("RemoveContainer", pod="web")[0]
    expect(node, node.time_s(end) >= node.time_s(stop) + 100, "no removal before the kill", end)
