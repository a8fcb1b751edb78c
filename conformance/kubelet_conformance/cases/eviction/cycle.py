"""The cycle of the eviction manager: when it looks, for how long it waits, what it remembers.

The manager asks the runtime for its disks (ImageFsInfo) once in every cycle, so these calls show
when a cycle began.
"""

import itertools
from typing import Any

from kubelet_conformance.cases.eviction.common import (
    CYCLE_S,
    MI,
    evicted_for,
    first_victim,
    has_condition,
    hungry,
    looks_s,
    next_look_s,
    nothing_happens,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

API, NODE, VIRTUAL, FAULTS = (
    Feature.API,
    Feature.NODE_RESOURCES,
    Feature.VIRTUAL_TIME,
    Feature.FAULTS,
)
SHORT = Feature.SHORTAGE
MEMORY = "memory.available"
HARD: dict[str, Any] = {"evictionHard": {MEMORY: "200Mi"}}
LOW = "The node was low on resource: memory. "
SETTLED_S = 2.0  # calls of the runtime and the API server during one cycle


def soft(grace: str, **more: Any) -> dict[str, Any]:
    """The configuration of a soft threshold of 200 MiB with that grace period."""
    return {
        "evictionHard": {MEMORY: "10Mi"},
        "evictionSoft": {MEMORY: "200Mi"},
        "evictionSoftGracePeriod": {MEMORY: grace},
        **more,
    }


@conformance(
    id="pressure-told-each-cycle",
    rules=["EVIC-056.4", "EVIC-050.2", "EVIC-057"],
    needs=[API, NODE, VIRTUAL],
    node_config=HARD,
)
async def an_event_in_every_cycle(node: Node) -> None:
    """While nothing can be evicted, a cycle comes every 10 s, each of them sends an event about the
    threshold, and the condition stays."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    node.machine.leave_memory(100 * MI)
    first_s = await next_look_s(node)
    await node.run_for(4 * limits.EVICTION_CYCLE_S + 5)
    expect_equal(node, node.event_count("EvictionThresholdMet"), 5, "events in 45 s")
    times = [first_s, *looks_s(node, after_s=first_s)]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    steady = all(9.9 <= gap <= 10 + SETTLED_S for gap in gaps)
    expect(node, steady, "looks 10 s apart", [f"{gap:.2f}" for gap in gaps])
    expect_equal(node, node.count("StopContainer"), 0, "stops")
    expect_equal(node, node.api.node_condition("MemoryPressure").get("status"), "True", "condition")


@conformance(
    id="evictions-follow-at-once", rules=["EVIC-050.1"], needs=[API, SHORT, VIRTUAL],
    node_config=HARD,
)  # fmt: skip
async def the_next_cycle_follows_an_eviction(node: Node) -> None:
    """When an evicted pod is gone and memory is still short, the next pod is evicted without
    another pause."""
    await node.api.run_pods(hungry("one", memory_mi=60), hungry("two", memory_mi=50))
    await node.machine.run_short(MEMORY, 20 * MI)
    for name in ("one", "two"):
        await evicted_for(node, name, LOW, within_s=2 * CYCLE_S)
    first_stop, two = (node.calls("StopContainer", pod=name)[0] for name in ("one", "two"))
    between_s = node.time_s(two) - node.ended_s(first_stop)
    expect(
        node, 0.9 <= between_s <= 6, "1 s for the cleanup, no pause of 10 s", f"{between_s:.2f} s"
    )


@conformance(
    id="eviction-waits-for-cleanup", rules=["EVIC-051.1"], needs=[API, SHORT, VIRTUAL, FAULTS],
    node_config=HARD,
)  # fmt: skip
async def the_next_eviction_waits_for_the_cleanup(node: Node) -> None:
    """While the sandbox of an evicted pod is being stopped, no other pod is evicted, though memory
    is still short."""
    await node.api.run_pods(hungry("one", memory_mi=60), hungry("two", memory_mi=50))
    node.runtime.on("StopPodSandbox", pod="one").delays(20)
    await node.machine.run_short(MEMORY, 20 * MI)
    await evicted_for(node, "two", LOW, within_s=2 * CYCLE_S + 30)
    began_s = node.times_s("StopPodSandbox", pod="one")[0]
    waited_s = node.times_s("StopContainer", pod="two")[0] - began_s
    expect(node, 20 <= waited_s <= 28, "the second eviction after 20 s", f"{waited_s:.1f} s")


@conformance(
    id="cleanup-wait-ends", rules=["EVIC-051.2", "EVIC-086.2", "EVIC-089.2"],
    needs=[API, SHORT, VIRTUAL, FAULTS],
    node_config=HARD,
)  # fmt: skip
async def the_wait_for_a_cleanup_has_a_limit(node: Node) -> None:
    """A pod whose end takes for ever holds up the next cycle for 10 s, until its kill is given up,
    and 30 s more."""
    await node.api.run_pods(hungry("one", memory_mi=60), hungry("two", memory_mi=50))
    rule = node.runtime.on("StopPodSandbox", pod="one").hangs()
    await node.machine.run_short(MEMORY, 20 * MI)
    await first_victim(node)
    began_s = node.times_s("StopContainer", pod="one")[0]
    await node.run_for(50)
    waited_s = looks_s(node, after_s=began_s)[0] - began_s
    expect(node, 39.5 <= waited_s <= 43, "the next look after 40 s", f"{waited_s:.1f} s")
    rule.release()


@conformance(
    id="observation-fails", rules=["EVIC-050.2", "EVIC-041.2"], needs=[API, NODE, VIRTUAL, FAULTS],
    node_config=HARD,
)  # fmt: skip
async def a_failed_measurement_skips_the_cycle(node: Node) -> None:
    """While the runtime does not tell of its disks, nothing is done for memory either; the manager
    looks again every 10 s and acts as soon as it can."""
    await node.api.run_pods(hungry("web", memory_mi=50))
    with node.runtime.on("ImageFsInfo").fails("UNAVAILABLE", "not now"):
        node.machine.leave_memory(20 * MI)
        await nothing_happens(node, for_s=2.5 * limits.EVICTION_CYCLE_S)
    await evicted_for(node, "web", LOW, within_s=CYCLE_S)


@conformance(
    id="soft-exactly", rules=["EVIC-053.6", "EVIC-053.3"], needs=[API, NODE, VIRTUAL],
    node_config=soft("20s"),
)  # fmt: skip
async def a_grace_period_ends_in_time(node: Node) -> None:
    """A soft threshold acts in the first cycle in which its grace period is over, counted from the
    first cycle that saw it."""
    await node.api.run_pods(hungry("web", memory_mi=50))
    node.machine.leave_memory(100 * MI)
    seen_s = await next_look_s(node)
    await evicted_for(node, "web", LOW, within_s=20 + 2 * CYCLE_S)
    waited_s = node.times_s("StopContainer", pod="web")[0] - seen_s
    expect(node, 20 <= waited_s <= 20 + 5, "the eviction 20 s later", f"{waited_s:.2f} s")


@conformance(
    id="soft-minimum-reclaim", rules=["EVIC-005.3", "EVIC-053.2"], needs=[API, NODE, VIRTUAL],
    node_config=soft("1s", evictionMinimumReclaim={MEMORY: "10%"}),
)  # fmt: skip
async def a_soft_threshold_has_a_minimum_reclaim(node: Node) -> None:
    """A minimum reclaim in percent is a share of all memory, and counts for soft thresholds,
    too."""
    sizes = {"a": 350, "b": 600, "c": 100}
    await node.api.run_pods(*(hungry(name, memory_mi=sizes[name]) for name in sizes))
    node.machine.leave_memory(100 * MI)
    for name in ("b", "a"):  # 700 and 1050 MiB are free then; 200 and a tenth of 8 GiB are wanted
        await evicted_for(node, name, LOW, within_s=3 * CYCLE_S)
    await node.run_for(3 * limits.EVICTION_CYCLE_S)
    expect_equal(node, node.api.phase("c"), "Running", "phase of c")


@conformance(
    id="soft-recovers-without-minimum", rules=["EVIC-053.2"], needs=[API, NODE, VIRTUAL],
    node_config=soft("15s", evictionMinimumReclaim={MEMORY: "300Mi"}),
)  # fmt: skip
async def during_the_grace_period_the_threshold_is_enough(node: Node) -> None:
    """Before a soft threshold has acted, it is over as soon as it is not met: the minimum reclaim
    does not count yet."""
    await node.api.run_pods(hungry("web", memory_mi=50))
    node.machine.leave_memory(350 * MI)
    await nothing_happens(node, for_s=limits.EVICTION_CYCLE_S + SETTLED_S)
    node.machine.leave_memory(100 * MI)
    await next_look_s(node)
    node.machine.leave_memory(350 * MI)
    await node.run_for(4 * limits.EVICTION_CYCLE_S)
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(
    id="soft-grace-of-pods-least",
    rules=["EVIC-087.4", "EVIC-007.2", "CRI-065.1"],
    needs=[API, SHORT],
    node_config=soft("1s"),
)
async def a_soft_eviction_without_time(node: Node) -> None:
    """Without evictionMaxPodGracePeriod a soft threshold leaves pods no time to stop."""
    await node.api.run_pods(hungry("web", memory_mi=50, grace_s=20))
    await node.machine.run_short(MEMORY, 100 * MI)
    await evicted_for(node, "web", LOW, within_s=3 * CYCLE_S)
    timeouts = [call.request.timeout for call in node.calls("StopContainer", pod="web")]
    expect_equal(node, timeouts, [2], "timeouts of StopContainer")


async def stop_of_an_evicted_pod(node: Node, grace_s: int) -> int:
    """Delete the pod `slow` with that grace period, evict it while the runtime cannot stop it, and
    return the timeout of the last call that tries to."""
    await node.api.delete_pod("slow", grace_s=grace_s)
    for stop in ("StopContainer", "StopPodSandbox"):  # the second one would end the container, too
        node.runtime.on(stop, pod="slow").fails("UNKNOWN", "not now")
    await node.run_until(lambda: node.count("StopContainer", pod="slow"), within_s=limits.NOTICE_S)
    await node.machine.run_short(MEMORY, 100 * MI)
    expect_equal(node, await first_victim(node), "slow", "victim")
    await node.run_for(limits.SYNC_ERROR_S + 1)  # the kubelet tries again
    return int(node.calls("StopContainer", pod="slow")[-1].request.timeout)


@conformance(
    id="ending-pod-evicted",
    rules=["EVIC-052.4", "EVIC-087.5"],
    needs=[API, SHORT, FAULTS],
    node_config=HARD,
)
async def a_pod_that_ends_can_be_evicted(node: Node) -> None:
    """A pod that is being deleted is evicted like any other: its grace period shrinks, and the
    other pod stays."""
    await node.api.run_pods(
        hungry("slow", memory_mi=50, grace_s=60),
        hungry("web", memory_mi=50, requests={"memory": "90Mi"}),
    )
    timeout_s = await stop_of_an_evicted_pod(node, 40)
    expect_equal(node, timeout_s, 2, "timeout of StopContainer after the eviction")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops of the other pod")


@conformance(
    id="ending-pod-gets-no-more-time",
    rules=["EVIC-087.5"],
    needs=[API, SHORT, FAULTS],
    node_config=soft("1s", evictionMaxPodGracePeriod=50),
)
async def an_eviction_does_not_lengthen_a_grace_period(node: Node) -> None:
    """A pod that is being deleted does not get more time by a soft eviction."""
    await node.api.run_pods(hungry("slow", memory_mi=50, grace_s=60))
    timeout_s = await stop_of_an_evicted_pod(node, 25)
    expect_equal(node, timeout_s, 25, "timeout of StopContainer after the eviction")


@conformance(id="ended-pod-not-evicted", rules=["EVIC-052.3"], needs=[API, SHORT], node_config=HARD)
async def a_pod_that_has_ended_is_not_evicted(node: Node) -> None:
    """A pod that has ended is no candidate, though it has no statistics."""
    await node.api.create_pod(pod("done", container("main", exits(0)), restartPolicy="Never"))
    await node.run_until(lambda: node.api.phase("done") == "Succeeded", within_s=2 * limits.START_S)
    await node.api.run_pods(hungry("web", memory_mi=50))
    await node.machine.run_short(MEMORY, 100 * MI)
    expect_equal(node, await first_victim(node), "web", "victim")
    expect_equal(node, node.event_count("Evicted", pod="done"), 0, "evictions of the ended pod")


@conformance(
    id="limits-before-thresholds", rules=["EVIC-055.1", "EVIC-055.2"], needs=[API, SHORT, VIRTUAL],
    node_config=HARD,
)  # fmt: skip
async def storage_limits_come_before_thresholds(node: Node) -> None:
    """When a pod exceeds its storage limit while memory is short, that pod is evicted, and the
    cycle ends: for memory another pod is evicted in the next one."""
    limited = hungry("limited", limits={"ephemeral-storage": "1Mi"}, requests={"memory": "8Mi"})
    await node.api.run_pods(limited, hungry("web", memory_mi=50))
    node.machine.write_log("limited", "main", "0.log.old", "x" * 2 * MI)
    await node.machine.run_short(MEMORY, 100 * MI)
    expect_equal(node, await first_victim(node), "limited", "victim")
    expect_equal(node, node.event_count("EvictionThresholdMet"), 0, "events EvictionThresholdMet")
    await evicted_for(node, "web", LOW, within_s=2 * CYCLE_S)
    kinds = ("StopContainer", "ImageFsInfo")
    methods = [call.method for call in node.calls() if call.method in kinds]
    last = methods[methods.index("StopContainer") :][:3]
    expected_methods = ["StopContainer", "ImageFsInfo", "StopContainer"]
    expect_equal(node, last, expected_methods, "a measurement between both evictions")
    await has_condition(node, "MemoryPressure")
