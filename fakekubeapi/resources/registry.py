"""The resources that the server stores, found by group, version and plural name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

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
from kubeobjects.tables import table_lines

_PLAIN: Final = Strategy()
_STRATEGIES: Final[Mapping[str, Strategy]] = {
    "pods": PodStrategy(),
    "nodes": NodeStrategy(),
    "namespaces": NamespaceStrategy(),
    "events": EventStrategy(),
    "configmaps": ConfigMapStrategy(),
    "secrets": SecretStrategy(),
    "services": ServiceStrategy(),
    "serviceaccounts": AccountStrategy(),
    "persistentvolumes": VolumeStrategy(),
    "persistentvolumeclaims": ClaimStrategy(),
    "leases": LeaseStrategy(),
    "runtimeclasses": RuntimeClassStrategy(),
    "csidrivers": DriverStrategy(),
    "csinodes": NodeDriversStrategy(),
    "volumeattachments": AttachmentStrategy(),
    "certificatesigningrequests": CertificateRequestStrategy(),
    "clustertrustbundles": TrustBundleStrategy(),
}
"""The rules of kinds that have some of their own, by the name in paths."""


class Column(NamedTuple):
    """A column of the Table of a kind."""

    name: str
    type: str
    format: str
    """`name` if it holds names of objects."""
    priority: int
    """1: shown by `-o wide` alone."""


class Resource(Struct, frozen=True, kw_only=True):
    """One kind of object, and how it is handled."""

    group: str
    """The API group; "" for the core group."""
    version: str
    plural: str
    """The name in paths: `pods`."""
    kind: str
    namespaced: bool
    strategy: Strategy
    """Its rules."""
    stored: bool
    """False: a POST is answered, and nothing is kept (reviews)."""
    subresources: tuple[str, ...]
    """Those that exist below an object's name."""
    short_names: tuple[str, ...]
    """kubectl's abbreviations."""
    categories: tuple[str, ...]
    """The words by which kubectl finds it beside others: `all`."""
    columns: tuple[Column, ...]
    """What `kubectl get` shows of it (`table_cells`)."""

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


def _resources() -> Iterator[Resource]:
    """All of `kinds.txt`, which says of Kubernetes what `tools/upstream_tables.py` explains."""
    for block in re.split(r"\n(?=\S)", "\n".join(table_lines(__file__, "kinds.txt"))):
        head, *columns = block.splitlines()
        group_version, plural, kind, *words = head.split()
        group, _, version = group_version.rpartition("/")
        values = dict(word.split("=") for word in words if "=" in word)
        yield Resource(
            group=group,
            version=version,
            plural=plural,
            kind=kind,
            namespaced="cluster" not in words,
            strategy=_STRATEGIES.get(plural, _PLAIN),
            stored="asked" not in words,
            subresources=_listed(values, "below"),
            short_names=_listed(values, "short"),
            categories=_listed(values, "categories"),
            columns=tuple(map(_column, columns)),
        )


def _listed(values: Mapping[str, str], word: str) -> tuple[str, ...]:
    return tuple(values[word].split(",")) if word in values else ()


def _column(line: str) -> Column:
    type_, format_, priority, name = line.split(maxsplit=3)
    return Column(name, type_, format_.strip("-"), int(priority))


RESOURCES: Final = tuple(_resources())
_BY_NAME: Final = {(r.group, r.version, r.plural): r for r in RESOURCES}
GROUP_VERSIONS: Final = tuple(dict.fromkeys((r.group, r.version) for r in RESOURCES))


def find_resource(group: str, version: str, plural: str) -> Resource | None:
    """The resource of those names; None if the server does not store it."""
    return _BY_NAME.get((group, version, plural))
