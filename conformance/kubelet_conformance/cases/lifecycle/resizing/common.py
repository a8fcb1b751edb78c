"""Helpers of the cases about resizes: resources, the pods that have them, and waiting."""

import json
from collections.abc import Callable
from typing import Any

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import Container, PodPlan, container
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature

NEEDS = [Feature.API, Feature.CGROUPS]
MI = 1 << 20
RESIZE_S = limits.NOTICE_S + limits.STATUS_PASS_S
SETTLED_S = 3.0
PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
SMALL_MEMORY = "16Mi"
RESTARTS = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]


def asking(cpu: str, memory: str) -> dict[str, Any]:
    """Resources with equal requests and limits."""
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": cpu, "memory": memory}}


def requesting(cpu: str) -> dict[str, Any]:
    """A request for CPU alone, without a limit."""
    return {"requests": {"cpu": cpu}}


async def run_pod(node: Node, plan: PodPlan) -> None:
    """Create the pod and run until the API shows it as running and the syncs of its start are
    over."""
    await node.api.create_pod(plan)
    names = [c.name for c in plan.containers]
    await node.run_until(
        lambda: all("running" in node.api.container(plan.name, n).get("state", {}) for n in names),
        within_s=limits.START_S,
        what=f"{plan.name} runs",
    )
    await node.run_for(limits.NOTICE_S)  # no sync of the start is under way any more


async def resized(node: Node, pod_name: str, times: int = 1) -> None:
    """Run until that many resizes of the pod have been reported as completed, within RESIZE_S."""
    await until(node, lambda: len(node.events("ResizeCompleted", pod=pod_name)) >= times)


async def uses_memory(node: Node, used_bytes: int) -> None:
    """Run until the runtime has reported for some seconds that its containers use so much memory,
    and at most a fifth more: a shell that fills a variable holds it twice for a moment.

    The runtime is asked because a fake's containers are in no cgroup of this machine.
    """
    began_s = since_s = node.now_s
    while node.now_s < since_s + SETTLED_S:
        in_time = node.now_s < began_s + RESIZE_S + SETTLED_S + node.slack_s
        expect(node, in_time, f"{used_bytes} bytes in use")
        await node.run_for(0.2)
        answer = await node.runtime.direct.call(
            "ListContainerStats", cri.ListContainerStatsRequest()
        )
        used = sum(s.memory.usage_bytes.value for s in answer.stats)
        if not used_bytes <= used <= used_bytes * 1.2:
            since_s = node.now_s


async def used_bytes(node: Node, name: str) -> int:
    """The memory that the container uses, as the runtime says."""
    answer = await node.runtime.direct.call("ListContainerStats", cri.ListContainerStatsRequest())
    (stats,) = [s for s in answer.stats if s.attributes.metadata.name == name]
    return int(stats.memory.usage_bytes.value)


async def until(node: Node, condition: Callable[[], object], what: str = "") -> None:
    """Run until the condition is true, within RESIZE_S."""
    await node.run_until(condition, within_s=RESIZE_S, what=what or "the resize is done")


def api_condition(node: Node, pod_name: str, kind: str) -> dict[str, Any]:
    """The pod's condition of that type at the API; {} when there is none."""
    conditions = ((node.api.pod(pod_name) or {}).get("status") or {}).get("conditions") or []
    return next((dict(c) for c in conditions if c["type"] == kind), {})


def message(node: Node, reason: str, pod_name: str) -> tuple[str, dict[str, Any]]:
    """The newest event with that reason: the text before the JSON in its message, and the JSON."""
    words, _, summary = node.events(reason, pod=pod_name)[-1]["message"].partition(": ")
    return words, json.loads(summary)


def updates(node: Node, name: str = "main") -> list[Any]:
    """The resources in the calls of UpdateContainerResources for that container."""
    return [c.request.linux for c in node.calls("UpdateContainerResources", container=name)]


def main_of(cpu: str, memory: str, *, name: str = "main", **fields: Any) -> Container:
    """A container with equal requests and limits."""
    return container(name, resources=asking(cpu, memory), **fields)


def expect_pod_group(node: Node, name: str, *, quota_us: int, memory_mi: int) -> None:
    """Expect this CPU quota and memory limit (in MiB) of the pod's cgroup."""
    group = node.cgroups.of_pod(name)
    actual = (node.cgroups.cpu_quota_us(*group), node.cgroups.memory_limit_bytes(*group))
    expect_equal(node, actual, (quota_us, memory_mi * MI), "CPU quota and memory limit of the pod")


def updated(node: Node, times: int) -> bool:
    """Whether the container `main` has been updated that many times."""
    return len(updates(node)) >= times


def told_of(node: Node, generation: int) -> bool:
    """Whether the newest event ResizeCompleted is about that generation of the pod."""
    events = node.events("ResizeCompleted", pod="web")
    return bool(events) and message(node, "ResizeCompleted", "web")[1]["generation"] == generation
