"""Reads a script, strictly: from YAML values to entries. Every mistake is an error with its
line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, TypeAlias, TypeVar

from fakecri.behaviors.behavior import KINDS, Behavior
from fakecri.behaviors.behavior_data import PYTHON_FIELDS, from_dict
from fakecri.behaviors.checked import BehaviorError
from fakecri.core.images import RegistryImage
from fakecri.core.references import parse_reference
from fakecri.cri.services import METHODS
from fakecri.errors import status_code
from fakecri.scripts.script_entries import (
    BehaviorEntry,
    FaultEntry,
    ForwardEntry,
    Script,
    registry_with,
)
from fakecri.scripts.yaml_reader import Value
from fakecri.streaming.stream_rules import address

T = TypeVar("T")
_SELECTORS: Final = ("pod", "container", "image", "attempt")
_STARTS: Final = ("first_attempts", "times")
Reader: TypeAlias = Callable[[Value], Any]


def _code(value: Value) -> str:
    try:
        return str(status_code(value.text()).name)
    except ValueError as error:
        raise value.error(str(error)) from None


def _code_or_none(value: Value) -> str | None:
    return None if value.is_null() else _code(value)


_NAMES: Final[dict[str, Reader]] = {
    "pod": Value.text,
    "container": Value.text,
    "image": Value.text,
}
_ERROR: Final[dict[str, Reader]] = {"code": _code, "message": Value.text}
FAULTS: Final[dict[str, dict[str, Reader]]] = {
    "fails": _ERROR,
    "fails_halfway": _ERROR,
    "delays": {"delay_s": Value.number},
    "hangs": {},
    "loses_answer": _ERROR,
    "answers_late": {"after_s": Value.number},
    "holds_name": {},
    "goes_stale": {},
    "leaves_out": {**_NAMES, "keep": Value.integer},
    "repeats": _NAMES,
    "turns_back_time": {"by_s": Value.number},
    "cuts_stream": {"after": Value.integer, "code": _code_or_none, "message": Value.text},
    "goes_silent": {},
}
"""The verbs of `On` that are plain data, with their arguments; each takes `times` as well."""
_REQUIRED: Final = {"delays": "delay_s", "turns_back_time": "by_s"}
_OF_FAKES: Final = ("images", "programs", "registry", "behaviors", "forwards")


def _credentials(value: Value) -> tuple[str, str]:
    texts = value.texts()
    if len(texts) != 2:
        raise value.error(f"wanted [user, password], got {len(texts)} texts")
    return texts[0], texts[1]


_REGISTRY_IMAGE: Final[dict[str, Reader]] = {
    "content": Value.text,
    "size_bytes": Value.integer,
    "pull_s": Value.number,
    "error": Value.text,
    "error_code": _code,
    "uid": Value.integer,
    "username": Value.text,
    "stop_signal": Value.text,
    "users": lambda value: tuple(value.texts()),
    "groups": lambda value: tuple(value.texts()),
    "paths": lambda value: tuple(value.texts()),
    "credentials": _credentials,
}


def read_script(value: Value, *, faults_only: bool = False) -> Script:
    """The script that `value` holds. Raises ScriptError, as `load_script`."""
    top = value.mapping((*_OF_FAKES, "faults"))
    for key in _OF_FAKES:
        if faults_only and key in top:
            raise top[key].error("a proxy takes only faults: the real runtime has its own of these")

    def each(key: str, read: Callable[[Value], T]) -> tuple[T, ...]:
        return tuple(read(item) for item in top[key].items()) if key in top else ()

    return Script(
        images=_images(top["images"]) if "images" in top else None,
        programs=tuple(top["programs"].texts()) if "programs" in top else (),
        registry=_registry(top["registry"]) if "registry" in top else None,
        behaviors=each("behaviors", _behavior_entry),
        faults=each("faults", _fault_entry),
        forwards=each("forwards", _forward_entry),
    )


def _images(value: Value) -> tuple[str, ...]:
    for reference in value.texts():
        try:
            parse_reference(reference)
        except ValueError as error:
            raise value.error(f"{reference!r}: {error}") from None
    return tuple(value.texts())


def _registry(value: Value) -> dict[str, RegistryImage | None]:
    table: dict[str, RegistryImage | None] = {}
    for reference, item in value.entries().items():
        given = item.mapping((*_REGISTRY_IMAGE, "missing"))
        missing = "missing" in given and given.pop("missing").boolean()
        fields_ = {key: _REGISTRY_IMAGE[key](one) for key, one in given.items()}
        try:
            table[reference] = None if missing else RegistryImage(**fields_)
            registry_with({reference: None})
        except ValueError as error:
            raise item.error(f"{reference!r}: {error}") from None
    return table


def _forward_entry(value: Value) -> ForwardEntry:
    keys = value.mapping(("port", "to", "pod"))
    for key in ("port", "to"):
        if key not in keys:
            raise value.error(f"key {key!r} is missing")
    port, to = keys["port"].integer(), keys["to"].text()
    if not 0 <= port <= 65535:
        raise keys["port"].wanted("0 to 65535")
    to = f"127.0.0.1:{to}" if to.isdecimal() else to
    try:
        address(to)
    except ValueError as error:
        raise keys["to"].error(str(error)) from None
    return ForwardEntry(port, to, keys["pod"].text() if "pod" in keys else None)


def _behavior_entry(value: Value) -> BehaviorEntry:
    keys = value.mapping((*_SELECTORS, *_STARTS, *KINDS))
    return BehaviorEntry(_behaviors(value, keys), _selectors(keys, *_STARTS))


def read_behaviors(value: Value) -> tuple[Behavior, ...]:
    """Behaviours by their names: `{prints: {text: hello}, exits: {code: 1}}`. Raises
    ScriptError."""
    return _behaviors(value, value.mapping(KINDS))


def _behaviors(value: Value, keys: dict[str, Value]) -> tuple[Behavior, ...]:
    behaviors: list[Behavior] = []
    for name, given in keys.items():
        if name in KINDS:
            several = given.is_list()
            behaviors += [_behavior(name, one) for one in (given.items() if several else (given,))]
    if not behaviors:
        raise value.error(f"no behaviour here, wanted at least one of: {', '.join(KINDS)}")
    return tuple(behaviors)


def _behavior(name: str, value: Value) -> Behavior:
    known = [f.name for f in fields(KINDS[name]) if f.name not in PYTHON_FIELDS]
    given = value.mapping(known)
    try:
        return from_dict({name: {key: _plain(key, item) for key, item in given.items()}})
    except BehaviorError as error:
        text = str(error)
        for key, item in given.items():
            if text.startswith(f"{name}.{key}: "):
                raise item.error(text.removeprefix(f"{name}.{key}: ")) from None
        raise value.error(text) from None


def _plain(key: str, value: Value) -> Any:
    # The words of a command are texts, also where one looks like a number: [sleep, 5].
    return list(value.texts()) if key == "command" and value.is_list() else value.plain()


def _fault_entry(value: Value) -> FaultEntry:
    keys = value.mapping(("on", *_SELECTORS, "nth", *FAULTS))
    if "on" not in keys:
        raise value.error("key 'on' is missing, wanted the name of a CRI method")
    method = keys["on"].text()
    if method not in METHODS:
        raise keys["on"].wanted("the name of a CRI method, for example StartContainer")
    actions = [name for name in FAULTS if name in keys]
    if len(actions) != 1:
        got = ", ".join(actions) or "none"
        raise value.error(f"wanted exactly one of {', '.join(FAULTS)}; got {got}")
    action = actions[0]
    arguments = _arguments(action, keys[action])
    return FaultEntry(
        method=method,
        action=action,
        arguments=arguments,
        selectors=_selectors(keys, "nth"),
        place=value,
    )


def _selectors(keys: dict[str, Value], *counts: str) -> dict[str, Any]:
    found: dict[str, Any] = {k: keys[k].text() for k in ("pod", "container", "image") if k in keys}
    found |= {k: _count(keys[k]) for k in counts if k in keys}
    found |= {"attempt": keys["attempt"].integer()} if "attempt" in keys else {}
    return found


def _count(value: Value) -> int:
    number = value.integer()
    if number < 1:
        raise value.wanted("a whole number from 1")
    return number


def _arguments(action: str, value: Value) -> dict[str, Any]:
    readers = {**FAULTS[action], "times": _count}
    given = value.mapping(readers)
    required = _REQUIRED.get(action)
    if required is not None and required not in given:
        raise value.error(f"key {required!r} is missing, wanted seconds")
    return {key: readers[key](item) for key, item in given.items()}
