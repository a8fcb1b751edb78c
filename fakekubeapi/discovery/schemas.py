"""The OpenAPI schemas of the stored kinds: what `kubectl explain` shows. Pure.

Names are those of the API server (`io.k8s.api.core.v1.Pod`), references point to
`#/components/schemas/`. They have no descriptions: those are upstream's documentation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fakekubeapi.resources import Resource
from kubeobjects.schema.messages import TYPE_META, Field, Message, Shape
from kubeobjects.schema.messages import Schema as Types

Schema = dict[str, Any]
REFERENCE: Final = "#/components/schemas/"
_TEXT: Final[Schema] = {"type": "string"}
_SCALARS: Final[dict[str, Schema]] = {
    "string": _TEXT,
    "bytes": {**_TEXT, "format": "byte"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "Quantity": _TEXT,
    "IntOrString": {**_TEXT, "format": "int-or-string"},
    "Time": {**_TEXT, "format": "date-time"},
    "MicroTime": {**_TEXT, "format": "date-time"},
    "FieldsV1": {"type": "object"},
    "RawExtension": {"type": "object"},
}
_META: Final = "io.k8s.apimachinery.pkg.apis"


def schemas(resources: Iterable[Resource], types: Types) -> dict[str, Schema]:
    """The schemas of those kinds and of all `types` that they refer to, by name."""
    definitions: dict[str, Schema] = {}
    for resource in resources:
        name = _add(definitions, resource.message(types))
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        definitions[name]["x-kubernetes-group-version-kind"] = [kind]
    return definitions


def _add(made: dict[str, Schema], message: Message) -> str:
    """Put the schema of a type, and of all that it refers to, into `made`; returns its name."""
    name = _name(message)
    if name in made:
        return name
    schema: Schema = {"type": "object"}
    made[name] = schema
    kind = {key: dict(_TEXT) for key in TYPE_META} if message.typed else {}
    fields = message.in_json
    schema["properties"] = kind | {key: _property(made, message, f) for key, f in fields.items()}
    if message.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    needed = [key for key, field in fields.items() if field.required]
    if needed:
        schema["required"] = needed
    return name


def _name(message: Message) -> str:
    """The API server's name of a type."""
    above = _META if message.name.startswith("meta.") else "io.k8s.api"
    return f"{above}.{message.name}"


def _property(made: dict[str, Schema], owner: Message, field: Field) -> Schema:
    """The schema of a field; those of the types it refers to go into `made`."""
    shape = _shape(made, owner, field) | _topology(field)
    return {"allOf": [shape], "default": {}} if "$ref" in shape else shape


def _shape(made: dict[str, Schema], owner: Message, field: Field) -> Schema:
    element = _single(made, owner, field)
    if field.shape is Shape.LIST:
        return {"type": "array", "items": element}
    if field.shape is Shape.MAP:
        return {"type": "object", "additionalProperties": element}
    return element


def _single(made: dict[str, Schema], owner: Message, field: Field) -> Schema:
    """The schema of a single value of a list or map."""
    if field.type in _SCALARS:
        return dict(_SCALARS[field.type])
    message = owner.schema.message(field.type)
    if message.itself:
        return _shape(made, message, message.itself)
    return {"$ref": f"{REFERENCE}{_add(made, message)}"}


def _topology(field: Field) -> Schema:
    """How the parts of a field are owned."""
    if field.map_type:
        return {"x-kubernetes-map-type": field.map_type}
    if field.shape is not Shape.LIST:
        return {}
    keys = {"x-kubernetes-list-map-keys": list(field.list_keys)} if field.list_keys else {}
    return {"x-kubernetes-list-type": field.list_type, **keys}
