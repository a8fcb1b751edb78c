"""The rules of nodes."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from fakekubeapi.resources.common.strategy import Object, Strategy
from fakekubeapi.resources.common.twins import settle_first
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
        settle_first(obj["spec"], "podCIDR", "podCIDRs")

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_update(new, old, subresource)
        _default_status(new)
        settle_first(new.setdefault("spec", {}), "podCIDR", "podCIDRs")

    def validate_create(self, obj: Object) -> Iterator[Cause]:
        yield from super().validate_create(obj)
        yield from _taint_causes(obj)
        yield from _range_causes(obj)

    def validate_update(self, new: Object, old: Object, subresource: str) -> Iterator[Cause]:
        yield from super().validate_update(new, old, subresource)
        yield from _fixed_causes(old.get("spec") or {}, new["spec"])
        yield from _taint_causes(new)


def _default_status(node: Object) -> None:
    """What a node can give to pods is all it has, unless it says otherwise."""
    status = node.get("status") or {}
    if status.get("capacity"):
        status.setdefault("allocatable", dict(status["capacity"]))


def _taint_causes(node: Object) -> Iterator[Cause]:
    pairs_seen: set[tuple[str, str]] = set()
    for i, taint in enumerate((node.get("spec") or {}).get("taints") or []):
        path = f"metadata.taints[{i}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        if effect not in _EFFECTS:
            yield unsupported_value(f"{path}.effect", effect, _EFFECTS)
        if (key, effect) in pairs_seen:
            words = {"Key": key, "Value": taint.get("value", ""), "Effect": effect}
            text = duplicate_text({**words, "TimeAdded": taint.get("timeAdded")})
            rule = "taints must be unique by key and effect pair"
            yield Cause(path, f"{text}: {rule}", "FieldValueDuplicate")
        pairs_seen.add((key, effect))


def _fixed_causes(was: Object, now: Object) -> Iterator[Cause]:
    """What of a node may be set once and not be changed."""
    words = 'node updates may not change {} except from "" to valid'
    if was.get("podCIDRs") and now.get("podCIDRs") != was["podCIDRs"]:
        yield forbidden_field("spec.podCIDRs", words.format("podCIDR"))
    if was.get("providerID") and now.get("providerID") != was["providerID"]:
        yield forbidden_field("spec.providerID", words.format("providerID"))


def _range_causes(node: Object) -> Iterator[Cause]:
    for i, text in enumerate((node.get("spec") or {}).get("podCIDRs") or []):
        try:
            ipaddress.ip_network(text, strict=False)
        except ValueError:
            yield invalid_value(f"spec.podCIDRs[{i}]", text, _CIDR_RULE)
