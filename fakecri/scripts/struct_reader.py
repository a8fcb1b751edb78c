"""Makes structs of YAML values: a `msgspec.Struct` alone says what a file may hold.

`read` collects every mistake with its place; `json_schema` gives editors the same rules. Beyond
what msgspec knows (types, bounds, literals, descriptions) a struct may say

- in the `extra` of a `Meta`: `wanted`, what errors call such a value; `then`, a function that is
  given the value and makes the final one of it, or raises ValueError; `as_written`: a scalar is
  taken as its text, whatever it looks like;
- by `exactly_one` and `at_least_one`: which fields have to be given;
- in `__post_init__`: what else has to fit together. It raises ValueError, whose text may begin with
  the name of a field (`port: ...`), which then is the place of the mistake.

A struct that is `Placed` knows later where it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from inspect import cleandoc
from typing import Any, ClassVar, Final, TypeVar

import msgspec
from msgspec import UNSET, Struct, inspect

from fakecri.errors import ScriptError, did_you_mean
from fakecri.scripts.values import Value

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
_NOUNS: Final[dict[type[inspect.Type], str]] = {
    inspect.StrType: "a string",
    inspect.BoolType: "true or false",
    inspect.NoneType: "nothing",
    inspect.StructType: "a mapping",
    inspect.DictType: "a mapping",
    inspect.ListType: "a list",
    inspect.VarTupleType: "a list",
    inspect.TupleType: "a list",
}


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


def read(value: Value, shape: type[S]) -> S:
    """The struct that a value holds. Raises ScriptError with all mistakes in it."""
    reader = _Reader()
    made = reader.read(value, _type_of(shape))
    if reader.errors:
        raise ScriptError(*dict.fromkeys(str(error) for error in reader.errors))
    assert isinstance(made, shape)
    return made


def json_schema(shape: type[Struct], title: str) -> dict[str, Any]:
    """The JSON schema (2020-12) of what `read` takes for this struct."""
    (reference,), definitions = schemas([shape], "#/$defs/{name}")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return {**head, **reference, "$defs": definitions}


def schemas(
    shapes: Sequence[type[Struct]], template: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A reference for each of the structs, in the form of `template` (`#/$defs/{name}`), and the
    JSON schemas of all structs in them, by name."""
    references, definitions = msgspec.json.schema_components(shapes, ref_template=template)
    for kind in {one for shape in shapes for one in _structs_in(_type_of(shape))}:
        for word, names in (("oneOf", kind.exactly_one), ("anyOf", kind.at_least_one)):
            if names:
                definitions[kind.__name__][word] = [{"required": [name]} for name in names]
    # Through JSON, since defaults are still Python's.
    found: Any = msgspec.json.decode(msgspec.json.encode((list(references), definitions)))
    for definition in found[1].values():  # a docstring, indented by Python before 3.13
        if "description" in definition:
            definition["description"] = cleandoc(definition["description"])
    return found[0], found[1]


def _structs_in(kind: Any) -> Iterator[type[Strict]]:
    """The strict structs in a type, itself among them; a struct may not hold itself."""
    if isinstance(kind, inspect.StructType):
        if issubclass(kind.cls, Strict):
            yield kind.cls
        parts = [field.type for field in kind.fields]
    else:
        one = ("type", "item_type", "key_type", "value_type")
        parts = [getattr(kind, name) for name in one if hasattr(kind, name)]
        parts += [*getattr(kind, "types", ()), *getattr(kind, "item_types", ())]
    for part in parts:
        yield from _structs_in(part)


@cache
def _type_of(shape: type[Struct]) -> inspect.Type:
    return inspect.type_info(shape)


class _Reader:
    """Reads values by the types that msgspec tells of, and keeps the errors."""

    def __init__(self) -> None:
        self.errors: list[ScriptError] = []

    def read(self, value: Value, kind: inspect.Type) -> Any:
        """The value as this type; `_WRONG` if there is an error in it."""
        extra: dict[str, Any] = {}
        if isinstance(kind, inspect.Metadata):
            extra, kind = kind.extra or {}, kind.type
        fitting = _fitting(value, kind)
        if fitting is None:
            return self._wrong(value.wanted(extra.get("wanted") or _noun(kind)))
        if isinstance(fitting, inspect.Metadata):
            found = self.read(value, fitting)
        else:
            found = self._read_as(value, fitting, extra)
        if found is _WRONG or "then" not in extra:
            return found
        return self._tried(value, lambda: extra["then"](found))

    def _read_as(self, value: Value, kind: inspect.Type, extra: dict[str, Any]) -> Any:
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
        return self._wrong(value.error(f"wanted {_noun(kind)}, got {value.shown()}{hint}"))

    def _bounded(self, value: Value, kind: inspect.Type, extra: dict[str, Any]) -> Any:
        found: Any = value.text() if "as_written" in extra else value.scalar()
        if isinstance(kind, inspect.FloatType) and isinstance(found, int):
            found = float(found)
        if isinstance(kind, inspect.IntType | inspect.FloatType) and not isinstance(found, str):
            low, high = kind.ge, kind.le
            if (low is not None and found < low) or (high is not None and found > high):
                return self._wrong(value.wanted(extra.get("wanted") or _noun(kind)))
        return found

    def _dict(self, value: Value, kind: inspect.DictType) -> Any:
        found = {}
        for key, item in self._unique(value):
            name = self.read(Value(key.node, key.file, item.path), kind.key_type)
            found[name] = self.read(item, kind.value_type)
        return _WRONG if _WRONG in found or _WRONG in found.values() else found

    def _struct(self, value: Value, kind: inspect.StructType) -> Any:
        fields = {field.encode_name: field for field in kind.fields}
        found: dict[str, Any] = {}
        places: dict[str, Value] = {}
        wrong = False
        for key, item in self._unique(value):
            name = key.text()
            if name not in fields:
                wanted = f"wanted one of: {', '.join(fields)}{did_you_mean(name, fields)}"
                self._wrong(key.error(f"unknown key {name!r}, {wanted}"))
                wrong = True
                continue
            found[fields[name].name] = self.read(item, fields[name].type)
            places[name] = item
        for name, field in fields.items():
            if field.required and field.name not in found:
                self._wrong(value.error(f"key {name!r} is missing, wanted {_noun(field.type)}"))
                wrong = True
        if wrong or _WRONG in found.values():
            return _WRONG
        made = self._tried(value, lambda: kind.cls(**found), places)
        if isinstance(made, Placed):
            made.__dict__["place"] = value
        return made

    def _unique(self, value: Value) -> Iterator[tuple[Value, Value]]:
        """The keys and values of a mapping whose keys are texts that do not repeat."""
        seen: set[str] = set()
        for key, item in value.pairs():
            if key.is_mapping() or key.is_list() or key.scalar() is None:
                self._wrong(key.wanted("a string"))
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


def _members(kind: inspect.Type) -> Iterable[inspect.Type]:
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def _bare(kind: inspect.Type) -> inspect.Type:
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def _fitting(value: Value, kind: inspect.Type) -> inspect.Type | None:
    """The member of a union (or the type itself) that takes such a value; None: there is none."""
    members = {type(_bare(member)): member for member in _members(kind)}
    if inspect.AnyType in members:
        return members[inspect.AnyType]
    if inspect.UnionType in members:  # one with a meaning of its own, as seconds are
        return next((m for m in _members(kind) if _fitting(value, _bare(m)) is not None), None)
    if value.is_mapping():
        return members.get(inspect.StructType) or members.get(inspect.DictType)
    if value.is_list():
        lists = (inspect.ListType, inspect.VarTupleType, inspect.TupleType)
        return next((members[one] for one in lists if one in members), None)
    scalar = value.scalar()
    for one, types in _SCALARS:
        is_one = isinstance(scalar, types) and isinstance(scalar, bool) is (types is bool)
        if one in members and is_one:
            return members[one]
    if scalar is None:
        return None
    return members.get(inspect.LiteralType) or members.get(inspect.StrType)


def _noun(kind: inspect.Type) -> str:
    """What errors call a value of this type."""
    if isinstance(kind, inspect.Metadata):
        return str((kind.extra or {}).get("wanted") or _noun(kind.type))
    if isinstance(kind, inspect.UnionType):
        nouns = list(dict.fromkeys(_noun(member) for member in kind.types))
        return " or ".join((", ".join(nouns[:-1]), nouns[-1]) if len(nouns) > 1 else nouns)
    if isinstance(kind, inspect.LiteralType):
        return f"one of {', '.join(map(str, kind.values))}"
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        name = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
        low = "" if kind.ge is None else f" from {kind.ge}"
        return name + low + ("" if kind.le is None else f" to {kind.le}")
    return _NOUNS.get(type(kind), "a value")
