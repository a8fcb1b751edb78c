"""Objects made from a base and changes: how recorded answers name the objects they are of.

A change is a place, written as a JSON pointer (`/spec/volumes/0/name`), and a new value there; None
takes the place away. A number one past the end of a list adds to it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from kubeobjects.pods.common.checks import GROUPS
from kubeobjects.pods.preparation import merge_own

OFF = ("clusterTrustBundle", "podCertificate")
"""Sources of projected volumes that are behind gates that are off."""


def changed(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the base with the changes, made in their order."""
    whole: Any = json.loads(json.dumps(base))  # parts of a base may be one object
    for pointer, value in changes.items():
        *way, last = [_unescaped(part) for part in pointer.split("/")[1:]]
        inner = whole
        for part in way:
            inner = inner[int(part)] if isinstance(inner, list) else inner.setdefault(part, {})
        _put(inner, last, copy.deepcopy(value))
    made: dict[str, Any] = whole
    return made


def _put(inner: Any, key: str, value: Any) -> None:
    if isinstance(inner, dict):
        if value is None:
            inner.pop(key, None)
        else:
            inner[key] = value
    elif value is None:
        del inner[int(key)]
    elif int(key) == len(inner):
        inner.append(value)
    else:
        inner[int(key)] = value


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def escaped(key: str) -> str:
    """A key as a part of a pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def prepare_new_pod(pod: dict[str, Any]) -> None:
    """Change the pod as an API server does that creates it, status left aside."""
    pod.setdefault("metadata", {})["generation"] = 1
    drop_switched_off(pod["spec"])
    merge_own(pod)


def drop_switched_off(spec: dict[str, Any]) -> None:
    """Drop the fields behind gates that are off."""
    spec.pop("schedulingGroup", None)
    for volume in spec.get("volumes") or ():
        for part in (volume.get("projected") or {}).get("sources") or ():
            for kind in OFF:
                part.pop(kind, None)
    for group in GROUPS:
        for container in spec.get(group) or ():
            (container.get("lifecycle") or {}).pop("stopSignal", None)
