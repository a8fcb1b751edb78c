"""Writes a configuration as a KubeletConfiguration of v1beta1, with all defaults: /configz. Pure.

What is empty is left out, as upstream's fields are that may be: texts, lists, mappings and numbers
without a value, and switches that are off unless they are on by default.
Headers of requests for manifests are shown as they are, as upstream shows them: whoever may read
this page can make a configuration of it that works (SRV-040).
Upstream: cmd/kubelet/app/server.go: setConfigz.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from kubeobjects.golang.duration import format_duration
from kubeobjects.quantity import format_binary
from refkubelet.config.schema.fields import FieldInfo, Kind, info_of
from refkubelet.config.schema.kubelet_config import API_VERSION, KIND, KubeletConfiguration

Json = dict[str, Any]
POINTERS: Final = frozenset(
    (
        *("enabled", "mergeDefaultEvictionSettings", "enableSystemLogQuery", "seccompDefault"),
        "resolvConf",
    )
)
"""What is shown even when it is off or empty."""
IMAGES: Final = "imageServiceEndpoint"
RUNTIME: Final = "containerRuntimeEndpoint"


def as_v1beta1(config: KubeletConfiguration) -> Json:
    """The whole configuration as the JSON object of its file, with `apiVersion` and `kind`."""
    document = {"kind": KIND, "apiVersion": API_VERSION, **_struct(config)}
    if document.get(IMAGES) == document.get(RUNTIME):
        document.pop(IMAGES, None)  # that is its default
    return document


def _struct(value: Any) -> Json:
    document: Json = {}
    for field in dataclasses.fields(value):
        info = info_of(field)
        encoded = _value(info, getattr(value, field.name))
        if not _left_out(info, encoded, field.default):
            document[info.wire] = encoded
    return document


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
    if info.wire in POINTERS:
        return shown is None
    if isinstance(shown, bool):
        return not shown and default is not True
    if info.kind in (Kind.INT32, Kind.INT64, Kind.FLOAT) and shown == 0:
        return not default
    return shown in (None, "", []) or (shown == {} and info.kind is not Kind.STRUCT)
