"""Writes a configuration as a KubeletConfiguration of v1beta1, with all defaults: /configz. Pure.

What is empty is left out, as upstream's fields are that may be: texts, lists, mappings and numbers
without a value, and switches that are off unless they are on by default.
Headers of requests for manifests are shown as they are, as upstream shows them: whoever may read
this page can make a configuration of it that works (SRV-040).
Upstream: cmd/kubelet/app/server.go: setConfigz.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, inspect

from kubeobjects.strict.reader import extra_of, type_of
from refkubelet.config.schema.kubelet_config import API_VERSION, KIND, KubeletConfiguration

Json = dict[str, Any]
POINTERS: Final = frozenset(
    (
        *("enabled", "mergeDefaultEvictionSettings", "enableSystemLogQuery", "seccompDefault"),
        *("resolvConf", "verbosity", "numaNode", "priority", "shutdownGracePeriodSeconds"),
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


def _struct(value: Struct) -> Json:
    document: Json = {}
    for field in type_of(type(value)).fields:
        given = getattr(value, field.name)
        write = extra_of(field.type).get("write", _plain)
        encoded = None if given is None else write(given)
        if not _left_out(field, encoded):
            document[field.encode_name] = encoded
    return document


def _plain(value: Any) -> Any:
    match value:
        case Struct():
            return _struct(value)
        case Mapping():
            return {key: _plain(item) for key, item in value.items()}
        case tuple():
            return [_plain(item) for item in value]
    return value


def _left_out(field: inspect.Field, shown: Any) -> bool:
    if field.encode_name in POINTERS:
        return shown is None
    if isinstance(shown, bool):
        return not shown and field.default is not True
    if isinstance(shown, int | float) and shown == 0:
        return not field.default
    return shown in (None, "", []) or (
        shown == {} and not isinstance(field.type, inspect.StructType)
    )
