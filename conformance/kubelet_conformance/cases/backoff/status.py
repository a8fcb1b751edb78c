"""How a back-off shows (states, counts, events), and the policies that decide about a restart."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, runs
from kubelet_conformance.registry import Feature, conformance

STATUS, API, KILL = Feature.STATUS, Feature.API, Feature.OUTSIDE_KILL
FOUR = {"crashLoopBackOff": {"maxContainerRestartPeriod": "4s"}}


@conformance(
    id="backoff-waiting", rules=["BACK-009", "PROBE-042.1"], needs=[STATUS, Feature.VIRTUAL_TIME]
)
async def a_long_back_off_shows_as_crash_loop(node: Node) -> None:
    """In a back-off longer than a sync period the container is waiting with CrashLoopBackOff, the
    message names the delay, and lastState has the container that ended."""
    await node.apply_static(pod("web", container("main", exits(3))))

    def waiting() -> dict[str, str]:
        return dict(node.container("web", "main").get("state", {}).get("waiting") or {})

    await node.run_until(
        lambda: "2m40s" in waiting().get("message", ""),
        within_s=700,
        what="waiting with a back-off of 2m40s",
    )
    uid = (node.pod("web") or {})["metadata"]["uid"]
    name = f"web-{node.name}_default({uid})"
    message = f"back-off 2m40s restarting failed container=main pod={name}"
    expect_equal(node, waiting(), {"reason": "CrashLoopBackOff", "message": message}, "waiting")
    last = node.container("web", "main").get("lastState", {}).get("terminated", {})
    expect_equal(node, last.get("exitCode"), 3, "exit code in lastState")
    status = node.container("web", "main")
    expect_equal(node, status["restartCount"], 5, "restarts before this delay: 0, 10, 20, 40, 80 s")
    readiness = (status.get("ready"), status.get("started"))
    expect_equal(node, readiness, (False, False), "ready and started")


@conformance(
    id="backoff-event", rules=["BACK-008", "LIFE-242"], needs=[API], node_config=FOUR, since="1.35"
)
async def a_back_off_is_told_in_an_event(node: Node) -> None:
    """Every sync that decides to wait records an event, Warning BackOff, about the container."""
    await node.api.create_pod(pod("web", container("main", exits(1))))
    await node.run_until(
        lambda: node.events("BackOff", pod="web"), within_s=15, what="an event BackOff"
    )
    event = node.events("BackOff", pod="web")[0]
    uid = (node.api.pod("web") or {})["metadata"]["uid"]
    message = f"Back-off restarting failed container main in pod web_default({uid})"
    expect_equal(node, (event["type"], event["message"]), ("Warning", message), "the event BackOff")
    expect_equal(node, event["involvedObject"].get("fieldPath"), "spec.containers{main}", "field")
    await node.run_until(
        lambda: node.event_count("BackOff", pod="web") >= 3,
        within_s=3 * limits.restart_after(4).high_s,
        what="three events BackOff",
    )


@conformance(
    id="restart-count",
    rules=["BACK-020", "LIFE-132"],
    needs=[STATUS],
    node_config=FOUR,
    since="1.35",
)
async def restart_count_and_attempt_grow_by_one(node: Node) -> None:
    """Each restart raises restartCount and the attempt in CreateContainer by one."""
    await node.apply_static(pod("web", container("main", exits(1, after_s=2))))
    await node.run_until(
        lambda: node.container("web", "main").get("restartCount") == 3, within_s=45
    )
    attempts = [c.attempt for c in node.calls("CreateContainer", container="main")]
    expect_equal(node, attempts[:4], [0, 1, 2, 3], "attempts")


@conformance(id="policy-always", rules=["LIFE-124", "LIFE-114"], needs=[STATUS])
async def policy_always_restarts_after_exit_zero(node: Node) -> None:
    """With policy Always a container that ended with 0 runs again and the pod stays Running."""
    await node.apply_static(pod("web", container("main", exits(0, after_s=2))))
    await node.run_until(lambda: node.count("StartContainer", container="main") == 2, within_s=10)
    expect(
        node,
        set(node.phases("web")) <= {"Pending", "Running"},
        "the phase is never Succeeded or Failed",
        node.phases("web"),
    )


@conformance(
    id="policy-on-failure-zero",
    rules=["LIFE-124", "BACK-102.4", "BACK-101.4", "LIFE-114.5"],
    needs=[STATUS],
)
async def policy_on_failure_does_not_restart_after_exit_zero(node: Node) -> None:
    """With policy OnFailure a container that exits 0 is not restarted, while another one of the pod
    keeps running."""
    both = container("short", exits(0)), container("long", runs())
    await node.apply_static(pod("job", *both, restartPolicy="OnFailure"))
    await node.wait_running("job", "long")
    await node.run_for(2 * limits.NOTICE_S)
    expect_equal(node, node.count("StartContainer", container="short"), 1, "starts of short")
    expect_equal(node, node.phase("job"), "Running", "phase")


@conformance(id="container-policy", rules=["BACK-102.3", "LIFE-124"], needs=[STATUS], since="1.35")
async def the_policy_of_a_container_beats_that_of_the_pod(node: Node) -> None:
    """A container with its own restartPolicy Always restarts in a pod with policy Never."""
    own = container("main", exits(1, after_s=1), restartPolicy="Always")
    await node.apply_static(pod("job", own, container("other"), restartPolicy="Never"))
    await node.run_until(lambda: node.count("StartContainer", container="main") == 2, within_s=10)


@conformance(
    id="restart-rules", rules=["BACK-102.1", "BACK-102.2", "LIFE-124"], needs=[STATUS], since="1.35"
)
async def restart_rules_pick_exit_codes(node: Node) -> None:
    """A restart rule for exit code 42 restarts its own container only; the others obey the pod's
    policy, Never."""
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
    fields: dict[str, Any] = {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    hit = container("hit", exits(42, after_s=1), **fields)
    miss = container("miss", exits(1, after_s=1), **fields)
    await node.apply_static(pod("job", hit, miss, container("stays"), restartPolicy="Never"))
    await node.run_until(lambda: node.count("StartContainer", container="hit") == 2, within_s=10)
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("StartContainer", container="miss"), 1, "starts of miss")
