"""The OpenAPI v3 documents, as far as kubectl needs them.

Before `kubectl create` and `apply` it looks there whether the server validates fields
(`fieldValidation`) and knows trial runs (`dryRun`), as this one does. `kubectl explain` reads the
schemas. Only paths that this server serves are in the documents.
"""

from __future__ import annotations

from typing import Any, Final

from fakekubeapi.discovery.schemas import schemas
from fakekubeapi.resources import GROUP_VERSIONS, RESOURCES, Resource
from kubeobjects.schema.messages import Schema

_PARAMETERS: Final = [
    {"name": name, "in": "query", "schema": {"type": "string"}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]


def openapi_document(parts: list[str], types: Schema) -> dict[str, Any] | None:
    """The document at a path below `/openapi`, given as its parts (`["v3", "api", "v1"]`); None if
    there is none."""
    if parts == ["v3"]:
        prefixes = [_prefix(group, version) for group, version in GROUP_VERSIONS]
        return {"paths": {p: {"serverRelativeURL": f"/openapi/v3/{p}"} for p in prefixes}}
    for group, version in GROUP_VERSIONS:
        if parts == ["v3", *_prefix(group, version).split("/")]:
            resources_here = [r for r in RESOURCES if (r.group, r.version) == (group, version)]
            return {
                "openapi": "3.0.0",
                "info": {"title": "fakekubeapi", "version": f"v{types.minor}.0"},
                "paths": dict(map(_path, (r for r in resources_here if r.stored))),
                "components": {"schemas": schemas(resources_here, types)},
            }
    return None


def _prefix(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _path(resource: Resource) -> tuple[str, dict[str, Any]]:
    """The entry of `paths` for one object: its path, and that it can be patched."""
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    patch = {
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": kind,
        "parameters": _PARAMETERS,
        "responses": {"200": {"description": "OK"}},
    }
    return resource_path(resource), {"patch": patch}


def resource_path(resource: Resource) -> str:
    """The path of one object, as the documents write it."""
    place = "namespaces/{namespace}/" if resource.namespaced else ""
    return f"/{_prefix(resource.group, resource.version)}/{place}{resource.plural}/{{name}}"
