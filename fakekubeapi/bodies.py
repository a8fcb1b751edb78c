"""Bodies, JSON, YAML or protobuf: from bytes to values that the rest of the server can work with,
and back to bytes.

Bytes that are not UTF-8, and unpaired surrogates, are read as U+FFFD, as the API server reads
them; whole numbers that do not fit 64 bits become floating-point numbers. A body nested more than
`MAX_DEPTH` levels deep is refused here, so that the recursive functions of the other modules cannot
end in a RecursionError.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

import msgspec

from fakekubeapi.errors import StatusError, bad_request, unsupported_media_type
from fakekubeapi.protobuf.envelope import DecodeError, decode_object, unrecognized
from kubeobjects import yaml
from kubeobjects.schema.messages import Schema
from kubeobjects.yaml.errors import TooLargeError, YamlError

JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
YAML: Final = "application/yaml"
PATCH_TYPES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
MAX_DEPTH: Final = 200
"""How many levels of lists and objects a body may have. A kube-apiserver allows 10,000, but its
objects have about twenty at most."""
MAX_VALUES: Final = 1_000_000
"""How many values a body in YAML may have once its aliases are replaced."""
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_IN_YAML: Final = frozenset((YAML, APPLY_PATCH))
SCALARS: Final = frozenset((str, int, float, bool, type(None)))
"""The classes of values that need no copy."""
_INT64: Final = range(-(1 << 63), 1 << 63)
_LARGE_NUMBER: Final = re.compile(rb"[0-9]{19}|[0-9][eE]\+?[0-9]{3}")
"""What is in the text of every number that 64 bits cannot hold: many digits or a long exponent."""


def decode_body(
    method: str,
    body: Any,
    content_type: str,
    *,
    expected: tuple[str, str] = ("", ""),
    schema: Schema | None = None,
) -> Any:
    """A copy of a request body that shares nothing with others. Bytes are decoded; None (no body)
    stays None.

    `content_type` matters for bytes only; for a PATCH it has to be one of `PATCH_TYPES`, else it is
    JSON, YAML, protobuf or empty. `expected`: apiVersion and kind for a body that does not name
    them (protobuf needs them, and refusals name them). `schema`: the types of the minor that is
    served. Raises: StatusError 415 for another content type; 400, with the place, for a broken text
    or one that is nested too deeply.
    """
    if not isinstance(body, bytes):
        require_shallow(body)
        return copy_json(body)
    media_type = content_type.partition(";")[0].strip()
    media_types = PATCH_TYPES if method == "PATCH" else ("", JSON, YAML, PROTOBUF)
    if media_type not in media_types or (not media_type and content_type.strip()):
        raise unsupported_media_type([name for name in media_types if name])
    if media_type in _IN_YAML:
        return _small(decode_yaml(body, "" if media_type == APPLY_PATCH else expected[1]))
    value = _from_protobuf(body, expected, schema) if media_type == PROTOBUF else _decoded(body)
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        require_shallow(value)
    return _small(value) if _LARGE_NUMBER.search(body) else value


def decode_yaml(body: bytes, kind: str = "") -> Any:
    """The value of the first document of a YAML text; of a key given twice the last counts.
    `kind`: what is wanted there; "" is anything, as in patches.

    Raises: StatusError 400 that says where the text is broken, or that it has too many values or
    levels.
    """
    limits = yaml.Limits(values=MAX_VALUES, depth=MAX_DEPTH)
    try:
        root = yaml.compose(yaml.decoded(body, limits), limits).root
        return yaml.value_of(root, last_key_counts=True)
    except TooLargeError as error:
        raise bad_request(f"error decoding YAML: {error}") from None
    except YamlError as error:
        if kind:
            raise bad_request(unrecognized(kind, error.upstream, body)) from None
        why = f"error decoding YAML: error converting YAML to JSON: {error.upstream}"
        raise bad_request(why) from None


def _from_protobuf(body: bytes, expected: tuple[str, str], schema: Schema | None) -> Any:
    try:
        return decode_object(body, expected, schema)
    except DecodeError as error:
        raise bad_request(str(error)) from None


def require_shallow(value: Any) -> None:
    """Refuse a value with more than `MAX_DEPTH` levels of lists and objects. Raises: StatusError
    400."""
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
    except (UnicodeDecodeError, msgspec.DecodeError) as error:  # the first: msgspec before 0.23
        replaced = body.decode(errors="replace").encode()
        return _decoded_slowly(body, error) if replaced == body else _decoded(replaced)


def _decoded_slowly(body: bytes, error: UnicodeDecodeError | msgspec.DecodeError) -> Any:
    """Decode what msgspec refuses, but the API server takes: JSON with unpaired surrogates. For
    anything else raise the refusal that `error` means."""
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
    """The value with its numbers as the API server holds them: whole ones of 64 bits, else
    floating-point. Raises: StatusError 400 for one that is too large for both."""
    if isinstance(value, dict):
        return {key: _small(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_small(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        number = value if not isinstance(value, int) or value in _INT64 else float(value)
    except OverflowError:
        number = math.inf
    if isinstance(number, float) and not math.isfinite(number):
        raise StatusError(400, f"the request body is not JSON: {str(value)[:40]} is too large")
    return number


def copy_json(value: Any) -> Any:
    """A deep copy of a JSON value."""
    if isinstance(value, dict):
        return {k: v if v.__class__ in SCALARS else copy_json(v) for k, v in value.items()}
    if isinstance(value, list):
        return [v if v.__class__ in SCALARS else copy_json(v) for v in value]
    return value


def without_null(value: Any) -> Any:
    """A deep copy without the null members of objects, which the API server reads as absent."""
    if isinstance(value, dict):
        return {key: without_null(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_null(item) for item in value]
    return value


def encode(value: Any) -> bytes:
    """The JSON text of a value."""
    return msgspec.json.encode(value)
