"""The OpenAPI v2 document (`/openapi/v2`), as JSON: for clients that do not ask for v3.

It says the same as the v3 documents, all groups in one. kubectl asks for v2 as protobuf only, which
is refused with 406; it asks for v3 first, and needs no more.
"""

from __future__ import annotations

from typing import Any, Final

from fakekubeapi.discovery.openapi import resource_path
from fakekubeapi.discovery.schemas import REFERENCE, schemas
from fakekubeapi.resources import RESOURCES, Resource
from kubeobjects.schema.messages import Schema

_DEFINITIONS: Final = "#/definitions/"
_ACTIONS: Final = {"get": "get", "put": "put", "patch": "patch", "delete": "delete"}
_SWITCHES: Final = ("dryRun", "fieldManager", "fieldValidation")


def openapi_v2(types: Schema) -> dict[str, Any]:
    """The document of these types."""
    return {
        "swagger": "2.0",
        "info": {"title": "fakekubeapi", "version": f"v{types.minor}.0"},
        "paths": dict(map(_path, (r for r in RESOURCES if r.stored))),
        "definitions": {name: _v2(schema) for name, schema in schemas(RESOURCES, types).items()},
    }


def _path(resource: Resource) -> tuple[str, dict[str, Any]]:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    query = [
        {"name": name, "in": "query", "type": "string", "uniqueItems": True} for name in _SWITCHES
    ]
    operations = {
        method: {
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kind,
            "parameters": query if method in ("put", "patch") else [],
            "responses": {"200": {"description": "OK"}},
        }
        for method, action in _ACTIONS.items()
    }
    return resource_path(resource), operations


def _v2(schema: Any) -> Any:
    """A v3 schema as v2 has it: references lead to the definitions, and stand alone."""
    if isinstance(schema, list):
        return [_v2(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    converted = {key: _v2(item) for key, item in schema.items()}
    if "allOf" in converted and isinstance(converted["allOf"], list):
        converted |= converted.pop("allOf")[0]
        converted.pop("default", None)
    target = converted.get("$ref")
    if isinstance(target, str):
        converted["$ref"] = target.replace(REFERENCE, _DEFINITIONS)
    return converted
