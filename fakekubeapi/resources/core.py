"""The rules of nodes, namespaces, services, leases, events and secrets beyond the common ones."""

from __future__ import annotations

import base64
from typing import Any, ClassVar, Final

from fakekubeapi.errors import Cause, forbidden_field, invalid_value
from fakekubeapi.resources.strategy import (
    LABEL_RULE,
    ImmutableAware,
    Object,
    Strategy,
    is_label,
)

_NOT_READY_TAINT: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class NodeStrategy(Strategy):
    """Nodes are created with their status. A new node gets the not-ready taint; in a cluster the
    node lifecycle controller removes it, here it stays, as in the recorded runs."""

    returns_deleted = True
    admitted: ClassVar[tuple[str, ...]] = ("spec.taints",)
    field_labels: ClassVar[tuple[str, ...]] = ("spec.unschedulable",)

    def prepare_create(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        taints: list[dict[str, Any]] = spec.setdefault("taints", [])
        present = [(taint.get("key"), taint.get("effect")) for taint in taints]
        if (_NOT_READY_TAINT["key"], _NOT_READY_TAINT["effect"]) not in present:
            taints.append(dict(_NOT_READY_TAINT))

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[Cause]:
        causes = super().validate_update(new, old, subresource)
        was, now = _spec(old).get("providerID"), _spec(new).get("providerID")
        if was and now != was:
            causes.append(forbidden_field("spec.providerID", "node updates may not change it"))
        return causes


def _spec(obj: Object) -> dict[str, Any]:
    spec: dict[str, Any] = obj.get("spec") or {}
    return spec


class NamespaceStrategy(Strategy):
    """Namespaces are Active from the start. The objects in a deleted one are removed by the server
    (`Deletion`), as there is no namespace controller."""

    admitted: ClassVar[tuple[str, ...]] = ("spec.finalizers",)
    field_labels: ClassVar[tuple[str, ...]] = ("status.phase",)

    def prepare_create(self, obj: Object) -> None:
        name = obj["metadata"].get("name", "")
        obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
        obj["spec"] = {"finalizers": ["kubernetes"]}
        obj["status"] = {"phase": "Active"}

    def validate_create(self, obj: Object) -> list[Cause]:
        causes = super().validate_create(obj)
        name = obj["metadata"].get("name", "")
        if name and not causes and not is_label(name):
            causes.append(invalid_value("metadata.name", name, LABEL_RULE))
        return causes


class ServiceStrategy(Strategy):
    """Services are stored as they are sent, without an address given to them. A kubelet lists those
    that have one (`spec.clusterIP!=None`)."""

    field_labels: ClassVar[tuple[str, ...]] = ("spec.clusterIP", "spec.type")


class LeaseStrategy(Strategy):
    """A PUT creates a lease that does not exist; one that changes a lease has to name the version
    it changes (NODE-041)."""

    allow_create_on_update = True
    needs_resource_version = True


class EventStrategy(Strategy):
    """An event is in the namespace of the object it is about; if that has none, in `default`."""

    allow_create_on_update = True
    field_labels: ClassVar[tuple[str, ...]] = (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "type",
    )

    def validate_create(self, obj: Object) -> list[Cause]:
        causes = super().validate_create(obj)
        about = (obj.get("involvedObject") or {}).get("namespace", "")
        place = obj["metadata"].get("namespace", "")
        if place != (about or "default"):
            rule = "does not match event.namespace" if about else "must be default or empty"
            causes.append(invalid_value("involvedObject.namespace", about, rule))
        return causes


class SecretStrategy(ImmutableAware):
    """The stringData of a secret is encoded and moved into its data. Its type is Opaque unless it
    is given, and cannot change."""

    field_labels: ClassVar[tuple[str, ...]] = ("type",)

    def prepare_create(self, obj: Object) -> None:
        obj.setdefault("type", "Opaque")
        self._fold(obj)

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_update(new, old, subresource)
        new.setdefault("type", old["type"])
        self._fold(new)

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[Cause]:
        causes = super().validate_update(new, old, subresource)
        if new["type"] != old["type"]:
            causes.append(invalid_value("type", new["type"], "field is immutable"))
        return causes

    @staticmethod
    def _fold(obj: Object) -> None:
        for key, value in obj.pop("stringData", {}).items():
            encoded = base64.b64encode(value.encode()).decode()
            obj.setdefault("data", {})[key] = encoded
