"""The OpenAPI v3 documents, as much of them as kubectl asks.

Before it creates or applies it looks whether the server checks fields itself (`fieldValidation`)
and tries what it is told (`dryRun`); both are so. `kubectl explain` reads the schemas.

What must never happen here: a path is announced that the store does not serve.
"""

from __future__ import annotations

from typing import Any, Final

from fakeapi.resources import GROUP_VERSIONS, RESOURCES, Resource
from fakeapi.schemas import schemas

_PARAMETERS: Final = [
    {"name": name, "in": "query", "schema": {"type": "string"}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]


def openapi_document(parts: list[str]) -> dict[str, Any] | None:
    """The document at a path below `/openapi`, or None where there is none."""
    if parts == ["v3"]:
        prefixes = [_prefix(group, version) for group, version in GROUP_VERSIONS]
        return {"paths": {p: {"serverRelativeURL": f"/openapi/v3/{p}"} for p in prefixes}}
    for group, version in GROUP_VERSIONS:
        if parts == ["v3", *_prefix(group, version).split("/")]:
            here = [r for r in RESOURCES if (r.group, r.version) == (group, version)]
            return {
                "openapi": "3.0.0",
                "info": {"title": "fakeapi", "version": "v1.36.0"},
                "paths": dict(map(_path, here)),
                "components": {"schemas": schemas(here)},
            }
    return None


def _prefix(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _path(resource: Resource) -> tuple[str, dict[str, Any]]:
    """The path of one object, and that it can be patched."""
    place = "namespaces/{namespace}/" if resource.namespaced else ""
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    patch = {
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": kind,
        "parameters": _PARAMETERS,
        "responses": {"200": {"description": "OK"}},
    }
    path = f"/{_prefix(resource.group, resource.version)}/{place}{resource.plural}/{{name}}"
    return path, {"patch": patch}
