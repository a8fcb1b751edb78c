"""An object as the API server writes it, whatever the client has sent. Pure.

It decodes a body into a Go type and encodes it again: fields that the type does not have go, and so
do empty ones, but for those in `go_fields`; amounts and times come out in their one form. Field
types are lightkube's.
"""

from __future__ import annotations

import base64
import functools
import importlib
import re
import string
import types
import typing
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec

from fakekubeapi.bodies import copy_json
from fakekubeapi.resources.go_fields import ALWAYS, POINTERS
from kubeobjects.quantity import QuantityError, from_json

Convert: TypeAlias = Callable[[Any], Any]
_AMOUNTS: Final = frozenset(
    ("allocatable", "allocatedResources", "capacity", "limits", "overhead", "requests")
)
_AMOUNT: Final = frozenset(("divisor", "sizeLimit"))
_MICRO: Final = frozenset(("acquireTime", "eventTime", "lastObservedTime", "renewTime"))
_BYTES: Final = frozenset((("Secret", "data"), ("ConfigMap", "binaryData")))
_BASE64: Final = frozenset(string.ascii_letters + string.digits + "+/")
_GROUPS: Final = re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_TYPE_META: Final = ("kind", "apiVersion")
_SECONDS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_MICROSECONDS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6,9}(Z|[+-]\d\d:\d\d)")
_NONE: Final = type(None)


def as_written(value: dict[str, Any], module: str, kind: str) -> dict[str, Any]:
    """A copy of a body of the right types (`check_shape`), as the API server would write it.
    `module` and `kind`: where lightkube has its type. Raises: ValueError that says what is no
    quantity, or no base64."""
    model = getattr(importlib.import_module(f"lightkube.{module}"), kind)
    written: dict[str, Any] = _plan(model).written(value)
    return written


class _Plan:
    """How the objects of one type are written."""

    def __init__(self, model: Any) -> None:
        name = model.__name__
        fields = msgspec.structs.fields(model)
        self._converts = {f.encode_name: _convert(name, f.encode_name, f.type) for f in fields}
        self._kept = POINTERS.get(name, frozenset()) | ALWAYS.get(name, {}).keys()
        types_of = {f.encode_name: f.type for f in fields}
        self._always = {
            field: _empty(types_of[field]) if zero == {} else zero
            for field, zero in ALWAYS.get(name, {}).items()
            if field in types_of
        }

    def written(self, value: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, item in value.items():
            convert = self._converts.get(key)
            if convert is None or item is None:
                continue
            found = convert(item)
            if key in self._kept or found or key in _TYPE_META:
                made[key] = found
        for key, zero in self._always.items():
            if key not in made:
                made[key] = copy_json(zero)
        return made


@functools.cache
def _plan(model: Any) -> _Plan:
    return _Plan(model)


def _empty(wanted: Any) -> Any:
    model = _struct(wanted)
    return {} if model is None else _plan(model).written({})


def _struct(wanted: Any) -> Any:
    """The struct type that a field's type means; None: it is no struct."""
    for one in typing.get_args(wanted) or (wanted,):
        if isinstance(one, type) and issubclass(one, msgspec.Struct):
            return one
    return None


def _convert(owner: str, name: str, wanted: Any) -> Convert:
    if (owner, name) in _BYTES:
        return _bytes_map
    if name in _AMOUNTS and _struct(wanted) is None:
        return _amounts
    if name in _AMOUNT:
        return _canonical_amount
    return _of_type(name, wanted)


def _of_type(name: str, wanted: Any) -> Convert:
    origin, members = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        real = [member for member in members if member is not _NONE]
        return _of_type(name, real[0]) if len(real) == 1 else _same
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return lambda item: _plan(wanted).written(item) if isinstance(item, dict) else item
    if origin is list:
        inner = _of_type(name, members[0])
        return lambda item: [inner(one) for one in item] if isinstance(item, list) else item
    if wanted is datetime:
        return _micro_time if name in _MICRO else _time
    return _text_map if name in _TEXT_MAPS else _same


_TEXT_MAPS: Final = frozenset(("annotations", "labels", "data", "matchLabels", "nodeSelector"))


def _same(value: Any) -> Any:
    return copy_json(value)


def _text_map(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: "" if item is None else item for key, item in value.items()}


def _bytes_map(value: Any) -> Any:
    """Bytes in base64, in the form in which they are written."""
    made = {}
    for key, text in value.items():
        plain = (text or "").replace("\r", "").replace("\n", "")
        if not _GROUPS.fullmatch(plain):
            raise ValueError(f"illegal base64 data at input byte {_wrong_byte(text)}")
        made[key] = base64.b64encode(base64.b64decode(plain)).decode()
    return made


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


def _canonical_amount(value: Any) -> str:
    """An amount, a text or a number, as the server writes it. Raises: ValueError, as it says it."""
    try:
        return str(from_json(value))
    except QuantityError as error:
        raise ValueError(error.upstream) from None


def _amounts(value: Any) -> Any:
    if not isinstance(value, dict):
        return copy_json(value)
    return {
        name: item if isinstance(item, dict | list) else _canonical_amount(item)
        for name, item in value.items()
    }


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
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
