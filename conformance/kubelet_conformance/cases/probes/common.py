"""Helpers of the cases about network probes: readiness, and events with exactly one message."""

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.node import Node

RUN_S = 2.0  # a period of one second, and what a run takes


def pod_ip(node: Node, pod: str) -> str:
    """The pod's IP address in its status; "" while it has none."""
    return str(((node.pod(pod) or {}).get("status") or {}).get("podIP", ""))


def ready(node: Node, pod: str = "web", name: str = "main") -> bool:
    """Whether the container is shown as ready."""
    return node.container(pod, name).get("ready") is True


async def becomes_ready(node: Node, *, after_s: float = 0.0) -> None:
    """Expect the container `main` of the pod `web` to become ready, `after_s` seconds later than a
    pod usually starts."""
    await node.run_until(
        lambda: ready(node), within_s=limits.START_S + after_s + RUN_S, what="the container ready"
    )


async def says(node: Node, reason: str, wanted: str) -> None:
    """Expect a Warning about the container with that reason and exactly that message.

    Other events may come first, since a real container takes a moment until it listens.
    """
    await node.run_until(
        lambda: wanted in [event["message"] for event in node.events(reason, pod="web")],
        within_s=limits.START_S + 3 * RUN_S,
        what=f"an event {reason}: {wanted}",
    )
    event = next(e for e in node.events(reason, pod="web") if e["message"] == wanted)
    expect_equal(node, event["type"], "Warning", "type of the event")
    path = event["involvedObject"].get("fieldPath")
    expect_equal(node, path, "spec.containers{main}", "fieldPath of the event")


def errors(node: Node, error: str) -> list[str]:
    """The messages of events of liveness probes that ended in this error, in the words of any
    version: before 1.33 they do not say what it resulted in."""
    return [
        event["message"]
        for event in node.events("Unhealthy", pod="web")
        if event["message"].startswith("Liveness probe errored")
        and event["message"].endswith(f": {error}")
    ]
