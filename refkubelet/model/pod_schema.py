"""Adapts pods to lightkube's types: missing fields, and fields that are newer than Kubernetes
1.36; and the width of integer fields. Pure.

`fit_to_version` changes its argument, which was just read from a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

WIDE_FIELDS: Final = frozenset(  # integers of 64 bits; all other integers have 32
    (
        *("activeDeadlineSeconds", "deletionGracePeriodSeconds", "terminationGracePeriodSeconds"),
        *("generation", "observedGeneration"),
        *("runAsUser", "runAsGroup", "fsGroup", "supplementalGroups", "uid", "gid"),
        *("tolerationSeconds", "expirationSeconds", "seconds"),
    )
)
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS: Final = ("postStart", "preStop")
_PROJECTED_ALONE: Final = ("clusterTrustBundle", "podCertificate", "serviceAccountToken")
_GROUPS: Final = ("containers", "initContainers", "ephemeralContainers")


def fit_to_version(pod: dict[str, Any]) -> None:
    """Change a pod in JSON form so that lightkube can decode it: missing fields get their zero
    value, and fields that Kubernetes 1.36 does not have are removed, like all unknown fields
    (SRC-004)."""
    spec = _mapping(pod.get("spec"))
    spec.pop("evictionResponders", None)
    for sysctl in _mappings(_mapping(spec.get("securityContext")).get("sysctls")):
        _zero(sysctl, "value", "")
    for group in _GROUPS:
        for container in _mappings(spec.get(group)):
            _fit_container(container)
    for volume in _mappings(spec.get("volumes")):
        _fit_volume(volume)
    _fit_status(_mapping(pod.get("status")))


def _fit_container(container: dict[str, Any]) -> None:
    for mount in _mappings(container.get("volumeMounts")):
        mount.pop("bindMountOptions", None)
    hooks = _mapping(container.get("lifecycle"))
    actions = [container.get(name) for name in _PROBES] + [hooks.get(name) for name in _HOOKS]
    for action in map(_mapping, actions):
        _zero(_mapping(action.get("sleep")), "seconds", 0)
        _mapping(action.get("httpGet")).pop("protocol", None)
        for header in _mappings(_mapping(action.get("httpGet")).get("httpHeaders")):
            _zero(header, "value", "")
        _mapping(action.get("grpc")).pop("mode", None)


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


def _fit_volume(volume: dict[str, Any]) -> None:
    directory = _mapping(volume.get("emptyDir"))
    directory.pop("mode", None)
    if "iscsi" in volume:
        _zero(_mapping(volume["iscsi"]), "lun", 0)
    for source in (volume, *_mappings(_mapping(volume.get("projected")).get("sources"))):
        for kind in map(_mapping, source.values()):
            kind.pop("defaultUser", None)
            for item in _mappings(kind.get("items")):
                item.pop("user", None)
        for name in _PROJECTED_ALONE:
            _mapping(source.get(name)).pop("user", None)


def _zero(owner: dict[str, Any], name: str, zero: Any) -> None:
    """Set a missing field, which lightkube requires and the API does not, to `zero`."""
    if owner.get(name) is None:
        owner[name] = zero


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    return (item for item in (value if isinstance(value, list) else ()) if isinstance(item, dict))
