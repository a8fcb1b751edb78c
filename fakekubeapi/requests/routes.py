"""Which resource, namespace, object and subresource a path means, and which methods it takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from fakekubeapi.errors import StatusError, bad_request, no_such_kind
from fakekubeapi.resources import Resource, find_resource
from fakekubeapi.storage.changes import Key
from kubeobjects.schema.messages import Message, Schema, schema_of

_ON_COLLECTION: Final = ("GET", "POST", "DELETE")
_ON_OBJECT: Final = ("GET", "PUT", "PATCH", "DELETE")
_ON_SUBRESOURCE: Final = {
    "status": ("GET", "PUT", "PATCH"),
    "resize": ("GET", "PUT", "PATCH"),
    "ephemeralcontainers": ("GET", "PUT", "PATCH"),
    "binding": ("POST",),
    "eviction": ("POST",),
    "token": ("POST",),
    "approval": ("GET", "PUT", "PATCH"),
}


@dataclass(frozen=True, slots=True)
class Route:
    """A parsed path."""

    resource: Resource
    namespace: str | None
    """None: all namespaces, or a cluster-scoped resource."""
    name: str
    """"" for a collection."""
    subresource: str
    """"" for the object itself."""
    schema: Schema = field(default_factory=schema_of, compare=False)
    """The types of the minor that is served."""

    @property
    def message(self) -> Message:
        """The type of the resource's objects."""
        return self.resource.message(self.schema)

    @property
    def key(self) -> Key:
        """The key of the object in the store."""
        return Key(self.resource.qualified, self.namespace or "", self.name)


@lru_cache(maxsize=512)  # a kubelet asks for the same paths again and again
def parse_route(method: str, path: str, schema: Schema | None = None) -> Route:
    """The route of a request; `schema`: the types that are served, None: those of the default
    minor. Raises: StatusError 404 for an unknown path, 405 for a method that it does not take, 400
    for a name that may not be in a path."""
    schema = schema or schema_of()
    if "//" in path:
        raise _unknown_path()
    parts = [part for part in path.split("/") if part]
    group, version, rest = _split_group(parts)
    namespace: str | None = None
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    resource = find_resource(group, version, rest[0]) if rest else None
    if resource is None or resource.kind not in schema.kinds(resource.package):
        raise no_such_kind(rest[0], f"{group}/{version}".lstrip("/")) if rest else _unknown_path()
    if len(rest) > 3 or (namespace is not None) > resource.namespaced:
        raise _unknown_path()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if name in (".", "..") or "%" in name:
        why = "may not contain '%'" if "%" in name else f"may not be '{name}'"
        raise bad_request(f'Name parameter invalid: "{name}": {why}')
    if subresource and subresource not in resource.subresources:
        raise _unknown_path()
    if name and not resource.stored:
        raise _unknown_path()
    if resource.namespaced and namespace is None and (name or method == "POST"):
        raise _not_allowed()
    if subresource:
        allowed = _ON_SUBRESOURCE[subresource]
    else:
        allowed = _ON_OBJECT if name else _ON_COLLECTION if resource.stored else ("POST",)
    if method not in allowed:
        raise _not_allowed()
    return Route(resource, namespace, name, subresource, schema)


def _split_group(parts: list[str]) -> tuple[str, str, list[str]]:
    """API group, version, and the rest of the path."""
    if len(parts) > 2 and parts[0] == "api":
        return "", parts[1], parts[2:]
    if len(parts) > 3 and parts[0] == "apis":
        return parts[1], parts[2], parts[3:]
    raise _unknown_path()


def _unknown_path() -> StatusError:
    return StatusError(404, "the server could not find the requested resource", details={})


def _not_allowed() -> StatusError:
    return StatusError(
        405, "the server does not allow this method on the requested resource", details={}
    )
