"""Whole objects as protobuf: four bytes that say so, and around the object its kind. Pure.

After `k8s` and a zero byte comes a message of three fields (`runtime.Unknown`): the kind, the bytes
of the object, and how these are encoded, which is nothing yet. A watch event has no such bytes
around it, but its length before it, and the object inside it with them.
"""

from __future__ import annotations

from typing import Any, Final

from fakekubeapi.protobuf.codec import decode_message, encode_message
from fakekubeapi.protobuf.wire import WireError, fields, text
from kubeobjects.schema.messages import Message, Schema, schema_of

MAGIC: Final = b"k8s\0"
_TYPE_META, _RAW, _CONTENT_ENCODING, _CONTENT_TYPE = 1, 2, 3, 4
_API_VERSION, _KIND = 1, 2
_EVENT_TYPE, _EVENT_OBJECT = 1, 2
_LENGTH_BYTES: Final = 4


_SHOWN_BYTES: Final = 30
_ANY: Final = (("", ""), ("meta.k8s.io/v1", "DeleteOptions"))
"""What is expected where the API server does not say so of bytes that it cannot read."""


class DecodeError(ValueError):
    """Bytes that are no object; the text is what the API server says of them."""


def has_message(api_version: str, kind: str, schema: Schema | None = None) -> bool:
    """Whether objects of this kind can be sent as protobuf. `schema`: the types of the minor that
    is served, here and below; None: the default one."""
    return _message(api_version, kind, schema) is not None


def _message(api_version: str, kind: str, schema: Schema | None) -> Message | None:
    types = schema or schema_of()
    name = types.message_name(api_version, kind)
    return types.message(name) if name else None


def encode_object(obj: dict[str, Any], schema: Schema | None = None) -> bytes:
    """The bytes of an object, a list or a Status that has its kind. Raises: ValueError for a kind
    without a message, or a field of another type than that of the kind."""
    api_version, kind = obj.get("apiVersion", ""), obj["kind"]
    message = _message(api_version or "v1", kind, schema)
    if message is None:
        raise ValueError(f"there is no message for {kind} of {api_version}")
    try:
        raw = encode_message(message, obj)
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{kind} cannot be encoded: {error}") from None
    type_meta = text(_API_VERSION, api_version) + text(_KIND, kind)
    parts = ((_TYPE_META, type_meta), (_RAW, raw), (_CONTENT_ENCODING, b""), (_CONTENT_TYPE, b""))
    return MAGIC + b"".join(text(number, part) for number, part in parts)


def decode_object(
    data: bytes, expected: tuple[str, str] = ("", ""), schema: Schema | None = None
) -> dict[str, Any]:
    """The JSON of an object, of its bytes. `expected`: its apiVersion and kind where the bytes do
    not tell. Raises: DecodeError."""
    try:
        unwrapped = _unwrapped(data)
    except WireError as error:
        if expected in _ANY:
            raise DecodeError(str(error)) from None
        raise DecodeError(unrecognized(expected[1], error, data)) from None
    api_version, kind = unwrapped[0] or expected[0], unwrapped[1] or expected[1]
    try:
        message = _message(api_version, kind, schema)
        if message is None:
            raise WireError(f'no kind "{kind}" is registered for version "{api_version}"')
        value: dict[str, Any] = decode_message(message, unwrapped[2])
    except WireError as error:
        version = api_version.rpartition("/")[2]
        expected_kind = expected[1] or kind
        raise DecodeError(
            f'{kind} in version "{version}" cannot be handled as a {expected_kind}: {error}'
        ) from None
    return {"kind": kind, "apiVersion": api_version, **value}


def unrecognized(kind: str, error: object, data: bytes) -> str:
    """The refusal of bytes in which no apiVersion and kind can be read: the kind that is wanted
    there, why, and how they begin."""
    bytes_text = (data[:_SHOWN_BYTES].hex() or "<empty>") + " ..." * (len(data) > _SHOWN_BYTES)
    return f"the object provided is unrecognized (must be of type {kind}): {error} ({bytes_text})"


def encode_event(event: dict[str, Any], schema: Schema | None = None) -> bytes:
    """A watch event with its length before it. Raises: ValueError as `encode_object`."""
    wrapped = text(1, encode_object(event["object"], schema))
    content = text(_EVENT_TYPE, event["type"]) + text(_EVENT_OBJECT, wrapped)
    return len(content).to_bytes(_LENGTH_BYTES, "big") + content


def _unwrapped(data: bytes) -> tuple[str, str, bytes]:
    """apiVersion, kind and bytes of the object. Raises: WireError."""
    if not data:
        raise WireError("empty data")
    if not data.startswith(MAGIC):
        raise WireError(
            "provided data does not appear to be a protobuf message, expected prefix "
            f"[{' '.join(map(str, MAGIC))}]"
        )
    if data == MAGIC:
        raise WireError("empty body")
    parts = _parts(data[len(MAGIC) :])
    type_meta = _parts(parts.get(_TYPE_META, b""))
    api_version, kind = (
        type_meta.get(part, b"").decode(errors="replace") for part in (_API_VERSION, _KIND)
    )
    return api_version, kind, parts.get(_RAW, b"")


def _parts(content: bytes) -> dict[int, bytes]:
    """The fields of a message all of whose fields are bytes. Raises: WireError."""
    parts = fields(content)
    return {number: value for number, _, value in parts if isinstance(value, bytes)}
