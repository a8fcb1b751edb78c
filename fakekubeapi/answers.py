"""How answers are written: as JSON, YAML or protobuf; whole objects, and the events of watches.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import yaml
from msgspec import Struct

from fakekubeapi.bodies import JSON, PROTOBUF, YAML, encode
from fakekubeapi.errors import StatusError
from fakekubeapi.protobuf.envelope import encode_event, encode_object
from kubeobjects.schema.messages import Schema


class Format(Struct, frozen=True):
    """One way to write answers."""

    content_type: str
    stream_type: str
    """The content type of watches."""
    encode: Callable[[dict[str, Any]], bytes]
    """An object, a list or a Status. Raises: StatusError 500 for one that has a field of another
    type than it should have, which JSON can say and protobuf cannot."""
    encode_event: Callable[[dict[str, Any]], bytes]
    """An event of a watch, from which its end can be told."""


def _json_line(event: dict[str, Any]) -> bytes:
    return encode(event) + b"\n"


def _encode_yaml(value: dict[str, Any]) -> bytes:
    return yaml.dump(
        value,
        Dumper=yaml.CSafeDumper,
        default_flow_style=False,
        allow_unicode=True,
        encoding="utf-8",
    )


def _unwritable(error: ValueError) -> StatusError:
    return StatusError(500, f"Internal error occurred: {error}")


@cache
def formats(schema: Schema) -> Mapping[str, Format]:
    """The formats by their media types; `schema`: the types that protobuf is written by."""

    def in_protobuf(obj: dict[str, Any]) -> bytes:
        try:
            return encode_object(obj, schema)
        except ValueError as error:
            raise _unwritable(error) from None

    def frame(event: dict[str, Any]) -> bytes:
        try:
            return encode_event(event, schema)
        except ValueError as error:
            return encode_event({"type": "ERROR", "object": _unwritable(error).body()}, schema)

    return {
        JSON: Format(JSON, JSON, encode, _json_line),
        YAML: Format(YAML, YAML, _encode_yaml, _encode_yaml),  # no watch is ever YAML
        PROTOBUF: Format(PROTOBUF, f"{PROTOBUF};stream=watch", in_protobuf, frame),
    }
