"""Whether what a client sends fits the path that it sends it to."""

from __future__ import annotations

from typing import Any

from fakekubeapi.apply.structure import shape_of
from fakekubeapi.apply.walk import BadObject, check
from fakekubeapi.bodies import without_null
from fakekubeapi.errors import StatusError, bad_request, conflict
from fakekubeapi.requests.routes import Route
from fakekubeapi.requests.shapes import check_shape, undecodable
from fakekubeapi.resources.wire import as_written
from fakekubeapi.storage.changes import Object
from kubeobjects.schema.messages import Message


def posted(route: Route, body: Any, *, complete: bool = True) -> Object:
    """A copy of a posted object, with kind, apiVersion and namespace set, in the form in which the
    server writes objects (`complete`; else as it was sent). Raises: StatusError 400 if its kind,
    version, namespace or types do not fit the path."""
    resource = route.resource
    if not isinstance(body, dict):
        raise bad_request(f"the request body must be a {resource.kind} object, got {body!r}")
    for field, expected_value in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        if (body.get(field) or expected_value) != expected_value:
            kind = body.get("kind") or resource.kind
            version = body.get("apiVersion") or resource.api_version
            short = version.rpartition("/")[2]
            raise undecodable(kind, short, _no_conversion(route, version, kind), resource.kind)
    check_shape(body, route.message)
    obj: Object = {"kind": resource.kind, "apiVersion": resource.api_version}
    obj.update(written(route.message, body) if complete else without_null(body))
    obj.update(kind=resource.kind, apiVersion=resource.api_version)
    metadata = obj.setdefault("metadata", {})
    metadata.pop("selfLink", None)
    if not resource.namespaced:
        metadata.pop("namespace", None)
        return obj
    namespace = metadata.setdefault("namespace", route.namespace)
    if namespace != route.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return obj


def _no_conversion(route: Route, version: str, kind: str) -> str:
    """Why an object of that version and kind cannot be made one of the route's resource."""
    resource = route.resource
    if message := route.schema.kind_message(version, kind):
        group = resource.group.partition(".")[0] or "core"
        source = f"{message.version}.{message.kind}"
        return f"converting ({source}) to ({group}.{resource.kind}): unknown conversion"
    scheme = "pkg/api/legacyscheme/scheme.go:30"
    return f'no kind "{kind}" is registered for version "{version}" in scheme "{scheme}"'


def written(message: Message, body: Object) -> Object:
    """A copy of a body in the form in which the server writes objects. Raises: StatusError 400 for
    malformed amounts and malformed base64."""
    try:
        return as_written(body, message)
    except ValueError as error:
        raise undecodable(message.kind, message.version, str(error)) from None


def appliable(route: Route, body: Any) -> Object:
    """A copy of an applied object. Raises: StatusError 400 if it cannot be one, 500 for what its
    type does not have."""
    resource = route.resource
    if not isinstance(body, dict):
        raise bad_request(f"an applied object must be a {resource.kind} object, got {body!r}")
    for field, expected_value in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        if body.get(field) != expected_value:
            version = str(body.get("apiVersion") or "")
            version_text = version if "/" in version else f"/{version}"
            raise bad_request(f"invalid object type: {version_text}, Kind={body.get('kind') or ''}")
    given = body.get("metadata") or {}
    if isinstance(given, dict) and given.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    _check_typed(route, body)
    applied = posted(route, body, complete=False)
    if applied["metadata"].get("name"):
        check_name(applied["metadata"]["name"], route.name)
    return applied


def _check_typed(route: Route, body: Object) -> None:
    """Check an applied object against its type, before anything else of it counts. Raises:
    StatusError 500 for fields that are not declared, and for values of another type."""
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    place = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
    about = f"{place}; {route.resource.group}/{route.resource.version}, Kind={route.resource.kind}"
    try:
        check_shape(body, route.message)
        check(without_null(body), shape_of(route.message))
    except (StatusError, BadObject) as error:
        why = getattr(error, "message", str(error))
        text = f"failed to create typed patch object ({about}): {why}"
        raise StatusError(500, text, reason="") from None
    try:
        written(route.message, body)
    except StatusError as error:
        text = f"failed to convert new object ({about}) to proper version: {error.message}"
        raise StatusError(500, text, reason="") from None


def check_applied_as_new(route: Route, applied: Object) -> None:
    """Raise StatusError for an applied object that does not exist yet and cannot be created from
    this body."""
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
