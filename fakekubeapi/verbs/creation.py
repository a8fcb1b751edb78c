"""How a new object comes into the store: step by step, each with what it may do.

Read `STEPS` first: the order is that of a kube-apiserver, and part of what clients see. Until
`stored` nothing is written, so that a refusal leaves nothing behind.
Upstream: apiserver pkg/registry/rest: BeforeCreate; pkg/registry/generic/registry: Store.Create.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from fakekubeapi.access import User
from fakekubeapi.bodies import copy_json
from fakekubeapi.errors import StatusError, already_exists, invalid, not_found
from fakekubeapi.requests.routes import Route
from fakekubeapi.storage.changes import Key, Object
from fakekubeapi.verbs.admission import admit_service_account
from fakekubeapi.verbs.ownership import Entries, Writer
from fakekubeapi.verbs.posted import posted
from fakekubeapi.verbs.server import Server
from kubeobjects.metadata import DELETION


@dataclass(slots=True)
class New:
    """An object on its way into the store."""

    route: Route
    body: Any
    user: User
    writer: Writer
    """Who owns its fields from now on."""
    by_update: bool = False
    """A PUT or an apply makes it: it may name a version, and keeps the marks of a deletion."""
    dry_run: bool = False
    obj: Object = field(default_factory=dict)
    """The object, from `read` on; every step but `validated` may change it."""
    sent: Object = field(default_factory=dict)
    """As it was before it had defaults."""
    version: str = "0"
    """The version that the client named."""
    owners: Entries | None = None
    """Its `managedFields`."""

    @property
    def metadata(self) -> dict[str, Any]:
        """Those of the object."""
        metadata: dict[str, Any] = self.obj["metadata"]
        return metadata


def read(new: New, server: Server) -> None:
    """The body becomes an object in the form in which the server writes it. Raises: StatusError 400
    for one that does not fit the path, 404 for an unknown namespace."""
    new.obj = posted(new.route, new.body)
    namespace = new.route.namespace or ""
    if namespace and server.store.get(Key("namespaces", "", namespace)) is None:
        raise not_found("namespaces", namespace)


def identified(new: New, server: Server) -> None:
    """The object gets its name, UID and time, and loses fields that only a server may set. Refuses
    nothing."""
    metadata = new.metadata
    new.version = str(metadata.get("resourceVersion") or "0")
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"] + server.ids.hex(5)
    resource, namespace = new.route.resource.qualified, new.route.namespace or ""
    key = Key(resource, namespace, metadata.get("name", ""))
    metadata["uid"] = server.store.given_uids.pop(key, "") or server.ids.uuid()
    metadata["creationTimestamp"] = server.now()
    for name in ("resourceVersion", "managedFields", *(() if new.by_update else DELETION)):
        metadata.pop(name, None)
    new.sent = copy_json(new.obj)
    if new.route.resource.strategy.has_generation:
        metadata["generation"] = 1


def defaulted(new: New, server: Server) -> None:
    """It gets the API's defaults, and loses what a client may not set. Refuses nothing, and looks
    at nothing but the object."""
    new.route.resource.strategy.prepare_create(new.obj)


def owned(new: New, server: Server) -> None:
    """The owners of its fields are worked out, from the object as it was sent and its defaults;
    what admission adds later has no owner. Changes nothing in the object."""
    writer = new.writer.at(new.metadata["creationTimestamp"])
    new.owners = server.owners.of_new(new.route, new.sent, new.obj, writer)


def admitted(new: New, server: Server) -> None:
    """It gets what the server chooses, and what plug-ins add. May look at the store. Raises:
    StatusError 403 for what a plug-in does not allow."""
    strategy = new.route.resource.strategy
    strategy.admit(new.obj)
    strategy.set_times(new.obj, {}, new.metadata["creationTimestamp"])
    strategy.set_requester(new.obj, new.user.info())
    if new.route.resource.qualified == "pods" and server.access.service_account_admission:
        admit_service_account(server.store, server.ids, new.obj)


def validated(new: New, server: Server) -> None:
    """It is checked, and not changed. Raises: StatusError 422 for wrong fields, 500 for a version,
    409 if it exists."""
    resource, metadata = new.route.resource, new.metadata
    name = metadata.get("name", "")
    causes = list(resource.strategy.validate_create(new.obj))
    if causes:
        raise invalid(resource.kind, resource.group, name, causes)
    if not new.by_update and new.version.strip("0").isdecimal():
        why = "resourceVersion should not be set on objects to be created"
        raise StatusError(500, why, reason="")
    there = server.store.get(_key(new))
    if there is not None:
        leaving = "deletionTimestamp" in there["metadata"]
        generated = bool(metadata.get("generateName"))
        raise already_exists(resource.qualified, name, leaving=leaving, generated=generated)


def stored(new: New, server: Server) -> None:
    """It is put into the store, with its owners, unless this is a trial run; controllers see it.
    The only step that writes. Refuses nothing."""
    if new.owners:
        new.metadata["managedFields"] = new.owners
    if not new.dry_run:
        new.obj = server.store.put(_key(new), new.obj)
        server.controllers.after_write(_key(new))


STEPS: Final[tuple[Callable[[New, Server], None], ...]] = (
    read,
    identified,
    defaulted,
    owned,
    admitted,
    validated,
    stored,
)


def create(new: New, server: Server) -> Object:
    """Take the object through all steps; returns it as stored. Raises: StatusError as they do."""
    for step in STEPS:
        step(new, server)
    return new.obj


def _key(new: New) -> Key:
    name = new.metadata.get("name", "")
    return Key(new.route.resource.qualified, new.route.namespace or "", name)
