"""Sets of fields: as Python sets of paths, as `fieldsV1`, and as text. Pure.

A path is a tuple of steps, written as `fieldsV1` writes them: `f:name` is a field, `k:{...}` the
element of a list that has these keys, `v:...` a value in a list that is a set.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

Path = tuple[str, ...]
Fields = frozenset[Path]
NONE: Final[Fields] = frozenset()
_SELF: Final = "."


def field(name: str) -> str:
    """The step to a field of an object, or to a key of a map."""
    return f"f:{name}"


def element(keys: Mapping[str, Any]) -> str:
    """The step to the element of a list that has these keys.

    >>> element({"protocol": "TCP", "containerPort": 80})
    'k:{"containerPort":80,"protocol":"TCP"}'
    """
    return f"k:{_compact(dict(sorted(keys.items())))}"


def value(item: Any) -> str:
    """The step to a value of a list that is a set."""
    return f"v:{_compact(item)}"


def _compact(item: Any) -> str:
    return json.dumps(item, separators=(",", ":"), ensure_ascii=False)


def to_fields_v1(fields: Iterable[Path]) -> dict[str, Any]:
    """The tree that `fieldsV1` holds. A field that is owned and has owned parts has a `.`.

    >>> to_fields_v1([("f:data",), ("f:data", "f:a")])
    {'f:data': {'.': {}, 'f:a': {}}}
    """
    tree: dict[str, Any] = {}
    owned = frozenset(fields)
    for path in sorted(owned):
        subtree = tree
        for step in path:
            subtree = subtree.setdefault(step, {})
        subtree[_SELF] = {}
    return _without_lonely_marks(tree)


def _without_lonely_marks(tree: dict[str, Any]) -> dict[str, Any]:
    """A leaf is written as `{}`, not as `{".": {}}`."""
    tidied: dict[str, Any] = {}
    for step, below in tree.items():
        alone = below.keys() == {_SELF}
        tidied[step] = {} if alone else _without_lonely_marks(below)
    return tidied


def from_fields_v1(tree: Any) -> Fields:
    """The set of fields that a `fieldsV1` tree stands for. Raises: ValueError when the value is not
    such a tree."""
    return frozenset(_paths(tree, ()))


def _paths(tree: Any, at: Path) -> Iterable[Path]:
    if not isinstance(tree, dict):
        raise ValueError(f"wanted an object below {''.join(at) or 'fieldsV1'}, got {tree!r}")
    for step, below in tree.items():
        if step == _SELF:
            yield at
            continue
        _check_step(step)
        if below:
            yield from _paths(below, (*at, step))
        else:
            yield (*at, step)


def _check_step(step: str) -> None:
    kind, _, rest = step.partition(":")
    if kind == "f":
        return
    try:
        parsed = json.loads(rest) if kind in ("k", "v", "i") else None
    except ValueError:
        parsed = None
    fits = {"k": isinstance(parsed, dict), "v": parsed is not None, "i": isinstance(parsed, int)}
    if not fits.get(kind, False):
        raise ValueError(f"wanted f:NAME, k:KEYS, v:VALUE or i:INDEX, got {step!r}")


def path_text(path: Path) -> str:
    """A path as conflicts name it.

    >>> path_text(("f:spec", "f:containers", 'k:{"name":"a"}', "f:image"))
    '.spec.containers[name="a"].image'
    """
    return "".join(map(_step_text, path))


def _step_text(step: str) -> str:
    kind, _, rest = step.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "k":
        keys = json.loads(rest)
        return f"[{','.join(f'{key}={_compact(keys[key])}' for key in sorted(keys))}]"
    return f"[={rest}]" if kind == "v" else f"[{rest}]"


def without_below(fields: Fields, roots: Iterable[Path]) -> Fields:
    """The fields that are neither one of `roots` nor below one."""
    those = tuple(roots)
    return frozenset(path for path in fields if not any(path[: len(r)] == r for r in those))
