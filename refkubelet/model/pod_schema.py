"""Adapts pods to lightkube's types: missing fields, and fields that Kubernetes 1.36 does not have;
and the width of integer fields. No I/O.

`fit_to_version` changes its argument, which was just read from a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from kubeobjects.schema.messages import TYPE_META, Field, Message, Shape, message

POD: Final = "core.v1.Pod"
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS: Final = ("postStart", "preStop")
_GROUPS: Final = ("containers", "initContainers", "ephemeralContainers")


@cache
def wide_fields() -> frozenset[str]:
    """The names of a pod's integer fields with 64 bits; all others have 32."""
    return frozenset(_wide(message(POD)))


def _wide(of: Message) -> Iterator[str]:
    for field in of.in_json.values():
        if field.type == "int64":
            yield field.name
        inner = of.of(field)
        if inner is not None:
            yield from _wide(inner)


def fit_to_version(pod: dict[str, Any]) -> None:
    """Change a pod in JSON form so that lightkube can decode it: missing fields get their zero
    value, and fields that Kubernetes 1.36 does not have are removed, like all unknown fields
    (SRC-004)."""
    _drop_unknown(pod, message(POD))
    spec = _mapping(pod.get("spec"))
    for sysctl in _mappings(_mapping(spec.get("securityContext")).get("sysctls")):
        _zero(sysctl, "value", "")
    for group in _GROUPS:
        for container in _mappings(spec.get(group)):
            _fit_container(container)
    for volume in _mappings(spec.get("volumes")):
        if "iscsi" in volume:
            _zero(_mapping(volume["iscsi"]), "lun", 0)
    _fit_status(_mapping(pod.get("status")))


def _fit_container(container: dict[str, Any]) -> None:
    hooks = _mapping(container.get("lifecycle"))
    actions = [container.get(name) for name in _PROBES] + [hooks.get(name) for name in _HOOKS]
    for action in map(_mapping, actions):
        _zero(_mapping(action.get("sleep")), "seconds", 0)
        for header in _mappings(_mapping(action.get("httpGet")).get("httpHeaders")):
            _zero(header, "value", "")


def _fit_status(status: dict[str, Any]) -> None:
    for addresses in ("podIPs", "hostIPs"):
        for address in _mappings(status.get(addresses)):
            _zero(address, "ip", "")
    for condition in _mappings(status.get("conditions")):
        for name in ("type", "status"):
            _zero(condition, name, "")
    for group in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for container in _mappings(status.get(group)):
            for name in ("name", "image", "imageID"):
                _zero(container, name, "")
            _zero(container, "ready", False)
            _zero(container, "restartCount", 0)


def _drop_unknown(value: dict[str, Any], of: Message) -> None:
    """Remove the fields that the type does not have, here and below."""
    fields = of.in_json
    known_fields = (*fields, *TYPE_META) if of.typed else fields
    for name in [name for name in value if name not in known_fields]:
        del value[name]
    for name, item in value.items():
        inner = of.of(fields[name]) if name in fields else None
        if inner is not None:
            for part in _parts(item, fields[name]):
                _drop_unknown(part, inner)


def _parts(value: Any, field: Field) -> Iterator[dict[str, Any]]:
    """The objects in a field."""
    if field.shape is Shape.MAP:
        yield from map(_mapping, _mapping(value).values())
    elif field.shape is Shape.LIST:
        yield from _mappings(value)
    else:
        yield _mapping(value)


def _zero(owner: dict[str, Any], name: str, zero: Any) -> None:
    """Set a missing field, which lightkube requires and the API does not, to `zero`."""
    if owner.get(name) is None:
        owner[name] = zero


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    return (item for item in (value if isinstance(value, list) else ()) if isinstance(item, dict))
