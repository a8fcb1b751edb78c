"""Small helpers over JSON values (dict, list, str, int, float, bool, None)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fakeapi.errors import bad_request, unsupported_media_type

JSON: Final = "application/json"


def copy_json(value: Any) -> Any:
    """A deep copy of a JSON value."""
    if isinstance(value, dict):
        return {key: copy_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy_json(item) for item in value]
    return value


def without_null(value: Any) -> Any:
    """A copy in which no map holds a null: the API server reads null as absent."""
    if isinstance(value, dict):
        return {key: without_null(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_null(item) for item in value]
    return value


def encode(value: Any) -> bytes:
    return msgspec.json.encode(value)


def decode_body(method: str, body: Any, content_type: str) -> Any:
    """A private copy of a request's JSON body; bytes are decoded, None stays None.

    Raises `StatusError`: 415 for bytes that are not JSON by their type (a PATCH checks its own
    types), 400 saying where the JSON is broken.
    """
    if not isinstance(body, bytes):
        return copy_json(body)
    media_type = content_type.partition(";")[0].strip()
    if method != "PATCH" and media_type not in ("", JSON):
        raise unsupported_media_type(media_type, (JSON,))
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise bad_request(f"the request body is not JSON: {error}") from None
