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

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from fakecri.behavior import KINDS, Behavior, BehaviorError, from_dict
from fakecri.errors import status_code
from fakecri.services import METHODS
from fakecri.yaml_reader import ScriptError, Value, read_yaml

_SELECTORS: Final = ("pod", "container", "image", "attempt")
_FAULTS: Final = ("fails", "delays", "hangs")


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
    """`fails`, `delays` or `hangs`."""
    arguments: dict[str, Any]
    selectors: dict[str, Any] = field(default_factory=dict)
    """Arguments of `on`: pod, container, image, attempt, nth."""


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
    top = read_yaml(path).mapping(("images", "behaviors", "faults"))
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


def apply_script(script: Script, target: Any) -> None:
    """Program `target` (a FakeCRI, or a proxy for a script of faults) with everything in it."""
    for entry in script.behaviors:
        target.behaves(*entry.behaviors, **entry.selectors)
    for fault in script.faults:
        getattr(target.on(fault.method, **fault.selectors), fault.action)(**fault.arguments)


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
    known = [f.name for f in fields(KINDS[name]) if f.name != "handler"]
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
    keys = value.mapping(("on", *_SELECTORS, "nth", *_FAULTS))
    if "on" not in keys:
        raise value.error("key 'on' is missing, wanted the name of a CRI method")
    method = keys["on"].text()
    if method not in METHODS:
        raise keys["on"].wanted("the name of a CRI method, for example StartContainer")
    actions = [name for name in _FAULTS if name in keys]
    if len(actions) != 1:
        raise value.error(f"wanted exactly one of {', '.join(_FAULTS)}; got {actions or 'none'}")
    action = actions[0]
    arguments = _FAULT_READERS[action](keys[action])
    return FaultEntry(method, action, arguments, _selectors(keys, "nth"))


def _selectors(keys: dict[str, Value], count_key: str) -> dict[str, Any]:
    found: dict[str, Any] = {k: keys[k].text() for k in ("pod", "container", "image") if k in keys}
    found |= {k: keys[k].integer() for k in ("attempt", count_key) if k in keys}
    return found


def _fails(value: Value) -> dict[str, Any]:
    keys = value.mapping(("code", "message", "times"))
    found = _times(keys)
    if "code" in keys:
        try:
            found["code"] = status_code(keys["code"].text()).name
        except ValueError as error:
            raise keys["code"].error(str(error)) from None
    if "message" in keys:
        found["message"] = keys["message"].text()
    return found


def _delays(value: Value) -> dict[str, Any]:
    keys = value.mapping(("delay_s", "times"))
    if "delay_s" not in keys:
        raise value.error("key 'delay_s' is missing, wanted seconds")
    return {"delay_s": keys["delay_s"].number(), **_times(keys)}


def _hangs(value: Value) -> dict[str, Any]:
    return _times(value.mapping(("times",)))


def _times(keys: dict[str, Value]) -> dict[str, Any]:
    return {"times": keys["times"].integer()} if "times" in keys else {}


_FAULT_READERS: Final = {"fails": _fails, "delays": _delays, "hangs": _hangs}

__all__ = [
    "BehaviorEntry",
    "FaultEntry",
    "Script",
    "ScriptError",
    "apply_script",
    "load_script",
]
