"""Script files: images, behaviours and faults for `fakecri serve` and `fakecri proxy`, as YAML.

    images: [localhost/busybox:1]
    behaviors:
      - container: web
        prints: [{text: hello}, {text: bye, at_s: 1.5}]
        exits: {code: 1, after_s: 2}
    faults:
      - on: StartContainer
        container: web
        fails: {code: UNKNOWN, message: boom, times: 1}

What must never happen here: a mistake in the file passes, or its message names no line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from fakecri.behavior import KINDS, Behavior, BehaviorError
from fakecri.behavior_data import PYTHON_FIELDS, from_dict
from fakecri.errors import status_code
from fakecri.services import METHODS
from fakecri.yaml_reader import ScriptError, Value, read_yaml

if TYPE_CHECKING:
    from fakecri.faults import Rule

_SELECTORS: Final = ("pod", "container", "image", "attempt")
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


@dataclass(frozen=True, slots=True)
class BehaviorEntry:
    """Behaviours and which containers they are for."""

    behaviors: tuple[Behavior, ...]
    selectors: dict[str, Any] = field(default_factory=dict)
    """Arguments of `behaves`: pod, container, image, attempt, times."""


@dataclass(frozen=True, slots=True)
class FaultEntry:
    """One fault and which calls it is for."""

    method: str
    action: str
    """A verb of `FAULTS`."""
    arguments: dict[str, Any]
    selectors: dict[str, Any] = field(default_factory=dict)
    """Arguments of `on`: pod, container, image, attempt, nth."""
    place: Value | None = field(default=None, compare=False, repr=False)
    """Where it was written."""


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script file; entries keep their order."""

    images: tuple[str, ...] | None = None
    """None: the fake's default images."""
    behaviors: tuple[BehaviorEntry, ...] = ()
    faults: tuple[FaultEntry, ...] = ()


def load_script(path: Path, *, faults_only: bool = False) -> Script:
    """Read a script file. `faults_only`: for a proxy, whose containers behave by themselves.

    Raises: ScriptError with file and line, what was wanted and what was there.
    """
    return read_script(read_yaml(path), faults_only=faults_only)


def read_script(value: Value, *, faults_only: bool = False) -> Script:
    """The script that `value` holds. Raises ScriptError, as `load_script`."""
    top = value.mapping(("images", "behaviors", "faults"))
    for key in ("images", "behaviors"):
        if faults_only and key in top:
            raise top[key].error("a proxy takes only faults: the real runtime has its own of these")
    return Script(
        images=top["images"].texts() if "images" in top else None,
        behaviors=tuple(_behavior_entry(v) for v in top["behaviors"].items())
        if "behaviors" in top
        else (),
        faults=tuple(_fault_entry(v) for v in top["faults"].items()) if "faults" in top else (),
    )


def apply_script(script: Script, target: Any) -> list[Rule]:
    """Program `target` (a FakeCRI, or a proxy for a script of faults) with everything in it.

    The rules it made, in the order of the script. Raises: ScriptError for a fault that does not
    fit its method; then no rule of the script stays.
    """
    rules: list[Rule] = []
    for entry in script.behaviors:
        rules.append(target.behaves(*entry.behaviors, **entry.selectors))
    for fault in script.faults:
        try:
            verb = getattr(target.on(fault.method, **fault.selectors), fault.action)
            rules.append(verb(**fault.arguments))
        except (ValueError, TypeError) as error:
            for rule in rules:
                rule.remove()
            raise (
                fault.place.error(str(error)) if fault.place else ScriptError(str(error))
            ) from None
    return rules


def _behavior_entry(value: Value) -> BehaviorEntry:
    keys = value.mapping((*_SELECTORS, "times", *KINDS))
    behaviors: list[Behavior] = []
    for name, given in keys.items():
        if name in KINDS:
            several = given.is_list()
            behaviors += [_behavior(name, one) for one in (given.items() if several else (given,))]
    if not behaviors:
        raise value.error(f"no behaviour here, wanted at least one of: {', '.join(KINDS)}")
    return BehaviorEntry(tuple(behaviors), _selectors(keys, "times"))


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
    return FaultEntry(method, action, arguments, _selectors(keys, "nth"), value)


def _selectors(keys: dict[str, Value], count_key: str) -> dict[str, Any]:
    found: dict[str, Any] = {k: keys[k].text() for k in ("pod", "container", "image") if k in keys}
    found |= {k: keys[k].integer() for k in ("attempt", count_key) if k in keys}
    return found


def _arguments(action: str, value: Value) -> dict[str, Any]:
    readers = {**FAULTS[action], "times": Value.integer}
    given = value.mapping(readers)
    required = _REQUIRED.get(action)
    if required is not None and required not in given:
        raise value.error(f"key {required!r} is missing, wanted seconds")
    return {key: readers[key](item) for key, item in given.items()}


__all__ = [
    "FAULTS",
    "BehaviorEntry",
    "FaultEntry",
    "Script",
    "ScriptError",
    "apply_script",
    "load_script",
    "read_script",
]
