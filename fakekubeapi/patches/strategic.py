"""Strategic merge patch: a merge patch that merges some lists element by element.

Objects merge as in RFC 7386. The elements of a list with a merge key (`kubeobjects.schema`) are
matched by that key and merged; every other list is replaced. Directives: `$patch: replace | delete
| merge` in an object or a list element, `$retainKeys`, `$setElementOrder/<field>`,
`$deleteFromPrimitiveList/<field>`.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from fakekubeapi.bodies import copy_json
from fakekubeapi.errors import StatusError, bad_request
from fakekubeapi.patches.go_words import as_go_prints
from kubeobjects.schema.messages import Message, Shape

_PATCH: Final = "$patch"
_RETAIN_KEYS: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE_PRIMITIVE: Final = "$deleteFromPrimitiveList/"


class Merged(Struct, frozen=True):
    """A list that is merged element by element."""

    key: str
    """The field that identifies an element; "": the elements are plain values."""
    element: Message | None
    """The type of the elements, if they have fields."""


def strategic_merge(
    document: dict[str, Any], patch: dict[str, Any], message: Message
) -> dict[str, Any]:
    """`document` (an object of the type `message`) after `patch`. Raises: StatusError 400 for an
    unknown or malformed directive or list element, 500 for an element without its merge key.

    >>> from kubeobjects.schema.messages import message
    >>> old = {"status": {"conditions": [{"type": "A", "status": "False"}, {"type": "B"}]}}
    >>> new = {"status": {"conditions": [{"type": "A", "status": "True"}]}}
    >>> strategic_merge(old, new, message("core.v1.Pod"))
    {'status': {'conditions': [{'type': 'A', 'status': 'True'}, {'type': 'B'}]}}
    """
    return _merge_map(document, patch, message, "")


def _part(message: Message | None, name: str) -> Merged | Message | None:
    """How a field of the type is merged: a list, an object, or (None) like any other."""
    field = message.in_json.get(name) if message is not None else None
    if message is None or field is None or field.shape is Shape.MAP:
        return None
    if field.shape is not Shape.LIST:
        return message.of(field)
    return None if field.merge_key is None else Merged(field.merge_key, message.of(field))


def _merge_map(
    old: Any, patch: dict[str, Any], message: Message | None, path: str
) -> dict[str, Any]:
    directive = patch.get(_PATCH, "merge")
    if directive == "delete":
        return {}
    if directive not in ("merge", "replace"):
        raise _bad_directive(directive, path)
    base = old if isinstance(old, dict) and directive == "merge" else {}
    result = _retained(copy_json(base), patch, path)
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        part_path = f"{path}.{key}" if path else key
        if value is None:
            result.pop(key, None)
        else:
            field, before = _part(message, key), result.get(key)
            result[key] = _merge_value(before, value, field, part_path)
            if isinstance(field, Merged) and isinstance(before, list) and _ORDER + key not in patch:
                result[key] = _new_ones_first(result[key], before, value, field.key)
    _apply_list_directives(result, patch, message, path)
    return result


def _merge_value(old: Any, value: Any, field: Merged | Message | None, path: str) -> Any:
    if isinstance(value, dict):
        return _merge_map(old, value, field if isinstance(field, Message) else None, path)
    if isinstance(value, list) and isinstance(field, Merged):
        if not isinstance(old, list):
            return _as_new(value, field, path)
        return _merge_list(old, value, field, path) if field.key else _union(old, value)
    if isinstance(value, list):
        return [_merge_map({}, v, None, path) if isinstance(v, dict) else v for v in value]
    return value


def _as_new(patch: list[Any], field: Merged, path: str) -> list[Any]:
    """The elements of a list that was not there: none is looked for by its key."""
    items = [item for item in patch if not (isinstance(item, dict) and item.get(_PATCH))]
    return [_merge_map({}, v, field.element, path) if isinstance(v, dict) else v for v in items]


def _merge_list(old: list[Any], patch: list[Any], field: Merged, path: str) -> list[Any]:
    directives = [item for item in patch if _is_replace(item)]
    if directives:
        items = [item for item in patch if not _is_replace(item)]
        return [_merge_map({}, item, field.element, path) for item in items]
    result = [copy_json(item) for item in old]
    for item in patch:
        item_key = _key_of(item, field, path)
        place = next((i for i, have in enumerate(result) if have.get(field.key) == item_key), None)
        if item.get(_PATCH) == "delete":
            result = [have for have in result if have.get(field.key) != item_key]
        elif place is None:
            result.append(_merge_map({}, item, field.element, path))
        else:
            result[place] = _merge_map(result[place], item, field.element, path)
    return result


def _new_ones_first(items: list[Any], old: list[Any], patch: list[Any], key: str) -> list[Any]:
    """The elements in the order of the patch, and the others put among them: each before the first
    that came after it in the old list, else to the end."""

    def identity(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    was, named = [identity(item) for item in old], [identity(item) for item in patch]
    unnamed = [item for item in items if identity(item) not in named]
    rest = [item for item in items if identity(item) in named]
    rest.sort(key=lambda item: named.index(identity(item)))
    result: list[Any] = []
    for item in unnamed:
        place = was.index(identity(item))
        later = (
            i
            for i, other in enumerate(rest)
            if identity(other) in was and was.index(identity(other)) > place
        )
        at = next(later, len(rest))
        result += [*rest[:at], item]
        rest = rest[at:]
    return result + rest


def _is_replace(item: Any) -> bool:
    # A list element that carries nothing but `$patch: replace` replaces the whole list.
    return isinstance(item, dict) and item == {_PATCH: "replace"}


def _key_of(item: Any, field: Merged, path: str) -> Any:
    if not isinstance(item, dict):
        raise bad_request(f"{path}: wanted objects with the key {field.key!r}, got {item!r}")
    if field.key not in item:
        why = f"map: {as_go_prints(item)} does not contain declared merge key: {field.key}"
        raise StatusError(500, why, reason="")
    return item[field.key]


def _union(old: list[Any], patch: list[Any]) -> list[Any]:
    return [*old, *(item for item in patch if item not in old)]


def _retained(result: dict[str, Any], patch: dict[str, Any], path: str) -> dict[str, Any]:
    if _RETAIN_KEYS not in patch:
        return result
    keep = _listed(patch, _RETAIN_KEYS, path)
    return {key: value for key, value in result.items() if key in keep}


def _apply_list_directives(
    result: dict[str, Any], patch: dict[str, Any], message: Message | None, path: str
) -> None:
    for key in patch:
        for directive in (_DELETE_PRIMITIVE, _ORDER):
            name = key.removeprefix(directive)
            field, present = _part(message, name), result.get(name)
            if name == key or not isinstance(field, Merged) or not isinstance(present, list):
                continue
            named = _listed(patch, key, path)
            if directive == _DELETE_PRIMITIVE:
                result[name] = [item for item in present if item not in named]
            else:
                result[name] = _ordered(present, named, field.key)


def _listed(patch: dict[str, Any], directive: str, path: str) -> list[Any]:
    value = patch[directive]
    if not isinstance(value, list):
        raise bad_request(f"{path or 'the patch'}: {directive} is a list, got {value!r}")
    return value


def _ordered(items: list[Any], order: list[Any], key: str) -> list[Any]:
    """The elements that `order` names (by `key`, or as plain values) in that order, in the places
    that they have now; the others stay where they are."""

    def identity(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    ranks = [identity(item) for item in order]

    def rank(item: Any) -> int:
        return ranks.index(identity(item)) if identity(item) in ranks else -1

    places = [i for i, item in enumerate(items) if rank(item) >= 0]
    result = list(items)
    for place, item in zip(places, sorted((items[i] for i in places), key=rank), strict=True):
        result[place] = item
    return result


def _bad_directive(directive: Any, path: str) -> StatusError:
    where = path or "the patch"
    return bad_request(f"{where}: unknown {_PATCH} directive {directive!r}")
