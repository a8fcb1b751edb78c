"""Helpers of the cases about images: waiting states, pulls, and events about an image."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.node import Node

PULL_RETRY_S = limits.SYNC_ERROR_S + limits.RELIST_S  # BACK-207
PULLED_S = limits.START_S + 10.0  # a pod whose image comes from a registry nearby runs
IMAGE_CALLS = ("ImageStatus", "PullImage", "CreateContainer")


def waiting(node: Node, pod: str, container: str = "main") -> dict[str, str]:
    """The waiting state of the container in `/pods`; {} when it does not wait."""
    return dict(node.container(pod, container).get("state", {}).get("waiting") or {})


async def wait_running(node: Node, pod: str, container: str = "main") -> None:
    """Run until the container runs; its image may have to be pulled first."""
    await node.run_until(
        lambda: node.running(pod, container),
        within_s=PULLED_S,
        what=f"container {container} of pod {pod} runs",
    )


async def wait_waiting(node: Node, pod: str, reason: str, container: str = "main") -> str:
    """Run until the container waits for that reason, and return the message."""
    await node.run_until(
        lambda: waiting(node, pod, container).get("reason") == reason,
        within_s=2 * PULL_RETRY_S,
        what=f"container {container} of pod {pod} waits: {reason}",
    )
    return waiting(node, pod, container).get("message", "")


async def wait_event(node: Node, pod: str, reason: str, message: str) -> dict[str, Any]:
    """Run until there is such an event about the pod, and return it."""

    def found() -> list[dict[str, Any]]:
        return [e for e in node.events(reason, pod=pod) if e["message"] == message]

    await node.run_until(
        found, within_s=2 * PULL_RETRY_S, what=f"an event {reason} of pod {pod}: {message}"
    )
    return found()[0]


def expect_about(node: Node, event: dict[str, Any], kind: str, container: str = "main") -> None:
    """Expect that the event has that type and is about that container."""
    expect_equal(node, event["type"], kind, f"type of event {event['reason']}")
    path = event["involvedObject"].get("fieldPath")
    expect_equal(node, path, f"spec.containers{{{container}}}", f"field of {event['reason']}")


def pulls(node: Node, image: str, pod: str | None = None) -> list[Any]:
    """The PullImage calls for that image."""
    return [c for c in node.calls("PullImage", pod=pod) if c.request.image.image == image]


def error_of(call: Any) -> str:
    """The error of a pull as the kubelet reports it: without the code if that is UNKNOWN
    (BACK-205)."""
    code, text = call.error
    if code == "UNKNOWN":
        return str(text)
    name = "".join(word.capitalize() for word in code.split("_"))
    return f"rpc error: code = {name} desc = {text}"


def image_calls(node: Node, image: str) -> list[str]:
    """The names of the image calls about that image, up to the first CreateContainer."""
    names = []
    for call in node.calls():
        if call.method in IMAGE_CALLS and call.subject.image == image:
            names.append(call.method)
            if call.method == "CreateContainer":
                break
    return names
