"""An object as the API server writes it, whatever the client has sent. Pure.

It decodes a body into a Go type and encodes it again: fields that the type does not have go, and so
do empty ones, but for pointers and those that are always written (`kubeobjects.schema`); amounts
and times come out in their one form.
"""

from __future__ import annotations

import base64
import functools
import re
import string
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from fakekubeapi.bodies import SCALARS, copy_json
from kubeobjects.quantity import QuantityError, from_json
from kubeobjects.schema.messages import TYPE_META, Field, Message, Shape

Convert: TypeAlias = Callable[[Any], Any]
_BASE64: Final = frozenset(string.ascii_letters + string.digits + "+/")
_GROUPS: Final = re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_SECONDS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_MICROSECONDS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6,9}(Z|[+-]\d\d:\d\d)")


def as_written(value: dict[str, Any], message: Message) -> dict[str, Any]:
    """A copy of a body of the right types (`check_shape`) in the form in which the API server
    writes it. Raises: ValueError, with the reason, for a malformed amount or malformed base64."""
    fields = _plan(message).written(value)
    return {key: value[key] for key in TYPE_META if value.get(key) is not None} | fields


class _Plan:
    """How the objects of one type are written."""

    def __init__(self, message: Message) -> None:
        fields = message.in_json
        self._converts = {name: _convert(message, field) for name, field in fields.items()}
        self._kept = frozenset(name for name, field in fields.items() if field.kept)
        self._filled = {
            name: _zero(message, field) for name, field in fields.items() if field.filled
        }

    def written(self, value: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        converts = self._converts
        for key, item in value.items():
            if item is None or key not in converts:
                continue
            convert = converts[key]
            if convert is copy_json and item.__class__ in SCALARS:
                converted = item  # as most fields are
            else:
                converted = convert(item)
            if converted or key in self._kept:
                result[key] = converted
        for key, zero in self._filled.items():
            if key not in result:
                result[key] = copy_json(zero)
        return result


@functools.cache
def _plan(message: Message) -> _Plan:
    return _Plan(message)


def _zero(owner: Message, field: Field) -> Any:
    inner = owner.of(field) if field.shape is Shape.ONE else None
    return field.zero if inner is None else _plan(inner).written({})


def _convert(owner: Message, field: Field) -> Convert:
    """How a value of the field is written that is not null."""
    convert = _convert_one(owner.of(field), field)
    if field.shape is Shape.LIST and convert is copy_json:
        return copy_json
    if field.shape is Shape.LIST:
        return lambda value: [convert(item) for item in value] if isinstance(value, list) else value
    if field.shape is Shape.MAP:
        of_item = _MAPPED.get(field.type, convert)
        return lambda value: (
            {key: of_item(item) for key, item in value.items()}
            if isinstance(value, dict)
            else value
        )
    return convert


def _convert_one(inner: Message | None, field: Field) -> Convert:
    """The same, of a single value of a list or map."""
    if inner is None:
        return _SCALARS.get(field.type, copy_json)
    return lambda item: _plan(inner).written(item) if isinstance(item, dict) else item


def _text(value: Any) -> Any:
    return "" if value is None else value


def _bytes(text: Any) -> str:
    """Bytes in base64, in the form in which they are written."""
    plain = (text or "").replace("\r", "").replace("\n", "")
    if not _GROUPS.fullmatch(plain):
        raise ValueError(f"illegal base64 data at input byte {_wrong_byte(text)}")
    return base64.b64encode(base64.b64decode(plain)).decode()


def _wrong_byte(text: str) -> int:
    """The number of the byte at which Go finds that a text is no base64: that of a letter that does
    not belong there, of what comes after the padding, of its end where padding is missing, or of
    the beginning of a last group that is too short."""
    letters = [(at, letter) for at, letter in enumerate(text) if letter not in "\r\n"]
    for number, (at, letter) in enumerate(letters):
        if letter in _BASE64:
            continue
        place, after = number % 4, letters[number + 1 :]
        if letter != "=" or place < 2:
            return at
        if place == 2:
            if not after:
                return len(text)
            if after[0][1] != "=":
                return after[0][0] - 1
            del after[0]
        return after[0][0]
    return len(text) - len(letters) % 4


def _amount(value: Any) -> Any:
    """An amount (a text or a number) in the form in which the server writes it. Raises: ValueError
    with the text of the server."""
    if isinstance(value, dict | list):
        return value
    try:
        return "0" if value is None else str(from_json(value))
    except QuantityError as error:
        raise ValueError(error.upstream) from None


def _time(text: Any) -> Any:
    if not isinstance(text, str) or _SECONDS.fullmatch(text):
        return text
    return _in_utc(text).strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    if not _MICROSECONDS.fullmatch(text):
        form = "2006-01-02T15:04:05.000000Z07:00"
        raise ValueError(f'parsing time "{text}" as "{form}": cannot parse "{text}"')
    return _in_utc(text).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _in_utc(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)


_SCALARS: Final = {"Quantity": _amount, "Time": _time, "MicroTime": _micro_time}
"""How values of these types are written; others stay as they are."""
_MAPPED: Final = {"string": _text, "bytes": _bytes}
"""How values of these types are written in a map, in which null is an empty one."""
