"""Whether a JSON body has the types of the API object it claims to be.

Only the fields that are there are checked: unknown ones pass, missing ones are left to validation,
null counts as missing (but not in a list). Code that reads a body which has passed may rely on the
types, which `kubeobjects.schema` has.

Nearly every body has the right types, and kubelets send the same kinds again and again: so for each
type a check is made once that only says yes or no (`_fits`), and the parts of a body are walked
only to say what is wrong with it: in the words of Go's decoder (`go_decoding`) or, for what it does
not tell, in our own (`_problems`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final

from fakekubeapi.errors import StatusError, bad_request
from fakekubeapi.requests.go_decoding import decoding_error
from kubeobjects.causes import shown
from kubeobjects.schema.messages import TYPE_META, Field, Message, Shape

Check = Callable[[Any], bool]
_INT32: Final = 1 << 31
"""Numbers below it have room in every field."""
_OPTIONS: Final = "DeleteOptions"
"""The kind of which errors are told without its name."""


def check_shape(value: Any, message: Message) -> None:
    """Check the types of a body. Raises: StatusError 400 that names the first wrong field."""
    if value is None or _message_fits(message)(value):
        return
    if why := decoding_error(value, message):
        raise undecodable(message.kind, message.version, why)
    if not isinstance(value, dict):
        wrong = f"the body: wanted an object, got {_shown(value)}"
        raise bad_request(f"the body cannot be handled as a {message.kind}: {wrong}")
    for problem in _problems(value, message, ""):
        raise bad_request(f"the body cannot be handled as a {message.kind}: {problem}")


def undecodable(kind: str, version: str, why: str, wanted: str = "") -> StatusError:
    """400: the apiVersion and kind in the body are not those of the `wanted` kind (by default the
    same kind)."""
    wanted = wanted or kind
    if wanted == _OPTIONS:
        return bad_request(why)
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {wanted}: {why}')


def unknown_fields(value: Any, message: Message, directives: bool = False) -> str:
    """The message (`fieldValidation=Strict`) about the fields of a body that its type does not
    have; "": it has none. `directives`: keys with `$` do not count, as in a strategic patch."""
    paths = _unknown(value, message, "", directives)
    unknown = [f'unknown field "{path}"' for path in paths]
    return f"strict decoding error: {', '.join(unknown)}" if unknown else ""


def require_known_fields(value: Any, message: Message) -> None:
    """Check that the type has all fields of a body. Raises: StatusError 400 that names the unknown
    ones."""
    if why := unknown_fields(value, message):
        raise undecodable(message.kind, message.version, why)


def _unknown(value: Any, message: Message, path: str, directives: bool) -> Iterator[str]:
    """The paths of fields that the type does not have."""
    fields = message.in_json
    for key, item in value.items() if isinstance(value, dict) else ():
        field_path = f"{path}.{key}" if path else key
        if key in fields:
            inner = message.of(fields[key])
            if inner is not None:
                for part, step in _parts(item, fields[key]):
                    yield from _unknown(part, inner, f"{field_path}{step}", directives)
        elif not (directives and key.startswith("$")) and not (message.typed and key in TYPE_META):
            yield field_path


def _parts(value: Any, field: Field) -> Iterator[tuple[Any, str]]:
    """The single values of a field, and the steps to them."""
    if field.shape is Shape.LIST:
        items = value if isinstance(value, list) else ()
        yield from ((item, f"[{i}]") for i, item in enumerate(items))
    elif field.shape is Shape.MAP:
        yield from value.items() if isinstance(value, dict) else ()
    else:
        yield value, ""


@functools.cache
def _message_fits(message: Message) -> Check:
    """The check of one type: whether a value, not null, has it for certain. Where it has not,
    `_problems` decides."""
    itself = message.itself
    if itself is not None:
        return _fits(message, itself)
    checks: dict[str, Check] = {}

    def check(value: Any) -> bool:
        if type(value) is not dict:
            return False
        if not checks:
            checks.update((name, _fits(message, f)) for name, f in message.in_json.items())
        for key, item in value.items():
            fits = checks.get(key)
            if fits is not None and item is not None and not fits(item):
                return False
        return True

    return check


def _fits(owner: Message, field: Field) -> Check:
    """The check of a field of a type."""
    scalar = _SCALARS.get(field.type)
    element_check = scalar or _message_fits(owner.schema.message(field.type))
    if field.shape is Shape.LIST:
        return lambda value: (
            type(value) is list and all(item is not None and element_check(item) for item in value)
        )
    if field.shape is Shape.MAP:
        return lambda value: type(value) is dict and all(map(element_check, value.values()))
    return element_check


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_number(value: Any) -> bool:
    return type(value) is int and -_INT32 <= value < _INT32


def _is_time(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


_SCALARS: Final[dict[str, Check]] = {
    "string": _is_text,
    "bytes": _is_text,
    "bool": lambda value: type(value) is bool,
    "int32": _is_number,
    "int64": _is_number,
    "Quantity": lambda value: type(value) in (str, int, float),
    "IntOrString": lambda value: type(value) is str or _is_number(value),
    "Time": _is_time,
    "MicroTime": _is_time,
    "FieldsV1": lambda value: True,
    "RawExtension": lambda value: True,
}


def _problems(value: dict[str, Any], message: Message, path: str) -> Iterator[str]:
    """A sentence for each part of the object that Go's decoder refuses in other words: a text that
    is no time, null in a list."""
    for key, field in message.in_json.items():
        inner = message.of(field)
        field_path = f"{path}.{key}" if path else key
        for item, step in _parts(value.get(key), field):
            if item is None and field.shape is Shape.LIST:
                yield f"{field_path}{step}: wanted an element, got null"
            elif field.type in ("Time", "MicroTime") and item is not None and not _is_time(item):
                yield f"{field_path}{step}: wanted an RFC 3339 time, got {_shown(item)}"
            elif inner is not None and isinstance(item, dict):
                yield from _problems(item, inner, f"{field_path}{step}")


def _shown(value: Any) -> str:
    names: dict[type, str] = {dict: "an object", list: "a list"}
    return names.get(type(value)) or shown(value)
