"""The OpenAPI schemas of the stored kinds, made of lightkube's types: what `kubectl explain` shows.

Names are those of the API server (`io.k8s.api.core.v1.Pod`), references point to
`#/components/schemas/`. Descriptions are taken from the docstrings of lightkube's types.
"""

from __future__ import annotations

import importlib
import re
import types
import typing
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any, Final

import msgspec

from fakekubeapi.apply.structure import is_atomic, topology
from fakekubeapi.resources import Resource

Schema = dict[str, Any]
_PLAIN: Final[dict[Any, Schema]] = {
    str: {"type": "string"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number", "format": "double"},
    bool: {"type": "boolean"},
    dict: {"type": "object"},
    list: {"type": "array"},
    datetime: {"type": "string", "format": "date-time"},
}
_FIELD: Final = re.compile(r"\* \*\*(\w+)\*\* ``[^`]*``(?: - )?")
REFERENCE: Final = "#/components/schemas/"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta"


def schemas(resources: Iterable[Resource]) -> dict[str, Schema]:
    """The schemas of those kinds and of all types they refer to, by name."""
    found: dict[str, Schema] = {}
    for resource in resources:
        module = importlib.import_module(f"lightkube.models.{_module(resource)}")
        name = _add(found, getattr(module, resource.kind))
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        found[name]["x-kubernetes-group-version-kind"] = [kind]
    return found


def _module(resource: Resource) -> str:
    return resource.module.rpartition(".")[2]


def _add(found: dict[str, Schema], model: Any) -> str:
    """Put the schema of a lightkube type, and of all that it refers to, into `found`; returns its
    name."""
    name = _name(model)
    if name in found:
        return name
    schema: Schema = {"type": "object"}
    found[name] = schema
    summary, descriptions = _texts(model)
    properties = {}
    for field in msgspec.structs.fields(model):
        shape = _shape(found, field.type)
        text = descriptions.get(field.encode_name, "")
        shape |= topology(model.__name__, field.encode_name, field.type)
        if "$ref" in shape:
            shape = {"allOf": [shape], "default": {}}
        properties[field.encode_name] = {**shape, "description": text} if text else shape
    needed = [f.encode_name for f in msgspec.structs.fields(model) if f.required]
    schema |= {"description": summary, "properties": properties}
    if is_atomic(model):
        schema["x-kubernetes-map-type"] = "atomic"
    if needed:
        schema["required"] = needed
    return name


def _name(model: Any) -> str:
    """The API server's name of a lightkube type: `core_v1.Pod` is `io.k8s.api.core.v1.Pod`."""
    group, _, version = model.__module__.rpartition(".")[2].rpartition("_")
    above = _META if group == "meta" else f"io.k8s.api.{group}"
    return f"{above}.{version}.{model.__name__}"


def _shape(found: dict[str, Schema], wanted: Any) -> Schema:
    """The schema of a field's type; those of the types it refers to go into `found`."""
    origin, members = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        real = [member for member in members if member is not type(None)]
        if len(real) > 1:
            return {"type": "string", "format": "int-or-string"}
        return _shape(found, real[0])
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return {"$ref": f"{REFERENCE}{_add(found, wanted)}"}
    if origin is list:
        return {"type": "array", "items": _shape(found, members[0])}
    if origin is dict:
        values = _shape(found, members[1]) if len(members) == 2 else {"type": "string"}
        return {"type": "object", "additionalProperties": values}
    return dict(_PLAIN.get(wanted, {"type": "object"}))


@cache
def _texts(model: Any) -> tuple[str, dict[str, str]]:
    """The description of a type, and those of its fields by name, from its docstring."""
    text = " ".join((model.__doc__ or "").split())
    summary, *fields = _FIELD.split(text)
    described = dict(zip(fields[::2], (one.strip() for one in fields[1::2]), strict=True))
    return summary.replace("**parameters**", "").strip(), described
