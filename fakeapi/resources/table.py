"""The resources the server stores: a row each, found by group, version and plural name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fakeapi.resources.core import (
    EventStrategy,
    LeaseStrategy,
    NamespaceStrategy,
    NodeStrategy,
    SecretStrategy,
    ServiceStrategy,
)
from fakeapi.resources.pods import PodStrategy
from fakeapi.resources.strategy import ImmutableAware, Strategy


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object. `subresources` lists those that exist below an object's name."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    strategy: Strategy
    subresources: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def module(self) -> str:
        """Where lightkube has the type of these objects."""
        return f"resources.{self.group.partition('.')[0] or 'core'}_{self.version}"

    @property
    def qualified(self) -> str:
        """`pods`, `leases.coordination.k8s.io`: the name in messages and storage keys."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_PLAIN: Final = Strategy()
_FROZEN: Final = ImmutableAware()
_STATUS: Final = ("status",)
_POD_SUBRESOURCES: Final = ("status", "binding", "eviction", "resize", "ephemeralcontainers")

RESOURCES: Final = (
    Resource("", "v1", "pods", "Pod", True, PodStrategy(), _POD_SUBRESOURCES, ("po",)),
    Resource("", "v1", "nodes", "Node", False, NodeStrategy(), _STATUS, ("no",)),
    Resource("", "v1", "namespaces", "Namespace", False, NamespaceStrategy(), _STATUS, ("ns",)),
    Resource("", "v1", "events", "Event", True, EventStrategy(), (), ("ev",)),
    Resource("", "v1", "configmaps", "ConfigMap", True, _FROZEN, (), ("cm",)),
    Resource("", "v1", "secrets", "Secret", True, SecretStrategy()),
    Resource("", "v1", "services", "Service", True, ServiceStrategy(), _STATUS, ("svc",)),
    Resource("", "v1", "serviceaccounts", "ServiceAccount", True, _PLAIN, (), ("sa",)),
    Resource("", "v1", "persistentvolumes", "PersistentVolume", False, _PLAIN, _STATUS),
    Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, _PLAIN, _STATUS),
    Resource("coordination.k8s.io", "v1", "leases", "Lease", True, LeaseStrategy()),
    Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", False, _PLAIN),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, _PLAIN),
    Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", False, _PLAIN),
    Resource("storage.k8s.io", "v1", "csinodes", "CSINode", False, _PLAIN),
)  # fmt: skip

_BY_NAME: Final = {(r.group, r.version, r.plural): r for r in RESOURCES}
GROUP_VERSIONS: Final = tuple(dict.fromkeys((r.group, r.version) for r in RESOURCES))


def find_resource(group: str, version: str, plural: str) -> Resource | None:
    return _BY_NAME.get((group, version, plural))
