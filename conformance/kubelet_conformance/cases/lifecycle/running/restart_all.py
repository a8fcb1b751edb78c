"""Restart rules with the action RestartAllContainers: one exit, and the whole pod starts again."""

from typing import Any

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.cases.lifecycle.running.rules import last_exit, rule
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order, expect_spans
from kubelet_conformance.harness.manifests import ExecProbe, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, ignores_term, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

API, FAULTS = Feature.API, Feature.FAULTS
ALL: dict[str, Any] = {
    "restartPolicy": "Never",
    "restartPolicyRules": [rule("RestartAllContainers", 88)],
}


async def all_restarted(node: Node) -> None:
    """Run until the statuses show that the restart of all containers is over."""
    await node.run_until(
        lambda: node.api.container("web", "main").get("restartCount") == 1,
        within_s=limits.NOTICE_S,
        what="restartCount 1 of main",
    )
    for name in ("setup", "main"):
        reason = last_exit(node, "web", name).get("reason")
        expect_equal(node, reason, "RestartingAllContainers", f"reason in the last state of {name}")
    condition = {
        c["type"]: c["status"] for c in (node.api.pod("web") or {})["status"]["conditions"]
    }
    expect_equal(node, condition.get("AllContainersRestarting"), "False", "status at the end")


@conformance(
    id="restart-all",
    rules=[
        "LIFE-125",
        "LIFE-110",
        "LIFE-185",
        "BACK-110",
        "BACK-111.2",
        "BACK-111.3",
        "LIFE-110.1",
        "LIFE-125.1",
        "LIFE-125.5",
        "LIFE-125.6",
    ],
    needs=[API],
    since="1.36",
)
async def one_exit_restarts_all_containers_in_the_same_sandbox(node: Node) -> None:
    """Exit code 88 stops and removes all containers, and the pod starts again from its first init
    container in the same sandbox."""
    trigger = container("trigger", in_turn(exits(88, after_s=2), runs()), **ALL)
    init = [container("setup", exits(0))]
    await node.api.create_pod(pod("web", container("main"), trigger, init=init, grace_s=9))
    await node.run_until(
        lambda: node.count("StartContainer", container="trigger") == 2,
        within_s=limits.START_S + 2 + 2 * limits.NOTICE_S + limits.STOP_S,
        what="a second start of trigger",
    )
    writes = node.writes("web")
    expect_order(
        node,
        writes,
        [
            "StopContainer main/0",
            "RemoveContainer main/0",
            "RemoveContainer setup/0",
            "RemoveContainer trigger/0",
            "StartContainer setup/1",
            "StartContainer main/1",
            "StartContainer trigger/1",
        ],
        "everything is removed, the trigger last, and starts again in order",
    )
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes")
    (stop,) = node.calls("StopContainer", container="main")
    expect_equal(node, stop.request.timeout, limits.MIN_STOP_TIMEOUT_S, "timeout of StopContainer")
    await all_restarted(node)


@conformance(
    id="restart-all-of-init",
    rules=["BACK-110.1", "BACK-111.4", "BACK-111.5", "LIFE-070.13", "LIFE-185"],
    needs=[API],
    since="1.36",
)
async def an_init_container_can_ask_for_a_restart_of_all(node: Node) -> None:
    """The exit of an init container with such a rule removes all containers, those that ended
    before it, too, and the pod starts from its first init container; only pods with such a rule
    have the condition."""
    asks = container("asks", in_turn(exits(88, after_s=1), exits(0)), **ALL)
    init = [container("first", exits(0)), asks]
    await node.api.create_pod(pod("web", container("main"), init=init))
    await node.api.create_pod(pod("plain"))
    await node.run_until(
        lambda: node.running("web") and node.running("plain"),
        within_s=limits.START_S + 1 + 3 * limits.NOTICE_S,
        what="both pods run",
    )
    started = [w for w in node.writes("web") if w.startswith("StartContainer")]
    expected_starts = ["first/0", "asks/0", "first/1", "asks/1", "main/0"]
    expect_equal(node, started, [f"StartContainer {w}" for w in expected_starts], "starts")
    kinds = {c["type"] for c in (node.api.pod("plain") or {})["status"]["conditions"]}
    expect(node, "AllContainersRestarting" not in kinds, "no such condition in plain", kinds)


@conformance(
    id="restart-all-shown",
    rules=[
        "BACK-110.1",
        "BACK-111.1",
        "BACK-111.2",
        "BACK-111.4",
        "PROBE-014.4",
        "BACK-112",
        "LIFE-185",
    ],
    needs=[API],
    since="1.36",
)
async def a_restart_of_all_is_shown_and_not_delayed(node: Node) -> None:
    """While all containers are restarted, the condition says why, and the pod stays initialized;
    a second restart waits for no back-off, and the containers are probed again."""
    calm = container("calm", ignores_term(), probes={"readiness": ExecProbe()})
    crash = in_turn(exits(88, after_s=3), exits(88, after_s=3), runs())
    trigger = container("trigger", crash, probes={"liveness": ExecProbe()}, **ALL)
    setup = container("setup", in_turn(exits(0), exits(0, after_s=2), exits(0)))
    await node.api.create_pod(pod("web", calm, trigger, init=[setup]))
    round_s = 3 + 2 * limits.NOTICE_S + limits.STOP_S
    await node.run_until(
        lambda: node.count("StartContainer", container="trigger") == 3,
        within_s=limits.START_S + 2 + 2 * round_s,
        what="a third start of trigger",
    )
    second, third = node.times_s("StartContainer", container="trigger")[1:3]
    expect(node, third - second <= 3 + 2 + 5 + node.slack_s, "no back-off", third - second)
    await node.run_until(
        lambda: node.times_s("ExecSync", container="trigger")[-1] > third,
        within_s=1 + limits.NOTICE_S,
        what="a probe of the third instance of trigger",
    )
    statuses = node.statuses("web")
    reasons = [
        (c.get("reason"), c.get("message"))
        for status in statuses
        for c in status.get("conditions", ())
        if c["type"] == "AllContainersRestarting" and c["status"] == "True"
    ]
    why = ("RestartAllContainersStarted", "container exited with restart policy rule")
    expect_equal(node, set(reasons), {why}, "reasons and messages of AllContainersRestarting")
    initialized = [
        c["status"] for s in statuses for c in s.get("conditions", ()) if c["type"] == "Initialized"
    ]
    once = initialized[initialized.index("True") :]
    expect_equal(node, set(once), {"True"}, "Initialized since it was True")
    codes = {last_exit(node, "web", name).get("exitCode") for name in ("calm", "trigger")}
    expect_equal(node, codes, {137}, "exit codes in the last states")


@conformance(id="restart-all-counted", rules=["BACK-111.3", "BACK-111.1", "BACK-111.2"],
             needs=[API, FAULTS], since="1.36")  # fmt: skip
async def a_removed_container_counts_as_restarted_before_it_starts(node: Node) -> None:
    """While the first container of a pod that restarts all of them is being made, the others wait
    with RestartingAllContainers, and their restart counts already."""
    trigger = container("trigger", in_turn(exits(88, after_s=2), runs()), **ALL)
    await node.api.create_pod(
        pod("web", container("main"), trigger, init=[container("setup", exits(0))])
    )
    await node.run_until(lambda: node.running("web"), within_s=limits.START_S)
    with node.runtime.on("CreateContainer", container="setup").delays(3):
        await node.run_until(
            lambda: node.count("StartContainer", container="trigger") == 2,
            within_s=2 + 2 * limits.NOTICE_S + limits.STOP_S + 3 + limits.START_S,
            what="a second start of trigger",
        )
    restarts = {
        (c["restartCount"], c["state"]["waiting"]["message"])
        for status in node.statuses("web")
        for c in status.get("containerStatuses", ())
        if c["state"].get("waiting", {}).get("reason") == "RestartingAllContainers"
    }
    expected_restarts = {(1, "The container is removed because RestartAllContainers in place")}
    expect_equal(node, restarts, expected_restarts, "restarts and messages of containers that wait")


@conformance(id="restart-all-probed", rules=["PROBE-014.4"], needs=[API, FAULTS], since="1.36")
async def a_probe_keeps_its_beat_over_a_restart_of_all(node: Node) -> None:
    """A probe of a container that would not run again, and whose turn comes while all containers
    are restarted, goes on afterwards in the period that it had before: it has not ended with its
    container."""
    calm = container("calm", in_turn(exits(0, after_s=12), runs()),
                     probes={"liveness": ExecProbe(period_s=10)})  # fmt: skip
    trigger = container("trigger", in_turn(exits(88, after_s=12), runs()), **ALL)
    web = pod("web", calm, trigger, restartPolicy="Never")
    await node.run_for(11)  # a kubelet that is as old as a period begins with a probe at once
    with node.runtime.on("RemoveContainer", container="calm").delays(12):
        await node.api.create_pod(web)
        await node.run_until(
            lambda: node.count("StartContainer", container="calm") == 2,
            within_s=limits.START_S + 12 + 12 + 2 * limits.NOTICE_S + limits.STOP_S,
            what="a second start of calm",
        )
    await node.run_for(10 + limits.NOTICE_S)
    times = node.times_s("ExecSync", container="calm")
    expect_spans(node, times, [limits.Span(19, 21, 22)], "runs of the probe, one left out")


@conformance(
    id="restart-all-goes-on",
    rules=["LIFE-110", "LIFE-125", "LIFE-185"],
    needs=[API, FAULTS],
    since="1.36",
)
async def a_restart_of_all_goes_on_without_the_exit_that_asked_for_it(node: Node) -> None:
    """A restart of all containers that failed halfway is finished although the container that
    caused it has been removed behind the kubelet's back."""
    stays = node.runtime.on("RemoveContainer", container="main").fails("UNKNOWN", "busy")
    trigger = container("trigger", in_turn(exits(88, after_s=2), runs()), **ALL)
    web = pod("web", container("main"), trigger, init=[container("setup", exits(0))])
    await node.api.create_pod(web)
    await node.run_until(
        lambda: node.count("RemoveContainer", container="main"),
        within_s=limits.START_S + 2 + 2 * limits.NOTICE_S + limits.STOP_S,
        what="a first try to remove main",
    )
    ended_id = node.calls("StartContainer", container="trigger")[0].request.container_id
    await node.runtime.direct.call(
        "RemoveContainer", cri.RemoveContainerRequest(container_id=ended_id)
    )
    await node.run_for(2 * limits.NOTICE_S)
    stays.remove()
    await node.run_until(
        lambda: node.count("StartContainer", container="trigger") == 2,
        within_s=limits.SYNC_ERROR_S + 2 * limits.NOTICE_S,
        what="a second start of trigger",
    )
    started = [w for w in node.writes("web") if w.startswith("StartContainer")]
    names = [w.removeprefix("StartContainer ").partition("/")[0] for w in started]
    expect_equal(node, names, ["setup", "main", "trigger"] * 2, "starts")
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes")
    await all_restarted(node)


@conformance(
    id="restart-all-never-failed",
    rules=["LIFE-125", "LIFE-164", "LIFE-125.7"],
    needs=[API],
    since="1.36",
)
async def a_pod_on_its_way_to_restart_never_fails(node: Node) -> None:
    """A run-once pod whose containers are all restarted is never shown as Failed or Succeeded
    meanwhile."""
    trigger = container("trigger", in_turn(exits(88, after_s=1), exits(0, after_s=3)), **ALL)
    await node.api.create_pod(
        pod("job", container("main", exits(0)), trigger, restartPolicy="Never")
    )
    await node.run_until(
        lambda: node.api.phase("job") == "Succeeded",
        within_s=limits.START_S + 5 + 2 * limits.NOTICE_S + limits.STOP_S,
        what="phase Succeeded",
    )
    expect_equal(node, node.count("StartContainer", container="main"), 2, "runs of main")
    phases = node.phases("job")
    expect(node, "Failed" not in phases, "no phase Failed on the way", phases)
    expect_equal(node, phases.count("Succeeded"), 1, "times that the phase became Succeeded")


@conformance(
    id="restart-all-new-sandbox",
    rules=["LIFE-110.2", "LIFE-110.1"],
    needs=[API, Feature.RESTART, Feature.OUTSIDE_KILL],
    since="1.36",
)
async def with_a_lost_sandbox_the_new_one_comes_before_the_reset(node: Node) -> None:
    """When a starting kubelet finds an exit that restarts all containers, and the sandbox lost,
    it makes the new sandbox first, then removes all containers, and starts none between."""
    trigger = container("trigger", in_turn(exits(88, after_s=6), runs()), **ALL)
    init = [container("setup", exits(0))]
    await node.api.create_pod(pod("web", container("main"), trigger, init=init))
    await node.run_until(
        lambda: node.running("web", "main", "trigger"), within_s=limits.START_S, what="both run"
    )
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.stop()
    await node.run_for(6)
    await node.runtime.stop_sandbox("web")
    before = len(node.writes("web"))
    await node.kubelet.start()
    await node.run_until(
        lambda: node.count("StartContainer", container="trigger") == 2,
        within_s=limits.START_S + 4 * limits.NOTICE_S,
        what="a second start of trigger",
    )
    writes = [w.partition("/")[0] for w in node.writes("web")[before:]]
    order = ["RunPodSandbox", "RemoveContainer main", "RemoveContainer trigger"]
    starts = [f"StartContainer {name}" for name in ("setup", "main", "trigger")]
    expect_order(node, writes, [*order, *starts], "the sandbox, the reset, the starts")
    expect_equal(node, [w for w in writes if w.startswith("Start")], starts, "starts")
