"""The documents by which clients find out what the server has: versions, groups, resources."""

from __future__ import annotations

from typing import Any, Final

from fakekubeapi.discovery.openapi import openapi_document
from fakekubeapi.discovery.openapi_v2 import openapi_v2
from fakekubeapi.kubelets.paths import discovery_rows
from fakekubeapi.resources import GROUP_VERSIONS, RESOURCES, Resource
from kubeobjects.schema.messages import Schema

_VERSION: Final = {
    "major": "1",
    "platform": "linux/amd64",
    "goVersion": "none",
    "compiler": "none",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
}
_VERBS: Final = [
    "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
]  # fmt: skip
_SUBRESOURCE_KINDS: Final = {"binding": "Binding", "eviction": "Eviction", "token": "TokenRequest"}
_OTHER_GROUPS: Final = {"eviction": "policy", "token": "authentication.k8s.io"}
"""The groups of subresources whose kind is of another group than the resource."""


def discovery_document(path: str, types: Schema) -> dict[str, Any] | None:
    """The document at `path` (`/version`, `/api`, `/apis` and what is below, `/openapi/v2`,
    `/openapi/v3`); None if there is none, as for the path of an object or a collection."""
    parts = [part for part in path.split("/") if part]
    if parts == ["version"]:
        minor = types.minor.partition(".")[2]
        return {**_VERSION, "minor": minor, "gitVersion": f"v{types.minor}.0-fakekubeapi"}
    if parts == ["openapi", "v2"]:
        return openapi_v2(types)
    if parts[:1] == ["openapi"]:
        return openapi_document(parts[1:], types)
    if parts == ["api"]:
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    if parts == ["apis"]:
        groups = [_group(group) for group in dict.fromkeys(g for g, _ in GROUP_VERSIONS) if group]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    if len(parts) == 2 and parts[0] == "api":
        return _resource_list("", parts[1])
    if len(parts) == 2 and parts[0] == "apis" and any(g == parts[1] for g, _ in GROUP_VERSIONS):
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1])}
    if len(parts) == 3 and parts[0] == "apis":
        return _resource_list(parts[1], parts[2])
    return None


def _group(group: str) -> dict[str, Any]:
    versions = [
        {"groupVersion": f"{g}/{version}", "version": version}
        for g, version in GROUP_VERSIONS
        if g == group
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resource_list(group: str, version: str) -> dict[str, Any] | None:
    if (group, version) not in GROUP_VERSIONS:
        return None
    rows: list[dict[str, Any]] = []
    for resource in RESOURCES:
        if (resource.group, resource.version) == (group, version):
            rows += _rows(resource)
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": rows,
    }


def _rows(resource: Resource) -> list[dict[str, Any]]:
    main = {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _VERBS if resource.stored else ["create"],
    }
    if resource.categories:
        main["categories"] = list(resource.categories)
    if resource.short_names:
        main["shortNames"] = list(resource.short_names)
    below = [
        {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": _SUBRESOURCE_KINDS.get(name, resource.kind),
            "verbs": ["create"] if name in _SUBRESOURCE_KINDS else ["get", "patch", "update"],
            **({"group": _OTHER_GROUPS[name], "version": "v1"} if name in _OTHER_GROUPS else {}),
        }
        for name in resource.subresources
    ]
    passed = discovery_rows(resource.plural) if resource.group == "" else []
    return [main, *below, *passed]
