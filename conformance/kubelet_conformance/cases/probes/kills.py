"""What a failed probe does to its container: the reason, the restart, the grace period."""

from typing import Any

from fakecri import stops
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import (
    OTHER_IMAGE,
    ExecProbe,
    container,
    hook,
    pod,
    sidecar,
)
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, runs
from kubelet_conformance.registry import Feature, conformance

STATUS, API, FAULTS = Feature.STATUS, Feature.API, Feature.FAULTS
KILLED_S = limits.START_S + 2 + 2 + limits.NOTICE_S


def killings(node: Node) -> list[str]:
    """The messages of the events Killing."""
    return [event["message"] for event in node.events("Killing", pod="web")]


@conformance(
    id="liveness-own-policy",
    rules=["PROBE-034.2", "PROBE-034.3", "BACK-103.1"],
    needs=[API],
    since="1.35",
)
async def the_policy_of_the_container_decides_after_a_kill(node: Node) -> None:
    """In a pod with policy Never a container with its own policy OnFailure starts again when its
    liveness probe has failed, though it then exits 0; the event says so."""
    main = container("main", probes={"liveness": ExecProbe(until_s=2)}, restartPolicy="OnFailure")
    await node.api.create_pod(pod("web", main, container("calm"), restartPolicy="Never"))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=KILLED_S,
        what="a second start",
    )
    text = "Container main failed liveness probe, will be restarted"
    await node.run_until(lambda: text in killings(node), within_s=limits.NOTICE_S, what=text)
    expect_equal(node, node.count("StartContainer", container="calm"), 1, "starts of calm")


@conformance(id="liveness-no-rules", rules=["BACK-103.2", "BACK-103.3"], needs=[API])
async def restart_rules_do_not_count_after_a_kill(node: Node) -> None:
    """A container with policy Never and restart rules for other exit codes is not started again
    when its liveness probe has failed, and the event promises no restart."""
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
    main = container(
        "main",
        runs(stops(7)),
        probes={"liveness": ExecProbe(until_s=2)},
        restartPolicy="Never",
        restartPolicyRules=[rule],
    )
    await node.api.create_pod(pod("web", main, container("calm"), restartPolicy="Never"))
    await node.run_until(lambda: killings(node), within_s=KILLED_S, what="an event Killing")
    await node.run_for(2 * limits.NOTICE_S)
    expect_equal(node, killings(node), ["Container main failed liveness probe"], "events Killing")
    expect_equal(node, node.count("StartContainer", container="main"), 1, "starts")


@conformance(
    id="probe-grace-pre-stop",
    rules=["PROBE-037.3", "PROBE-037.4", "PROBE-037.1"],
    needs=[STATUS],
)
async def the_hook_takes_its_time_from_the_grace_of_the_probe(node: Node) -> None:
    """A preStop hook runs within the probe's grace period and shortens it, but never below 2 s."""
    probe = ExecProbe(until_s=1, grace_s=3)
    main = container("main", probes={"liveness": probe}, hooks={"preStop": hook(takes_s=2)})
    await node.apply_static(pod("web", main, grace_s=20))
    await node.run_until(
        lambda: node.count("StopContainer", container="main"), within_s=KILLED_S + 2
    )
    stop = node.calls("StopContainer", container="main")[0]
    expect_equal(node, stop.request.timeout, 2, "timeout of StopContainer")
    hooks = [c for c in node.calls("ExecSync", container="main") if c.request.cmd[0] == "/bin/sh"]
    expect(node, hooks and node.ended_s(hooks[0]) <= node.time_s(stop), "the hook, then the stop")


@conformance(
    id="sidecar-startup-kill",
    rules=["PROBE-035.2", "PROBE-035.1", "PROBE-081.3", "BACK-019.4"],
    needs=[API],
)
async def a_sidecar_whose_startup_probe_fails_is_restarted(node: Node) -> None:
    """A sidecar that does not start in time is stopped and started again, and the containers after
    it wait; the events are about an init container."""
    side = sidecar("side", probes={"startup": ExecProbe(from_s=60, failure_threshold=2)})
    await node.api.create_pod(pod("web", container("main"), init=[side]))
    await node.run_until(
        lambda: node.count("StartContainer", container="side") == 2,
        within_s=KILLED_S + 2,
        what="a second start of side",
    )
    expect_order(
        node, node.writes("web"), ["StopContainer side/0", "StartContainer side/1"], "side"
    )
    expect_equal(node, node.count("StartContainer", container="main"), 0, "starts of main")
    text = "Init container side failed startup probe"
    await node.run_until(lambda: text in killings(node), within_s=limits.NOTICE_S, what=text)
    paths = {e["involvedObject"].get("fieldPath") for e in node.events("Unhealthy", pod="web")}
    expect_equal(node, paths, {"spec.initContainers{side}"}, "field paths of Unhealthy")


@conformance(id="sidecar-not-awaited", rules=["PROBE-035.4", "PROBE-035.3"], needs=[STATUS])
async def readiness_and_liveness_of_a_sidecar_are_not_awaited(node: Node) -> None:
    """The containers after a sidecar without a startup probe start as soon as it runs, though it is
    not ready and its liveness probe has not run yet."""
    probes = {"readiness": ExecProbe(from_s=60), "liveness": ExecProbe(period_s=60)}
    await node.apply_static(pod("web", container("main"), init=[sidecar("side", probes=probes)]))
    await node.run_until(lambda: node.running("web"), within_s=limits.START_S, what="main runs")
    expect_equal(node, node.container("web", "side").get("ready"), False, "ready of side")


def busy_pod(main: Any) -> Any:
    """A pod with `main` and with `late`, which ends after 2 s."""
    late = container("late", exits(1, after_s=2))
    return pod("web", main, late)


@conformance(id="kill-reason", rules=["PROBE-034.1", "BACK-019.3"], needs=[API, FAULTS])
async def a_changed_image_is_told_before_a_failed_probe(node: Node) -> None:
    """A container whose image has changed and whose liveness probe has failed, both during one long
    sync of its pod, is killed because its definition changed."""
    await node.api.create_pod(
        busy_pod(container("main", probes={"liveness": ExecProbe(until_s=4)}))
    )
    await node.run_until(lambda: node.running("web", "main", "late"), within_s=limits.START_S)
    with node.runtime.on("CreateContainer", container="late").delays(9):
        await node.run_until(
            lambda: node.events("Unhealthy", pod="web"), within_s=4 + 2 + limits.NOTICE_S
        )
        containers = (node.api.pod("web") or {})["spec"]["containers"]
        changed = [{**c, "image": OTHER_IMAGE} for c in containers if c["name"] == "main"]
        rest = [c for c in containers if c["name"] != "main"]
        await node.api.patch_pod("web", {"spec": {"containers": [*changed, *rest]}})
        await node.run_for(1)
        expect_equal(node, node.count("StopContainer", container="main"), 0, "stops so far")
    await node.run_until(lambda: killings(node), within_s=9 + limits.NOTICE_S, what="Killing")
    text = "Container main definition changed, will be restarted"
    expect_equal(node, killings(node)[0], text, "message of Killing")


@conformance(id="readiness-in-a-sync", rules=["PROBE-033.1", "PROBE-033.3"], needs=[API, FAULTS])
async def readiness_is_shown_during_a_long_sync(node: Node) -> None:
    """A container that is no longer ready is shown so at once, in its status and in the pod's
    conditions, though the pod is busy with the start of another container."""
    await node.api.create_pod(
        busy_pod(container("main", probes={"readiness": ExecProbe(until_s=6)}))
    )
    await node.run_until(
        lambda: node.api.container("web", "main").get("ready") is True, within_s=limits.START_S + 1
    )
    with node.runtime.on("CreateContainer", container="late").delays(14):
        await node.run_until(
            lambda: node.api.container("web", "main").get("ready") is False,
            within_s=6 + 2 + limits.NOTICE_S,
            what="not ready at the API",
        )
        conditions = (node.api.pod("web") or {})["status"]["conditions"]
        messages = {c["type"]: c.get("message") for c in conditions}
        text = "containers with unready status: [main late]"
        expect_equal(node, messages.get("ContainersReady"), text, "message of ContainersReady")
        expect_equal(node, messages.get("Ready"), text, "message of Ready")
        creating = [c for c in node.calls("CreateContainer", container="late") if not c.response]
        expect(node, creating, "a CreateContainer that has not ended yet")


@conformance(id="liveness-counts-anew", rules=["PROBE-020.1", "PROBE-019.2"], needs=[STATUS])
async def the_next_container_may_fail_as_often(node: Node) -> None:
    """A container that takes the place of one that failed its liveness probe is killed after as
    many failures, not at its first."""
    failing = ExecProbe(until_s=0, failure_threshold=3)
    await node.apply_static(pod("web", container("main", probes={"liveness": failing}), grace_s=1))
    await node.run_until(
        lambda: node.count("StopContainer", container="main") == 2,
        within_s=limits.START_S + 2 * (3 + 1 + 1 + limits.NOTICE_S),
        what="a second kill",
    )
    second = node.calls("StopContainer", container="main")[1].request.container_id
    probed = [c for c in node.calls("ExecSync") if c.request.container_id == second]
    expect_equal(node, len(probed), 3, "runs of the probe in the second container")


@conformance(
    id="sidecar-liveness-at-once", rules=["PROBE-035.5"], needs=[STATUS, FAULTS], alone=True
)
async def a_sidecar_is_started_again_in_the_sync_that_kills_it(node: Node) -> None:
    """A sidecar that failed its liveness probe is started again at once, in a pod with policy
    Never: no later sync is needed, and here none comes, because the runtime does not answer what
    there is."""
    work = runs(stops(0, after_s=1.5))
    side = sidecar("side", work, probes={"liveness": ExecProbe(until_s=2)})
    await node.apply_static(pod("job", container("main"), init=[side], restartPolicy="Never"))
    await node.run_until(
        lambda: node.count("StopContainer", container="side"), within_s=KILLED_S, what="the kill"
    )
    with node.runtime.on("ListPodSandbox").delays(20):
        await node.run_until(
            lambda: node.count("StartContainer", container="side") == 2,
            within_s=1.5 + limits.NOTICE_S,
            what="a second start of the sidecar",
        )
