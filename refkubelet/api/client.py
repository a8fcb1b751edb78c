"""The requests that the kubelet makes of an API server, and their one error.

What must never happen here: an exception other than `ApiError` for anything the server or the
network did; a retry that the caller did not ask for. Over HTTP: `refkubelet.api.lightkube_client`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from lightkube.models.certificates_v1 import CertificateSigningRequest
from lightkube.models.certificates_v1beta1 import ClusterTrustBundle
from lightkube.models.core_v1 import (
    ConfigMap,
    PersistentVolume,
    PersistentVolumeClaim,
    Secret,
    Service,
    ServiceAccount,
)
from lightkube.models.node_v1 import RuntimeClass
from lightkube.models.storage_v1 import CSIDriver, VolumeAttachment

from refkubelet.model.objects import Node, Pod

T = TypeVar("T")


class ApiError(Exception):
    """A request that did not succeed.

    `status` is the HTTP status, or 0 when no answer came; `reason` the API's reason
    (`NotFound`, `AlreadyExists`, `Conflict`, ...); `message` the server's text.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}" if status else message)
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def not_found(self) -> bool:
        return self.status == 404

    @property
    def conflict(self) -> bool:
        """The object has changed meanwhile, or is there already."""
        return self.status == 409


@dataclass(frozen=True, slots=True)
class ObjectList(Generic[T]):
    """The answer to a list: the objects, and the version to watch from."""

    items: tuple[T, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One line of a watch: type ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: T


class ApiClient(Protocol):
    """The requests of the kubelet. Every method raises `ApiError`."""

    async def get_pod(self, namespace: str, name: str) -> Pod: ...

    async def create_pod(self, pod: Pod) -> Pod: ...

    async def delete_pod(
        self,
        namespace: str,
        name: str,
        *,
        grace_period_s: int | None = None,
        uid: str | None = None,
    ) -> None:
        """Delete; `uid` is a precondition: another pod of that name answers 409."""
        ...

    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> Pod:
        """Strategic-merge PATCH of the status subresource; `patch` carries metadata.uid
        (STAT-022)."""
        ...

    async def list_pods(self, node_name: str) -> ObjectList[Pod]:
        """All namespaces, spec.nodeName = `node_name` (SRC-050)."""
        ...

    def watch_pods(self, node_name: str, resource_version: str) -> AsyncIterator[WatchEvent[Pod]]:
        """Events after that version; ends when the server ends the watch."""
        ...

    async def get_node(self, name: str) -> Node: ...

    async def create_node(self, node: Node) -> Node: ...

    async def patch_node_status(self, name: str, patch: Mapping[str, Any]) -> Node: ...

    async def list_node(self, name: str) -> ObjectList[Node]:
        """The nodes of that name (none or one), for the node informer (SRC-050)."""
        ...

    def watch_node(self, name: str, resource_version: str) -> AsyncIterator[WatchEvent[Node]]: ...

    async def get_lease(self, namespace: str, name: str) -> dict[str, Any]: ...

    async def create_lease(self, lease: Mapping[str, Any]) -> dict[str, Any]: ...

    async def replace_lease(self, lease: Mapping[str, Any]) -> dict[str, Any]:
        """PUT; its metadata.resourceVersion is a precondition: after a change by another it
        answers 409."""
        ...

    async def get_secret(self, namespace: str, name: str) -> Secret: ...

    async def get_config_map(self, namespace: str, name: str) -> ConfigMap: ...

    async def list_secret(self, namespace: str, name: str) -> ObjectList[Secret]:
        """The secrets of that name (none or one), to follow a single one (NODE-207)."""
        ...

    def watch_secret(
        self, namespace: str, name: str, resource_version: str
    ) -> AsyncIterator[WatchEvent[Secret]]: ...

    async def list_config_map(self, namespace: str, name: str) -> ObjectList[ConfigMap]:
        """The ConfigMaps of that name, as `list_secret`."""
        ...

    def watch_config_map(
        self, namespace: str, name: str, resource_version: str
    ) -> AsyncIterator[WatchEvent[ConfigMap]]: ...

    async def get_service_account(self, namespace: str, name: str) -> ServiceAccount: ...

    async def create_token(
        self, namespace: str, service_account: str, request: Mapping[str, Any]
    ) -> dict[str, Any]:
        """POST of a TokenRequest to the service account's `token` subresource (NODE-207)."""
        ...

    async def list_cluster_trust_bundles(self) -> ObjectList[ClusterTrustBundle]: ...

    def watch_cluster_trust_bundles(
        self, resource_version: str
    ) -> AsyncIterator[WatchEvent[ClusterTrustBundle]]: ...

    async def get_claim(self, namespace: str, name: str) -> PersistentVolumeClaim: ...

    async def patch_claim_status(
        self, namespace: str, name: str, patch: Mapping[str, Any]
    ) -> PersistentVolumeClaim:
        """Strategic merge patch of the status (NODE-222)."""
        ...

    async def get_volume(self, name: str) -> PersistentVolume: ...

    async def get_volume_attachment(self, name: str) -> VolumeAttachment: ...

    async def list_csi_drivers(self) -> ObjectList[CSIDriver]:
        """What the drivers of the cluster want of kubelets (NODE-218)."""
        ...

    def watch_csi_drivers(self, resource_version: str) -> AsyncIterator[WatchEvent[CSIDriver]]: ...

    async def get_csi_node(self, name: str) -> dict[str, Any]:
        """What the cluster knows of the drivers of the node of that name (NODE-216)."""
        ...

    async def create_csi_node(self, body: Mapping[str, Any]) -> dict[str, Any]: ...

    async def replace_csi_node(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """As `replace_lease`."""
        ...

    async def delete_csi_node(self, name: str) -> None: ...

    async def get_resource_claim(self, namespace: str, name: str) -> dict[str, Any]: ...

    async def get_runtime_class(self, name: str) -> RuntimeClass: ...

    async def list_services(self) -> ObjectList[Service]:
        """Those of all namespaces (LIFE-137)."""
        ...

    def watch_services(self, resource_version: str) -> AsyncIterator[WatchEvent[Service]]: ...

    async def create_event(self, namespace: str, event: Mapping[str, Any]) -> dict[str, Any]: ...

    async def patch_event(
        self, namespace: str, name: str, patch: Mapping[str, Any]
    ) -> dict[str, Any]: ...

    async def create_signing_request(
        self, request: Mapping[str, Any]
    ) -> CertificateSigningRequest: ...

    async def list_signing_requests(self, name: str) -> ObjectList[CertificateSigningRequest]:
        """The certificate signing requests of that name, to follow a single one (SRV-006)."""
        ...

    def watch_signing_requests(
        self, name: str, resource_version: str
    ) -> AsyncIterator[WatchEvent[CertificateSigningRequest]]: ...

    async def create_review(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST of a TokenReview or SubjectAccessReview; the answer has its status (SRV-013)."""
        ...
