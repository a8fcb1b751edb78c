"""When lastTransitionTime and startTime move, condition by condition: with the status alone, as it
stands at the API server, also for a kubelet that has just started."""

from typing import Any, Final

from fakecri import stops
from kubelet_conformance.cases.eviction.pressure import MEMORY, burstable, evicted
from kubelet_conformance.cases.lifecycle.running.restart_all import ALL
from kubelet_conformance.cases.static.url import CONFIG, PERIOD_S, until_asked
from kubelet_conformance.cases.static.url import WEB as FROM_A_URL
from kubelet_conformance.cases.status.conditions import condition, status, until
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

API, RESTART = Feature.API, Feature.RESTART
OLD: Final = "2020-02-02T02:02:02Z"
"""A time before everything that a kubelet does."""
KINDS: Final = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)
RESTARTED_S: Final = limits.SETTLE_S + limits.START_S + limits.STATUS_PASS_S
EVICTED_BOTH_S: Final = limits.START_S + 3 * limits.EVICTION_CYCLE_S + limits.STOP_S


async def age(node: Node, name: str, *, flipped: bool = False) -> None:
    """Write the pod's start time, and the times of its conditions, as if they were old; `flipped`:
    and each condition with the other status."""
    other = {"True": "False", "False": "True"}
    conditions = [
        {
            **each,
            "lastTransitionTime": OLD,
            "status": other[each["status"]] if flipped else each["status"],
        }
        for each in status(node, name)["conditions"]
    ]
    await node.api.patch_pod(
        name, {"status": {"startTime": OLD, "conditions": conditions}}, status=True
    )


def times(node: Node, name: str) -> dict[str, Any]:
    """startTime, and the lastTransitionTime of each of the kubelet's conditions."""
    transitions = {kind: condition(node, kind, name).get("lastTransitionTime") for kind in KINDS}
    return {"startTime": status(node, name).get("startTime"), **transitions}


def all_true(node: Node, name: str) -> bool:
    """Whether all of the kubelet's conditions of the pod are True."""
    return all(condition(node, kind, name).get("status") == "True" for kind in KINDS)


@conformance(
    id="times-of-the-object",
    rules=["STAT-002.3", "STAT-003.1", "STAT-004.1", "STAT-004.2", "STAT-004.3", "LIFE-176.6"],
    needs=[API, RESTART],
)
async def a_kubelet_that_starts_goes_on_from_the_times_at_the_api(node: Node) -> None:
    """A kubelet that has just started keeps startTime and the time of each condition as they stand
    at the API server where the status is what it is there. Each condition whose status was changed
    meanwhile gets a new time, and startTime stays."""
    await node.api.run_pods(pod("same"), pod("other"))
    for name in ("same", "other"):
        await node.run_until(
            lambda name=name: all_true(node, name),  # type: ignore[misc]
            within_s=limits.START_S + limits.NOTICE_S,
            what=f"all conditions of {name} True",
        )
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.stop()
    await age(node, "same")
    await age(node, "other", flipped=True)
    await node.kubelet.start()
    await node.run_until(
        lambda: all_true(node, "other"), within_s=RESTARTED_S, what="all conditions of other True"
    )
    await node.run_for(limits.STATUS_PASS_S + limits.NOTICE_S)
    old_times = dict.fromkeys(("startTime", *KINDS), OLD)
    expect_equal(node, times(node, "same"), old_times, "times of a pod that stayed the same")
    new_times = times(node, "other")
    expect_equal(node, new_times.pop("startTime"), OLD, "startTime of the other pod")
    for kind, when in new_times.items():
        expect(node, when > OLD, f"a new lastTransitionTime of {kind}", when)


@conformance(
    id="times-of-the-mirror",
    rules=["STAT-002.2", "STAT-003.1", "STAT-004.3", "LIFE-176.6"],
    needs=[*FROM_A_URL, API, RESTART],
    node_config=CONFIG,
)
async def a_static_pod_goes_on_from_the_times_of_its_mirror(node: Node) -> None:
    """A kubelet that has just started, and sees the mirror of a static pod before the pod itself,
    keeps startTime and the times of the conditions as they stand in the mirror: the manifest's URL
    does not answer at first."""
    node.serve_pods(pod("web"))
    await node.run_until(
        lambda: all_true(node, "web"),
        within_s=PERIOD_S + limits.START_S + limits.STATUS_PASS_S,
        what="all conditions of the mirror True",
    )
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.stop()
    await age(node, "web")
    await start_without_the_url(node)
    await node.run_for(2 * limits.STATUS_PASS_S)
    expect_equal(node, node.count("StartContainer", pod="web"), 1, "starts")
    old_times = dict.fromkeys(("startTime", *KINDS), OLD)
    expect_equal(node, times(node, "web"), old_times, "times of the mirror")


async def start_without_the_url(node: Node) -> None:
    """Start the kubelet while the URL does not answer; when the kubelet knows the mirrors, it
    does."""
    node.web.status = 0
    await node.kubelet.start()
    await node.run_for(limits.SETTLE_S)
    node.web.status = 200
    await until_asked(node)


@conformance(
    id="ended-in-the-mirror",
    rules=["STAT-002.2", "STAT-008.1", "STAT-008.2"],
    needs=[*FROM_A_URL, API, RESTART, Feature.OUTSIDE_KILL],
    node_config=CONFIG,
)
async def what_has_ended_in_the_mirror_is_not_shown_to_run(node: Node) -> None:
    """A container of a static pod that may not run again has ended, and while no kubelet runs the
    runtime forgets it. The kubelet that starts runs it again, knowing nothing of it; the mirror,
    which shows its exit, never shows it as waiting or running, as long as it has not ended
    again. Nor does it show what is told together with that: the other container has ended."""
    main = container("main", in_turn(exits(3, after_s=2), runs()))
    other = container("other", runs(stops(5)))
    node.serve_pods(pod("web", main, other, restartPolicy="Never"))
    await node.run_until(
        lambda: "terminated" in node.api.container("web", "main").get("state", {}),
        within_s=PERIOD_S + 2 + limits.START_S + limits.STATUS_PASS_S,
        what="the mirror shows that main has ended",
    )
    await node.run_for(limits.NOTICE_S)
    names = ("main", "other")
    before = {name: node.api.container("web", name) for name in names}
    await node.kubelet.stop()
    await node.runtime.forget("web", "main")
    await start_without_the_url(node)
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.START_S + limits.NOTICE_S,
        what="main is started again",
    )
    await node.run_for(limits.STATUS_PASS_S)
    await node.runtime.kill_container("other", pod="web")
    await node.run_for(2 * limits.STATUS_PASS_S)
    after = {name: node.api.container("web", name) for name in names}
    expect_equal(node, after, before, "containers in the mirror")


def disruption(status_: str) -> dict[str, Any]:
    """The condition DisruptionTarget as somebody else wrote it, long ago."""
    words = {"reason": "EvictionByEvictionAPI", "message": "somebody evicts it"}
    return {"type": "DisruptionTarget", "status": status_, "lastTransitionTime": OLD, **words}


async def disrupt(node: Node, name: str, status_: str) -> None:
    """Add that condition to those of the pod."""
    changed = {"conditions": [*status(node, name)["conditions"], disruption(status_)]}
    await node.api.patch_pod(name, {"status": changed}, status=True)


@conformance(
    id="disruption-time-stays", rules=["STAT-004.1", "STAT-026.2", "STAT-027.2"], needs=[API]
)
async def a_pod_that_was_evicted_by_somebody_keeps_the_time_of_it(node: Node) -> None:
    """DisruptionTarget of a pod evicted through the API keeps its lastTransitionTime, reason and
    message to the end of the pod."""
    plan = pod("web", metadata={"finalizers": ["example.com/look"]}, grace_s=2)
    await node.api.create_pod(plan)
    await until(node, "Ready", "True")
    await disrupt(node, "web", "True")
    await node.run_for(1)
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: node.api.phase("web") in ("Succeeded", "Failed"),
        within_s=2 + limits.STOP_S + limits.STATUS_PASS_S,
        what="the pod has ended",
    )
    await node.run_for(1)
    target = condition(node, "DisruptionTarget")
    expect_equal(node, target, {**target, **disruption("True")}, "DisruptionTarget")
    await node.api.patch_pod("web", {"metadata": {"finalizers": None}})


@conformance(
    id="disruption-time-of-an-eviction",
    rules=["STAT-004.1", "STAT-004.2"],
    needs=[API, Feature.PRESSURE],
)
async def an_eviction_by_the_kubelet_moves_the_time_with_the_status_alone(node: Node) -> None:
    """When the kubelet evicts a pod whose DisruptionTarget is True already, reason and message are
    new, and lastTransitionTime is not; where the condition was False, the time is new, too."""
    before = {"marked": "True", "spared": "False"}
    await node.api.run_pods(*(burstable(name) for name in before))
    for name, value in before.items():
        await disrupt(node, name, value)
    await node.run_for(1)
    async with node.kubelet.pressure(MEMORY):
        for name in before:
            await evicted(node, name, within_s=EVICTED_BOTH_S)
    for name in before:
        target = condition(node, "DisruptionTarget", name)
        words = (target["status"], target["reason"])
        expect_equal(node, words, ("True", "TerminationByKubelet"), f"DisruptionTarget of {name}")
    unmoved = condition(node, "DisruptionTarget", "marked")["lastTransitionTime"]
    expect_equal(node, unmoved, OLD, "lastTransitionTime where it was True")
    moved = condition(node, "DisruptionTarget", "spared")["lastTransitionTime"]
    expect(node, moved > OLD, "a new lastTransitionTime where it was False", moved)


@conformance(
    id="restart-all-times",
    rules=["STAT-004.1", "STAT-004.2", "STAT-008.5", "LIFE-185"],
    needs=[API],
    since="1.36",
)
async def the_restart_of_all_containers_has_times_of_its_own(node: Node) -> None:
    """lastTransitionTime of AllContainersRestarting moves when the restart begins and stays from
    then on while the condition is False, also when the pod has ended and the reason is another. A
    container that had ended for good runs again, and is shown so."""
    trigger = container("trigger", in_turn(exits(88, after_s=4), exits(0, after_s=9)), **ALL)
    main, done = container("main", exits(0, after_s=9)), container("done", exits(0))
    plan = pod("web", main, done, trigger, restartPolicy="Never")
    await node.api.create_pod(plan)
    history: list[dict[str, Any]] = []

    def note() -> str:
        row = condition(node, "AllContainersRestarting")
        if row and (not history or row != history[-1]):
            history.append(row)
        return node.api.phase("web")

    await node.run_until(
        lambda: note() == "Succeeded",
        within_s=4 + 9 + 4 * limits.START_S + limits.STOP_S,
        what="the pod is over",
    )
    restarts = node.api.container("web", "done")["restartCount"]
    expect_equal(node, restarts, 1, "restarts of done at the API")
    first, last = history[0], history[-1]
    expect_equal(node, last.get("reason"), "PodCompleted", "reason at the end")
    later = last["lastTransitionTime"]
    expect(node, later > first["lastTransitionTime"], "a new time since the restart", history)
    rests = [c for c in history if c["status"] == "False" and c != first]
    ready = {c.get("reason"): c["lastTransitionTime"] for c in rests}
    expect_equal(
        node, ready.get(None), later, f"the time after the restart and at the end: {history}"
    )


@conformance(
    id="generation-never-lowered",
    rules=["STAT-005.2"],
    needs=[API, RESTART, Feature.OUTSIDE_KILL],
    since="1.34",
)
async def an_observed_generation_is_never_lowered(node: Node) -> None:
    """A kubelet that starts, and finds an observedGeneration at the API server that is higher than
    the generation of the pod, leaves it as it is, also when it writes a new status."""
    await node.api.run_pods(pod("web"))
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.stop()
    await node.api.patch_pod("web", {"status": {"observedGeneration": 7}}, status=True)
    await node.runtime.kill_container("main", pod="web")
    await node.kubelet.start()
    await node.run_until(
        lambda: node.api.container("web", "main").get("restartCount") == 1,
        within_s=RESTARTED_S,
        what="a restart of main at the API",
    )
    await node.run_for(limits.STATUS_PASS_S)
    expect_equal(node, status(node, "web").get("observedGeneration"), 7, "observedGeneration")
