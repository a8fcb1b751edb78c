"""The kinds of API objects that the kubelet reads or writes: where they are, and what becomes of
their JSON. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import msgspec
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
from msgspec import Struct

from refkubelet.model.objects import Node, decode_pod

T = TypeVar("T")

Json = dict[str, Any]


class Kind(Struct, Generic[T], frozen=True):
    """One kind: the path of its group and version, its plural, and what makes an object of JSON."""

    group: str
    plural: str
    decode: Callable[[Json], T]

    def path(self, name: str | None = None, namespace: str = "") -> str:
        """The path of one object; without a name that of all. `namespace` "": a kind of the
        cluster, or all namespaces."""
        place = f"/namespaces/{namespace}" if namespace else ""
        return f"{self.group}{place}/{self.plural}" + (f"/{name}" if name is not None else "")


def _into(model: type[T]) -> Callable[[Json], T]:
    return lambda value: msgspec.convert(value, model)


def _as_it_is(value: Json) -> Json:
    return value


CORE: Final = "/api/v1"
STORAGE: Final = "/apis/storage.k8s.io/v1"

PODS: Final = Kind(CORE, "pods", decode_pod)
NODES: Final = Kind(CORE, "nodes", _into(Node))
LEASES: Final = Kind("/apis/coordination.k8s.io/v1", "leases", _as_it_is)
EVENTS: Final = Kind(CORE, "events", _as_it_is)
SECRETS: Final = Kind(CORE, "secrets", _into(Secret))
CONFIG_MAPS: Final = Kind(CORE, "configmaps", _into(ConfigMap))
SERVICES: Final = Kind(CORE, "services", _into(Service))
SERVICE_ACCOUNTS: Final = Kind(CORE, "serviceaccounts", _into(ServiceAccount))
RUNTIME_CLASSES: Final = Kind("/apis/node.k8s.io/v1", "runtimeclasses", _into(RuntimeClass))
RESOURCE_CLAIMS: Final = Kind("/apis/resource.k8s.io/v1", "resourceclaims", _as_it_is)
CLAIMS: Final = Kind(CORE, "persistentvolumeclaims", _into(PersistentVolumeClaim))
VOLUMES: Final = Kind(CORE, "persistentvolumes", _into(PersistentVolume))
VOLUME_ATTACHMENTS: Final = Kind(STORAGE, "volumeattachments", _into(VolumeAttachment))
CSI_DRIVERS: Final = Kind(STORAGE, "csidrivers", _into(CSIDriver))
CSI_NODES: Final = Kind(STORAGE, "csinodes", _as_it_is)
SIGNING_REQUESTS: Final = Kind(
    "/apis/certificates.k8s.io/v1", "certificatesigningrequests", _into(CertificateSigningRequest)
)
TRUST_BUNDLES: Final = Kind(
    "/apis/certificates.k8s.io/v1beta1", "clustertrustbundles", _into(ClusterTrustBundle)
)
