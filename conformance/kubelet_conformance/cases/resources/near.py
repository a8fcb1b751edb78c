"""Devices and CPUs of one container come from the same NUMA nodes."""

from __future__ import annotations

from typing import Any, Final

from fakecri.deviceplugin import PluginDevice
from kubelet_conformance.cases.resources.cpus import created
from kubelet_conformance.cases.resources.widgets import NEEDS, WIDGET, shows, widgets
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import Container, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance
from refkubelet.model.cpuset import parse_cpuset

# CPUs 0 to 4 are of NUMA node 0, of which two are reserved; 5 to 9 of node 1.
MACHINE: Final = {"sockets": 2, "cores": 5}
SECOND: Final = frozenset(range(5, 10))
ALIGNED: Final[dict[str, Any]] = {
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0,1",
    "topologyManagerPolicy": "best-effort",
}


def with_cpus_and_widget(name: str, cpus: int) -> Container:
    """A container that requests whole CPUs and one widget."""
    amounts = {"cpu": str(cpus), "memory": "64Mi", WIDGET: "1"}
    return container(name, resources={"requests": amounts, "limits": amounts})


def _at(device: str, numa: int) -> PluginDevice:
    return PluginDevice(device, nodes=(numa,))


@conformance(
    id="topology-all-resources", rules=["CG-083.4", "CG-084.4"], machine=MACHINE,
    node_config=ALIGNED, needs=[*NEEDS, Feature.NODE_RESOURCES],
)  # fmt: skip
async def cpus_and_devices_are_of_the_same_node(node: Node) -> None:
    """The nodes are chosen by all resources of a container: one CPU comes from node 1 where the
    only device is, and of two devices the one of node 1 is taken where four CPUs are free."""
    plugin = await widgets(node, _at("b1", 1))
    await node.api.create_pod(pod("first", with_cpus_and_widget("one", 1)))
    await node.wait_running("first", "one")
    cpus = parse_cpuset(created(node, "one").cpuset_cpus)
    expect(node, cpus < SECOND, "a CPU of NUMA node 1, where the device is", sorted(cpus))
    plugin.set_devices(_at("a0", 0), _at("b1", 1), _at("c1", 1))
    await shows(node, "3")
    await node.api.create_pod(pod("second", with_cpus_and_widget("four", 4)))
    await node.wait_running("second", "four")
    expect_equal(node, plugin.allocated, [("b1",), ("c1",)], "devices given")
    cpus_of_four = parse_cpuset(created(node, "four").cpuset_cpus)
    expect_equal(node, cpus_of_four, SECOND - cpus, "CPUs of the second container")
