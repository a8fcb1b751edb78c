"""Whether what a client sends fits the path that it sends it to."""

from __future__ import annotations

from typing import Any

from fakekubeapi.bodies import without_null
from fakekubeapi.errors import bad_request, conflict
from fakekubeapi.requests.routes import Route
from fakekubeapi.requests.shapes import check_shape
from fakekubeapi.storage.store import Object


def posted(route: Route, body: Any) -> Object:
    """A copy of a posted object, with kind, apiVersion and namespace set. Raises: StatusError
    400 if its kind, version, namespace or types do not fit the path."""
    resource = route.resource
    if not isinstance(body, dict):
        raise bad_request(f"the request body must be a {resource.kind} object, got {body!r}")
    for field, wanted in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        if body.get(field, wanted) != wanted:
            raise bad_request(
                f"{body.get(field)} in {field} does not fit this URL: it takes {wanted}"
            )
    check_shape(body, resource.module, resource.kind)
    obj: Object = {"kind": resource.kind, "apiVersion": resource.api_version}
    obj.update(without_null({k: v for k, v in body.items() if k not in obj}))
    metadata = obj.setdefault("metadata", {})
    if not resource.namespaced:
        metadata.pop("namespace", None)
        return obj
    given = metadata.setdefault("namespace", route.namespace)
    if given != route.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the "
            f"request: {given} in the object, {route.namespace} in the URL"
        )
    return obj


def appliable(route: Route, body: Any) -> Object:
    """A copy of an applied object. Raises: StatusError 400 if it cannot be one."""
    resource = route.resource
    if not isinstance(body, dict):
        raise bad_request(f"an applied object must be a {resource.kind} object, got {body!r}")
    for field, wanted in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        if not body.get(field):
            raise bad_request(f"error decoding YAML: {field} is missing: set it to {wanted}")
    applied = posted(route, body)
    if applied["metadata"].pop("managedFields", None):
        raise bad_request("metadata.managedFields must be nil")
    if applied["metadata"].get("name"):
        check_name(applied["metadata"]["name"], route.name)
    return applied


def check_applied_as_new(route: Route, applied: Object) -> None:
    """Raise StatusError for an applied object that is not there, and cannot be made of this."""
    metadata, name = applied["metadata"], route.name
    if not metadata.get("name"):
        raise bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if metadata.get("uid"):
        raise conflict(
            route.resource.qualified,
            name,
            f"uid mismatch: the provided object specified uid {metadata['uid']}, and no existing "
            "object was found",
        )


def check_name(given: str, name: str) -> None:
    """Raise StatusError 400 if an object has another name than its path."""
    if given != name:
        raise bad_request(
            f"the name of the object ({given}) does not match the name on the URL ({name})"
        )
