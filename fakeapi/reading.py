"""The bodies of requests: from bytes to JSON values that the rest of the server can work with.

Bytes that are no UTF-8, and halves of surrogate pairs, are read as U+FFFD, as the API server reads
them; numbers without a place in 64 bits become floating. What must never happen here: a body gets
through that is nested so deeply that a later step ends in a RecursionError.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final, NoReturn

import msgspec

from fakeapi.errors import StatusError, bad_request, unsupported_media_type
from fakeapi.jsontools import JSON, PATCH_TYPES, copy_json

MAX_DEPTH: Final = 200
"""The API server takes 10,000; nothing that it stores is deeper than some twenty."""
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_INT64: Final = range(-(1 << 63), 1 << 63)


def decode_body(method: str, body: Any, content_type: str) -> Any:
    """A private copy of a request's JSON body; bytes are decoded, None stays None.

    Raises `StatusError`: 415 for bytes that are not JSON by their type (a PATCH checks its own
    types), 400 saying where the JSON is broken or that it is nested too deeply.
    """
    if not isinstance(body, bytes):
        require_shallow(body)
        return copy_json(body)
    media_type = content_type.partition(";")[0].strip()
    known = PATCH_TYPES if method == "PATCH" else ("", JSON)
    if media_type not in known or (not media_type and content_type.strip()):
        refusal = unsupported_media_type(media_type, [name for name in known if name])
        if media_type == PROTOBUF:
            refusal.message += (
                "; this server speaks JSON only: set contentType: application/json, or use "
                "kubectl apply"
            )
        raise refusal
    value = _decoded(body)
    require_shallow(value)
    return _small(value)


def require_shallow(value: Any) -> None:
    """Raises: StatusError 400 for more than `MAX_DEPTH` values within one another."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise bad_request(f"the body is nested too deeply: more than {MAX_DEPTH} levels")
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except RecursionError:
        raise bad_request(f"the body is nested too deeply: more than {MAX_DEPTH} levels") from None
    except UnicodeDecodeError:
        return _decoded(body.decode(errors="replace").encode())
    except msgspec.DecodeError as error:
        return _decoded_slowly(body, error)


def _decoded_slowly(body: bytes, error: msgspec.DecodeError) -> Any:
    """Of what one reader refuses and the API server takes: halves of surrogate pairs."""
    refusal = bad_request(f"the request body is not JSON: {error}")
    if b"\\u" not in body:
        raise refusal from None

    def no_constant(name: str) -> NoReturn:
        raise ValueError(name)

    try:
        value = json.loads(body.decode(errors="replace"), parse_constant=no_constant)
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        raise refusal from None
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _decoded(whole.encode())


def _small(value: Any) -> Any:
    """Numbers as the API server holds them. Raises: StatusError for what has no place at all."""
    if isinstance(value, dict):
        return {key: _small(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_small(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        held = value if not isinstance(value, int) or value in _INT64 else float(value)
    except OverflowError:
        held = math.inf
    if isinstance(held, float) and not math.isfinite(held):
        raise StatusError(400, f"the request body is not JSON: {str(value)[:40]} is too large")
    return held
