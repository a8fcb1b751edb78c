"""What makes a container start anew beside its end: a changed image, a lost sandbox; and manifests
that are refused."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import (
    OTHER_IMAGE,
    ExecProbe,
    container,
    pod,
    sidecar,
)
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, ignores_term, in_turn, runs
from kubelet_conformance.registry import Feature, KnownBug, Level, conformance

STATUS, API, KILL = Feature.STATUS, Feature.API, Feature.OUTSIDE_KILL
FAULTS = Feature.FAULTS


@conformance(id="image-change", rules=["BACK-019.2", "BACK-019.3", "PROBE-037.2"], needs=[API])
async def a_new_image_restarts_a_container_of_any_policy(node: Node) -> None:
    """A container whose image changes is stopped and started again, with policy Never, too, and the
    event says why; the grace period is the pod's, not the probe's."""
    main = container("main", probes={"liveness": ExecProbe(grace_s=4)})
    await node.api.create_pod(pod("web", main, grace_s=9, restartPolicy="Never"))
    await node.run_until(lambda: node.running("web"), within_s=limits.START_S, what="main runs")
    await changes_image(node, "containers", "main")
    await says_killing(node, "Container main definition changed, will be restarted")


@conformance(
    id="image-change-sidecar-policy",
    rules=["BACK-019.4", "BACK-019.2"],
    needs=[API],
    bugs=[
        KnownBug("126525", "A sidecar whose image changes goes on with the old one", fixed="1.32")
    ],
)
async def a_new_image_restarts_a_sidecar_of_any_policy(node: Node) -> None:
    """A sidecar whose image changes is stopped and started again, in a pod with policy Never, too,
    and the event says why; the regular container stays as it is."""
    side = sidecar("side", probes={"liveness": ExecProbe(grace_s=4)})
    web = pod("web", container("main"), init=[side], grace_s=9, restartPolicy="Never")
    await node.api.create_pod(web)
    await node.run_until(
        lambda: node.running("web", "main", "side"), within_s=limits.START_S, what="both run"
    )
    await changes_image(node, "initContainers", "side")
    await says_killing(node, "Init container side definition changed")
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops of main")


async def changes_image(node: Node, field: str, name: str) -> None:
    """Give the first container in that field of the pod `web` another image, and expect it to be
    stopped with the pod's 9 s of grace and started again."""
    spec = (node.api.pod("web") or {})["spec"]
    await node.api.patch_pod("web", {"spec": {field: [{**spec[field][0], "image": OTHER_IMAGE}]}})
    await node.run_until(
        lambda: node.count("StartContainer", container=name) == 2,
        within_s=limits.START_S + limits.NOTICE_S,
        what=f"a second start of {name}",
    )
    steps = [f"StopContainer {name}/0", f"StartContainer {name}/1"]
    expect_order(node, node.writes("web"), steps, "a restart")
    stop = node.calls("StopContainer", container=name)[0]
    expect_equal(node, stop.request.timeout, 9, f"timeout of StopContainer of {name}")


async def says_killing(node: Node, text: str) -> None:
    """Expect an event Killing with that message."""
    await node.run_until(
        lambda: text in {event["message"] for event in node.events("Killing", pod="web")},
        within_s=limits.NOTICE_S,
        what=f"an event Killing: {text}",
    )


@conformance(id="command-change", rules=["BACK-019.1"], needs=[STATUS], alone=True)
async def only_name_and_image_make_another_container(node: Node) -> None:
    """A static pod that keeps its UID while command and environment of its container change is left
    as it is; with another image the container is started again."""
    uid = {"uid": "11111111-2222-3333-4444-555555555555"}
    await node.apply_static(pod("web", container("main"), metadata=uid))
    await node.wait_running("web")
    other = container("main", ignores_term(), env=[{"name": "A", "value": "1"}])
    await node.apply_static(pod("web", other, metadata=uid))
    await node.run_for(limits.START_S + limits.NOTICE_S)
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")
    expect_equal(node, node.count("StartContainer", pod="web"), 1, "starts")
    await node.apply_static(pod("web", container("main", image=OTHER_IMAGE), metadata=uid))
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=25,
        what="a start with the other image",
    )


@conformance(
    id="sandbox-changed-event", rules=["BACK-105.5", "BACK-105.2", "LIFE-100"], needs=[API, KILL]
)
async def a_replaced_sandbox_is_told_and_a_first_one_is_not(node: Node) -> None:
    """The event SandboxChanged is recorded when a pod gets another sandbox, not at its first; the
    init containers of the old one are removed and run again."""
    await node.api.create_pod(pod("web", init=[container("setup", exits(0))]))
    await node.run_until(lambda: node.running("web"), within_s=limits.START_S + limits.NOTICE_S)
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.event_count("SandboxChanged", pod="web"), 0, "events at the start")
    await node.runtime.stop_sandbox("web")
    await node.run_until(
        lambda: node.count("RunPodSandbox", pod="web") == 2, within_s=limits.START_S + 15
    )
    await node.run_until(lambda: node.events("SandboxChanged", pod="web"), within_s=limits.NOTICE_S)
    event = node.events("SandboxChanged", pod="web")[0]
    text = "Pod sandbox changed, it will be killed and re-created."
    expect_equal(node, (event["type"], event["message"]), ("Normal", text), "the event")
    await node.run_until(
        lambda: node.count("StartContainer", container="setup") == 2, within_s=limits.START_S
    )
    steps = ["RemoveContainer setup/0", "RunPodSandbox/1"]
    expect_order(node, node.writes("web"), steps, "the removal, then the sandbox")


@conformance(
    id="init-failed-sidecar", rules=["BACK-104.1", "BACK-104.2", "BACK-103.3"], needs=[STATUS]
)
async def a_failed_init_container_ends_the_pod_with_its_sidecars(node: Node) -> None:
    """When an init container of a run-once pod fails, the pod has failed: its sidecars are stopped,
    and no other container starts."""
    init = [sidecar("side"), container("setup", exits(3, after_s=2))]
    await node.apply_static(pod("job", container("main"), init=init, restartPolicy="Never"))
    await node.run_until(
        lambda: node.phase("job") == "Failed",
        within_s=limits.START_S + 2 + limits.NOTICE_S + limits.STOP_S,
        what="phase Failed",
    )
    await node.run_until(
        lambda: node.count("StopContainer", container="side"), within_s=limits.STOP_S
    )
    expect_equal(node, node.count("StartContainer", container="main"), 0, "starts of main")
    expect_equal(node, node.count("StartContainer", container="setup"), 1, "starts of setup")


def pods_with_wrong_rules() -> list[Any]:
    """Pods whose restart rules the API does not allow, each under its own name."""
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
    many = {"action": "Restart", "exitCodes": {"operator": "In", "values": list(range(256))}}
    own = {"restartPolicy": "Never"}
    fields: dict[str, dict[str, Any]] = {
        "rules-alone": {"restartPolicyRules": [rule]},
        "rules-21": {**own, "restartPolicyRules": [rule] * 21},
        "codes-256": {**own, "restartPolicyRules": [many]},
    }
    return [pod(name, container("main", runs(), **each)) for name, each in fields.items()]


def pods_with_wrong_probes() -> list[Any]:
    """Pods whose probes the API does not allow, each under its own name."""
    twice = ExecProbe(success_threshold=2).manifest("liveness")
    grace = ExecProbe(grace_s=5).manifest("readiness")
    fields: dict[str, dict[str, Any]] = {
        "liveness-twice": {"livenessProbe": twice},
        "startup-twice": {"startupProbe": twice},
        "readiness-grace": {"readinessProbe": grace},
    }
    return [pod(name, container("main", runs(), **each)) for name, each in fields.items()]


@conformance(id="refused-manifests", rules=["PROBE-003.3", "PROBE-003.4"], needs=[STATUS])
async def static_pods_that_the_api_would_refuse_do_not_run(node: Node) -> None:
    """A manifest with numbers that a probe may not have makes no pod; the next one does."""
    await none_runs(node, pods_with_wrong_probes())


@conformance(id="refused-rules", rules=["BACK-102.5"], needs=[STATUS], since="1.35")
async def static_pods_with_wrong_restart_rules_do_not_run(node: Node) -> None:
    """A manifest with restart rules without a policy, or with too many rules or exit codes, makes
    no pod; the next one does."""
    await none_runs(node, pods_with_wrong_rules())


async def none_runs(node: Node, plans: list[Any]) -> None:
    """Expect that these static pods do not run, and that one after them does."""
    for plan in plans:
        await node.apply_static(plan)
    await node.apply_static(pod("good"))
    await node.wait_running("good")
    await node.run_for(limits.START_S)
    ran = [plan.name for plan in plans if node.count("RunPodSandbox", pod=plan.name)]
    expect(node, not ran, "no sandbox of a wrong pod", ran)


@conformance(id="created-initialized", rules=["BACK-104.4"], needs=[STATUS, FAULTS], since="1.33")
async def a_created_container_proves_that_the_pod_was_initialized(node: Node) -> None:
    """Once a regular container was created the init container does not run again, even if neither
    its record nor a start of the regular one is left to tell. (In pods without sidecars; until
    1.32 only a running one proved it there.)"""
    rule = node.runtime.on("StartContainer", container="main").fails("UNKNOWN", "no space")
    await node.apply_static(pod("web", init=[container("setup", exits(0))]))
    await node.run_until(
        lambda: node.count("StartContainer", container="main"),
        within_s=limits.START_S + limits.NOTICE_S,
        what="a start of main that fails",
    )
    await node.runtime.forget("web", "setup")
    await node.run_for(limits.RELIST_S)
    rule.remove()
    await node.run_until(
        lambda: node.running("web"),
        within_s=2 * limits.SYNC_ERROR_S + limits.NOTICE_S,
        what="main runs",
    )
    expect_equal(node, node.count("StartContainer", container="setup"), 1, "starts of setup")


@conformance(
    id="init-records", rules=["BACK-106"], level=Level.SHOULD, needs=[STATUS, FAULTS],
    node_config={"syncFrequency": "5s"},
)  # fmt: skip
async def only_the_newest_end_of_an_init_container_is_kept(node: Node) -> None:
    """When an init container has ended twice, every sync removes the record of its first end: also
    one that could not be removed when it ended, and long before garbage is collected."""
    setup = container("setup", in_turn(exits(1), exits(1), runs()))
    with node.runtime.on("RemoveContainer", container="setup").fails("UNKNOWN", "busy"):
        await node.apply_static(pod("web", init=[setup]))
        await node.run_until(
            lambda: node.count("RemoveContainer", container="setup"),
            within_s=limits.START_S + 10 + limits.NOTICE_S,
            what="a removal that fails",
        )
        await node.run_for(2 * limits.RELIST_S)
    await node.run_until(
        lambda: [c for c in node.calls("RemoveContainer", container="setup") if c.succeeded],
        within_s=5 * 1.5 + limits.NOTICE_S,
        what="a removal that succeeds",
    )
    attempts = {c.attempt for c in node.calls("RemoveContainer", container="setup")}
    expect_equal(node, attempts, {0}, "attempts of the removed records")
