"""The machine shuts down, and the kubelet stops its pods before that (NODE-060..063, LIFE-229)."""

import json
import re
from datetime import datetime
from typing import Any

from fakecri import stops
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, ignores_term, runs
from kubelet_conformance.registry import Feature, conformance

API, SHUTDOWN, FAULTS = Feature.API, Feature.SHUTDOWN, Feature.FAULTS
NEEDS = [API, SHUTDOWN]
SIMPLE = {"shutdownGracePeriod": "10s", "shutdownGracePeriodCriticalPods": "4s"}
CRITICAL: dict[str, Any] = {"priority": 2000000000, "priorityClassName": "system-cluster-critical"}
SETTLED_S = (
    3.0  # a worker that has just synced its pod waits for the next relist before it stops it
)
MESSAGE = "Pod was terminated in response to imminent node shutdown."


def group(priority: int, seconds: int) -> dict[str, int]:
    """One entry of shutdownGracePeriodByPodPriority."""
    return {"priority": priority, "shutdownGracePeriodSeconds": seconds}


def stubborn(name: str, **spec: Any) -> PodPlan:
    """A pod that uses all of its grace period, 30 s unless `spec` says otherwise."""
    return pod(name, container("main", ignores_term()), **{"grace_s": 30, **spec})


def polite(name: str, **spec: Any) -> PodPlan:
    """A pod that ends at once on SIGTERM, with an error."""
    return pod(name, container("main", runs(stops(1))), **spec)


async def run_all(node: Node, *plans: PodPlan) -> None:
    """Create the pods at the API and run until all are Running and their start has settled."""
    await node.api.run_pods(*plans)
    await node.run_for(SETTLED_S)


async def shut_down(node: Node, within_s: float) -> None:
    """Announce a shutdown and run until the kubelet does not hold it up any more."""
    node.machine.shut_down()
    expect(node, node.machine.holds_up_shutdown, "the shutdown is held up")
    await node.run_until(
        lambda: not node.machine.holds_up_shutdown,
        within_s=within_s,
        what="the machine may go down",
    )


async def called_off(node: Node) -> None:
    """Announce a shutdown, which ends a pod, call it off, and wait for the kubelet's event about
    that."""
    await run_all(node, polite("web"))
    await shut_down(node, within_s=limits.STOP_S)
    node.machine.call_off_shutdown()
    text = "Shutdown manager detected shutdown cancellation"
    await node.run_until(
        lambda: text in [event["message"] for event in node.events("Shutdown")],
        within_s=limits.NOTICE_S,
        what="the event",
    )


def timeouts(node: Node, name: str) -> list[int]:
    """The timeouts with which the pod's containers were stopped."""
    return [call.request.timeout for call in node.calls("StopContainer", pod=name)]


def apart(node: Node, began_s: float, first: str, second: str) -> tuple[float, float]:
    """How many seconds after the beginning of the shutdown, and how many after the stop of the
    first pod, the second pod was stopped."""
    first_s, two = (node.time_s(node.calls("StopContainer", pod=p)[0]) for p in (first, second))
    return round(two - began_s, 2), round(two - first_s, 2)


@conformance(
    id="shutdown-order",
    rules=["NODE-060.2", "NODE-062.3", "NODE-062.4", "NODE-064.5"],
    needs=[*NEEDS, FAULTS],
    node_config=SIMPLE,
)
async def critical_pods_end_after_all_others(node: Node) -> None:
    """Ordinary pods are stopped first, within the time that is not reserved for critical ones;
    critical pods follow, even if a sandbox of the others does not stop at all."""
    await run_all(node, stubborn("web"), stubborn("core", **CRITICAL), polite("quick"))
    node.runtime.on("StopPodSandbox", pod="web").hangs()
    began_s = node.now_s
    await shut_down(node, within_s=10 + limits.START_S)
    given_s = {name: timeouts(node, name) for name in ("web", "quick", "core")}
    expect_equal(
        node, given_s, {"web": [6], "quick": [2], "core": [4]}, "timeouts of StopContainer"
    )
    await node.run_for(1)
    times = json.loads(node.machine.read_root_file("graceful_node_shutdown_state"))
    noted = times.get("startTime", ""), times.get("endTime", "")
    expect(node, "" < noted[0] < noted[1], "its start and its end in the state file", times)
    shown = (await node.kubelet.get("/metrics", port="read-only")).text
    for each, text in zip(("start", "end"), noted, strict=True):
        name = f"kubelet_graceful_shutdown_{each}_time_seconds"
        (value,) = re.findall(rf"^{name} (\S+)$", shown, re.M) or ["0"]
        moment = datetime.fromisoformat(text).timestamp()
        expect(node, abs(float(value) - moment) < 1, f"{name} as in the file", (value, text))
    gaps = apart(node, began_s, "web", "core")
    expect(node, gaps[0] >= 5.9 and gaps[1] <= 6 + node.slack_s, "core stopped 6 s after web", gaps)


@conformance(id="shutdown-status", rules=["NODE-063", "LIFE-230"], needs=NEEDS, node_config=SIMPLE)
async def the_pods_say_that_the_node_went_down(node: Node) -> None:
    """A pod that was stopped for a shutdown is Failed with reason, message and the condition
    DisruptionTarget."""
    await run_all(node, polite("web"))
    node.machine.shut_down()
    await node.run_until(
        lambda: node.api.phase("web") == "Failed", within_s=limits.STOP_S + limits.STATUS_PASS_S
    )
    status = (node.api.pod("web") or {})["status"]
    expect_equal(node, (status["reason"], status["message"]), ("Terminated", MESSAGE), "status")
    target = {c["type"]: c for c in status["conditions"]}.get("DisruptionTarget", {})
    target_fields = target.get("status"), target.get("reason"), target.get("message")
    expect_equal(node, target_fields, ("True", "TerminationByKubelet", MESSAGE), "DisruptionTarget")


@conformance(
    id="shutdown-after-preemption",
    rules=["LIFE-035", "NODE-063.1"],
    needs=[*NEEDS, FAULTS],
    node_config={**SIMPLE, "maxPods": 1},
)
async def of_two_reasons_the_last_one_counts(node: Node) -> None:
    """A pod that was preempted and cannot be stopped before the node is shut down says at its end
    that the node went down, and nothing of the preemption."""
    await run_all(node, polite("web"))
    container_stays = node.runtime.on("StopContainer", pod="web").fails("UNKNOWN", "no shim")
    sandbox_stays = node.runtime.on("StopPodSandbox", pod="web").fails("UNKNOWN", "no shim")
    with container_stays, sandbox_stays:
        await node.api.create_pod(pod("vital", **CRITICAL))
        await node.run_until(
            lambda: node.count("StopPodSandbox", pod="web"), within_s=limits.START_S, what="a stop"
        )
        before = node.count("StopContainer", pod="web")
        node.machine.shut_down()
        await node.run_until(
            lambda: node.count("StopContainer", pod="web") > before,
            within_s=limits.NOTICE_S,
            what="a stop for the shutdown",
        )
    await node.run_until(
        lambda: node.api.phase("web") == "Failed",
        within_s=limits.SYNC_ERROR_S + limits.STOP_S + limits.STATUS_PASS_S,
        what="Failed",
    )
    status = (node.api.pod("web") or {})["status"]
    expect_equal(node, (status["reason"], status["message"]), ("Terminated", MESSAGE), "status")


@conformance(
    id="shutdown-succeeded",
    rules=["NODE-063.1"],
    needs=[*NEEDS, FAULTS, Feature.STATUS],
    node_config=SIMPLE,
)
async def a_pod_that_has_succeeded_stays_so(node: Node) -> None:
    """A pod whose container has succeeded, and whose sandbox cannot be stopped before the shutdown,
    does not become Failed."""
    with node.runtime.on("StopPodSandbox").fails("UNKNOWN", "network is busy"):
        await node.api.create_pod(pod("job", container("main", exits(0)), restartPolicy="Never"))
        await node.run_until(
            lambda: (
                "terminated" in node.container("job", "main").get("state", {})
                and node.count("StopPodSandbox", pod="job")
            ),
            within_s=limits.START_S + limits.STOP_S,
            what="the end of main, and a stop of the sandbox",
        )
        node.machine.shut_down()
        await node.run_for(limits.NOTICE_S)
    await node.run_until(
        lambda: not node.machine.holds_up_shutdown,
        within_s=10 + limits.START_S,
        what="the machine may go down",
    )
    await node.run_until(
        lambda: node.api.phase("job") in ("Succeeded", "Failed"),
        within_s=2 * limits.SYNC_ERROR_S + limits.STATUS_PASS_S,
        what="the end of the pod at the API",
    )
    expect_equal(node, node.api.phase("job"), "Succeeded", "phase")
    expect(node, "Failed" not in node.phases("job"), "never Failed", node.phases("job"))


@conformance(
    id="shutdown-too-little-time",
    rules=["NODE-064.4"],
    needs=[*NEEDS, Feature.RESTART, Feature.NODE_RESOURCES],
    node_config=SIMPLE,
)
async def a_shutdown_that_gives_too_little_time_is_not_held_up(node: Node) -> None:
    """Where logind allows less delay than all groups together need, and stays so when it is asked
    for more, the kubelet does not hold a shutdown up."""
    node.machine.limit_shutdown_delay(9)
    await node.kubelet.restart()
    await run_all(node, polite("web"))
    node.machine.shut_down()
    expect_equal(node, node.machine.holds_up_shutdown, False, "the shutdown is held up")


@conformance(
    id="shutdown-node",
    rules=["NODE-061", "NODE-022", "NODE-023.6", "LIFE-229"],
    needs=NEEDS,
    node_config=SIMPLE,
)
async def the_node_is_not_ready_and_takes_no_pods(node: Node) -> None:
    """From the announcement of the shutdown on the node is not ready, and new pods are refused."""
    await run_all(node, stubborn("web"))
    await node.run_until(
        lambda: node.api.node_condition("Ready").get("status") == "True", within_s=limits.START_S
    )
    node.machine.shut_down()
    await node.run_until(
        lambda: node.api.node_condition("Ready").get("status") == "False",
        within_s=limits.NOTICE_S,
        what="a node that is not ready",
    )
    ready = node.api.node_condition("Ready")
    fields = ready["reason"], ready["message"]
    expect_equal(node, fields, ("KubeletNotReady", "node is shutting down"), "reason, message")
    await node.events_arrive()
    event = node.events("Shutdown")[0]
    expect_equal(node, event["message"], "Shutdown manager detected shutdown event", "its message")
    await node.api.create_pod(pod("late"))
    await node.run_until(
        lambda: node.api.phase("late") == "Failed",
        within_s=limits.START_S + limits.STATUS_PASS_S,
    )
    status = (node.api.pod("late") or {})["status"]
    expected = ("NodeShutdown", "Pod was rejected: Pod was rejected as the node is shutting down.")
    expect_equal(node, (status["reason"], status["message"]), expected, "status of the late pod")
    expect_equal(node, node.count("RunPodSandbox", pod="late"), 0, "sandboxes of the late pod")


@conformance(
    id="shutdown-priorities",
    rules=["NODE-062"],
    needs=NEEDS,
    node_config={"shutdownGracePeriodByPodPriority": [group(1000, 5), group(10, 3), group(50, 9)]},
)
async def groups_end_from_the_lowest_priority_to_the_highest(node: Node) -> None:
    """Groups of priorities are stopped from the lowest to the highest. A pod belongs to the highest
    group that is not above its priority, or else to the lowest; a group without pods takes no
    time."""
    priorities = {"low": 0, "ten": 10, "most": 2000}
    await run_all(node, *(stubborn(name, priority=n) for name, n in priorities.items()))
    began_s = node.now_s
    await shut_down(node, within_s=8 + limits.START_S)
    given_s = {name: timeouts(node, name) for name in priorities}
    expect_equal(node, given_s, {"low": [3], "ten": [3], "most": [5]}, "timeouts of StopContainer")
    gaps = apart(node, began_s, "low", "most")
    expect(node, gaps[0] >= 2.9 and gaps[1] <= 3 + node.slack_s, "groups stopped 3 s apart", gaps)


@conformance(id="shutdown-not-configured", rules=["NODE-060.1", "NODE-061.2"], needs=NEEDS)
async def without_a_grace_period_nothing_is_held_up(node: Node) -> None:
    """A kubelet with neither shutdownGracePeriod nor groups of priorities holds no shutdown up,
    and stops no pod for it; the node stays ready."""
    await run_all(node, polite("web"))
    node.machine.shut_down()
    expect_equal(node, node.machine.holds_up_shutdown, False, "the shutdown is held up")
    await node.run_for(limits.NODE_STATUS_S)
    expect_equal(node, node.count("StopContainer"), 0, "stops")
    expect_equal(node, node.events("Shutdown"), [], "events Shutdown")
    ready = node.api.node_condition("Ready")
    expect(node, "shutting" not in ready.get("message", ""), "nothing about a shutdown", ready)


@conformance(id="shutdown-waits-not", rules=["NODE-062"], needs=NEEDS, node_config=SIMPLE)
async def a_group_that_has_ended_is_not_waited_for(node: Node) -> None:
    """When all ordinary pods have stopped early, critical ones are stopped without waiting for the
    rest of that time."""
    await run_all(node, polite("web"), polite("core", **CRITICAL))
    await shut_down(node, within_s=limits.STOP_S)
    web, core = (node.calls("StopContainer", pod=name)[0] for name in ("web", "core"))
    expect(node, web.ended_s <= core.started_s, "core ends when web has ended")


@conformance(id="shutdown-called-off", rules=["NODE-064"], needs=NEEDS, node_config=SIMPLE)
async def a_shutdown_that_is_called_off_lets_pods_in_again(node: Node) -> None:
    """After a shutdown has been called off the node takes pods again."""
    await called_off(node)
    await run_all(node, polite("again"))
    expect_equal(node, node.count("StopContainer", pod="again"), 0, "stops of the second pod")


@conformance(
    id="shutdown-held-up-again",
    rules=["NODE-064"],
    needs=[*NEEDS, Feature.SHUTDOWN_AGAIN],
    node_config=SIMPLE,
)
async def the_shutdown_after_one_that_was_called_off_is_held_up(node: Node) -> None:
    """After a shutdown has been called off, the kubelet holds up the next one as well."""
    await called_off(node)
    await run_all(node, polite("again"))
    await shut_down(node, within_s=limits.STOP_S)
    expect_equal(node, node.count("StopContainer", pod="again"), 1, "stops of the second pod")


@conformance(id="shutdown-containers-stay", rules=["NODE-063.4"], needs=NEEDS, node_config=SIMPLE)
async def what_a_shutdown_ended_is_left_to_be_looked_at(node: Node) -> None:
    """The dead containers of a pod that was stopped for a shutdown stay, and with them their logs:
    that is no eviction."""
    await run_all(node, polite("web"))
    node.machine.shut_down()
    await node.run_until(
        lambda: node.api.phase("web") == "Failed", within_s=limits.STOP_S + limits.STATUS_PASS_S
    )
    await node.run_for(75)  # a collection of garbage is among it (GC-001)
    expect_equal(node, node.count("RemoveContainer", pod="web"), 0, "containers removed")
    path = f"/containerLogs/default/{node.runtime.pod_name('web')}/main"
    expect_equal(node, (await node.kubelet.get(path)).status, 200, "status of the log")
