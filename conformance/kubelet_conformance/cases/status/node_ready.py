"""When the Node is Ready, and what follows from it: events, times, writes, pods that wait."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, Level, conformance

API, FAULTS = Feature.API, Feature.FAULTS
OF_THE_NODE = r"/api/v1/nodes/[^/]+/status$"
STATUS_S = 5.0  # NODE-050: between two questions for the runtime's status
SILENT_S = 30.0  # NODE-050: a runtime that is silent for so long is down
UPDATE_S = 10.4  # NODE-010
READY_S = limits.START_S + 3 * UPDATE_S
"""Until a new Node is Ready: a kubelet that cannot write its CSINode at once tries it again."""
OFTEN = {"nodeStatusUpdateFrequency": "1s", "nodeStatusReportFrequency": "4s"}


def ready(node: Node) -> dict[str, Any]:
    """The Node's condition Ready."""
    return node.api.node_condition("Ready")


async def becomes(node: Node, status: str, within_s: float) -> None:
    """Run until the Node's condition Ready has this status."""
    await node.run_until(
        lambda: ready(node).get("status") == status, within_s=within_s, what=f"Ready {status}"
    )


async def told(node: Node, reason: str, times: int) -> None:
    """Run until the reason was reported so many times, and expect no more."""
    await node.run_until(
        lambda: node.event_count(reason) >= times, within_s=2, what=f"{times} events {reason}"
    )
    expect_equal(node, node.event_count(reason), times, f"events {reason}")


def spoiled(kind: str) -> Any:
    """Changes an answer of Status: the condition `kind` is false."""

    def change(answer: Any) -> None:
        for condition in answer.status.conditions:
            if condition.type == kind:
                condition.status = False
                condition.reason, condition.message = "Broken", "it is broken"

    return change


@conformance(
    id="node-runtime-silent",
    rules=["NODE-010.2", "NODE-021.1", "NODE-023.2", "NODE-024.1", "NODE-050.2"],
    needs=[API, FAULTS, Feature.VIRTUAL_TIME],
    node_config={"nodeStatusUpdateFrequency": "1s", "nodeStatusReportFrequency": "5m"},
)
async def a_runtime_that_does_not_answer_is_down_after_30_s(node: Node) -> None:
    """Status calls that fail for less than 30 s change nothing; then the Node is not Ready, with an
    event, and Ready again soon after the runtime answers. Both are written at once, although the
    last report is not long ago."""
    await becomes(node, "True", limits.START_S + UPDATE_S)
    await node.run_for(2 * STATUS_S)
    since = ready(node)["lastTransitionTime"]
    with node.runtime.on("Status").fails("UNKNOWN", "stuck"):
        await node.run_for(SILENT_S - STATUS_S - 1)
        expect_equal(node, ready(node)["status"], "True", "Ready before 30 s of silence")
        await becomes(node, "False", STATUS_S + 1 + 2 * 1.04 + 1)
        ready_words = ready(node)["reason"], ready(node)["message"]
        expected_words = ("KubeletNotReady", "container runtime is down")
        expect_equal(node, ready_words, expected_words, "reason and message")
        expect(node, ready(node)["lastTransitionTime"] != since, "another lastTransitionTime")
        await told(node, "NodeNotReady", 1)
        before = node.event_count("NodeReady")
    await becomes(node, "True", STATUS_S + 2 * 1.04 + 1)
    await told(node, "NodeReady", before + 1)


@conformance(
    id="node-transition-time", rules=["NODE-021.1", "NODE-010.3"], needs=[API], node_config=OFTEN
)
async def heartbeats_do_not_move_the_transition_time(node: Node) -> None:
    """Each report has a new heartbeat time; lastTransitionTime stays while the status does."""
    await becomes(node, "True", limits.START_S + UPDATE_S)
    first = ready(node)
    await node.run_until(
        lambda: ready(node)["lastHeartbeatTime"] != first["lastHeartbeatTime"],
        within_s=1.5 * 4 + 2,
        what="another heartbeat",
    )
    await node.run_for(5)
    transition_time = ready(node)["lastTransitionTime"]
    expect_equal(node, transition_time, first["lastTransitionTime"], "lastTransitionTime")


@conformance(id="node-status-quiet", rules=["NODE-010.2"], needs=[API], alone=True)
async def an_unchanged_status_is_not_written(node: Node) -> None:
    """While nothing changes but the heartbeat, the status is not written before the report period
    is over."""
    await becomes(node, "True", limits.START_S + UPDATE_S)
    await node.run_for(45)
    before = len(node.api.requests("PATCH", OF_THE_NODE))
    await node.run_for(50)
    write_count = len(node.api.requests("PATCH", OF_THE_NODE)) - before
    expect_equal(node, write_count, 0, "writes of an unchanged status in 50 s")


@conformance(
    id="node-not-soon-ready", rules=["NODE-013", "NODE-050.1"], level=Level.SHOULD,
    needs=[API, FAULTS, Feature.RESTART, Feature.VIRTUAL_TIME],
)  # fmt: skip
async def a_runtime_that_stays_silent_is_asked_less_often(node: Node) -> None:
    """Two minutes after its start the kubelet asks a runtime that never answered every 5 s only."""
    await node.kubelet.stop()
    with node.runtime.on("Status").fails("UNKNOWN", "not yet"):
        await node.kubelet.start()
        await node.run_for(125)
        since_s = node.now_s
        await node.run_for(4 * STATUS_S)
        call_count = node.count("Status", since_s=since_s)
        expect(node, 3 <= call_count <= 5, "3 to 5 calls of Status in 20 s", call_count)


@conformance(
    id="node-runtime-asked", rules=["NODE-050.1"], needs=[API, Feature.VIRTUAL_TIME], alone=True
)
async def the_runtime_is_asked_every_five_seconds(node: Node) -> None:
    """Once the Node is Ready, the kubelet asks the runtime for its status every 5 s."""
    await becomes(node, "True", READY_S)
    began_s = node.now_s + 1
    await node.run_for(1 + 6 * STATUS_S)
    call_count = node.count("Status", since_s=began_s)
    expect(node, 5 <= call_count <= 6, "5 or 6 calls of Status in 30 s", call_count)


@conformance(
    id="node-runtime-not-ready",
    rules=["NODE-050.3", "NODE-051.1", "NODE-051.3", "NODE-023.4"],
    needs=[API, FAULTS],
    node_config=OFTEN,
)
async def a_runtime_that_is_not_ready_gets_no_new_pods(node: Node) -> None:
    """When Status says that the runtime is not ready, the Node is not Ready at once, with the
    runtime's reason. Meanwhile no pod is started and none is stopped; new ones start later."""
    await node.apply_static(pod("old"))
    await node.wait_running("old")
    await becomes(node, "True", READY_S)
    with node.runtime.on("Status").changes_answer(spoiled("RuntimeReady")):
        await becomes(node, "False", STATUS_S + 2 * 1.04 + 1)
        text = "container runtime not ready: RuntimeReady=false reason:Broken message:it is broken"
        expect_equal(node, ready(node)["message"], text, "message")
        await node.run_for(2)  # the loop looks at the runtime between two events, at most 1 s apart
        await node.apply_static(pod("new"))
        await node.run_for(2 * limits.START_S)
        expect_equal(node, node.count("RunPodSandbox", pod="new"), 0, "sandboxes of the new pod")
    await node.run_until(
        lambda: node.running("new"), within_s=2 * STATUS_S + limits.START_S, what="the new pod runs"
    )
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(
    id="node-network-not-ready",
    rules=["NODE-052", "NODE-022.3", "NODE-023.5", "CRI-130.2"],
    needs=[API, FAULTS],
    node_config=OFTEN,
)
async def pods_wait_for_the_network(node: Node) -> None:
    """While the runtime's network is not ready, the Node says so; pods of the host network start,
    others wait with an event and start when the network is there. Pods that run go on."""
    await node.apply_static(pod("old"))
    await node.wait_running("old")
    await becomes(node, "True", READY_S)
    error = (
        "container runtime network not ready: NetworkReady=false reason:Broken message:it is broken"
    )
    with node.runtime.on("Status").changes_answer(spoiled("NetworkReady")):
        await becomes(node, "False", STATUS_S + 2 * 1.04 + 1)
        expect_equal(node, ready(node)["message"], error, "message")
        await node.api.create_pod(pod("host", hostNetwork=True))
        await node.api.create_pod(pod("web"))
        await node.wait_running("host")
        await node.run_until(
            lambda: node.events("NetworkNotReady", pod="web"), within_s=2, what="an event"
        )
        event = node.events("NetworkNotReady", pod="web")[0]
        fields = event["type"], event["message"]
        expect_equal(
            node, fields, ("Warning", f"network is not ready: {error}"), "type and message"
        )
        expect_equal(node, node.count("RunPodSandbox", pod="web"), 0, "sandboxes of web")
    await node.run_until(
        lambda: node.running("web"), within_s=STATUS_S + 1.5 + limits.START_S, what="web runs"
    )
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(
    id="node-two-reasons",
    rules=["NODE-022.2", "NODE-022.3"],
    needs=[API, FAULTS, Feature.SHUTDOWN],
    node_config={**OFTEN, "shutdownGracePeriod": "10s", "shutdownGracePeriodCriticalPods": "4s"},
)
async def all_reasons_are_named(node: Node) -> None:
    """A node that shuts down while its runtime is not ready names both reasons, the runtime's
    first."""
    await becomes(node, "True", limits.START_S + UPDATE_S)
    with node.runtime.on("Status").changes_answer(spoiled("RuntimeReady")):
        await becomes(node, "False", STATUS_S + 2 * 1.04 + 1)
        node.machine.shut_down()
        both = (
            "[container runtime not ready: RuntimeReady=false reason:Broken message:it is broken, "
            "node is shutting down]"
        )
        await node.run_until(
            lambda: ready(node)["message"] == both,
            within_s=limits.NOTICE_S,
            what=f"the message {both!r}",
        )
