"""The resources that the server stores, found by group, version and plural name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fakekubeapi.resources.certificates import CertificateRequestStrategy, TrustBundleStrategy
from fakekubeapi.resources.common.strategy import Strategy
from fakekubeapi.resources.core import (
    AccountStrategy,
    EventStrategy,
    LeaseStrategy,
    NamespaceStrategy,
    RuntimeClassStrategy,
)
from fakekubeapi.resources.keyed_data import ConfigMapStrategy, SecretStrategy
from fakekubeapi.resources.nodes import NodeStrategy
from fakekubeapi.resources.pods.pods import PodStrategy
from fakekubeapi.resources.services.services import ServiceStrategy
from fakekubeapi.resources.storage.attachments import AttachmentStrategy
from fakekubeapi.resources.storage.claims import ClaimStrategy
from fakekubeapi.resources.storage.drivers import DriverStrategy, NodeDriversStrategy
from fakekubeapi.resources.storage.volumes import VolumeStrategy
from kubeobjects.schema.messages import Message, Schema

_PLAIN: Final = Strategy()


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object, and how it is handled."""

    group: str
    """The API group; "" for the core group."""
    version: str
    plural: str
    """The name in paths: `pods`."""
    kind: str
    namespaced: bool = True
    strategy: Strategy = _PLAIN
    """Its rules."""
    subresources: tuple[str, ...] = ()
    """Those that exist below an object's name."""
    short_names: tuple[str, ...] = ()
    """kubectl's abbreviations."""
    stored: bool = True
    """False: a POST is answered, and nothing is kept (reviews)."""

    @property
    def api_version(self) -> str:
        """What objects of this kind have in `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def message(self, schema: Schema) -> Message:
        """The type of these objects. Raises: KeyError in a minor that does not have it."""
        return schema.message(f"{self.package}.{self.kind}")

    @property
    def package(self) -> str:
        """The group and version of its type: `core.v1`."""
        return f"{self.group.partition('.')[0] or 'core'}.{self.version}"

    @property
    def qualified(self) -> str:
        """`pods`, `leases.coordination.k8s.io`: the name in messages and storage keys."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_STATUS: Final = ("status",)
_POD_SUBRESOURCES: Final = ("status", "binding", "eviction", "resize", "ephemeralcontainers")


def _review(group: str, plural: str, kind: str) -> Resource:
    """A kind that is asked and answered, of `<group>.k8s.io`."""
    namespaced = kind.startswith("Local")
    return Resource(f"{group}.k8s.io", "v1", plural, kind, namespaced=namespaced, stored=False)


RESOURCES: Final = (
    Resource(
        "",
        "v1",
        "pods",
        "Pod",
        strategy=PodStrategy(),
        subresources=_POD_SUBRESOURCES,
        short_names=("po",),
    ),
    Resource(
        "",
        "v1",
        "nodes",
        "Node",
        namespaced=False,
        strategy=NodeStrategy(),
        subresources=_STATUS,
        short_names=("no",),
    ),
    Resource(
        "",
        "v1",
        "namespaces",
        "Namespace",
        namespaced=False,
        strategy=NamespaceStrategy(),
        subresources=_STATUS,
        short_names=("ns",),
    ),
    Resource("", "v1", "events", "Event", strategy=EventStrategy(), short_names=("ev",)),
    Resource(
        "", "v1", "configmaps", "ConfigMap", strategy=ConfigMapStrategy(), short_names=("cm",)
    ),
    Resource("", "v1", "secrets", "Secret", strategy=SecretStrategy()),
    Resource(
        "",
        "v1",
        "services",
        "Service",
        strategy=ServiceStrategy(),
        subresources=_STATUS,
        short_names=("svc",),
    ),
    Resource(
        "",
        "v1",
        "serviceaccounts",
        "ServiceAccount",
        strategy=AccountStrategy(),
        subresources=("token",),
        short_names=("sa",),
    ),
    Resource(
        "",
        "v1",
        "persistentvolumes",
        "PersistentVolume",
        namespaced=False,
        strategy=VolumeStrategy(),
        subresources=_STATUS,
        short_names=("pv",),
    ),
    Resource(
        "",
        "v1",
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        strategy=ClaimStrategy(),
        subresources=_STATUS,
        short_names=("pvc",),
    ),
    Resource("coordination.k8s.io", "v1", "leases", "Lease", strategy=LeaseStrategy()),
    Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", subresources=_STATUS),
    Resource(
        "node.k8s.io",
        "v1",
        "runtimeclasses",
        "RuntimeClass",
        namespaced=False,
        strategy=RuntimeClassStrategy(),
    ),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False),
    Resource(
        "storage.k8s.io",
        "v1",
        "csidrivers",
        "CSIDriver",
        namespaced=False,
        strategy=DriverStrategy(),
    ),
    Resource(
        "storage.k8s.io",
        "v1",
        "csinodes",
        "CSINode",
        namespaced=False,
        strategy=NodeDriversStrategy(),
    ),
    Resource(
        "storage.k8s.io",
        "v1",
        "volumeattachments",
        "VolumeAttachment",
        namespaced=False,
        strategy=AttachmentStrategy(),
        subresources=_STATUS,
    ),
    Resource(
        "certificates.k8s.io",
        "v1",
        "certificatesigningrequests",
        "CertificateSigningRequest",
        namespaced=False,
        strategy=CertificateRequestStrategy(),
        subresources=("approval", "status"),
        short_names=("csr",),
    ),
    Resource(
        "certificates.k8s.io",
        "v1beta1",
        "clustertrustbundles",
        "ClusterTrustBundle",
        namespaced=False,
        strategy=TrustBundleStrategy(),
    ),
    _review("authentication", "tokenreviews", "TokenReview"),
    _review("authentication", "selfsubjectreviews", "SelfSubjectReview"),
    _review("authorization", "subjectaccessreviews", "SubjectAccessReview"),
    _review("authorization", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    _review("authorization", "localsubjectaccessreviews", "LocalSubjectAccessReview"),
)

_BY_NAME: Final = {(r.group, r.version, r.plural): r for r in RESOURCES}
GROUP_VERSIONS: Final = tuple(dict.fromkeys((r.group, r.version) for r in RESOURCES))


def find_resource(group: str, version: str, plural: str) -> Resource | None:
    """The resource of those names; None if the server does not store it."""
    return _BY_NAME.get((group, version, plural))
