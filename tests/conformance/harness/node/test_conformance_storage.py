"""`node.storage`: the names and places of CSI volumes, and what a case makes at the API."""

from typing import Any

from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.runs.case_run import Outcome
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.registry import Case, Feature, Level

DISKS = "disks.example"
# Of `printf vol-1disks.examplenode | sha256sum` and `printf vol-1 | sha256sum`.
OF_ATTACHMENT = "80c55716a89589b58fa3fd4088f33971feec0da6ded41b2bdc5bc67f0ec7e6e5"
OF_VOLUME = "d2e8363faaac7ae76def3b14091d8eb5755f6b92e9531627aeec833a8731cc49"


def run(body: Any) -> None:
    """Run that as the body of a case."""
    case = Case(
        id="x", area="a", title="t", rules=("LIFE-001",), level=Level.MUST,
        needs=frozenset([Feature.API, Feature.STATUS]), body=body,
    )  # fmt: skip
    result = run_virtual_case(case, Choice())
    assert result.outcome is Outcome.PASSED, result.detail


def test_names_and_places() -> None:
    async def body(node: Node) -> None:
        storage, root = node.storage, node.machine.directory("root")
        assert storage.attachment_name(DISKS, "vol-1") == f"csi-{OF_ATTACHMENT}"
        assert storage.unique_name(DISKS, "vol-1") == f"kubernetes.io/csi/{DISKS}^vol-1"
        above = root / "plugins/kubernetes.io/csi" / DISKS
        assert storage.staging_path(DISKS, "vol-1") == above / OF_VOLUME / "globalmount"
        await node.api.create_pod(pod("web"))
        await node.wait_running("web")
        uid = (node.api.pod("web") or {})["metadata"]["uid"]
        volumes = root / "pods" / uid / "volumes" / "kubernetes.io~csi"
        assert storage.target_path("web", "pv") == volumes / "pv" / "mount"
        handle = storage.inline_handle("web", "v")
        assert (handle[:4], len(handle)) == ("csi-", 68)
        assert handle != storage.inline_handle("web", "w")

    run(body)


def test_what_a_case_says_at_the_api_is_seen() -> None:
    async def body(node: Node) -> None:
        storage = node.storage
        await node.run_until(node.api.node_uid, within_s=30, what="the Node")
        if storage.csi_node():
            await storage.delete_csi_node()
        driver = {"name": DISKS, "nodeID": "a", "topologyKeys": ["zone"]}
        await storage.create_csi_node("uid", [driver])
        assert storage.listed_driver(DISKS) == driver
        assert storage.listed_driver("other.example") == {}
        await node.api.patch_node(
            {"metadata": {"annotations": {"csi.volume.kubernetes.io/nodeid": '{"d": "a"}'}}}
        )
        await node.refresh()
        assert storage.node_ids() == {"d": "a"}
        await storage.describe_driver(DISKS)
        await storage.change_driver(DISKS, requiresRepublish=True)
        found = node.api.fake.store.items("csidrivers.storage.k8s.io")
        spec = next(iter(found))["spec"]
        assert (spec["attachRequired"], spec["requiresRepublish"]) == (False, True)

    run(body)


def test_what_a_case_says_of_an_attachment() -> None:
    async def body(node: Node) -> None:
        storage = node.storage

        def attachment() -> dict[str, Any]:
            found = node.api.fake.store.items("volumeattachments.storage.k8s.io")
            return next(iter(found), {})

        await storage.create_attachment(DISKS, "vol-1", finalizer="a.example/b", attachError="no")
        assert attachment()["metadata"]["name"] == storage.attachment_name(DISKS, "vol-1")
        assert attachment()["status"]["attachError"]["message"] == "no"
        await storage.change_attachment(DISKS, "vol-1", attached=True, attachError=None)
        status = attachment()["status"]
        assert (status["attached"], status.get("attachError")) == (True, None)
        await storage.delete_attachment(DISKS, "vol-1")
        assert "deletionTimestamp" in attachment()["metadata"]
        await storage.free_attachment(DISKS, "vol-1")
        assert attachment() == {}
        await node.run_until(node.api.node_uid, within_s=30, what="the Node")
        await storage.tell_attached("one")
        await node.refresh()
        told = node.api.node_status("volumesAttached")
        assert [volume["name"] for volume in told] == ["one"]

    run(body)
