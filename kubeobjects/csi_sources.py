"""What is wrong with the names of CSI drivers and with volumes of theirs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubeobjects.causes import Cause, invalid_value, required, too_long
from kubeobjects.names import label_problems, subdomain_problems

_MAX_DRIVER: Final = 63
_CHECKED_SECRETS: Final = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)
"""The references to secrets that are looked at, in this order; nodeStageSecretRef is not."""


def driver_name_causes(name: str, path: str) -> list[Cause]:
    """What is wrong with the name of a driver: a subdomain, in which letters may be upper case."""
    if not name:
        return [required(path)]
    causes = [too_long(path, _MAX_DRIVER)] if len(name) > _MAX_DRIVER else []
    return causes + [invalid_value(path, name, text) for text in subdomain_problems(name.lower())]


def csi_volume_causes(source: Mapping[str, Any], path: str) -> list[Cause]:
    """What is wrong with the `csi` of a persistent volume, at `path`."""
    causes = driver_name_causes(source.get("driver", ""), f"{path}.driver")
    if not source.get("volumeHandle"):
        causes.append(required(f"{path}.volumeHandle"))
    for field in _CHECKED_SECRETS:
        if source.get(field) is not None:
            causes += _secret_causes(source[field], f"{path}.{field}")
    return causes


def _secret_causes(secret: Mapping[str, Any], path: str) -> list[Cause]:
    causes: list[Cause] = []
    for field, rule in (("name", subdomain_problems), ("namespace", label_problems)):
        value = secret.get(field) or ""
        if not value:
            causes.append(required(f"{path}.{field}"))
        else:
            causes += [invalid_value(f"{path}.{field}", value, text) for text in rule(value)]
    return causes
