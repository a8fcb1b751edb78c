"""Writes a configuration as a KubeletConfiguration of v1beta1, with all defaults: /configz. Pure.

What is empty is left out, as upstream's fields are that may be: texts, lists, mappings and numbers
without a value, and switches that are off unless they are on by default.
What must never happen here: a password is shown; headers of requests for manifests are not.
Upstream: cmd/kubelet/app/server.go: setConfigz.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from refkubelet.config.fields import FieldInfo, Kind, info_of
from refkubelet.config.kubelet_config import API_VERSION, KIND, KubeletConfiguration
from refkubelet.golang.duration import format_duration
from refkubelet.model.quantity import format_binary

Json = dict[str, Any]
SECRET: Final = frozenset({"staticPodURLHeader"})
POINTERS: Final = frozenset({"enabled"})
"""Switches that are shown even when they are off, as they are by default."""


def as_v1beta1(config: KubeletConfiguration) -> Json:
    """The whole configuration as the JSON object of its file, with `apiVersion` and `kind`."""
    return {"kind": KIND, "apiVersion": API_VERSION, **_struct(config)}


def _struct(value: Any) -> Json:
    found: Json = {}
    for field in dataclasses.fields(value):
        info = info_of(field)
        shown = _value(info, getattr(value, field.name))
        if info.wire not in SECRET and not _left_out(info, shown, field.default):
            found[info.wire] = shown
    return found


def _value(info: FieldInfo, value: Any) -> Any:
    if value is None:
        return None
    match info.kind:
        case Kind.DURATION | Kind.DURATION_OR_NS:
            return format_duration(value)
        case Kind.QUANTITY:
            return format_binary(value)
        case Kind.STRUCT:
            return _struct(value)
        case Kind.STRUCTS:
            return [_struct(item) for item in value]
        case Kind.STRINGS | Kind.INTS:
            return list(value)
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _left_out(info: FieldInfo, shown: Any, default: Any) -> bool:
    if isinstance(shown, bool):
        return not shown and default is not True and info.wire not in POINTERS
    if info.kind in (Kind.INT32, Kind.INT64, Kind.FLOAT) and shown == 0:
        return not default
    return shown in (None, "", []) or (shown == {} and info.kind is not Kind.STRUCT)
