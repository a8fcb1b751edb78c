"""Whether a JSON body has the types of the API object it claims to be.

The field types are lightkube's. Only the fields that are there are checked: unknown ones pass,
missing ones are left to validation, null counts as missing (but not in a list). Code that reads a
body which has passed may rely on the types.

Nearly every body has the right types, and kubelets send the same kinds again and again: so for each
type a check is made once that only says yes or no (`_fits`), and the parts of a body are walked
only to say what is wrong with it: in the words of Go's decoder (`go_decoding`) or, for what it does
not tell, in our own (`_problems`).
"""

from __future__ import annotations

import functools
import importlib
import types
import typing
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from fakekubeapi.errors import StatusError, bad_request
from fakekubeapi.requests.go_decoding import decoding_error

# Quantities are strings in the models, but the API takes plain numbers too.
_QUANTITIES: Final = frozenset(("sizeLimit", "divisor"))
_TEXT_MAPS: Final = frozenset(
    (
        *("data", "binaryData", "stringData", "spec.nodeSelector", "metadata.labels"),
        *("metadata.annotations", "status.allocatedResourceStatuses"),
    )
)
_INT32: Final = 1 << 31
"""Numbers below it have room in every field."""
_OPTIONS: Final = "DeleteOptions"
"""The kind of which errors are told without its name."""
_NONE: Final = type(None)
_WANTED: Final[dict[Any, str]] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    datetime: "an RFC 3339 time",
}


def check_shape(value: Any, module: str, kind: str) -> None:
    """Check the types of a body. `module` and `kind`: where lightkube has its type
    (`resources.core_v1`, `Pod`). Raises: StatusError 400 that names the first wrong field."""
    model = _model(module, kind)
    if value is None or _fits(model)(value):
        return
    package = module.partition(".")[2].replace("_", ".")
    if why := decoding_error(value, f"{package}.{kind}"):
        raise undecodable(kind, package.rpartition(".")[2], why)
    for problem in _problems(value, model, ""):
        raise bad_request(f"the body cannot be handled as a {kind}: {problem}")


def undecodable(kind: str, version: str, why: str, wanted: str = "") -> StatusError:
    """400: a body that says it has this kind and version is none of the `wanted` kind (not given:
    the same)."""
    wanted = wanted or kind
    if wanted == _OPTIONS:
        return bad_request(why)
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {wanted}: {why}')


def unknown_fields(value: Any, module: str, kind: str) -> str:
    """What is said (`fieldValidation=Strict`) of the fields of a body that its type does not have;
    "": it has them all. `module`, `kind`: as in `check_shape`."""
    unknown = [f'unknown field "{path}"' for path in _unknown(value, _model(module, kind), "")]
    return f"strict decoding error: {', '.join(unknown)}" if unknown else ""


def require_known_fields(value: Any, module: str, kind: str, version: str) -> None:
    """Check that the type has all fields of a body. Raises: StatusError 400 that names the unknown
    ones."""
    if why := unknown_fields(value, module, kind):
        raise undecodable(kind, version, why)


def _unknown(value: Any, wanted: Any, path: str) -> Iterator[str]:
    """The paths of fields that the type does not have; a key with `$` is a directive of a patch,
    not a field."""
    origin, members = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        for member in members:
            yield from _unknown(value, member, path)
    elif isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        known = _fields(wanted)
        for key, item in value.items() if isinstance(value, dict) else ():
            here = f"{path}.{key}" if path else key
            if key in known:
                yield from _unknown(item, known[key], here)
            elif not key.startswith("$"):
                yield here
    elif origin is list and isinstance(value, list):
        for i, item in enumerate(value):
            yield from _unknown(item, members[0], f"{path}[{i}]")


@functools.cache
def _model(module: str, kind: str) -> Any:
    return getattr(importlib.import_module(f"lightkube.{module}"), kind)


@functools.cache
def _fields(model: Any) -> dict[str, Any]:
    return {field.encode_name: field.type for field in msgspec.structs.fields(model)}


@functools.cache
def _fits(wanted: Any) -> Callable[[Any], bool]:
    """The check of one type: whether a value, not null, has it for certain. Where it has not,
    `_problems` decides."""
    origin, members = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted is Any:
        return lambda value: True
    if wanted is int:
        return lambda value: type(value) is int and -_INT32 <= value < _INT32
    if origin in (typing.Union, types.UnionType):
        real = [_fits(member) for member in members if member is not _NONE]
        return real[0] if len(real) == 1 else lambda value: any(fits(value) for fits in real)
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return functools.partial(_struct_fits, wanted)
    if origin is list:
        item_fits = _fits(members[0])
        return lambda value: (
            type(value) is list and all(item is not None and item_fits(item) for item in value)
        )
    kind = origin or wanted
    return lambda value: _is_a(value, kind)


def _struct_fits(model: Any, value: Any) -> bool:
    if type(value) is not dict:
        return False
    checks = _checks(model)
    for key, item in value.items():
        fits = checks.get(key)
        if fits is not None and item is not None and not fits(item):
            return False
    return True


@functools.cache
def _checks(model: Any) -> dict[str, Callable[[Any], bool]]:
    """The checks of the fields of a struct."""
    maps = {path.rpartition(".")[2] for path in _TEXT_MAPS}
    return {
        name: _is_text_map if name in maps else _fits(wanted)
        for name, wanted in _fields(model).items()
    }


def _is_text_map(value: Any) -> bool:
    return type(value) is dict and all(type(item) is str for item in value.values())


def _problems(value: Any, wanted: Any, path: str) -> Iterator[str]:
    """A sentence for each part of the value that is not of the wanted type."""
    if value is None or wanted is Any:
        return
    origin = typing.get_origin(wanted)
    if origin in (typing.Union, types.UnionType):
        yield from _union_problems(value, typing.get_args(wanted), path)
    elif isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        if not isinstance(value, dict):
            yield _problem(value, "an object", path)
            return
        known = _fields(wanted)
        for key, item in value.items():
            if key in known and not (key in _QUANTITIES and isinstance(item, int | float)):
                yield from _problems(item, known[key], f"{path}.{key}" if path else key)
    elif origin is list:
        if not isinstance(value, list):
            yield _problem(value, "a list", path)
            return
        for i, item in enumerate(value):
            if item is None:
                yield _problem(item, "an element", f"{path}[{i}]")
            yield from _problems(item, typing.get_args(wanted)[0], f"{path}[{i}]")
    elif dict in (origin, wanted) and isinstance(value, dict) and path in _TEXT_MAPS:
        for key, item in value.items():
            yield from _problems(item, str, f"{path}.{key}")
    elif not _is_a(value, origin or wanted):
        yield _problem(value, _WANTED[origin or wanted], path)


def _union_problems(value: Any, members: tuple[Any, ...], path: str) -> Iterator[str]:
    real = [member for member in members if member is not _NONE]
    found = [list(_problems(value, member, path)) for member in real]
    if all(found):
        # With one real member the union is an optional; its own problem says more.
        texts = " or ".join(_WANTED.get(member, "an object") for member in real)
        yield found[0][0] if len(real) == 1 else _problem(value, texts, path)


def _is_a(value: Any, wanted: Any) -> bool:
    if wanted is datetime:
        return isinstance(value, str) and _is_time(value)
    if isinstance(value, bool):
        return wanted is bool
    if wanted is int:
        return isinstance(value, int) and -(1 << 63) <= value < 1 << 63
    return isinstance(value, int | float if wanted is float else wanted)


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _problem(value: Any, wanted: str, path: str) -> str:
    names: dict[type, str] = {dict: "an object", list: "a list"}
    shown = names.get(type(value)) or msgspec.json.encode(value).decode()
    return f"{path or 'the body'}: wanted {wanted}, got {shown}"
