"""Nodes, namespaces, leases, events, secrets: what each has beyond the common rules."""

from __future__ import annotations

import base64
from typing import Any, ClassVar, Final

from fakeapi.errors import Cause, forbidden_field, invalid_value
from fakeapi.resources.strategy import (
    LABEL_RULE,
    ImmutableAware,
    Object,
    Strategy,
    is_label,
)

_NOT_READY_TAINT: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class NodeStrategy(Strategy):
    """Nodes register with their whole status. A new node gets the not-ready taint, which nobody
    takes away where no controller runs (as in the recorded runs)."""

    returns_deleted = True
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
    """Namespaces are Active from the start; the server itself removes what is in a deleted one."""

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
    """Services: stored as they come; no addresses are given out. A kubelet lists those that have
    one (`spec.clusterIP!=None`)."""

    field_labels: ClassVar[tuple[str, ...]] = ("spec.clusterIP", "spec.type")


class LeaseStrategy(Strategy):
    """Leases: PUT creates, and an update has to name the version it changes (NODE-041)."""

    allow_create_on_update = True
    needs_resource_version = True


class EventStrategy(Strategy):
    """Events are about an object in their own namespace (cluster-scoped ones: in default)."""

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
    """Secrets: stringData is folded into data; the type is Opaque unless given, and stays."""

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
