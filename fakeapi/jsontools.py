"""Small helpers over JSON values (dict, list, str, int, float, bool, None)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fakeapi.errors import bad_request, unsupported_media_type

JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
PATCH_TYPES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)


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
    known = PATCH_TYPES if method == "PATCH" else ("", JSON)
    if media_type not in known:
        raise unsupported_media_type(media_type, [name for name in known if name])
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise bad_request(f"the request body is not JSON: {error}") from None
