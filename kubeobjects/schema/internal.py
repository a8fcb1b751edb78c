"""Objects as refusals show them: the JSON of Go's internal types. Pure.

They have other field names than the API, an order of their own, and each field even where nothing
is in it. Upstream: pkg/apis/core, pkg/apis/storage: types.go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kubeobjects.schema.messages import Field, Message, Shape


def internal(value: Mapping[str, Any], message: Message) -> dict[str, Any]:
    """The JSON of the internal type of an object of the API's type `message`. Parts whose type is
    not an internal one stay as they are.

    >>> from kubeobjects.schema.messages import message
    >>> internal({"add": ["KILL"]}, message("core.v1.Capabilities"))
    {'Add': ['KILL'], 'Drop': None}
    """
    fields = {field.go_name: field for field in message.in_json.values()}
    internal_fields = {}
    for word in message.schema.internal(message.name):
        name, _, constant = word.partition("=")
        internal_fields[name] = (
            json.loads(constant) if constant else _shown(value, fields[name.lower()], message)
        )
    return internal_fields


def _shown(value: Mapping[str, Any], field: Field, owner: Message) -> Any:
    item: Any = value.get(field.name)
    inner = owner.of(field)
    if item is None and (inner is None or field.shape is not Shape.ONE):
        return field.zero
    if field.shape is Shape.LIST:
        return [_single(part, inner) for part in item]
    if field.shape is Shape.MAP:
        return {key: _single(item[key], inner) for key in sorted(item)}
    return _single(item or {}, inner) if inner is not None else item


def _single(value: Any, message: Message | None) -> Any:
    has_internal = message is not None and message.schema.has_internal(message.name)
    return internal(value, message) if message is not None and has_internal else value
