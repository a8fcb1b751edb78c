"""What a pod has alone stays its own as long as something of it runs."""

from __future__ import annotations

from kubelet_conformance.cases.resources.cpus import STATIC, guaranteed
from kubelet_conformance.cases.resources.reuse import NODE, PLUGINS, SMALL, STATUS
from kubelet_conformance.cases.resources.widgets import widgets, with_widgets
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import Container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import ignores_term
from kubelet_conformance.known_bugs import KnownBug
from kubelet_conformance.registry import Feature, conformance

TWO_OWNERS = KnownBug(
    "104824", "What a pod has alone is given away while it is still being stopped."
)


async def only_one_has_it(node: Node, wish: Container, second: Container) -> None:
    """A pod that was deleted without grace takes long to stop; expect that another one, which asks
    for all that it has, does not run beside it, and that one that comes later does."""
    await node.api.create_pod(pod("first", wish, terminationGracePeriodSeconds=10))
    await node.wait_running("first")
    await node.api.delete_pod("first", grace_s=0)
    await node.run_for(limits.WATCH_S)
    await node.api.create_pod(pod("second", second, restartPolicy="Never"))
    await node.run_for(10 + limits.STOP_S + limits.NOTICE_S)
    expect_equal(node, node.count("StartContainer", pod="second"), 0, "starts beside it")
    await node.api.create_pod(pod("third", second))
    await node.wait_running("third")


@conformance(
    id="device-of-what-still-runs", rules=["CG-080.3"], needs=[*PLUGINS, STATUS],
    bugs=[TWO_OWNERS],
)  # fmt: skip
async def a_device_is_free_when_nothing_of_its_pod_runs(node: Node) -> None:
    """The device of a pod that was deleted without grace, and that still runs, is given to no
    other pod."""
    await widgets(node, "w1")
    await only_one_has_it(node, with_widgets(1, "main", ignores_term()), with_widgets(1))


@conformance(
    id="cpus-of-what-still-runs", rules=["CG-080.3"], needs=[STATUS, NODE, Feature.API],
    node_config=STATIC, machine=SMALL, bugs=[TWO_OWNERS],
)  # fmt: skip
async def cpus_are_free_when_nothing_of_their_pod_runs(node: Node) -> None:
    """The CPUs of a pod that was deleted without grace, and that still runs, are given to no other
    pod."""
    wish = guaranteed("main", "2", ignores_term())
    await only_one_has_it(node, wish, guaranteed("main", "2"))
