"""Reading what an API server answers: objects, lists, lines of a watch, errors.

What must never happen here: an answer that makes no sense becomes anything but an `ApiError`; one
unreadable object of a list hides the others.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from lightkube.models.meta_v1 import ObjectMeta
from msgspec import Struct

from refkubelet.api.client import ApiError, ObjectList, WatchEvent

T = TypeVar("T")

log = logging.getLogger(__name__)


def one(decode: Callable[[dict[str, Any]], T], value: dict[str, Any]) -> T:
    """The object of an answer. Raises `ApiError` if it cannot be decoded."""
    try:
        return decode(value)
    except Exception as e:  # the server may send anything
        raise ApiError(0, "BadAnswer", f"the API server sent an unreadable object: {e}") from e


def every(decode: Callable[[dict[str, Any]], T], value: Mapping[str, Any]) -> ObjectList[T]:
    """The objects of a list. One that cannot be decoded is logged and left out, so that it hides no
    other. Raises `ApiError` for what is no list."""
    entries = value.get("items") or []
    if not isinstance(entries, list):
        raise ApiError(0, "BadAnswer", f"wanted a list of items, got {type(entries).__name__}")
    items: list[T] = []
    for item in entries:
        try:
            items.append(_identified(decode, item))
        except Exception as e:
            name = _metadata(item).get("name")
            log.error("object %s from the API server is unreadable: %s", name, e)
    return ObjectList(tuple(items), _version(value))


def _identified(decode: Callable[[dict[str, Any]], T], value: Any) -> T:
    """An object with a UID, by which followers keep it. Raises `msgspec.ValidationError`."""
    if not _metadata(value).get("uid"):
        raise msgspec.ValidationError("it has no metadata.uid")
    return decode(value)


class _Bookmark(Struct, frozen=True):
    """The object of a bookmark: no object of any kind, since these may lack nothing they need."""

    metadata: ObjectMeta


def watch_event(
    decode: Callable[[dict[str, Any]], T], kind: str, value: dict[str, Any]
) -> WatchEvent[T]:
    """The event of one line. Of a bookmark only the version is read (SRC-051): API servers fill the
    rest of its object with zero values such as `containers: null`, which no object may have."""
    if kind == "BOOKMARK":
        bare: Any = _Bookmark(ObjectMeta(resourceVersion=_version(value)))
        return WatchEvent(kind, bare)
    return WatchEvent(kind, one(lambda content: _identified(decode, content), value))


def json_object(content: bytes, what: str) -> dict[str, Any]:
    """The JSON object of an answer; `what` names the request. Raises `ApiError`."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        start = content[:80].decode(errors="replace")
        raise ApiError(0, "BadAnswer", f"{what}: wanted a JSON object, got {start!r}")
    return value


def watch_line(line: bytes, what: str) -> tuple[str, dict[str, Any]]:
    """One line of a watch. Raises `ApiError` for an ERROR line, and for what is no event."""
    event = json_object(line, what)
    kind, value = event.get("type"), event.get("object")
    if not isinstance(kind, str) or not isinstance(value, dict):
        raise ApiError(0, "BadAnswer", f"{what}: wanted type and object, got {sorted(event)}")
    if kind == "ERROR":
        code = value.get("code")
        raise error_of(code if isinstance(code, int) else 500, value)
    return kind, value


def error_of(status: int, body: bytes | dict[str, Any]) -> ApiError:
    """The error in a metav1.Status, or with the text that the server sent instead."""
    if isinstance(body, bytes):
        text = body.decode(errors="replace")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        body = value if isinstance(value, dict) else {"message": text.strip()[:200]}
    return ApiError(status, str(body.get("reason") or ""), str(body.get("message") or ""))


def _version(value: Mapping[str, Any]) -> str:
    return str(_metadata(value).get("resourceVersion") or "")


def _metadata(value: Any) -> Mapping[str, Any]:
    """Its metadata; empty for what has none."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    return metadata if isinstance(metadata, dict) else {}
