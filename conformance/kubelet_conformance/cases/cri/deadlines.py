"""How long the kubelet waits for an answer of the runtime, and what it does when none comes."""

import math

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import ExecProbe, container, hook, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, ignores_term, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

STATUS, FAULTS = Feature.STATUS, Feature.FAULTS
LIMIT_S = 6.0
SHORT = {"runtimeRequestTimeout": f"{LIMIT_S:g}s"}
OF_THE_WAY_S = 0.5
"""A deadline is the time that is left when the call arrives."""
OTHERS = (
    "Version",
    "Status",
    "ListPodSandbox",
    "ListContainers",
    "PodSandboxStatus",
    "ContainerStatus",
    "CreateContainer",
    "StartContainer",
    "RemoveContainer",
    "StopPodSandbox",
    "ImageStatus",
    "ImageFsInfo",
)


def deadlines(node: Node, method: str) -> list[float]:
    """The deadline of each of these calls, in seconds; infinite for one without."""
    deadlines_s = [call.deadline_s for call in node.calls(method)]
    return [math.inf if seconds is None else float(seconds) for seconds in deadlines_s]


def is_about(limit_s: float, found_s: float) -> bool:
    """Whether that is the limit, as it arrives: shorter by the way, or longer, because the wire has
    three digits of it."""
    return limit_s - OF_THE_WAY_S <= found_s <= limit_s * 1.01


def expect_deadlines(node: Node, wanted_s: dict[str, float]) -> None:
    """Fail unless every call of each method came with that deadline, and each method was called."""
    for method, limit_s in wanted_s.items():
        deadlines_s = deadlines(node, method)
        right = deadlines_s and all(is_about(limit_s, deadline_s) for deadline_s in deadlines_s)
        expect(node, right, f"deadlines of {method}: {limit_s:g} s", deadlines_s)


@conformance(
    id="cri-deadlines", rules=["CRI-006.1", "CRI-006.2", "CRI-006.3", "CRI-006.6"],
    needs=[STATUS], node_config=SHORT, alone=True,
)  # fmt: skip
async def every_call_has_the_deadline_of_its_kind(node: Node) -> None:
    """With runtimeRequestTimeout T RunPodSandbox has 2 T, StopContainer its grace period and T,
    ExecSync its timeout and T, without a timeout none, and every other call T."""
    probe = ExecProbe(timeout_s=3)
    main = container("main", probes={"readiness": probe})
    hooked = container("hooked", hooks={"postStart": hook()})
    again = container("again", in_turn(exits(0), exits(0), runs()))
    await node.apply_static(pod("web", main, again, grace_s=9))
    await node.apply_static(pod("other", hooked, grace_s=9))
    await node.wait_running("web", "main")
    await node.wait_running("other", "hooked")
    await node.run_until(
        lambda: node.count("ExecSync", container="main") and node.count("RemoveContainer"),
        within_s=60,
        what="a probe, and the removal of a dead container",
    )
    await node.remove_static("web")
    await node.run_until(lambda: node.count("StopPodSandbox"), within_s=limits.STOP_S)
    await node.run_for(limits.RELIST_S)
    expect_deadlines(
        node,
        {
            "RunPodSandbox": 2 * LIMIT_S,
            "StopContainer": 9 + LIMIT_S,
            **{method: LIMIT_S for method in OTHERS if node.count(method)},
        },
    )
    probes = {call.deadline_s for call in node.calls("ExecSync", container="main")}
    right = all(deadline_s and is_about(3 + LIMIT_S, deadline_s) for deadline_s in probes)
    expect(node, right, f"deadlines of a probe of 3 s: {3 + LIMIT_S:g} s", probes)
    hooks = [call.deadline_s for call in node.calls("ExecSync", container="hooked")]
    expect_equal(node, hooks, [None], "deadlines of a hook")
    missing = [method for method in OTHERS[2:8] if not node.count(method)]
    expect_equal(node, missing, [], "kinds of calls that never came")


@conformance(
    id="cri-deadline-passes", rules=["CRI-006.6", "CRI-006.1", "LIFE-037"],
    needs=[STATUS, FAULTS], node_config=SHORT,
)  # fmt: skip
async def a_call_that_hangs_is_given_up_and_done_again(node: Node) -> None:
    """A RunPodSandbox or CreateContainer without an answer is given up after its deadline, and the
    next try succeeds."""
    sandbox = node.runtime.on("RunPodSandbox", pod="box").hangs(times=1)
    create = node.runtime.on("CreateContainer", pod="web").hangs(times=1)
    await node.apply_static(pod("box"))
    await node.apply_static(pod("web"))
    await node.run_until(
        lambda: node.running("box") and node.running("web"),
        within_s=2 * LIMIT_S + 2 * limits.SYNC_ERROR_S + limits.START_S,
        what="both pods run in spite of calls that hung",
    )
    for method, name, limit_s in (
        ("RunPodSandbox", "box", 2 * LIMIT_S),
        ("CreateContainer", "web", LIMIT_S),
    ):
        first = node.calls(method, pod=name)[0]
        took = node.ended_s(first) - node.time_s(first)
        right = limit_s - OF_THE_WAY_S <= took <= limit_s + node.slack_s
        expect(node, right, f"{method} given up after {limit_s:g} s", f"{took:.2f} s")
    for rule in (sandbox, create):
        rule.release()


@conformance(
    id="cri-deadline-of-a-list",
    rules=["CRI-006.6", "PLEG-009"],
    needs=[STATUS, FAULTS],
    node_config=SHORT,
    alone=True,
)
async def a_list_or_status_that_hangs_holds_nothing_up(node: Node) -> None:
    """Lists and Status that get no answer are given up after the deadline; the relist goes on with
    the next one, and a new pod starts."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    rules = [node.runtime.on(each).hangs(times=1) for each in ("ListContainers", "Status")]
    await node.run_until(
        lambda: all(
            any(call.error for call in node.calls(each)) for each in ("ListContainers", "Status")
        ),
        within_s=5 + LIMIT_S + 2 * limits.RELIST_S,
        what="both calls are given up",
    )
    await node.apply_static(pod("later"))
    await node.run_until(
        lambda: node.running("later"), within_s=LIMIT_S + 2 * limits.START_S, what="later runs"
    )
    for rule in rules:
        rule.release()


@conformance(
    id="cri-stop-outlasts-the-limit", rules=["CRI-006.2"], needs=[STATUS], node_config=SHORT
)
async def a_grace_period_may_be_longer_than_any_call(node: Node) -> None:
    """A container that takes a grace period longer than runtimeRequestTimeout is stopped by one
    StopContainer."""
    await node.apply_static(pod("slow", container("main", ignores_term()), grace_s=9))
    await node.wait_running("slow")
    await node.remove_static("slow")
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="slow"), within_s=9 + limits.STOP_S
    )
    calls = node.calls("StopContainer", pod="slow")
    expect_equal(node, [call.error for call in calls], [None], "errors of StopContainer of slow")


@conformance(
    id="cri-stop-given-up",
    rules=["CRI-064.2", "CRI-006.2"],
    needs=[STATUS, FAULTS],
    node_config=SHORT,
)
async def a_stop_that_was_given_up_is_done_again(node: Node) -> None:
    """When the StopContainer of a container that must be restarted is given up, the container is
    stopped again, and its successor is created after that."""
    probe = ExecProbe(until_s=3)
    await node.apply_static(pod("web", container("main", probes={"liveness": probe})))
    rule = node.runtime.on("StopContainer", pod="web").hangs(times=1)
    await node.run_until(
        lambda: node.count("CreateContainer", pod="web") == 2,
        within_s=limits.START_S + 4 + 2 + LIMIT_S + limits.SYNC_ERROR_S + limits.STOP_S,
        what="a second container",
    )
    first, second = (node.calls("StopContainer", pod="web")[number] for number in (0, 1))
    expect(node, first.error and not second.error, "a stop given up, then one that succeeds")
    created = node.times_s("CreateContainer", pod="web")[1]
    stopped_s = node.ended_s(second)
    expect(node, created >= stopped_s, "the successor after the second stop", (stopped_s, created))
    rule.release()


@conformance(
    id="cri-hook-outlasts-the-limit", rules=["CRI-006.3"], needs=[STATUS], node_config=SHORT
)
async def a_hook_may_take_longer_than_any_call(node: Node) -> None:
    """A postStart hook of more than runtimeRequestTimeout succeeds."""
    slow = container("main", hooks={"postStart": hook(takes_s=LIMIT_S + 2)})
    await node.apply_static(pod("web", slow))
    await node.run_until(lambda: node.count("ExecSync", container="main"), within_s=limits.START_S)
    await node.run_for(LIMIT_S + 2 + limits.NOTICE_S)
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops of main")
    (call,) = node.calls("ExecSync", container="main")
    expect_equal(node, call.error, None, "error of the hook")
