"""The rules of nodes."""

from __future__ import annotations

import ipaddress
from typing import Any, ClassVar, Final

from fakekubeapi.resources.common.strategy import Object, Strategy
from kubeobjects.causes import (
    Cause,
    duplicate_text,
    forbidden_field,
    invalid_value,
    unsupported_value,
)

_NOT_READY_TAINT: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_CIDR_RULE: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


class NodeStrategy(Strategy):
    """Nodes are created with their status. A new node gets the not-ready taint; in a cluster the
    node lifecycle controller removes it, here it stays, as in the recorded runs."""

    admitted: ClassVar[tuple[str, ...]] = ("spec.taints",)
    field_labels: ClassVar[tuple[str, ...]] = ("spec.unschedulable",)

    def prepare_create(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        taints: list[dict[str, Any]] = spec.setdefault("taints", [])
        present = [(taint.get("key"), taint.get("effect")) for taint in taints]
        if (_NOT_READY_TAINT["key"], _NOT_READY_TAINT["effect"]) not in present:
            taints.append(dict(_NOT_READY_TAINT))
        _default_status(obj)
        _default_ranges(obj)

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_update(new, old, subresource)
        _default_status(new)
        _default_ranges(new)

    def validate_create(self, obj: Object) -> list[Cause]:
        return [*super().validate_create(obj), *_taint_causes(obj), *_range_causes(obj)]

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[Cause]:
        causes = super().validate_update(new, old, subresource)
        was, now = (
            (old.get("spec") or {}).get("providerID"),
            (new.get("spec") or {}).get("providerID"),
        )
        if was and now != was:
            causes.append(
                forbidden_field(
                    "spec.providerID",
                    'node updates may not change providerID except from "" to valid',
                )
            )
        return [*causes, *_taint_causes(new)]


def _default_status(node: Object) -> None:
    """What a node can give to pods is all it has, unless it says otherwise."""
    status = node.get("status") or {}
    if status.get("capacity"):
        status.setdefault("allocatable", dict(status["capacity"]))


def _taint_causes(node: Object) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate((node.get("spec") or {}).get("taints") or []):
        path = f"metadata.taints[{i}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        if effect not in _EFFECTS:
            causes.append(unsupported_value(f"{path}.effect", effect, _EFFECTS))
        if (key, effect) in seen:
            shown = {"Key": key, "Value": taint.get("value", ""), "Effect": effect}
            text = duplicate_text({**shown, "TimeAdded": taint.get("timeAdded")})
            rule = "taints must be unique by key and effect pair"
            causes.append(Cause(path, f"{text}: {rule}", "FieldValueDuplicate"))
        seen.add((key, effect))
    return causes


def _range_causes(node: Object) -> list[Cause]:
    causes: list[Cause] = []
    for i, text in enumerate((node.get("spec") or {}).get("podCIDRs") or []):
        try:
            ipaddress.ip_network(text, strict=False)
        except ValueError:
            causes.append(invalid_value(f"spec.podCIDRs[{i}]", text, _CIDR_RULE))
    return causes


def _default_ranges(node: Object) -> None:
    """The range of a node's pods, alone and as the first of all."""
    spec = node.get("spec") or {}
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]
    if spec.get("podCIDRs") and not spec.get("podCIDR"):
        spec["podCIDR"] = spec["podCIDRs"][0]
