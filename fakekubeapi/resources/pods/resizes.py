"""What is wrong with a request to /resize. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kubeobjects import pods
from kubeobjects.causes import Cause, forbidden_field, invalid_value

Object = dict[str, Any]
_RESIZABLE: Final = ("cpu", "memory")


def resize_causes(new: Object, old: Object) -> Iterator[Cause]:
    """What is wrong if `old` is resized to `new`: the QoS class stays, no amount is removed, and
    of the containers' resources cpu and memory alone change."""
    if pods.qos_class(new["spec"]) != pods.qos_class(old["spec"]):
        old_class = (new.get("status") or {}).get("qosClass", "")
        text = "Pod QOS Class may not change as a result of resizing"
        yield invalid_value("spec", old_class, text)
    pairs = list(_pairs(new["spec"], old["spec"]))
    for path, new_resources, was in pairs:
        for group in ("requests", "limits"):
            if set(was.get(group) or ()) - set(new_resources.get(group) or ()):
                text = f"resource {group} cannot be removed"
                yield forbidden_field(f"{path}.{group}", text)
    for _, new_resources, was in pairs:
        if _others(new_resources) != _others(was):
            yield forbidden_field("spec", "only cpu and memory resources are mutable")


def _pairs(new: Object, old: Object) -> list[tuple[str, Object, Object]]:
    """Paths and resources, new and old, of the containers that can be resized."""
    pairs = []
    for group in ("initContainers", "containers"):
        both = zip(new.get(group) or (), old.get(group) or (), strict=False)
        for i, (own, was) in enumerate(both):
            if group == "containers" or was.get("restartPolicy") == "Always":
                path = f"spec.{group}[{i}].resources"
                pairs.append((path, own.get("resources") or {}, was.get("resources") or {}))
    return pairs


def _others(resources: Object) -> Object:
    """The resources without cpu and memory."""
    unresizable = {
        group: {k: v for k, v in (resources.get(group) or {}).items() if k not in _RESIZABLE}
        for group in ("requests", "limits")
    }
    return {**unresizable, "claims": resources.get("claims") or []}
