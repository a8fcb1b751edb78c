"""Restart rules of containers: policies of their own, exit codes, and RestartAllContainers."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import Container, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

API, FAULTS = Feature.API, Feature.FAULTS
# Only the API server knows of the fields' gates, so these pods come from there.


def rule(action: str, *codes: int, operator: str = "In") -> dict[str, Any]:
    """A restart rule on exit codes."""
    return {"action": action, "exitCodes": {"operator": operator, "values": list(codes)}}


def last_exit(node: Node, pod_name: str, name: str) -> dict[str, Any]:
    """lastState.terminated of the container at the API."""
    terminated: dict[str, Any] = (
        node.api.container(pod_name, name).get("lastState", {}).get("terminated", {})
    )
    return terminated


@conformance(
    id="own-policy-always", rules=["LIFE-124", "LIFE-164", "BACK-102.3"], needs=[API], since="1.35"
)
async def a_container_with_policy_always_restarts_in_a_run_once_pod(node: Node) -> None:
    """A container's own policy Always beats the pod's Never; the other container is not
    restarted."""
    own = container("own", in_turn(exits(0), runs()), restartPolicy="Always")
    other = container("other", exits(0))
    await node.api.create_pod(pod("job", own, other, restartPolicy="Never"))
    await node.run_until(
        lambda: node.count("StartContainer", container="own") == 2,
        within_s=limits.START_S + limits.NOTICE_S,
        what="a second start of own",
    )
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("StartContainer", container="other"), 1, "starts of other")
    expect_equal(node, node.api.phase("job"), "Running", "phase")


@conformance(
    id="own-policy-never",
    rules=["LIFE-124", "BACK-102.3", "LIFE-124.2", "LIFE-124.3"],
    needs=[API],
    since="1.35",
)
async def a_container_with_policy_never_stays_down_in_a_pod_with_always(node: Node) -> None:
    """A container's own policy Never beats the pod's Always."""
    own = container("own", exits(1), restartPolicy="Never")
    await node.api.create_pod(pod("web", own, container("main")))
    await node.run_until(
        lambda: "terminated" in node.api.container("web", "own").get("state", {}),
        within_s=limits.START_S + limits.NOTICE_S,
        what="own has ended",
    )
    await node.run_for(2 * limits.NOTICE_S)
    expect_equal(node, node.count("StartContainer", container="own"), 1, "starts of own")
    expect_equal(node, node.api.phase("web"), "Running", "phase")


async def fails_at_its_second_exit(node: Node, main: Container) -> None:
    """Run the container `main` in a pod `job` with policy Never, and expect one restart, then phase
    Failed."""
    await node.api.create_pod(pod("job", main, restartPolicy="Never"))
    await node.run_until(
        lambda: node.api.phase("job") == "Failed",
        within_s=limits.START_S + limits.NOTICE_S + limits.STOP_S,
        what="phase Failed",
    )
    expect_equal(node, node.count("StartContainer", container="main"), 2, "starts of main")


@conformance(
    id="restart-rule",
    rules=["LIFE-124", "BACK-102.1", "BACK-102.2", "LIFE-124.1"],
    needs=[API],
    since="1.35",
)
async def a_rule_restarts_on_its_exit_codes_only(node: Node) -> None:
    """A rule for exit code 42 restarts a container with policy Never; its next exit, with 1, is
    final."""
    main = container(
        "main",
        in_turn(exits(42), exits(1)),
        restartPolicy="Never",
        restartPolicyRules=[rule("Restart", 42)],
    )
    await fails_at_its_second_exit(node, main)
    state = node.api.container("job", "main").get("state", {})
    expect_equal(node, state.get("terminated", {}).get("exitCode"), 1, "exit code")


@conformance(id="restart-rule-not-in", rules=["LIFE-124", "BACK-102.2"], needs=[API], since="1.35")
async def a_not_in_rule_restarts_on_every_other_exit_code(node: Node) -> None:
    """With NotIn [0, 3] exit 5 restarts the container and exit 3 ends the pod."""
    main = container(
        "main",
        in_turn(exits(5), exits(3)),
        restartPolicy="Never",
        restartPolicyRules=[rule("Restart", 0, 3, operator="NotIn")],
    )
    await fails_at_its_second_exit(node, main)


@conformance(id="restart-rule-first", rules=["BACK-102.1", "LIFE-124.1"], needs=[API], since="1.35")
async def the_first_matching_rule_decides(node: Node) -> None:
    """Of two rules for the same exit code the first counts: the container alone starts again, not
    all of them. A rule counts beside every policy of the container."""
    main = container(
        "main",
        in_turn(exits(0, after_s=1), runs()),
        restartPolicy="OnFailure",
        restartPolicyRules=[
            rule("Restart", 7, operator="NotIn"),
            rule("RestartAllContainers", 0),
        ],
    )
    await node.api.create_pod(pod("job", main, container("calm"), restartPolicy="Never"))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.START_S + 1 + limits.NOTICE_S,
        what="a second start of main",
    )
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("StartContainer", container="calm"), 1, "starts of calm")
    expect_equal(node, node.count("RemoveContainer", container="calm"), 0, "removals of calm")


@conformance(
    id="init-restart-rule", rules=["LIFE-124", "LIFE-120", "LIFE-160"], needs=[API], since="1.35"
)
async def a_rule_restarts_a_failed_init_container_of_a_run_once_pod(node: Node) -> None:
    """An init container with a rule for its exit code runs again although the policy is Never."""
    setup = container(
        "setup",
        in_turn(exits(42), exits(0)),
        restartPolicy="Never",
        restartPolicyRules=[rule("Restart", 42)],
    )
    await node.api.create_pod(pod("job", container("main"), init=[setup], restartPolicy="Never"))
    await node.run_until(
        lambda: node.count("StartContainer", container="main"),
        within_s=limits.START_S + 2 * limits.NOTICE_S,
        what="main starts",
    )
    expect_equal(node, node.count("StartContainer", container="setup"), 2, "runs of setup")
