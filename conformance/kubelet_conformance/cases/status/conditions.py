"""The conditions of a pod: what they say, when they change, and which ones belong to others."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import (
    MISSING_IMAGE,
    OTHER_IMAGE,
    ExecProbe,
    container,
    pod,
    sidecar,
)
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

API, FAULTS, RESTART = Feature.API, Feature.FAULTS, Feature.RESTART
GATE = "example.com/gate"


def status(node: Node, name: str = "web") -> dict[str, Any]:
    """The pod's status at the API."""
    return dict((node.api.pod(name) or {}).get("status") or {})


def condition(node: Node, kind: str, name: str = "web") -> dict[str, Any]:
    """The pod's condition of that type at the API; {} when there is none."""
    conditions = status(node, name).get("conditions") or []
    return next((dict(c) for c in conditions if c["type"] == kind), {})


def words(node: Node, kind: str) -> tuple[Any, Any, Any]:
    """Status, reason and message of a condition."""
    row = condition(node, kind)
    return row.get("status"), row.get("reason"), row.get("message")


async def until(node: Node, kind: str, wanted: str, within_s: float = limits.START_S) -> None:
    """Run until the condition has that status at the API."""
    await node.run_until(
        lambda: condition(node, kind).get("status") == wanted,
        within_s=within_s,
        what=f"condition {kind}={wanted}",
    )


async def set_condition(node: Node, kind: str, value: str) -> None:
    """Write a condition of the pod as a controller does: the others stay as they are."""
    other_conditions = [c for c in status(node).get("conditions") or [] if c["type"] != kind]
    patch = {"status": {"conditions": [*other_conditions, {"type": kind, "status": value}]}}
    await node.api.patch_pod("web", patch, status=True)


@conformance(
    id="ready-names-the-unready",
    rules=[
        "STAT-040.1",
        "STAT-040.2",
        "STAT-041.1",
        "STAT-022.5",
        "LIFE-183",
        "LIFE-182",
        "LIFE-182.2",
        "LIFE-183.2",
    ],
    needs=[API],
)
async def unready_containers_are_named(node: Node) -> None:
    """While a container is not ready, Ready and ContainersReady are False and their messages name
    it."""
    probes = {"readiness": ExecProbe(from_s=5)}
    await node.api.create_pod(pod("web", container("main"), container("late", probes=probes)))
    await node.run_until(
        lambda: "running" in node.api.container("web", "late").get("state", {}),
        within_s=limits.START_S,
        what="late runs",
    )
    expected_words = ("False", "ContainersNotReady", "containers with unready status: [late]")
    expect_equal(node, words(node, "ContainersReady"), expected_words, "ContainersReady")
    expect_equal(node, words(node, "Ready"), expected_words, "Ready")
    await until(node, "Ready", "True", 5 + limits.NOTICE_S)
    expect_equal(node, words(node, "ContainersReady"), ("True", None, None), "ContainersReady")


@conformance(
    id="readiness-gate",
    rules=[
        "STAT-041.2",
        "STAT-041.4",
        "SRC-066.4",
        "LIFE-182",
        "LIFE-014",
        "LIFE-001",
        "LIFE-002.4",
        "LIFE-014.1",
        "LIFE-182.3",
    ],
    needs=[API],
)
async def a_readiness_gate_is_waited_for(node: Node) -> None:
    """Ready follows the condition that a readiness gate names, as soon as that is written."""
    await node.api.create_pod(pod("web", readinessGates=[{"conditionType": GATE}]))
    await until(node, "ContainersReady", "True")
    missing = f'corresponding condition of pod readiness gate "{GATE}" does not exist.'
    expected_words = ("False", "ReadinessGatesNotReady", missing)
    expect_equal(node, words(node, "Ready"), expected_words, "Ready without the condition")
    await set_condition(node, GATE, "False")
    await node.run_until(
        lambda: "is not" in (condition(node, "Ready").get("message") or ""),
        within_s=limits.STATUS_PASS_S + limits.NOTICE_S,
        what="another message of Ready",
    )
    message = f'the status of pod readiness gate "{GATE}" is not "True", but False'
    expect_equal(node, condition(node, "Ready")["message"], message, "message of Ready")
    await set_condition(node, GATE, "True")
    await until(node, "Ready", "True", limits.NOTICE_S)
    expect_equal(node, condition(node, GATE).get("status"), "True", "the gate's condition")


@conformance(
    id="initialized-names-the-rest",
    rules=["STAT-042.1", "STAT-042.2", "STAT-040.6", "LIFE-181", "LIFE-181.1"],
    needs=[API],
)
async def init_containers_that_are_not_done_are_named(node: Node) -> None:
    """While init containers have not finished, Initialized is False and its message names them;
    afterwards it stays True."""
    init = [container("i1", exits(0, after_s=1)), container("i2", exits(0, after_s=3))]
    await node.api.create_pod(pod("web", init=init))
    await node.run_until(
        lambda: "terminated" in node.api.container("web", "i1").get("state", {}),
        within_s=1 + limits.START_S,
        what="i1 has ended",
    )
    message = "containers with incomplete status: [i2]"
    expected_words = ("False", "ContainersNotInitialized", message)
    expect_equal(node, words(node, "Initialized"), expected_words, "Initialized")
    message = "containers with unready status: [main]"
    expect_equal(node, words(node, "ContainersReady")[2], message, "message of ContainersReady")
    await until(node, "Initialized", "True", 3 + limits.START_S)
    await until(node, "Ready", "True")
    expect_equal(node, words(node, "Initialized"), ("True", None, None), "Initialized")


@conformance(
    id="sandbox-before-containers",
    rules=["STAT-043.2", "STAT-003.2", "STAT-012.2", "LIFE-180", "LIFE-130.5"],
    needs=[API, FAULTS],
    since="1.36",
)
async def a_ready_sandbox_is_told_before_its_containers(node: Node) -> None:
    """PodReadyToStartContainers turns True when the sandbox is ready, before a container is; the
    start time is that of the pod and not of its containers. Nothing else is told before the next
    sync, not even the address that the pod has."""
    rule = node.runtime.on("CreateContainer", container="main").hangs()
    await node.api.create_pod(pod("web"))
    await until(node, "PodReadyToStartContainers", "True")
    state = node.api.container("web", "main").get("state", {})
    expect(node, "waiting" in state, "main still waits", state)
    expect(node, status(node).get("startTime"), "startTime", status(node))
    await node.run_for(limits.NOTICE_S)
    early = [key for key in ("podIP", "podIPs") if key in status(node)]
    expect_equal(node, early, [], "what else is told during the sync")
    rule.release()
    await until(node, "Ready", "True")


@conformance(
    id="terminal-is-not-ready",
    rules=[
        "STAT-040.4",
        "STAT-040.5",
        "STAT-042.3",
        "LIFE-183",
        "LIFE-190",
        "LIFE-183.3",
        "LIFE-181.2",
    ],
    needs=[API],
)
async def a_finished_pod_is_not_ready(node: Node) -> None:
    """A status with a terminal phase never has Ready or ContainersReady True."""
    await node.api.create_pod(
        pod("web", container("main", exits(0, after_s=2)), restartPolicy="Never")
    )
    await node.api.create_pod(
        pod("bad", container("main", exits(1, after_s=2)), restartPolicy="Never")
    )
    await until(node, "Ready", "True")
    await node.run_until(
        lambda: (node.api.phase("web"), node.api.phase("bad")) == ("Succeeded", "Failed"),
        within_s=2 + limits.STOP_S,
        what="web Succeeded, bad Failed",
    )
    for kind in ("Ready", "ContainersReady"):
        expect_equal(node, words(node, kind)[:2], ("False", "PodCompleted"), kind)
        row = condition(node, kind, "bad")
        row_fields = (row.get("status"), row.get("reason"))
        expect_equal(node, row_fields, ("False", "PodFailed"), f"{kind} of bad")
    expect_equal(node, words(node, "Initialized")[:2], ("True", "PodCompleted"), "Initialized")


@conformance(
    id="transition-times-stay",
    rules=["STAT-004.1", "STAT-004.2", "STAT-003.1", "STAT-003.3", "STAT-002.3", "LIFE-176.6"],
    needs=[API, RESTART],
)
async def times_move_only_with_what_they_are_about(node: Node) -> None:
    """startTime never changes, and lastTransitionTime only together with the status of its
    condition: not when a container is replaced, nor when the kubelet is restarted."""
    await node.api.create_pod(
        pod("web", container("main"), container("other", exits(1, after_s=4)))
    )
    await until(node, "Ready", "True")
    kinds = ("PodScheduled", "Initialized", "PodReadyToStartContainers")

    def times() -> list[Any]:
        transition_times = [condition(node, kind).get("lastTransitionTime") for kind in kinds]
        return [status(node).get("startTime"), *transition_times]

    before = times()
    ready_since = condition(node, "Ready")["lastTransitionTime"]
    await node.run_until(
        lambda: node.api.container("web", "other").get("restartCount") == 1,
        within_s=4 + 2 * limits.NOTICE_S,
        what="other was restarted",
    )
    moved = condition(node, "Ready")["lastTransitionTime"]
    expect(node, moved > ready_since, f"lastTransitionTime of Ready after {ready_since}", moved)
    expect_equal(node, times(), before, "times after a restart of a container")
    await node.kubelet.restart()
    await node.run_for(limits.STATUS_PASS_S + limits.NOTICE_S)
    expect_equal(node, times(), before, "times after a restart of the kubelet")


@conformance(
    id="foreign-condition-kept",
    rules=["STAT-026.1", "STAT-026.2", "STAT-026.3", "STAT-021.3", "LIFE-189"],
    needs=[API],
)
async def conditions_of_others_are_kept_and_own_ones_restored(node: Node) -> None:
    """Conditions that another client writes are kept; one of the kubelet's own that was changed is
    restored."""
    await node.api.create_pod(
        pod("web", container("main"), container("other", exits(1, after_s=6)))
    )
    await until(node, "Ready", "True")
    await set_condition(node, "example.com/seen", "True")
    await node.run_for(0.5)  # the next patch is made of what the API shows now
    await set_condition(node, "DisruptionTarget", "True")
    await node.run_for(0.5)
    await set_condition(node, "PodScheduled", "False")
    await until(node, "PodScheduled", "True", limits.STATUS_PASS_S + limits.NOTICE_S)
    await node.run_until(
        lambda: node.api.container("web", "other").get("restartCount") == 1,
        within_s=6 + 2 * limits.NOTICE_S,
        what="a later status",
    )
    expect_equal(
        node, condition(node, "example.com/seen").get("status"), "True", "foreign condition"
    )
    shared = condition(node, "DisruptionTarget").get("status")
    expect_equal(node, shared, "True", "DisruptionTarget of somebody else")


@conformance(
    id="own-condition-removed",
    rules=["STAT-026.3", "LIFE-189", "LIFE-189.4"],
    needs=[API],
    since="1.33",
)
async def a_condition_that_the_kubelet_does_not_say_is_removed(node: Node) -> None:
    """PodResizePending is the kubelet's own: where another client writes it, it is removed."""
    await node.api.create_pod(pod("web"))
    await until(node, "Ready", "True")
    await set_condition(node, "PodResizePending", "True")
    await node.run_until(
        lambda: condition(node, "PodResizePending") == {},
        within_s=limits.STATUS_PASS_S + limits.NOTICE_S,
        what="no condition PodResizePending",
    )


@conformance(id="observed-generation", rules=["STAT-005.1", "SRC-061.1", "LIFE-176", "LIFE-176.5"],
    needs=[API], since="1.34")  # fmt: skip
async def the_generation_that_was_seen_is_told(node: Node) -> None:
    """observedGeneration in status and conditions follows metadata.generation."""
    await node.api.create_pod(pod("web"))
    await until(node, "Ready", "True")
    expect_equal(node, status(node).get("observedGeneration"), 1, "observedGeneration at first")
    changed = dict((node.api.pod("web") or {})["spec"]["containers"][0])
    changed["image"] = OTHER_IMAGE
    await node.api.patch_pod("web", {"spec": {"containers": [changed]}})
    await node.run_until(
        lambda: status(node).get("observedGeneration") == 2,
        within_s=limits.START_S,
        what="observedGeneration 2",
    )
    await until(node, "Ready", "True", 2 * limits.START_S)
    generations = {c["type"]: c.get("observedGeneration") for c in status(node)["conditions"]}
    expect_equal(node, set(generations.values()), {2}, "observedGeneration of the conditions")


@conformance(id="default-waiting-reasons", rules=["LIFE-170", "LIFE-161"], needs=[API, FAULTS])
async def a_container_that_was_never_made_waits(node: Node) -> None:
    """A container that has never been created waits with ContainerCreating, or with PodInitializing
    in a pod that has init containers."""
    absent = container("i1", image=MISSING_IMAGE, imagePullPolicy="Never")
    with node.runtime.on("RunPodSandbox").fails("UNKNOWN", "no sandbox today"):
        await node.api.create_pod(pod("web"))
        await node.api.create_pod(pod("init", init=[absent]))
        await node.run_until(
            lambda: (
                status(node).get("containerStatuses")
                and status(node, "init").get("containerStatuses")
            ),
            within_s=limits.START_S,
            what="container statuses",
        )
        for name, reason in (("web", "ContainerCreating"), ("init", "PodInitializing")):
            state = node.api.container(name, "main")["state"]
            expect_equal(node, state, {"waiting": {"reason": reason}}, f"state of main in {name}")
            expect_equal(node, node.api.phase(name), "Pending", f"phase of {name}")


@conformance(id="not-ready-after-its-end", rules=["LIFE-175", "LIFE-183"], needs=[API])
async def a_container_that_has_crashed_is_not_ready(node: Node) -> None:
    """A container that was ready and is waiting to run again is neither ready nor started, and its
    pod is not ready."""
    crash = container("main", exits(1, after_s=3))
    await node.api.create_pod(pod("web", crash, container("calm")))
    await until(node, "Ready", "True")
    await node.run_until(
        lambda: (
            node.api.container("web", "main").get("restartCount") == 1
            and "running" not in node.api.container("web", "main").get("state", {})
        ),
        within_s=2 * 3 + 2 * limits.NOTICE_S,
        what="main has ended twice, and waits",
    )
    main = node.api.container("web", "main")
    expect_equal(node, (main["ready"], main.get("started")), (False, False), "ready and started")
    expected_words = ("False", "ContainersNotReady", "containers with unready status: [main]")
    expect_equal(node, words(node, "Ready"), expected_words, "Ready")
    expect_equal(node, node.api.container("web", "calm")["ready"], True, "ready of calm")


@conformance(
    id="initialized-while-a-sidecar-starts",
    rules=["STAT-042.2"],
    needs=[Feature.STATUS, RESTART, Feature.OUTSIDE_KILL],
)
async def a_pod_whose_containers_run_is_initialized(node: Node) -> None:
    """A kubelet that starts, and knows nothing of a static pod but what runs of it, shows it as
    initialized while its sidecar, which was killed meanwhile, has not started again: a regular
    container runs."""
    side = sidecar("side", probes={"startup": ExecProbe(from_s=5, failure_threshold=60)})
    await node.apply_static(pod("web", init=[side]))
    await node.run_until(
        lambda: node.running("web"), within_s=2 * limits.START_S + 5, what="main runs"
    )
    await node.kubelet.stop()
    await node.runtime.kill_container("side", pod="web")
    before = len(node.statuses("web"))
    await node.kubelet.start()
    await node.run_until(
        lambda: node.container("web", "side").get("started") and node.running("web"),
        within_s=limits.SETTLE_S + limits.START_S + 5 + limits.NOTICE_S,
        what="side has started again",
    )
    rows = [
        (c["status"], side.get("started"))
        for each in node.statuses("web")[before:]
        for c in each.get("conditions") or ()
        for side in each.get("initContainerStatuses") or ()
        if c["type"] == "Initialized"
    ]
    expect(node, False in {started for _, started in rows}, "side not started for a while", rows)
    expect_equal(node, {value for value, _ in rows}, {"True"}, "Initialized")
