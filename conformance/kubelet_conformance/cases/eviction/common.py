"""Helpers of the cases about evictions: pods that use resources, and waiting for a victim."""

import re
from collections.abc import Mapping
from typing import Any

from fakecri import stops, uses
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import runs

MI = 1024 * 1024
BY_CONTAINER: dict[str, Any] = {"featureGates": {"PodAndContainerStatsFromCRI": False}}
"""Pods have statistics of their containers alone, none without one that runs (EVIC-029): the
default. With the gate a sandbox has some, too (EVIC-030)."""
CYCLE_S = limits.EVICTION_CYCLE_S + limits.STOP_S


def hungry(
    name: str,
    *,
    memory_mi: int = 0,
    disk_mi: int = 0,
    inodes: int = 0,
    processes: int = 1,
    requests: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    **spec: Any,
) -> PodPlan:
    """A pod with one container that uses so much, and exits with an error when it is stopped."""
    work = runs(
        stops(1),
        uses(memory_bytes=memory_mi * MI, disk_bytes=disk_mi * MI, inodes=inodes, pids=processes),
    )
    resources = {"requests": dict(requests or {}), "limits": dict(limits or {})}
    return pod(name, container("main", work, resources=resources), **spec)


async def first_victim(node: Node) -> str:
    """Run until a pod is evicted, and return its name."""
    await node.run_until(lambda: node.events("Evicted"), within_s=2 * CYCLE_S, what="an eviction")
    return str(node.events("Evicted")[0]["involvedObject"]["name"])


def comparable(node: Node, text: str) -> str:
    """The message of an eviction as it can be compared: where the node's numbers cannot be set,
    without the threshold and what was available."""
    if node.machine.numbers_set:
        return text
    return re.sub(r"Threshold quantity: \S+, available: \S+\. ", "", text)


async def has_condition(node: Node, kind: str, status: str = "True") -> None:
    """Run until the Node's condition has that status."""
    await node.run_until(
        lambda: node.api.node_condition(kind).get("status") == status,
        within_s=2 * limits.EVICTION_CYCLE_S + limits.START_S,
        what=f"{kind} {status}",
    )


async def nothing_happens(node: Node, *, for_s: float = 3 * limits.EVICTION_CYCLE_S) -> None:
    """Let that time pass and expect that no pod is stopped and no condition is True."""
    await node.run_for(for_s)
    expect_equal(node, node.count("StopContainer"), 0, "stops")
    for kind in ("MemoryPressure", "DiskPressure", "PIDPressure"):
        expect_equal(node, node.api.node_condition(kind).get("status"), "False", kind)


async def evicted_for(node: Node, name: str, message: str, *, within_s: float) -> None:
    """Run until the pod is evicted with a message that begins with that text."""
    await node.run_until(
        lambda: node.api.phase(name) == "Failed", within_s=within_s, what=f"{name} evicted"
    )
    status = (node.api.pod(name) or {})["status"]
    expect_equal(node, status["reason"], "Evicted", "reason")
    message_text = status["message"]
    begins = message_text.startswith(message) or comparable(node, message_text).startswith(
        comparable(node, message)
    )
    expect(node, begins, f"message {message!r}...", status)


def looks_s(node: Node, *, after_s: float) -> list[float]:
    """When the eviction manager looked at the node after that time: it asks the runtime for its
    disks once in every cycle. Only in virtual time, where nobody else asks then."""
    return [at for at in node.times_s("ImageFsInfo") if at > after_s]


async def next_look_s(node: Node) -> float:
    """Run until the eviction manager looks at the node, and return when that was."""
    began_s = node.now_s
    await node.run_until(
        lambda: looks_s(node, after_s=began_s), within_s=CYCLE_S, what="a look at the node"
    )
    return looks_s(node, after_s=began_s)[0]
