"""What is wrong with the names of CSI drivers and with volumes of theirs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubeobjects.causes import Cause, invalid_texts, required, too_long
from kubeobjects.names import label_problems, subdomain_problems

_MAX_DRIVER: Final = 63
_CHECKED_SECRETS: Final = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)
"""The references to secrets that are looked at, in this order; nodeStageSecretRef is not."""


def driver_name_causes(name: str, path: str) -> Iterator[Cause]:
    """What is wrong with the name of a driver: a subdomain, in which letters may be upper case."""
    if not name:
        yield required(path)
        return
    if len(name) > _MAX_DRIVER:
        yield too_long(path, _MAX_DRIVER)
    yield from invalid_texts(path, name, subdomain_problems(name.lower()))


def csi_volume_causes(source: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with the `csi` of a persistent volume, at `path`."""
    yield from driver_name_causes(source.get("driver", ""), f"{path}.driver")
    if not source.get("volumeHandle"):
        yield required(f"{path}.volumeHandle")
    for field in _CHECKED_SECRETS:
        if source.get(field) is not None:
            yield from _secret_causes(source[field], f"{path}.{field}")


def _secret_causes(secret: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for field, rule in (("name", subdomain_problems), ("namespace", label_problems)):
        value = secret.get(field) or ""
        if not value:
            yield required(f"{path}.{field}")
        else:
            yield from invalid_texts(f"{path}.{field}", value, rule(value))
