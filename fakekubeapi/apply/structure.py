"""Which parts of an object can be owned on their own: its shape. Pure.

The API gives each list and map a type. A list is atomic (owned as a whole) unless it is a set (each
value has an owner) or a map (each element has one, found by its keys); an object is granular (each
field has an owner) unless it is atomic. `kubeobjects.schema` has these types.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kubeobjects.schema.messages import TYPE_META, Field, Message
from kubeobjects.schema.messages import Shape as Times


class Leaf(msgspec.Struct, frozen=True):
    """A value, or a list or object that is owned as a whole."""


class Open(msgspec.Struct, frozen=True):
    """A value of no declared type: objects are granular, all else is owned as a whole."""


class SetOf(msgspec.Struct, frozen=True):
    """A list of plain values, each of which has an owner."""


class MapOf(msgspec.Struct, frozen=True):
    """An object with keys that are no fields, such as labels."""

    values: Shape


class Keyed(msgspec.Struct, frozen=True):
    """A list whose elements are told apart by the values of these fields."""

    keys: Mapping[str, Any]
    """Each key -> what it is when the element does not have it; None: then it is no key."""
    elements: Shape

    def keys_of(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """The keys that an element has, or has by default. Raises: KeyError with `keys` where it
        has none of them."""
        values = {key: item.get(key, default) for key, default in self.keys.items()}
        present = {key: value for key, value in values.items() if value is not None}
        if not present:
            raise KeyError(tuple(self.keys))
        return present


class Struct(msgspec.Struct, frozen=True):
    """An object with declared fields."""

    message: Message

    def field(self, name: str) -> Shape | None:
        """The shape of a field; None: it is not declared."""
        return _fields(self.message).get(name)


Shape = Leaf | Open | SetOf | MapOf | Keyed | Struct
LEAF: Final = Leaf()
OPEN: Final = Open()


def shape_of(message: Message) -> Struct:
    """The shape of the objects of a type."""
    return Struct(message)


@functools.cache
def _fields(message: Message) -> Mapping[str, Shape]:
    own = {name: _of_field(message, field) for name, field in message.in_json.items()}
    return dict.fromkeys(TYPE_META, LEAF) | own if message.typed else own


def _of_field(owner: Message, field: Field) -> Shape:
    if field.map_type == "atomic":
        return LEAF
    inner = owner.of(field)
    if field.shape is Times.LIST:
        if field.list_type == "map" and inner is not None:
            return Keyed({key: _default(inner, key) for key in field.list_keys}, _of_type(inner))
        return SetOf() if field.list_type == "set" else LEAF
    if field.shape is Times.MAP:
        return MapOf(_of_type(inner))
    if inner is not None and field.map_type == "granular":
        return Struct(inner)
    return OPEN if field.type == "RawExtension" else _of_type(inner)


def _of_type(message: Message | None) -> Shape:
    return LEAF if message is None or message.atomic else Struct(message)


def _default(element: Message, key: str) -> Any:
    """The value that a key of a list element has when the element leaves it out; None: there is no
    default, and the element is told apart without that key."""
    field = element.in_json[key]
    return field.zero if field.default is None and field.always else field.default
