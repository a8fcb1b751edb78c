"""Small helpers over JSON values (dict, list, str, int, float, bool, None)."""

from __future__ import annotations

from typing import Any

import msgspec

from fakeapi.errors import bad_request


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


def decode_body(raw: bytes) -> Any:
    """The JSON body of a request; 400 `StatusError` saying where it is broken."""
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise bad_request(f"the request body is not JSON: {error}") from None
