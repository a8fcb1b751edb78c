"""How a stored object becomes another: step by step, each with what it may do.

PUT, PATCH and apply make the new object each in its own way (`writing`); from there on they are
one, for the object itself and for its subresources (status, resize, ...). Read `STEPS` first: the
order is that of a kube-apiserver, and part of what clients see. Until `stored` nothing is written,
so that a refusal leaves nothing behind.
Upstream: apiserver pkg/registry/rest: BeforeUpdate; pkg/registry/generic/registry: Store.Update.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fakekubeapi.errors import StatusError, conflict, invalid
from fakekubeapi.requests.routes import Route
from fakekubeapi.storage.changes import Object
from fakekubeapi.verbs.ownership import Entries, Writer
from fakekubeapi.verbs.posted import written
from fakekubeapi.verbs.server import Server
from kubeobjects.causes import invalid_value
from kubeobjects.metadata import DELETION

MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
_SERVER_OWNED: Final = ("name", "namespace", "creationTimestamp", "generation", "resourceVersion")


@dataclass(slots=True)
class Change:
    """An object on its way to another state."""

    route: Route
    old: Object
    """As it is stored; never changed."""
    obj: Object
    """As it shall be: a copy. Every step but `versioned`, `owned` and `validated` may change it."""
    writer: Writer
    """Who owns from now on what is changed."""
    dry_run: bool
    sent_owners: Any = None
    """The `managedFields` that came with it."""
    owners: Entries | None = None
    """Those that it gets."""


def versioned(change: Change, server: Server) -> None:
    """The version that the client has seen is compared. Changes nothing. Raises: StatusError 500
    for one that is no number, 422 for none where the kind needs it, 409 for another."""
    resource, version = change.route.resource, change.obj["metadata"].get("resourceVersion")
    if version and not version.isdecimal():
        why = f'strconv.ParseUint: parsing "{version}": invalid syntax'
        raise StatusError(500, why, reason="")
    if version == "0" and resource.strategy.needs_resource_version:
        cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(resource.plural, resource.group, change.route.name, [cause])
    if version and version not in ("0", change.old["metadata"]["resourceVersion"]):
        raise conflict(resource.qualified, change.route.name, MODIFIED)


def identified(change: Change, server: Server) -> None:
    """It keeps what only a server says. UID and marks of a deletion stay as they were sent, to be
    checked. Refuses nothing."""
    was, metadata = change.old["metadata"], change.obj["metadata"]
    for name in _SERVER_OWNED:
        metadata.pop(name, None)
        if name in was:
            metadata[name] = was[name]
    metadata["uid"] = metadata.get("uid") or was["uid"]
    for name in DELETION:
        if name in was:
            metadata.setdefault(name, was[name])
    change.sent_owners = metadata.pop("managedFields", None)


def prepared(change: Change, server: Server) -> None:
    """It gets back what such a request may not change, and the times of what it did change. Raises:
    StatusError 400 for amounts and bytes that cannot be read."""
    strategy = change.route.resource.strategy
    strategy.prepare_update(change.obj, change.old, change.route.subresource)
    strategy.set_times(change.obj, change.old, server.now())
    change.obj = written(change.route.message, change.obj)


def owned(change: Change, server: Server) -> None:
    """Who owns its fields is worked out, before admission adds to them. Changes nothing in the
    object."""
    writer = change.writer.at(server.now())
    change.owners = server.owners.after_write(
        change.route, change.old, change.obj, writer, change.sent_owners
    )


def admitted(change: Change, server: Server) -> None:
    """It gets what the server chooses, and loses what is switched off. Refuses nothing."""
    change.route.resource.strategy.admit(change.obj)


def validated(change: Change, server: Server) -> None:
    """It is checked, and not changed. Raises: StatusError 422 for wrong fields, and for those that
    may not change so."""
    resource = change.route.resource
    causes = list(
        resource.strategy.validate_update(change.obj, change.old, change.route.subresource)
    )
    if causes:
        raise invalid(resource.kind, resource.group, change.route.name, causes)


def counted(change: Change, server: Server) -> None:
    """Its generation grows with its spec, and it gets its owners. Refuses nothing."""
    metadata = change.obj["metadata"]
    grows = change.obj.get("spec") != change.old.get("spec")
    if grows and change.route.resource.strategy.has_generation:
        metadata["generation"] = change.old["metadata"].get("generation", 0) + 1
    if change.owners:
        metadata["managedFields"] = change.owners


def stored(change: Change, server: Server) -> None:
    """It is put into the store if anything differs and this is no trial run; controllers see it.
    One that is marked as deleted goes with its last finalizer. The only step that writes. Refuses
    nothing."""
    if _same_but_times(change.obj, change.old):
        change.obj = change.old
        return
    if change.dry_run:
        return
    key, metadata = change.route.key, change.obj["metadata"]
    change.obj = server.store.put(key, change.obj)
    server.controllers.after_write(key)
    leaves = "deletionTimestamp" in metadata and not metadata.get("finalizers")
    if leaves and not metadata.get("deletionGracePeriodSeconds"):
        change.obj = server.store.remove(key)


STEPS: Final[tuple[Callable[[Change, Server], None], ...]] = (
    versioned,
    identified,
    prepared,
    owned,
    admitted,
    validated,
    counted,
    stored,
)


def change_object(change: Change, server: Server) -> Object:
    """Take the object through all steps; returns it as stored. Raises: StatusError as they do."""
    for step in STEPS:
        step(change, server)
    return change.obj


def _same_but_times(new: Object, old: Object) -> bool:
    """Whether two versions differ at most in the times of `managedFields`: a manager that writes
    the values that it owns already changes nothing."""

    def timeless(obj: Object) -> Object:
        entries = obj["metadata"].get("managedFields") or ()
        shown = [{k: v for k, v in entry.items() if k != "time"} for entry in entries]
        return {**obj, "metadata": {**obj["metadata"], "managedFields": shown}}

    return bool(new == old) or timeless(new) == timeless(old)
