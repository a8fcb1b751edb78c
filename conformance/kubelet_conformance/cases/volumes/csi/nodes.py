"""The CSINode of a node: when it is made, what it keeps, and when the Node waits for it
(NODE-216)."""

from typing import Any, Final

from fakecri.csi import FakeCsiDriver
from kubelet_conformance.cases.volumes.csi.common import DISKS, NEEDS, SOCKET, register
from kubelet_conformance.cases.volumes.csi.drivers import labels
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.known_bugs import KnownBug
from kubelet_conformance.registry import Feature, conformance

MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"
MIGRATED_PLUGINS: Final = (
    *("kubernetes.io/aws-ebs", "kubernetes.io/azure-disk", "kubernetes.io/azure-file"),
    *("kubernetes.io/cinder", "kubernetes.io/gce-pd", "kubernetes.io/portworx-volume"),
    "kubernetes.io/vsphere-volume",
)
OWN_NODE_S: Final = 24.0 + limits.START_S
"""Until a kubelet that found no Node, or no API server, has made its CSINode."""


async def wait_csi_node(node: Node) -> dict[str, Any]:
    """Run until there is the CSINode of the Node: that object."""
    await node.run_until(
        lambda: node.api.node_uid() and owner(node.storage.csi_node()) == node.api.node_uid(),
        within_s=OWN_NODE_S,
        what="a CSINode that the Node owns",
    )
    return node.storage.csi_node()


def owner(csi_node: dict[str, Any]) -> str:
    """The UID of the Node that owns it; "" where none does."""
    owners = (csi_node.get("metadata") or {}).get("ownerReferences") or []
    return str(owners[0]["uid"]) if owners else ""


@conformance(id="csi-node-object", rules=["NODE-216.5"], needs=[Feature.API], alone=True)
async def a_node_has_a_csi_node(node: Node) -> None:
    """A node without drivers has a CSINode, which its Node owns, and which names the plug-ins whose
    volumes are those of CSI drivers."""
    csi = await wait_csi_node(node)
    owner = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": node.name,
        "uid": node.api.node_uid(),
    }
    expect_equal(node, csi["metadata"]["ownerReferences"], [owner], "owners of the CSINode")
    told = csi["metadata"].get("annotations", {}).get(MIGRATED, "").split(",")
    expect_equal(node, sorted(told), list(MIGRATED_PLUGINS), f"annotation {MIGRATED}")
    expect_equal(node, csi["metadata"]["name"], node.name, "name of the CSINode")
    expect_equal(node, csi["spec"], {"drivers": None}, "the whole spec of the CSINode")


@conformance(
    id="csi-node-of-another",
    rules=["NODE-216.5"],
    needs=[Feature.API, Feature.RESTART],
    bugs=[KnownBug("", "The CSINode of an earlier Node is taken over.", fixed="1.35")],
)
async def the_csi_node_of_an_earlier_node_is_replaced(node: Node) -> None:
    """A CSINode that belongs to an earlier Node of the same name is made anew, without what it says
    of drivers."""
    await wait_csi_node(node)
    await node.kubelet.stop()
    await node.storage.delete_csi_node()
    old_driver = {"name": "gone.example", "nodeID": "x", "topologyKeys": []}
    await node.storage.create_csi_node("earlier", [old_driver])
    await node.kubelet.start()
    csi = await wait_csi_node(node)
    expect_equal(node, csi["spec"]["drivers"] or [], [], "drivers")


@conformance(id="csi-node-kept", rules=["NODE-216.5"], needs=[*NEEDS, Feature.RESTART])
async def the_csi_node_of_the_node_is_kept(node: Node) -> None:
    """A kubelet that is started again leaves in its CSINode what is said of drivers."""
    driver = FakeCsiDriver(DISKS, node_id="a")
    await register(node, driver)
    await node.kubelet.stop()
    await node.plugins.withdraw(SOCKET)
    before = node.storage.csi_node()
    await node.kubelet.start()
    await node.run_for(limits.START_S + node.settled_s - node.now_s)
    after = node.storage.csi_node()
    expect_equal(node, after["metadata"]["uid"], before["metadata"]["uid"], "UID of the CSINode")
    expect_equal(node, after["spec"], before["spec"], "spec of the CSINode")


@conformance(id="csi-node-ready", rules=["NODE-216.5"], needs=[Feature.API, Feature.RESTART])
async def the_node_waits_for_its_csi_node(node: Node) -> None:
    """While the CSINode cannot be made the Node is not Ready, and says so."""
    await wait_csi_node(node)
    await node.kubelet.stop()
    await node.storage.delete_csi_node()
    since_s = node.now_s
    with node.api.fails("POST", r"/csinodes$"):
        await node.kubelet.start()
        await node.run_until(
            lambda: "CSINode" in str(ready(node)), within_s=8, what="Ready tells of the CSINode"
        )
        expect_equal(node, ready(node)["status"], "False", "status of Ready")
    await node.run_until(
        lambda: ready(node)["status"] == "True",
        within_s=2 * (node.now_s - since_s) + 3 * limits.NODE_STATUS_S,
        what="the Node is Ready",
    )
    await wait_csi_node(node)


def ready(node: Node) -> dict[str, Any]:
    """The Node's condition Ready."""
    return node.api.node_condition("Ready")


@conformance(id="csi-driver-gone", rules=["NODE-216.6", "CG-086.4"], needs=NEEDS)
async def a_driver_that_ends_is_taken_out(node: Node) -> None:
    """A driver whose socket is gone is no longer in CSINode and annotation; its labels stay, and
    so do other drivers."""
    await register(node, FakeCsiDriver("other.example", node_id="b"), "other.sock")
    await register(node, FakeCsiDriver(DISKS, node_id="a", topology={"zone": "z1"}))
    await node.plugins.withdraw(SOCKET)
    await node.run_until(
        lambda: not node.storage.listed_driver(DISKS) and DISKS not in node.storage.node_ids(),
        within_s=limits.START_S,
        what="the driver is not named any more",
    )
    expect_equal(node, node.storage.node_ids(), {"other.example": "b"}, "annotation of the Node")
    expect(node, node.storage.listed_driver("other.example"), "the other driver in the CSINode")
    expect_equal(node, labels(node).get("zone"), "z1", "label of the Node")
    await node.plugins.withdraw("other.sock")
    await node.run_until(
        lambda: not node.storage.node_ids() and not node.storage.csi_node()["spec"]["drivers"],
        within_s=limits.START_S,
        what="no driver is named any more",
    )
