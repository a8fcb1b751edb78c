"""CRI messages as plain data for JSON, and back: the form of the recorded kubelet runs.

Field names are those of the .proto; maps are in order of their keys, because protobuf's own order
differs from process to process and equal calls must be equal lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message


def plain(message: Message) -> dict[str, Any]:
    """The message as dicts, lists, texts and numbers. 64-bit numbers are texts, as in protobuf's
    JSON."""
    # Takes 5 ms to import, and most fakes write no JSON.
    from google.protobuf.json_format import MessageToDict

    document: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    _sort_maps(message, document)
    return document


def _sort_maps(message: Message, found: dict[str, Any]) -> None:
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            found[field.name] = dict(sorted(found[field.name].items()))
        elif isinstance(value, Message):
            if isinstance(found[field.name], dict):
                _sort_maps(value, found[field.name])
        else:
            for item, row in zip(value, found[field.name], strict=True):
                _sort_maps(item, row)


def message_from(kind: type[Message], row: Mapping[str, Any]) -> Message:
    """The message of type `kind` with the fields of `row`. Fields that only later versions of the
    contract have are left out. Raises ValueError, which says what is wrong."""
    from google.protobuf.json_format import ParseDict, ParseError  # as in `plain`

    try:
        message: Message = ParseDict(dict(row), kind(), ignore_unknown_fields=True)
    except ParseError as error:
        raise ValueError(f"{kind.__name__}: {error}") from None
    return message
