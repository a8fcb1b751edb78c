"""The JSON schema (2020-12) of what the strict reader takes for a struct."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from inspect import cleandoc
from typing import Any

import msgspec
from msgspec import Struct, inspect

from kubeobjects.strict.reader import Strict, type_of


def json_schema(shape: type[Struct], title: str) -> dict[str, Any]:
    """The JSON schema of what `read` takes for this struct."""
    (reference,), definitions = schemas([shape], "#/$defs/{name}")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return {**head, **reference, "$defs": definitions}


def schemas(
    shapes: Sequence[type[Struct]], template: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A reference for each of the structs, in the form of `template` (`#/$defs/{name}`), and the
    JSON schemas of all structs in them, by name."""
    references, definitions = msgspec.json.schema_components(shapes, ref_template=template)
    for kind in {one for shape in shapes for one in _structs_in(type_of(shape))}:
        for word, names in (("oneOf", kind.exactly_one), ("anyOf", kind.at_least_one)):
            if names:
                definitions[kind.__name__][word] = [{"required": [name]} for name in names]
    return as_json(references, definitions)


def as_json(
    references: Sequence[dict[str, Any]], definitions: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What msgspec makes of types, as JSON: defaults are Python's in it, docstrings are indented by
    Python before 3.13."""
    found: Any = msgspec.json.decode(msgspec.json.encode((list(references), definitions)))
    for definition in found[1].values():
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
