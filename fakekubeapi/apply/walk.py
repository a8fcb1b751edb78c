"""The fields of an object, the difference of two objects, and objects with more or fewer fields.
Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from fakekubeapi.apply import field_sets
from fakekubeapi.apply.field_sets import NONE, Fields, Path
from fakekubeapi.apply.structure import LEAF, OPEN, Keyed, Leaf, MapOf, Open, SetOf, Shape, Struct
from fakekubeapi.bodies import copy_json
from kubeobjects.golang.json import same_json
from kubeobjects.golang.strconv import quoted_list

_MISSING: Final = object()


class BadObject(ValueError):
    """An object that is not of its shape; the text names the field as the API server does."""


class Difference(msgspec.Struct, frozen=True):
    """What changed from one object to another: all parts, and not only the leaves."""

    added: Fields = NONE
    modified: Fields = NONE
    removed: Fields = NONE


def check(value: Any, shape: Shape) -> None:
    """Check that `value` can be applied. Raises: BadObject for a field that is not declared, and
    for list elements that have no keys or occur twice."""
    _check(value, shape, ())


def _check(value: Any, shape: Shape, at: Path) -> None:
    if _has_parts(value, shape):
        for step, item, below in _parts(value, shape, at):
            _check(item, below, (*at, step))


def fields_of(value: Any, shape: Shape) -> Fields:
    """The fields that a manager owns after it has applied `value`: the leaves, list elements and
    map keys in it."""
    return frozenset(_fields(value, shape, ()))


def _fields(value: Any, shape: Shape, at: Path) -> Iterator[Path]:
    if not _has_parts(value, shape):
        if _is_whole(value, shape):
            yield at
        return
    for step, (item, below) in _present_parts(value, shape, at).items():
        path = (*at, step)
        if item is None or item == {} or not isinstance(shape, Struct):
            yield path
        yield from _fields(item, below, path)


def _is_whole(value: Any, shape: Shape) -> bool:
    """Whether a value without parts counts as a leaf. An empty list or map whose parts can have
    owners does not."""
    if isinstance(shape, Leaf):
        return True
    return isinstance(shape, Open) and not isinstance(value, dict)


def _has_parts(value: Any, shape: Shape) -> bool:
    if isinstance(shape, Keyed | SetOf):
        return isinstance(value, list)
    return isinstance(value, dict) and not isinstance(shape, Leaf)


def _parts(value: Any, shape: Shape, at: Path) -> Iterator[tuple[str, Any, Shape]]:
    """The parts of a value: the step to it, the part, its shape. Raises: BadObject."""
    if isinstance(shape, Struct | MapOf | Open):
        for name, item in value.items():
            below = field_shape(shape, name)
            if below is None:
                text = field_sets.path_text((*at, field_sets.field(name)))
                raise BadObject(f"{text}: field not declared in schema")
            yield field_sets.field(name), item, below
        return
    steps_seen = set()
    for number, item in enumerate(value):
        step, below = _element(item, shape, at, number)
        if step in steps_seen:
            text = field_sets.path_text(at)
            raise BadObject(f"{text}: duplicate entries for key {field_sets.path_text((step,))}")
        steps_seen.add(step)
        yield step, item, below


def _element(item: Any, shape: Shape, at: Path, number: int) -> tuple[str, Shape]:
    if not isinstance(shape, Keyed):
        return field_sets.value(item), LEAF
    where = field_sets.path_text(at)
    if not isinstance(item, dict):
        raise BadObject(f"{where}: element {number}: wanted an object with keys, got {item!r}")
    try:
        return field_sets.element(shape.keys_of(item)), shape.elements
    except KeyError as error:
        raise BadObject(
            f"{where}: element {number}: associative list with keys has an element that omits all "
            f"key fields {quoted_list(error.args[0])} (and doesn't have default values for any key "
            "fields)"
        ) from None


def field_shape(shape: Struct | MapOf | Open, name: str) -> Shape | None:
    """The shape of a member of an object; None: it may not have it."""
    if isinstance(shape, Struct):
        return shape.field(name)
    return shape.values if isinstance(shape, MapOf) else OPEN


def difference(old: Any, new: Any, shape: Shape) -> Difference:
    """The changes from `old` to `new`. Fields that the shape does not declare are left out."""
    changes = _Found(set(), set(), set())
    changes.compare(old, new, shape, ())
    return Difference(
        frozenset(changes.added), frozenset(changes.modified), frozenset(changes.removed)
    )


@dataclass(slots=True)
class _Found:
    added: set[Path]
    modified: set[Path]
    removed: set[Path]

    def compare(self, old: Any, new: Any, shape: Shape, at: Path) -> None:
        if old is not _MISSING and new is not _MISSING and same_json(old, new):
            return
        if at and old is _MISSING:
            self.added.add(at)
        elif at and new is _MISSING:
            self.removed.add(at)
        parts = [_present_parts(side, shape, at) for side in (old, new)]
        if not any(parts) or not all(_fits(side, shape) for side in (old, new)):
            if at and _MISSING not in (old, new):
                self.modified.add(at)
            return
        was, new_parts = parts
        for step in dict.fromkeys((*was, *new_parts)):
            below = (new_parts.get(step) or was[step])[1]
            before, after = was.get(step, (_MISSING,))[0], new_parts.get(step, (_MISSING,))[0]
            self.compare(before, after, below, (*at, step))


def _fits(value: Any, shape: Shape) -> bool:
    return value is _MISSING or value is None or _has_parts(value, shape)


def _present_parts(value: Any, shape: Shape, at: Path) -> dict[str, tuple[Any, Shape]]:
    """Step -> part and its shape; where an element occurs twice, the last one. A stored object may
    hold parts that could not be applied: they are accepted here."""
    parts: dict[str, tuple[Any, Shape]] = {}
    if not _has_parts(value, shape):
        return parts
    if isinstance(shape, Struct | MapOf | Open):
        for name, item in value.items():
            below = field_shape(shape, name)
            if below is not None:
                parts[field_sets.field(name)] = (item, below)
        return parts
    for number, item in enumerate(value):
        try:
            step, below = _element(item, shape, at, number)
        except BadObject:
            continue
        parts[step] = (item, below)
    return parts


def merged(live: Any, applied: Any, shape: Shape) -> Any:
    """`live` with all that `applied` has. Elements that are in both have the order of `applied`,
    those of `live` alone stay behind the ones that they follow."""
    if not _has_parts(applied, shape) or not _has_parts(live, shape):
        return copy_json(applied)
    if isinstance(shape, Struct | MapOf | Open):
        result = copy_json(live)
        for name, item in applied.items():
            below = field_shape(shape, name) or LEAF
            result[name] = merged(live[name], item, below) if name in live else copy_json(item)
        return result
    was, new = (_present_parts(side, shape, ()) for side in (live, applied))
    twice = _all_elements(live, shape)
    items = []
    for step in _merged_order(list(was), list(new)):
        if step in was and step in new:
            items.append(merged(was[step][0], new[step][0], new[step][1]))
        else:
            items += [copy_json(new[step][0])] if step in new else copy_json(twice[step])
    return items


def _all_elements(live: list[Any], shape: Shape) -> dict[str, list[Any]]:
    """The elements of a stored list by step. An element that occurs twice (only an update can have
    stored that) keeps both."""
    elements: dict[str, list[Any]] = {}
    for number, item in enumerate(live):
        try:
            elements.setdefault(_element(item, shape, (), number)[0], []).append(item)
        except BadObject:
            continue
    return elements


def _merged_order(live: list[str], applied: list[str]) -> list[str]:
    """The steps of both lists. The applied ones keep their order; live ones that are not applied
    come as soon as those before them in `live` are placed, or cannot be waited for."""
    live_steps, applied_steps = frozenset(live), frozenset(applied)
    shared = [step for step in applied if step in live_steps]
    result: list[str] = []
    place = placed = 0
    for step in applied:
        awaited = shared[placed] if placed < len(shared) else None
        while place < len(live) and live[place] != awaited:
            place += 1
            if live[place - 1] not in applied_steps:
                result.append(live[place - 1])
        if step == awaited:
            placed += 1
            place += place < len(live)
        result.append(step)
    return [*result, *(step for step in live[place:] if step not in applied_steps)]


def without(value: Any, paths: Fields, shape: Shape, at: Path = ()) -> Any:
    """`value` without these parts and all that is below them."""
    if not _has_parts(value, shape):
        return copy_json(value)
    if isinstance(shape, Struct | MapOf | Open):
        result = {}
        for name, item in value.items():
            path, below = (*at, field_sets.field(name)), field_shape(shape, name) or LEAF
            if path not in paths:
                result[name] = without(item, paths, below, path)
        return result
    items = []
    for number, item in enumerate(value):
        try:
            step, below = _element(item, shape, at, number)
        except BadObject:
            items.append(copy_json(item))
            continue
        if (*at, step) not in paths:
            items.append(without(item, paths, below, (*at, step)))
    return items


def with_declared_parents(fields: Fields, shape: Shape) -> Fields:
    """The fields, and the declared fields (no elements, no keys of maps) that they are below."""
    declared_paths = set(fields)
    for path in fields:
        part_shape: Shape | None = shape
        for number, step in enumerate(path[:-1]):
            declared = isinstance(part_shape, Struct)
            part_shape = shape_at(part_shape, step)
            if part_shape is None:
                break
            if declared and step.startswith("f:"):
                declared_paths.add(path[: number + 1])
    return frozenset(declared_paths)


def shape_at(shape: Shape | None, step: str) -> Shape | None:
    """The shape of the part that a step leads to; None: the shape has no such part."""
    if isinstance(shape, Struct | MapOf | Open):
        return field_shape(shape, step[2:]) if step.startswith("f:") else None
    if isinstance(shape, Keyed):
        return shape.elements if step.startswith("k:") else None
    return LEAF if isinstance(shape, SetOf) and step.startswith("v:") else None
