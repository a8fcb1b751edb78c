"""What PUT, PATCH and server-side apply make of an object, before `changing` takes it through the
steps that they share; of an object that does not exist yet PUT and apply make a new one
(`creation`).

Each reads what was sent, finds the object, makes the new one of both, and hands it on. Nothing is
written here.
"""

from __future__ import annotations

from typing import Any, Final

from fakekubeapi.asked import Asked
from fakekubeapi.bodies import encode
from fakekubeapi.errors import StatusError, bad_request, invalid, not_found, other_uid
from fakekubeapi.patches.patch import apply_patch
from fakekubeapi.requests.parameters import is_true
from fakekubeapi.requests.routes import Route
from fakekubeapi.storage.changes import Object
from fakekubeapi.verbs.changing import Change, change_object
from fakekubeapi.verbs.creation import New, create
from fakekubeapi.verbs.ownership import Writer
from fakekubeapi.verbs.posted import appliable, check_applied_as_new, check_name, posted
from fakekubeapi.verbs.server import Server
from fakekubeapi.verbs.strict_patches import require_known_patch
from kubeobjects.causes import invalid_value
from kubeobjects.structs import replace

_PLACES: Final = {"nodes": "minions", "services": "services/specs"}
"""Kinds that etcd has under another name."""


def put(asked: Asked, writer: Writer, server: Server) -> tuple[Object, bool]:
    """Replace the object; returns it as stored, and whether this created it.

    Raises: StatusError 400 for a body that does not fit the path, 404 if there is no such object,
    409 if it has another UID or version than the body says, 422 for wrong fields.
    """
    route, new = asked.route, _read_named(asked)
    old = server.store.get(route.key)
    _require_uid(route, old, new["metadata"].get("uid"))
    if old is None:
        made = New(route, asked.body, asked.user, writer, by_update=True, dry_run=asked.dry_run)
        return create(made, server), True
    new["metadata"].setdefault("resourceVersion", "0")
    change = Change(route, old, new, writer, asked.dry_run)
    return change_object(change, server), False


def patch(asked: Asked, writer: Writer, server: Server) -> Object:
    """Apply a patch of the kind that the content type says; returns the object as stored.

    Raises: StatusError as `put` does, and 415 for another content type, 400, 422 or 500 for a patch
    that does not apply; if it is strict, 422 for fields that the kind does not have.
    """
    route, old = asked.route, server.stored(asked.route)
    patched = apply_patch(asked.content_type, old, asked.body, route.message)
    if asked.strict:
        require_known_patch(route.message, asked.content_type, asked.body, patched)
    change = Change(route, old, _read_patched(route, patched), writer, asked.dry_run)
    return change_object(change, server)


def apply(asked: Asked, writer: Writer, server: Server) -> tuple[Object, bool]:
    """Apply an object (server-side apply); returns it as stored, and whether this created it. With
    `force` it takes the fields of others that differ.

    Raises: StatusError as `put` does, 400 for a body that cannot be applied, 409 with its
    causes for fields of others that would change, 500 for fields that the type does not have.
    """
    route, applied = asked.route, appliable(asked.route, asked.body)
    old, writer = server.store.get(route.key), writer.at(server.now())
    if old is None:
        if route.subresource:
            raise not_found(route.resource.qualified, route.name)
        check_applied_as_new(route, applied)
        writer = replace(writer, owners=server.owners.of_applied(route, applied, writer))
        new = New(route, applied, asked.user, writer, by_update=True, dry_run=asked.dry_run)
        return create(new, server), True
    force = is_true(asked.params.get("force"))
    merged, owners = server.owners.after_apply(route, old, applied, writer, force=force)
    writer = replace(writer, owners=owners)
    change = Change(route, old, posted(route, merged), writer, asked.dry_run)
    return change_object(change, server), False


def _read_named(asked: Asked) -> Object:
    """The body of a PUT as an object that has the name of the path. Raises: StatusError 400."""
    obj, name = posted(asked.route, asked.body), asked.route.name
    if not obj["metadata"].get("name"):
        raise bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be "
            "provided"
        )
    check_name(obj["metadata"]["name"], name)
    return obj


def _require_uid(route: Route, old: Object | None, uid: str | None) -> None:
    """Check that a PUT is to the object that is there, or to none where it may create one. Raises:
    StatusError 404, 409."""
    resource, name = route.resource, route.name
    creates = resource.strategy.allow_create_on_update and not route.subresource
    if old is None and not creates:
        raise not_found(resource.qualified, name)
    actual = "" if old is None else old["metadata"]["uid"]
    if uid and uid != actual:
        place = _place(route)
        raise other_uid(resource.qualified, name, place=place, wanted=uid, found=actual)


def _read_patched(route: Route, patched: Any) -> Object:
    """What a patch has made, as an object of the kind and name of the path. Raises: StatusError 400
    for another name or no metadata, 422 that shows it where its types are wrong."""
    if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
        raise bad_request(f"the patch leaves no {route.resource.kind} with metadata")
    name = patched["metadata"].get("name")
    if isinstance(name, str):
        check_name(name, route.name)
    try:
        return posted(route, patched)
    except StatusError as error:
        if error.code != 400:
            raise
        why = error.message.rpartition(f" cannot be handled as a {route.resource.kind}: ")[2]
        cause = invalid_value("patch", encode(patched).decode(), why)
        raise invalid("", "", "", [cause]) from None


def _place(route: Route) -> str:
    """Where an API server keeps the object in etcd."""
    plural = route.resource.plural
    parts = ("", "registry", _PLACES.get(plural, plural), route.key.namespace, route.name)
    return "/".join(part for number, part in enumerate(parts) if part or not number)
