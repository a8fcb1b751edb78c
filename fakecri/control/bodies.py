"""Reads the bodies of control requests, strictly, into arguments of the Python methods. Pure.

A mistake is a ScriptError that names the key, what was wanted and what was there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from fakecri.cri.services import METHODS
from fakecri.scripts.yaml_reader import Value

Reader: TypeAlias = Callable[[Value], Any]

_CONTAINER: Final[dict[str, Reader]] = {"container": Value.text, "pod": Value.text}
ACTIONS: Final[dict[str, dict[str, Reader]]] = {
    "exit": {**_CONTAINER, "code": Value.integer},
    "kill": {**_CONTAINER, "exit_code": Value.integer, "reason": Value.text},
    "drop": _CONTAINER,
    "kill_sandbox": {"pod": Value.text},
    "stop_sandbox": {"pod": Value.text},
    "lose_network": {},
    "restore_network": {},
    "crash": {"loses_state": Value.boolean},
    "restart": {"lost_exits": Value.boolean},
    "reboot": {},
    "oom": {"process": Value.text, "pid": Value.integer},
    "kernel_says": {"text": Value.text},
}
"""What can be made to happen, by the name of the method; with its arguments and how they are
read."""


def read_actions(verb: str, value: Value) -> dict[str, Any]:
    """The arguments for the method `verb` of a FakeCRI, such as `kill`."""
    if verb not in ACTIONS:
        raise value.error(f"unknown action {verb!r}, wanted one of: {', '.join(ACTIONS)}")
    found = _read(value, ACTIONS[verb])
    if "container" in found:
        found["name"] = found.pop("container")
    return found


def _method(value: Value) -> str:
    if value.text() not in METHODS:
        raise value.wanted("the name of a CRI method, for example StartContainer")
    return value.text()


_CALLS: Final[dict[str, Reader]] = {
    "method": _method,
    "pod": Value.text,
    "container": Value.text,
    "image": Value.text,
    "attempt": Value.integer,
    "since_s": Value.number,
}


def read_assertion(value: Value) -> tuple[str, dict[str, Any]]:
    """Which assertion a body asks for, and its arguments.

    The body of a POST to /v1/assert is `{called: {method: StartContainer, container: web, times:
    2}}`, or has `not_called`, `order` or `series` as its one key.
    """
    given = value.mapping(("called", "not_called", "order", "series"))
    if len(given) != 1:
        raise value.error("wanted exactly one of called, not_called, order, series")
    kind, what = next(iter(given.items()))
    if kind == "order":
        return kind, {"steps": [_step(item) for item in what.items()]}
    extra: dict[str, Reader] = {}
    if kind == "called":
        extra = {"times": Value.integer}
    elif kind == "series":
        extra = {"expected_s": _numbers, "slack_s": Value.number}
    found = _read(what, {**_CALLS, **extra})
    for key in ("method", *(("expected_s",) if kind == "series" else ())):
        if key not in found:
            raise what.error(f"key {key!r} is missing")
    return kind, found


def _step(value: Value) -> Any:
    """A step of `order`: the name of a method, or a mapping with the filters of calls."""
    return _read(value, _CALLS) if value.is_mapping() else _method(value)


def _numbers(value: Value) -> list[float]:
    return [item.number() for item in value.items()]


def read_seconds(value: Value, key: str) -> float:
    """The number of seconds under the only key of a body."""
    given = value.mapping((key,))
    if key not in given:
        raise value.error(f"key {key!r} is missing, wanted seconds")
    seconds = given[key].number()
    if not 0 <= seconds < math.inf:
        raise given[key].wanted("seconds from 0")
    return seconds


_NODE: Final[tuple[str, ...]] = (
    "memory_bytes",
    "base_memory_used_bytes",
    "cpus",
    "pid_limit",
    "base_pids",
    "swap_total_bytes",
)
_NODE_PATHS: Final[tuple[str, ...]] = ("image_root", "container_root")
_FILESYSTEM: Final[tuple[str, ...]] = (
    "capacity_bytes",
    "base_used_bytes",
    "inodes",
    "base_used_inodes",
)


def read_node(
    value: Value, mounts: Sequence[str]
) -> tuple[dict[str, Any], dict[str, dict[str, int]]]:
    """The fields of the node to change, and those of its filesystems by path. `mounts`: the paths
    that there are."""
    given = value.mapping((*_NODE, *_NODE_PATHS, "filesystems"))
    changes: dict[str, Any] = {name: _amount(given[name]) for name in _NODE if name in given}
    changes |= {name: given[name].text() for name in _NODE_PATHS if name in given}
    filesystems = {}
    if "filesystems" in given:
        for path, item in given["filesystems"].mapping(mounts).items():
            fields = item.mapping(_FILESYSTEM)
            filesystems[path] = {name: _amount(one) for name, one in fields.items()}
    return changes, filesystems


def _amount(value: Value) -> int:
    amount = value.integer()
    if amount < 0:
        raise value.wanted("a number from 0")
    return amount


def _read(value: Value, readers: dict[str, Reader]) -> dict[str, Any]:
    return {key: readers[key](item) for key, item in value.mapping(readers).items()}
