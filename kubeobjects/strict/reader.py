"""Makes structs of a file's values: a `msgspec.Struct` alone says what a file may hold.

`read` collects every mistake with its place. Beyond what msgspec knows (types, bounds, literals,
descriptions) a struct may say

- in the `extra` of a `Meta`: `wanted`, what errors call such a value; `then`, a function that is
  given the value and makes the final one of it, or raises ValueError with what is wrong; `parse`,
  the same, but what is wrong is that it was not as `wanted`; `as_written`: a scalar is taken as its
  text, whatever it looks like; `zero_unset`: 0 or "" is as if the field were not there;
- by `exactly_one` and `at_least_one`: which fields have to be given;
- in `__post_init__`: what else has to fit together. It raises ValueError, whose text may begin with
  the name of a field (`port: ...`), which then is the place of the mistake.

A struct that is `Placed` knows later where it was written. In values that are `typed`, a text is
only what is one, and null is as if the field were not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, Final, TypeVar

from msgspec import UNSET, Struct, inspect

from kubeobjects.strict.errors import ScriptError, did_you_mean
from kubeobjects.strict.values import Value
from kubeobjects.structs import replace

S = TypeVar("S", bound=Struct)
_WRONG: Final = object()
"""What a value that cannot be used is read as; why is among the errors."""
_SCALARS: Final[tuple[tuple[type[inspect.Type], type | tuple[type, ...]], ...]] = (
    (inspect.NoneType, type(None)),
    (inspect.BoolType, bool),
    (inspect.IntType, int),
    (inspect.FloatType, (int, float)),
)
"""Which scalars each type takes, the narrower types first. Texts take all that is left."""
_LISTS: Final = (inspect.ListType, inspect.VarTupleType, inspect.TupleType)
_NOUNS: Final[Mapping[type[inspect.Type], str]] = {
    inspect.StrType: "a text",
    inspect.BoolType: "true or false",
    inspect.NoneType: "nothing",
    inspect.StructType: "a mapping",
    inspect.TupleType: "a list",
}
_SEVERAL: Final[Mapping[type[inspect.Type], str]] = {
    inspect.StrType: "texts",
    inspect.BoolType: "true or false",
    inspect.IntType: "whole numbers",
    inspect.StructType: "mappings",
    inspect.ListType: "lists",
    inspect.VarTupleType: "lists",
}
"""What errors call several values of a type."""


class Strict(Struct, forbid_unknown_fields=True, kw_only=True):
    """A mapping that may hold its fields only."""

    exactly_one: ClassVar[tuple[str, ...]] = ()
    """Of these fields one has to be given, and only one."""
    at_least_one: ClassVar[tuple[str, ...]] = ()
    """Of these fields one or more have to be given."""

    def __post_init__(self) -> None:
        given = self.given()
        there = [name for name in self.exactly_one if name in given]
        if self.exactly_one and len(there) != 1:
            got = ", ".join(there) or "none"
            raise ValueError(f"wanted exactly one of {', '.join(self.exactly_one)}; got {got}")
        if self.at_least_one and not given.keys() & set(self.at_least_one):
            raise ValueError(f"wanted at least one of: {', '.join(self.at_least_one)}")

    def given(self) -> dict[str, Any]:
        """The fields that have a value, by name."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in fields.items() if value is not UNSET}


class Placed(Strict, dict=True):
    """A mapping that remembers where it was written."""

    def error(self, text: str) -> ScriptError:
        """An error at this place; without a place if it was written in no file."""
        place: Value | None = self.__dict__.get("place")
        return ScriptError(text) if place is None else place.error(text)


def read(value: Value, shape: type[S], overlooked: list[str] | None = None) -> S:
    """The struct that a value holds. Raises ScriptError with all mistakes in it. `overlooked`:
    takes what there is to tell of keys that are unknown, which then are no mistakes."""
    reader = _Reader(overlooked)
    made = reader.read(value, type_of(shape))
    if reader.errors:
        raise ScriptError(*dict.fromkeys(str(error) for error in reader.errors))
    assert isinstance(made, shape)
    return made


@cache
def type_of(shape: type[Struct]) -> inspect.StructType:
    """What a struct says of itself."""
    kind = inspect.type_info(shape)
    assert isinstance(kind, inspect.StructType)
    return kind


def fields_of(kind: inspect.StructType) -> Mapping[str, inspect.Field]:
    """The fields of a struct by their names in a text."""
    return _fields(kind.cls)


@cache
def _fields(shape: type) -> Mapping[str, inspect.Field]:
    return {field.encode_name: field for field in type_of(shape).fields}


def extra_of(kind: inspect.Type | None) -> Mapping[str, Any]:
    """The `extra` of a field's type."""
    return (kind.extra or {}) if isinstance(kind, inspect.Metadata) else {}


def not_null(kind: inspect.Type) -> inspect.Type:
    """A field's type without null."""
    if not isinstance(kind, inspect.UnionType):
        return kind
    types = tuple(one for one in kind.types if not isinstance(one, inspect.NoneType))
    return types[0] if len(types) == 1 else inspect.UnionType(types)


def bare(kind: inspect.Type) -> inspect.Type:
    """A field's type without what is said about it."""
    return kind.type if isinstance(kind, inspect.Metadata) else kind


class _Reader:
    """Reads values by the types that msgspec tells of, and keeps the errors."""

    def __init__(self, overlooked: list[str] | None) -> None:
        self.errors: list[ScriptError] = []
        self._overlooked = overlooked

    def read(self, value: Value, kind: inspect.Type) -> Any:
        """The value as this type; `_WRONG` if there is an error in it."""
        extra, kind = extra_of(kind), bare(kind)
        fitting = _fitting(value, kind)
        if fitting is None:
            return self._unfit(value, kind, extra)
        if isinstance(fitting, inspect.Metadata):
            found = self.read(value, fitting)
        else:
            found = self._read_as(value, fitting, extra)
        if found is _WRONG:
            return found
        if "parse" in extra:
            try:
                return extra["parse"](found)
            except ValueError:
                return self._unfit(value, kind, extra)
        if "then" in extra:
            return self._tried(value, lambda: extra["then"](found))
        return found

    def _unfit(self, value: Value, kind: inspect.Type, extra: Mapping[str, Any]) -> Any:
        hint = ""
        is_scalar = not value.is_mapping() and not value.is_list() and value.scalar() is not None
        if isinstance(kind, inspect.StrType) and "parse" not in extra and is_scalar:
            hint = f'; put it in quotes: "{value.text()}"'
        wanted = extra.get("wanted") or noun(kind)
        return self._wrong(value.error(f"wanted {wanted}, got {value.shown()}{hint}"))

    def _read_as(self, value: Value, kind: inspect.Type, extra: Mapping[str, Any]) -> Any:
        match kind:
            case inspect.StructType():
                return self._struct(value, kind)
            case inspect.AnyType():
                return self._plain(value)
            case inspect.DictType():
                return self._dict(value, kind)
            case inspect.ListType() | inspect.VarTupleType():
                items = [self.read(item, kind.item_type) for item in value.items()]
                if len(items) < (kind.min_length or 0):
                    return self._wrong(value.error("wanted a list that is not empty"))
                whole: type = list if isinstance(kind, inspect.ListType) else tuple
                return _WRONG if _WRONG in items else whole(items)
            case inspect.TupleType():
                parts = list(value.items())
                if len(parts) != len(kind.item_types):
                    what = extra.get("wanted") or f"a list of {len(kind.item_types)}"
                    return self._wrong(value.error(f"wanted {what}, got {len(parts)} items"))
                pairs = zip(parts, kind.item_types, strict=True)
                items = [self.read(item, one) for item, one in pairs]
                return _WRONG if _WRONG in items else tuple(items)
            case inspect.LiteralType():
                return self._literal(value, kind)
            case inspect.StrType():
                return value.text()
        return self._bounded(value, kind, extra)

    def _plain(self, value: Value) -> Any:
        try:
            return value.plain()
        except ScriptError as error:
            return self._wrong(error)

    def _literal(self, value: Value, kind: inspect.LiteralType) -> Any:
        by_text = {str(one): one for one in kind.values}
        text = value.text()
        if text in by_text:
            return by_text[text]
        hint = did_you_mean(text, by_text)
        return self._wrong(value.error(f"wanted {noun(kind)}, got {value.shown()}{hint}"))

    def _bounded(self, value: Value, kind: inspect.Type, extra: Mapping[str, Any]) -> Any:
        found: Any = value.text() if "as_written" in extra else value.scalar()
        if isinstance(kind, inspect.FloatType) and isinstance(found, int):
            found = float(found)
        if isinstance(kind, inspect.IntType | inspect.FloatType) and not isinstance(found, str):
            low, high = kind.ge, kind.le
            if (low is not None and found < low) or (high is not None and found > high):
                return self._unfit(value, kind, extra)
        return found

    def _dict(self, value: Value, kind: inspect.DictType) -> Any:
        found = {}
        for key, item in self._unique(value):
            name = self.read(replace(key, path=item.path), kind.key_type)
            found[name] = self.read(item, kind.value_type)
        return _WRONG if _WRONG in found or _WRONG in found.values() else found

    def _struct(self, value: Value, kind: inspect.StructType) -> Any:
        fields = fields_of(kind)
        found: dict[str, Any] = {}
        places: dict[str, Value] = {}
        wrong = False
        for key, item in self._unique(value):
            name = key.text()
            if name not in fields:
                wrong |= self._unknown(key, item, fields)
            elif not (value.typed and item.is_null()):
                field = fields[name]
                made = self.read(item, not_null(field.type) if value.typed else field.type)
                if made or "zero_unset" not in extra_of(field.type):
                    found[field.name] = made
                places[name] = item
        for name, field in fields.items():
            if field.required and field.name not in found:
                self._wrong(value.error(f"key {name!r} is missing, wanted {noun(field.type)}"))
                wrong = True
        if wrong or _WRONG in found.values():
            return _WRONG
        made = self._tried(value, lambda: kind.cls(**found), places)
        if isinstance(made, Placed):
            made.__dict__["place"] = value
        return made

    def _unknown(self, key: Value, item: Value, fields: Mapping[str, Any]) -> bool:
        """Tell of an unknown key. Whether it is a mistake."""
        hint = did_you_mean(key.text(), fields)
        if self._overlooked is not None:
            self._overlooked.append(str(item.error(f"unknown field, without effect{hint}")))
            return False
        wanted = f"wanted one of: {', '.join(fields)}{hint}"
        self._wrong(key.error(f"unknown key {key.text()!r}, {wanted}"))
        return True

    def _unique(self, value: Value) -> Iterator[tuple[Value, Value]]:
        """The keys and values of a mapping whose keys are texts that do not repeat."""
        seen: set[str] = set()
        for key, item in value.pairs():
            if key.is_mapping() or key.is_list() or key.is_null():
                self._wrong(key.wanted("a text"))
            elif key.text() in seen:
                self._wrong(key.error(f"key {key.text()!r} is given twice"))
            else:
                seen.add(key.text())
                yield key, item

    def _tried(
        self, value: Value, make: Callable[[], Any], places: dict[str, Value] | None = None
    ) -> Any:
        try:
            return make()
        except ValueError as error:
            field, _, text = str(error).partition(": ")
            if places and field in places:
                return self._wrong(places[field].error(text))
            return self._wrong(value.error(str(error)))

    def _wrong(self, error: ScriptError) -> Any:
        self.errors.append(error)
        return _WRONG


def _fitting(value: Value, kind: inspect.Type) -> inspect.Type | None:
    """The member of a union (or the type itself) that takes such a value; None: there is none."""
    types = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    members = {type(bare(member)): member for member in types}
    if inspect.AnyType in members:
        return members[inspect.AnyType]
    if inspect.UnionType in members:  # one with a meaning of its own, as seconds are
        return next((m for m in types if _fitting(value, bare(m)) is not None), None)
    if value.is_mapping():
        return members.get(inspect.StructType) or members.get(inspect.DictType)
    if value.is_list():
        return next((members[one] for one in _LISTS if one in members), None)
    scalar = value.scalar()
    for one, scalars in _SCALARS:
        is_one = isinstance(scalar, scalars) and isinstance(scalar, bool) is (scalars is bool)
        if one in members and is_one:
            return members[one]
    if scalar is None or (value.typed and not isinstance(scalar, str)):
        return None
    return members.get(inspect.LiteralType) or members.get(inspect.StrType)


def noun(kind: inspect.Type) -> str:
    """What errors call a value of this type."""
    if isinstance(kind, inspect.Metadata):
        return str(extra_of(kind).get("wanted") or noun(kind.type))
    if isinstance(kind, inspect.UnionType):
        nouns = list(dict.fromkeys(noun(member) for member in kind.types))
        return " or ".join((", ".join(nouns[:-1]), nouns[-1]) if len(nouns) > 1 else nouns)
    if isinstance(kind, inspect.LiteralType):
        return f"one of {', '.join(map(str, kind.values))}"
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        name = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
        low = "" if kind.ge is None else f" from {kind.ge}"
        return name + low + ("" if kind.le is None else f" to {kind.le}")
    if isinstance(kind, inspect.DictType):
        several = _SEVERAL.get(type(bare(kind.value_type)))
        return f"a mapping of texts to {several}" if several else "a mapping"
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        several = _SEVERAL.get(type(bare(kind.item_type)))
        return f"a list of {several}" if several else "a list"
    return _NOUNS.get(type(kind), "a value")
