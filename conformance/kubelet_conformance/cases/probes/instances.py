"""Probes and the instances of a container: nothing that one instance showed counts for the next;
what a container's end means for its `started` and `ready`."""

from typing import Any

from fakecri import stops
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import (
    Exec,
    ExecProbe,
    PodPlan,
    RunProbe,
    container,
    pod,
    sidecar,
)
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, has_file, ignores_term, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

API, STATUS = Feature.API, Feature.STATUS


def shown(node: Node, pod_name: str, name: str, restarts: int) -> list[dict[str, Any]]:
    """The statuses in which that instance of the container runs, in order."""
    statuses = []
    for status in node.statuses(pod_name):
        kinds = ("containerStatuses", "initContainerStatuses")
        for each in (each for kind in kinds for each in status.get(kind) or ()):
            is_instance = each["name"] == name and each["restartCount"] == restarts
            if is_instance and "running" in each.get("state", {}):
                statuses.append(each)
    return statuses


@conformance(
    id="readiness-of-each-instance",
    rules=["PROBE-012.3", "PROBE-042", "STAT-009"],
    needs=[STATUS],
)
async def readiness_begins_anew_with_each_instance(node: Node) -> None:
    """A container that was ready starts again: until the readiness probe of the new instance has
    succeeded it is not ready, although the probe of the one before last succeeded."""
    probes = {"readiness": ExecProbe(initial_delay_s=6)}
    work = in_turn(exits(1, after_s=12), runs())
    await node.apply_static(pod("web", container("main", work, probes=probes), container("other")))
    await node.run_until(
        lambda: node.container("web", "main").get("ready"),
        within_s=6 + limits.START_S,
        what="main is ready",
    )
    await node.run_until(
        lambda: shown(node, "web", "main", 1),
        within_s=12 + limits.START_S + limits.SYNC_ERROR_S,
        what="the second instance runs",
    )
    began_s = node.times_s("StartContainer", container="main")[1]
    await node.run_for(4)
    early = [each["ready"] for each in shown(node, "web", "main", 1)]
    expect(node, node.now_s - began_s < 6, "the probe has not run yet", node.now_s - began_s)
    expect(node, not any(early), "the second instance is not ready before its probe", early)
    expect_equal(node, node.condition("web", "Ready").get("status"), "False", "Ready")
    expect_equal(node, node.condition("web", "ContainersReady").get("status"), "False", "all ready")
    await node.run_until(
        lambda: node.container("web", "main").get("ready"),
        within_s=6 + limits.NOTICE_S,
        what="the second instance is ready",
    )


@conformance(id="liveness-of-each-instance", rules=["PROBE-012.1", "PROBE-012.2"], needs=[STATUS])
async def a_failure_of_the_former_instance_does_not_kill_the_next(node: Node) -> None:
    """A container that was killed for its liveness starts again and runs on while its probe waits
    for the initial delay: the failure belongs to the instance before."""
    probes = {"liveness": ExecProbe(until_s=5, initial_delay_s=4)}
    await node.apply_static(pod("web", container("main", probes=probes), grace_s=1))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=5 + limits.START_S + limits.STOP_S + limits.SYNC_ERROR_S,
        what="the second start of main",
    )
    stops = node.count("StopContainer", container="main")
    await node.run_for(3)
    expect_equal(node, node.count("StopContainer", container="main"), stops, "stops of the second")
    await node.run_until(
        lambda: node.count("StopContainer", container="main") > stops,
        within_s=5 + limits.NOTICE_S,
        what="it is killed for its own failure",
    )


async def are(node: Node, state: str, *names: str, within_s: float) -> None:
    """Run until all of these containers of the pod `web` are in that state."""
    await node.run_until(
        lambda: all(state in node.container("web", name).get("state", {}) for name in names),
        within_s=within_s,
        what=f"{', '.join(names)}: {state}",
    )


@conformance(
    id="started-of-each-kind",
    rules=[
        "PROBE-017.3",
        "PROBE-041.1",
        "PROBE-041.2",
        "PROBE-041.3",
        "PROBE-041.5",
        "PROBE-042.3",
        "PROBE-042.5",
        "LIFE-175.1",
    ],
    needs=[STATUS],
)
async def started_says_whether_a_container_has_got_that_far(node: Node) -> None:
    """`started` is false before a container runs and when it has ended, true while one without
    startup probe runs, whatever its other probes say; with a startup probe from its success on,
    and it stays true at later syncs. One without readiness probe is ready as soon as it has
    started."""
    never = {"readiness": ExecProbe(from_s=1000), "liveness": ExecProbe()}
    startup = {"startup": ExecProbe(from_s=4, failure_threshold=60)}
    plan = pod(
        "web",
        container("plain", probes=never),
        container("slow", probes=startup),
        container("alive", probes={"liveness": ExecProbe()}),
        container("job", exits(0, after_s=3)),
        init=[container("first", exits(0, after_s=3)), sidecar("side")],
        restartPolicy="OnFailure",
    )
    await node.apply_static(plan)

    def started(*names: str) -> dict[str, Any]:
        return {name: node.container("web", name).get("started") for name in names}

    await are(node, "running", "first", within_s=limits.START_S)
    due: dict[str, Any] = {"first": True, "side": False, "plain": False, "slow": False}
    expect_equal(node, started(*due), due, "started while the first init container runs")
    soon_s = 3 + limits.START_S + limits.NOTICE_S
    await are(node, "running", "plain", "slow", "job", within_s=soon_s)
    due = {"first": False, "side": True, "plain": True, "slow": False, "job": True}
    expect_equal(node, started(*due), due, "started when all run")
    await node.run_until(
        lambda: node.container("web", "slow").get("started"),
        within_s=4 + limits.NOTICE_S,
        what="slow has started",
    )
    await are(node, "terminated", "job", within_s=3 + limits.NOTICE_S)
    await node.run_for(limits.NOTICE_S)
    due = {"first": False, "side": True, "plain": True, "slow": True, "alive": True, "job": False}
    expect_equal(node, started(*due), due, "started at the end")
    ready = {name: node.container("web", name).get("ready") for name in due}
    expected = due | {"first": True, "plain": False}
    expect_equal(node, ready, expected, "ready at the end")


@conformance(id="started-in-back-off", rules=["PROBE-041.1", "PROBE-042.1"], needs=[STATUS])
async def a_container_that_has_ended_has_not_started(node: Node) -> None:
    """While a container waits in its back-off it is neither started nor ready, with a startup probe
    or without; the next instance begins with its startup probe."""
    startup = {"startup": ExecProbe(from_s=3, failure_threshold=60)}
    work = in_turn(exits(1, after_s=6), exits(1, after_s=6), runs())
    main = container("main", work, probes=startup)
    await node.apply_static(pod("web", main, container("bare", work)))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 3,
        within_s=3 * (6 + limits.START_S) + 10 + 2 * limits.SYNC_ERROR_S,
        what="the third start of main",
    )
    for name in ("main", "bare"):
        wrong = []
        for status in node.statuses("web"):
            for each in status.get("containerStatuses") or ():
                if each["name"] == name and "running" not in each.get("state", {}):
                    wrong += [each] if each.get("started") or each.get("ready") else []
        expect_equal(node, wrong, [], f"statuses of {name} that has ended, started or ready")
    third = shown(node, "web", "main", 2)
    expect(node, not any(each.get("started") for each in third), "not started yet", third)
    await node.run_until(
        lambda: node.container("web", "main").get("started"),
        within_s=3 + limits.NOTICE_S,
        what="the third instance has started",
    )


@conformance(
    id="termination-sidecar-probes",
    rules=["PROBE-093.1", "PROBE-093.2", "PROBE-091.1", "PROBE-092.1", "LIFE-071.2"],
    needs=[API],
)
async def sidecars_are_probed_to_the_end(node: Node) -> None:
    """When a pod is deleted, liveness, readiness and startup probes of its sidecars go on while the
    regular containers stop; those of the regular ones but the readiness end. A failure kills no
    sidecar before its turn."""
    probes = {"liveness": ExecProbe(until_s=9), "readiness": ExecProbe()}
    slow = {"startup": ExecProbe(from_s=1000, failure_threshold=1000)}
    plan = pod(
        "web",
        container("main", ignores_term(), probes={"liveness": ExecProbe()}),
        container("late", probes=slow),
        init=[sidecar("side", runs(), probes=probes)],
        grace_s=12,
    )
    await node.api.create_pod(plan)
    await node.run_until(
        lambda: probed(node, "side", "liveness") and probed(node, "main", "liveness"),
        within_s=limits.START_S + 2,
        what="probes run",
    )
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: node.count("StopContainer", container="main"), within_s=limits.NOTICE_S
    )
    began_s = node.times_s("StopContainer", container="main")[0] + 1.1
    await node.run_until(
        lambda: node.count("StopContainer", container="side"),
        within_s=12 + limits.STOP_S,
        what="side is stopped",
    )
    ended_s = node.times_s("StopContainer", container="side")[0]
    expect(node, ended_s - began_s > 8, "side is stopped when main has ended", ended_s - began_s)
    expect_probes_at_the_end(node, began_s, ended_s)
    await node.run_until(
        lambda: node.api.pod("web") is None, within_s=12 + limits.STOP_S, what="the pod is gone"
    )
    killed = [e["message"] for e in node.events("Killing", pod="web")]
    expect(node, not any("failed" in text for text in killed), "none is killed for it", killed)
    expect_equal(node, node.count("StartContainer", container="side"), 1, "starts of side")


def expect_probes_at_the_end(node: Node, began_s: float, ended_s: float) -> None:
    """Expect probes of the sidecar while the regular containers stopped, and none of these."""
    for kind in ("liveness", "readiness"):
        late = [t for t in probed(node, "side", kind) if began_s < t < ended_s]
        expect(node, len(late) >= 4, f"{kind} runs of side during the grace period", late)
    for name, kind in (("main", "liveness"), ("late", "startup")):
        late = [t for t in probed(node, name, kind) if t > began_s]
        expect_equal(node, late, [], f"{kind} runs of {name} during the grace period")


def probed(node: Node, name: str, kind: str) -> list[float]:
    """When the exec probe of that kind of the container ran."""
    calls = node.calls("ExecSync", container=name)
    return [node.time_s(c) for c in calls if c.request.cmd[-1] == f"/tmp/{kind}"]


@conformance(
    id="readiness-of-the-gone",
    rules=["PROBE-033.2", "STAT-009.3", "PROBE-031.1"],
    needs=[API, Feature.FAULTS, Feature.OUTSIDE_KILL],
)
async def the_answer_of_a_container_that_is_gone_says_nothing_of_the_next(node: Node) -> None:
    """A readiness probe succeeds, and its answer comes when the container has ended and the next
    one runs: that one is never told to be ready."""
    readiness: dict[str, Any] = {"readinessProbe": ExecProbe(timeout_s=20).manifest("readiness")}
    work = in_turn(runs(has_file("/tmp/readiness")), runs())
    answer = node.runtime.on("ExecSync", container="main").answers_late(7)
    await node.api.create_pod(pod("web", container("main", work, **readiness)))
    await node.run_until(
        lambda: node.count("ExecSync", container="main"),
        within_s=limits.START_S + 2,
        what="a probe of the first container",
    )
    (first,) = node.calls("ExecSync", container="main")
    await node.run_for(0.5)  # it has succeeded, and the kubelet does not know
    await node.runtime.kill_container("main", pod="web")
    await node.run_until(
        lambda: shown(node, "web", "main", 1), within_s=limits.START_S, what="the second one runs"
    )
    expect(node, first.ended_s is None, "the answer has not come yet", first.ended_s)
    await node.run_until(lambda: first.ended_s is not None, within_s=8, what="the late answer")
    answer.release()
    await node.run_for(limits.NOTICE_S)
    written = [
        each["ready"]
        for request in node.api.requests("PATCH", "/pods/web/status$")
        for each in request.body["status"].get("containerStatuses") or ()
    ]
    expect_equal(node, set(written), {False}, "ready in all statuses that were written")
    ready = [each["ready"] for each in shown(node, "web", "main", 1)]
    expect_equal(node, set(ready), {False}, "ready of the second container")
    condition = node.condition("web", "Ready")
    expect_equal(node, condition.get("status"), "False", "Ready")


@conformance(
    id="sidecar-probed-again",
    rules=["PROBE-014.3", "PROBE-001.1", "PROBE-012.1"],
    needs=[STATUS],
)
async def the_next_instance_of_a_sidecar_is_probed(node: Node) -> None:
    """A sidecar that ends in a pod with policy Never is probed again when it runs again, with each
    probe that it has."""
    probes = {"liveness": ExecProbe(), "readiness": ExecProbe(), "startup": ExecProbe()}
    side = sidecar("side", in_turn(exits(0, after_s=4), exits(1, after_s=4), runs()), probes=probes)
    calm = container("calm", probes={"readiness": ExecProbe()})
    await node.apply_static(pod("job", calm, init=[side], restartPolicy="Never"))
    await node.run_until(
        lambda: node.count("StartContainer", container="side") == 3,
        within_s=limits.START_S + 2 * 4 + limits.restart_after(0).high_s + 20,
        what="a third start of side",
    )
    third_s = node.ended_s(node.calls("StartContainer", container="side")[2])
    await node.run_until(
        lambda: all(probed(node, "side", kind)[-1] > third_s for kind in probes),
        within_s=3 + limits.NOTICE_S,
        what="all probes of the third instance",
    )
    await node.run_until(
        lambda: node.container("job", "side").get("ready"), within_s=limits.NOTICE_S, what="ready"
    )


@conformance(id="no-probe-in-back-off", rules=["PROBE-014.1", "PROBE-013"], needs=[STATUS])
async def a_container_that_has_ended_is_not_probed(node: Node) -> None:
    """While a container that ended before its startup probe has succeeded waits in its back-off,
    none of its probes runs."""
    slow = ExecProbe(from_s=1000, failure_threshold=1000)
    probes = {"startup": slow, "liveness": ExecProbe(), "readiness": ExecProbe()}
    await node.apply_static(pod("web", container("main", exits(1, after_s=4), probes=probes)))
    await node.run_until(
        lambda: (
            node.count("StartContainer", container="main") == 2
            and node.container("web", "main").get("restartCount") == 1
            and "running" not in node.container("web", "main").get("state", {})
        ),
        within_s=2 * 4 + 2 * limits.START_S,
        what="main has ended again",
    )
    await node.run_for(0.5)
    before = node.count("ExecSync", container="main")
    expect(node, before >= 4, "the startup probe has run in both instances", before)
    await node.run_for(5)
    expect_equal(node, node.count("ExecSync", container="main"), before, "runs so far")


def asking(word: str) -> PodPlan:
    """A pod with a UID of its own and a readiness probe that runs that command."""
    probe = RunProbe(run=Exec(("true", word)))
    uid = "00000000-0000-0000-0000-0000000ca11e"
    main = container("main", runs(stops(0, after_s=2)), probes={"readiness": probe})
    return pod("web", main, grace_s=6, metadata={"uid": uid})


@conformance(
    id="probes-of-the-new-pod", rules=["PROBE-094.1", "MIRR-006.1"], needs=[STATUS], alone=True
)
async def a_pod_that_comes_back_has_the_probes_of_its_new_manifest(node: Node) -> None:
    """A static pod with a UID of its own is removed, and while it stops its manifest comes back
    with another probe: when the pod runs again, that one runs, and the former one does not."""
    await node.apply_static(asking("former"))

    def asked(word: str) -> int:
        return sum(c.request.cmd[-1] == word for c in node.calls("ExecSync", container="main"))

    await node.run_until(lambda: asked("former"), within_s=limits.START_S + 2, what="a probe")
    await node.remove_static("web")
    await node.run_for(1)
    await node.apply_static(asking("new"))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=2 + limits.STOP_S + limits.START_S,
        what="the pod runs again",
    )
    before = asked("former")
    await node.run_until(lambda: asked("new"), within_s=limits.NOTICE_S, what="the new probe")
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, asked("former"), before, "runs of the former probe")
