"""Checks that the rules of several kinds share. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubeobjects.causes import Cause, unsupported_value
from kubeobjects.pods.common import checks

Object = Mapping[str, Any]


def one_of(obj: Object, field: str, path: str, allowed: Sequence[str]) -> list[Cause]:
    """What is wrong with a field that has to have one of these values, if it is there."""
    if field in obj and obj[field] not in allowed:
        return [unsupported_value(f"{path}.{field}", obj[field], allowed)]
    return []


def not_negative(obj: Object, field: str, path: str) -> list[Cause]:
    """What is wrong with a number below 0."""
    return [*checks.not_negative(obj.get(field), f"{path}.{field}")]
