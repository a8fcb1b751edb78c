"""What must not change: fields and conditions of a status while nothing happens, when something
else happens, and over a restart of the kubelet."""

from collections.abc import Mapping
from typing import Any, Final

from kubelet_conformance.cases.status.conditions import condition, status, until
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import ExecProbe, PodPlan, container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

API, RESTART, VIRTUAL = Feature.API, Feature.RESTART, Feature.VIRTUAL_TIME
QUIET_S: Final = 60.0
GATE: Final = "example.com/gate"
KEPT_BY_POD: Final = ("startTime", "podIP", "podIPs", "hostIP", "hostIPs", "qosClass")
KEPT_BY_CONTAINER: Final = ("name", "image", "imageID", "volumeMounts", "resources")


def of_everything() -> PodPlan:
    """A pod with containers of every kind and whatever else its status shows."""
    probes = {"readiness": ExecProbe(), "startup": ExecProbe(failure_threshold=30)}
    amounts = {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}}
    mounts = [{"name": "scratch", "mountPath": "/s", "readOnly": True}]
    return pod(
        "web",
        container("main", probes=probes, resources=amounts, volumeMounts=mounts),
        container("gated", volumeMounts=mounts),
        container("crashed", in_turn(exits(3, after_s=1, message="why"), runs())),
        init=[container("first", exits(0, after_s=1)), sidecar("side")],
        volumes=[{"name": "scratch", "emptyDir": {}}],
        readinessGates=[{"conditionType": GATE}],
        grace_s=1,
    )


async def settled(node: Node) -> PodPlan:
    """Run that pod, with an ephemeral container, until nothing happens any more."""
    plan = of_everything()
    await node.api.create_pod(plan)
    await node.wait_running("web", "main", "gated")
    await node.run_until(
        lambda: node.api.container("web", "crashed").get("restartCount") == 1,
        within_s=1 + 2 * limits.START_S + limits.SYNC_ERROR_S,
        what="crashed has started again",
    )
    await node.api.debug(plan, container("debug"))
    await node.run_until(
        lambda: "running" in node.api.container("web", "debug").get("state", {}),
        within_s=limits.START_S + limits.NOTICE_S,
        what="debug runs",
    )
    await node.run_until(
        lambda: node.api.container("web", "main").get("ready"),
        within_s=limits.START_S,
        what="main is ready",
    )
    await node.run_for(2 * limits.STATUS_PASS_S)
    return plan


def asked(node: Node, method: str) -> int:
    """How often the kubelet has asked the API for the pod itself with that method."""
    return len(node.api.requests(method, r"/namespaces/default/pods/web(/status)?$"))


@conformance(
    id="status-at-rest",
    rules=["STAT-007.3", "STAT-021.3", "STAT-005", "LIFE-190"],
    needs=[API, VIRTUAL],
)
async def nothing_is_asked_or_written_while_nothing_happens(node: Node) -> None:
    """A pod with containers of every kind, an ephemeral one, a lost exit and a readiness gate that
    nobody sets is neither read nor written at the API while nothing happens, and its status stays
    the same to the letter."""
    await settled(node)
    before = status(node)
    methods = ("GET", "PATCH", "PUT", "POST")
    counts = {method: asked(node, method) for method in methods}
    await node.run_for(QUIET_S + 35)
    expect_equal(node, {m: asked(node, m) for m in methods}, counts, "requests about the pod")
    expect_equal(node, status(node), before, "the status")


@conformance(
    id="status-over-restart",
    rules=["STAT-002", "STAT-003.3", "STAT-004.3", "LIFE-173", "LIFE-176.6"],
    needs=[API, RESTART, VIRTUAL],
)
async def a_restart_of_the_kubelet_changes_no_status(node: Node) -> None:
    """After a restart of the kubelet the status of a running pod has the same fields with the same
    values: times, addresses, IDs, counts, exits, conditions with their times."""
    await settled(node)
    await node.run_for(10)  # containers of which a kubelet that starts keeps the readiness
    before = status(node)
    await node.kubelet.restart()
    await node.run_for(2 * limits.STATUS_PASS_S + 8)
    expect_equal(node, without_probes(status(node)), without_probes(before), "the status")


def without_probes(found: Mapping[str, Any]) -> dict[str, Any]:
    """A status without what kubelets may forget for a moment over a restart: the readiness of a
    container with a probe, and the conditions that follow it (PROBE-051)."""
    conditions = [c for c in found["conditions"] if c["type"] not in ("Ready", "ContainersReady")]
    containers = [
        {k: v for k, v in each.items() if each["name"] != "main" or k not in ("ready", "started")}
        for each in found["containerStatuses"]
    ]
    return {**found, "conditions": conditions, "containerStatuses": containers}


@conformance(
    id="status-of-next-instance",
    rules=["STAT-003.3", "STAT-004.3", "LIFE-170", "LIFE-173"],
    needs=[API],
)
async def only_what_belongs_to_the_instance_changes(node: Node) -> None:
    """When a container has started again its ID, count, state and last state are new, the last one
    being the exit of the former instance; its image, mounts and amounts, all of the other
    containers, and addresses, times and conditions of the pod are not."""
    await node.api.create_pod(of_everything())
    await node.wait_running("web", "main", "gated")
    await node.run_until(
        lambda: (
            node.api.container("web", "crashed").get("restartCount") == 1
            and node.api.container("web", "main").get("ready")
        ),
        within_s=1 + 2 * limits.START_S + limits.SYNC_ERROR_S,
        what="all is settled",
    )
    await node.run_for(limits.NOTICE_S)
    before = status(node)
    await node.runtime.kill_container("gated", pod="web")
    await node.run_until(
        lambda: (
            node.api.container("web", "gated").get("restartCount") == 1
            and "running" in node.api.container("web", "gated").get("state", {})
        ),
        within_s=limits.START_S + limits.SYNC_ERROR_S,
        what="gated has started again",
    )
    await node.run_for(limits.NOTICE_S)
    after = status(node)
    for field in KEPT_BY_POD:
        expect_equal(node, after.get(field), before.get(field), f"{field} of the pod")
    old, new = by_name(before, "gated"), by_name(after, "gated")
    for field in KEPT_BY_CONTAINER:
        expect_equal(node, new.get(field), old.get(field), f"{field} of gated")
    expect(node, new["containerID"] != old["containerID"], "a new ID", new["containerID"])
    last = new["lastState"]["terminated"]
    expect_equal(node, last["containerID"], old["containerID"], "the ID in lastState")
    began = old["state"]["running"]["startedAt"]
    expect_equal(node, last["startedAt"], began, "the start in lastState")
    expect_the_rest_unchanged(node, before, after)


def expect_the_rest_unchanged(
    node: Node, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    """Expect the statuses of the other containers, and the conditions, to be as before."""
    for name in ("main", "crashed", "first", "side"):
        expect_equal(node, by_name(after, name), by_name(before, name), f"the status of {name}")
    for kind in ("Initialized", "PodScheduled", "PodReadyToStartContainers", "Ready"):
        was = next(c for c in before["conditions"] if c["type"] == kind)
        expect_equal(node, condition(node, kind), was, f"condition {kind}")


def by_name(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The status of the container."""
    kinds = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
    every = (each for kind in kinds for each in found.get(kind) or ())
    return next(dict(each) for each in every if each["name"] == name)


@conformance(
    id="transition-time-of-the-status",
    rules=["STAT-004.1", "STAT-004.2", "STAT-040.4", "STAT-041.4"],
    needs=[API],
)
async def another_reason_is_no_transition(node: Node) -> None:
    """lastTransitionTime of Initialized, ContainersReady and Ready stays when only reason or
    message changes: other containers are named, other gates, and at last that the pod is over."""
    init = [container("i1", exits(0, after_s=2)), container("i2", exits(0, after_s=2))]
    late = container("late", exits(0, after_s=9), probes={"readiness": ExecProbe(from_s=100)})
    soon = container("soon", exits(0, after_s=9), probes={"readiness": ExecProbe(from_s=3)})
    plan = pod("web", late, soon, init=init, restartPolicy="Never")
    await node.api.create_pod(plan)
    await until(node, "Initialized", "False")
    rows_of = {
        kind: [condition(node, kind)] for kind in ("Initialized", "ContainersReady", "Ready")
    }

    def note() -> str:
        for kind, rows in rows_of.items():
            if condition(node, kind) != rows[-1]:
                rows.append(condition(node, kind))
        return node.api.phase("web")

    await node.run_until(
        lambda: note() == "Succeeded",
        within_s=4 + 9 + 3 * limits.START_S + limits.NOTICE_S,
        what="the pod is over",
    )
    for kind, most in (("Initialized", 2), ("ContainersReady", 1), ("Ready", 1)):
        words = [(c.get("status"), c.get("reason"), c.get("message")) for c in rows_of[kind]]
        times = {(c["status"], c["lastTransitionTime"]) for c in rows_of[kind]}
        expect(node, len(set(words)) > 2, f"{kind} has changed its words", words)
        expect_equal(node, len(times), most, f"times of {kind}: {rows_of[kind]}")
