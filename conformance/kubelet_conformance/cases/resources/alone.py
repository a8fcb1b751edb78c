"""What a pod has alone stays its own while others come and go; the laws of this name look at all
calls."""

from collections.abc import Callable, Mapping
from typing import Any

from kubelet_conformance.cases.resources.cpus import STATIC, guaranteed
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.manifests import Container, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

STATUS, NODE = Feature.STATUS, Feature.NODE_RESOURCES


async def come_and_go(
    node: Node, made: Callable[[str], Container], spec: Mapping[str, Any]
) -> None:
    """Pods come, one goes, and others come."""
    for name in ("a", "b"):
        await node.apply_static(pod(name, made(name), grace_s=1, **spec))
        await node.wait_running(name, name)
    await node.remove_static("a")
    await node.run_for(limits.STOP_S + limits.HOUSEKEEPING_S)
    for name in ("c", "d"):
        await node.apply_static(pod(name, made(name), grace_s=1, **spec))
        await node.wait_running(name, name)


@conformance(id="cpus-alone", rules=["CG-081"], needs=[STATUS, NODE], node_config=STATIC)
async def whole_cpus_are_given_once(node: Node) -> None:
    """Pods with a CPU of their own come and go: no two that run have the same one (law
    given-once)."""
    await come_and_go(node, lambda name: guaranteed(name, "1"), {})


@conformance(
    id="user-ids-alone",
    rules=["LIFE-147.4"],
    needs=[STATUS, Feature.USER_NAMESPACES],
    since="1.33",
)
async def ranges_of_user_ids_are_given_once(node: Node) -> None:
    """Pods with user IDs of their own come and go: no ranges of two overlap (law
    user-ids-given-once)."""
    await come_and_go(node, container, {"hostUsers": False})
