"""Merges a drop-in's mapping into a configuration's (CFG-003). Pure.

Upstream: cmd/kubelet/app/server.go: mergeKubeletConfigurations, by a JSON merge patch (RFC 7386).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merged(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `patch` over it: mappings are merged, lists and all other values replaced, and
    null removes.

    >>> merged({"a": {"x": 1, "y": 2}, "b": [1, 2], "c": 3}, {"a": {"y": None}, "b": [4]})
    {'a': {'x': 1}, 'b': [4], 'c': 3}
    """
    result = dict(base)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            before = result.get(key)
            result[key] = merged(before if isinstance(before, Mapping) else {}, value)
        else:
            result[key] = value
    return result


def without_nulls(value: Mapping[str, Any]) -> dict[str, Any]:
    """`value` without keys that are null, at any depth of mappings: what a patch sets."""
    return merged({}, value)
