"""`node.storage`: storage drivers as the API and the machine see them (needs Feature.API).

There is no controller that attaches volumes: the case plays it, and makes VolumeAttachments and
what the Node says of them. Drivers themselves are plug-ins: `node.plugins.offer`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from kubelet_conformance.harness.api_server import NAMESPACE
from kubelet_conformance.harness.node.api import MERGE_PATCH, NodeApi
from kubelet_conformance.harness.node.parts import Parts
from kubelet_conformance.harness.node.watch import Watch
from kubelet_conformance.harness.observing.looked import looked_at

_STORAGE: Final = "/apis/storage.k8s.io/v1"
_ANY_TIME: Final = "2026-01-01T00:00:00Z"


class NodeStorage:
    """CSIDriver, CSINode and VolumeAttachment objects, claims whose volumes get larger, and the
    places of CSI volumes on the machine. `driver` and `handle` are the name of a driver and what it
    calls a volume; pods are named as in their manifests.

    Methods that send a request raise RuntimeError when the server refuses it.
    """

    facet: Final = "storage."

    def __init__(self, parts: Parts, watch: Watch, api: NodeApi) -> None:
        self._parts = parts
        self._watch = watch
        self._api = api

    # --- CSIDriver objects ----------------------------------------------------------------

    async def describe_driver(self, driver: str, **spec: Any) -> None:
        """Create the CSIDriver object with this spec; without attachRequired, one that attaches
        nothing."""
        body = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": driver},
            "spec": {"attachRequired": False, **spec},
        }
        await self._api.send("POST", f"{_STORAGE}/csidrivers", body)

    async def change_driver(self, driver: str, **spec: Any) -> None:
        """Change these fields of the CSIDriver object."""
        await self._api.send(
            "PATCH", f"{_STORAGE}/csidrivers/{driver}", {"spec": spec}, MERGE_PATCH
        )

    # --- CSINode --------------------------------------------------------------------------

    @looked_at
    def csi_node(self) -> dict[str, Any]:
        """The CSINode of the node; {} when there is none."""
        return self._parts.the_api().stored("csinodes.storage.k8s.io", self._parts.node_name)

    @looked_at
    def listed_driver(self, driver: str) -> dict[str, Any]:
        """What the CSINode says of the driver; {} when it does not name it."""
        listed = (self.csi_node().get("spec") or {}).get("drivers") or []
        return next((dict(entry) for entry in listed if entry["name"] == driver), {})

    async def create_csi_node(self, owner_uid: str, drivers: Sequence[Mapping[str, Any]]) -> None:
        """Create the CSINode of the node, as a kubelet does whose Node has that UID."""
        owner = {
            "apiVersion": "v1",
            "kind": "Node",
            "name": self._parts.node_name,
            "uid": owner_uid,
        }
        body = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": self._parts.node_name, "ownerReferences": [owner]},
            "spec": {"drivers": [dict(driver) for driver in drivers]},
        }
        await self._api.send("POST", f"{_STORAGE}/csinodes", body)

    async def delete_csi_node(self) -> None:
        """Delete the CSINode of the node."""
        await self._api.send("DELETE", f"{_STORAGE}/csinodes/{self._parts.node_name}", {})

    @looked_at
    def node_ids(self) -> dict[str, str]:
        """What the Node's annotation says: driver -> what it calls the node."""
        annotations = self._api.node_metadata("annotations") or {}
        text = annotations.get("csi.volume.kubernetes.io/nodeid", "{}")
        return {str(driver): str(node_id) for driver, node_id in json.loads(text).items()}

    # --- claims that get more -------------------------------------------------------------

    @looked_at
    def claim(self, name: str) -> dict[str, Any]:
        """The status of a claim; {} when there is no such claim."""
        stored = self._parts.the_api().stored("persistentvolumeclaims", name)
        return dict(stored.get("status") or {})

    async def tell_claim(self, name: str, **status: Any) -> None:
        """Change these fields of the claim's status, as a controller does; None removes one."""
        path = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims/{name}/status"
        await self._api.send("PATCH", path, {"status": status}, MERGE_PATCH)

    async def enlarge(self, volume: str, size: str) -> None:
        """Give the PersistentVolume that capacity, as a controller does that has made it larger."""
        patch = {"spec": {"capacity": {"storage": size}}}
        await self._api.send("PATCH", f"/api/v1/persistentvolumes/{volume}", patch, MERGE_PATCH)

    # --- attached volumes -----------------------------------------------------------------

    def attachment_name(self, driver: str, handle: str) -> str:
        """The name of the VolumeAttachment of that volume and this node."""
        return f"csi-{_digest(handle + driver + self._parts.node_name)}"

    def unique_name(self, driver: str, handle: str) -> str:
        """What the Node's status calls that volume."""
        return f"kubernetes.io/csi/{driver}^{handle}"

    async def create_attachment(
        self, driver: str, handle: str, *, volume: str = "pv", finalizer: str = "", **status: Any
    ) -> None:
        """Create the VolumeAttachment of that persistent volume, with that status."""
        metadata: dict[str, Any] = {"name": self.attachment_name(driver, handle)}
        if finalizer:
            metadata["finalizers"] = [finalizer]
        body = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": metadata,
            "spec": {
                "attacher": driver,
                "nodeName": self._parts.node_name,
                "source": {"persistentVolumeName": volume},
            },
        }
        await self._api.send("POST", f"{_STORAGE}/volumeattachments", body)
        if status:
            await self.change_attachment(driver, handle, **status)

    async def change_attachment(self, driver: str, handle: str, **status: Any) -> None:
        """Change these fields of the VolumeAttachment's status; `attachError`: the text of it."""
        error = status.get("attachError")
        if isinstance(error, str):
            status["attachError"] = {"message": error, "time": _ANY_TIME}
        path = f"{self._attachment_path(driver, handle)}/status"
        await self._api.send("PATCH", path, {"status": {"attached": False, **status}}, MERGE_PATCH)

    async def delete_attachment(self, driver: str, handle: str) -> None:
        """Delete the VolumeAttachment; with a finalizer it stays, with a deletionTimestamp."""
        await self._api.send("DELETE", self._attachment_path(driver, handle), {})

    async def free_attachment(self, driver: str, handle: str) -> None:
        """Take the finalizers from the VolumeAttachment."""
        path = self._attachment_path(driver, handle)
        await self._api.send("PATCH", path, {"metadata": {"finalizers": None}}, MERGE_PATCH)

    def _attachment_path(self, driver: str, handle: str) -> str:
        return f"{_STORAGE}/volumeattachments/{self.attachment_name(driver, handle)}"

    async def tell_attached(self, *names: str) -> None:
        """Let the Node's status say that exactly the volumes with these unique names are
        attached."""
        attached = [{"name": name, "devicePath": ""} for name in names]
        await self._api.patch_node({"status": {"volumesAttached": attached}}, status=True)

    @looked_at
    def in_use(self) -> list[str]:
        """The unique names of the volumes that the Node's status says are in use."""
        return list(self._api.node_status("volumesInUse") or [])

    # --- places on the machine ------------------------------------------------------------

    def staging_path(self, driver: str, handle: str) -> Path:
        """Where the volume is staged on this node."""
        above = self._parts.paths.root / "plugins" / "kubernetes.io" / "csi" / driver
        return above / _digest(handle) / "globalmount"

    def target_path(self, pod: str, volume: str) -> Path:
        """Where the volume is published for the pod: a persistent one by its own name, an inline
        one by the pod's name for it. Raises ExpectationFailed while `/pods` does not list the
        pod."""
        above = self._pod_directory(pod) / "volumes" / "kubernetes.io~csi"
        return above / volume / "mount"

    def inline_handle(self, pod: str, volume: str) -> str:
        """What a driver gets as the name of an inline volume. Raises ExpectationFailed while
        `/pods` does not list the pod."""
        return f"csi-{_digest(self._uid(pod) + volume)}"

    def _uid(self, pod: str) -> str:
        return str(self._watch.listed_pod(pod)["metadata"]["uid"])

    def _pod_directory(self, pod: str) -> Path:
        return self._parts.paths.root / "pods" / self._uid(pod)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
