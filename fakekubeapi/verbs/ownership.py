"""What the verbs do with `managedFields`: read them, let `apply` decide, write them again."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fakekubeapi.apply.field_sets import Path
from fakekubeapi.apply.last_applied import with_last_applied
from fakekubeapi.apply.managers import APPLY, UPDATE, Manager, Owned, decode, encode
from fakekubeapi.apply.ownership import (
    Conflicts,
    Write,
    after_apply,
    after_update,
    applied_as_new,
    before_first_apply,
)
from fakekubeapi.apply.structure import Struct, shape_of
from fakekubeapi.errors import StatusError
from fakekubeapi.requests.routes import Route
from fakekubeapi.resources.wire import as_written
from fakekubeapi.storage.changes import Object
from kubeobjects.structs import replace

ByManager = dict[Manager, Owned]
Entries = list[dict[str, Any]]
_STATUS: Final[Path] = ("f:status",)
_SPEC: Final[Path] = ("f:spec",)
_IGNORED: Final[dict[str, tuple[Path, ...]]] = {
    "": (_STATUS,),
    "status": (_SPEC,),
    "approval": (_SPEC,),
    "resize": (_STATUS,),
    "ephemeralcontainers": (_STATUS,),
}
"""What a request to a subresource cannot change, and so cannot own."""
_RESET: Final[Entries] = [{}]
"""The `managedFields` with which a client says that nobody shall own anything."""


class Writer(msgspec.Struct, frozen=True):
    """The client of a request that writes."""

    name: str
    """As `managedFields` names him (`manager_name`)."""
    time: str = ""
    owners: ByManager | None = None
    """The owners as an apply has decided them; None: this is an update."""

    def at(self, time: str) -> Writer:
        """The same, at that time (RFC 3339)."""
        return replace(self, time=time)


SERVER: Final = Writer("kube-apiserver")
"""The writer of changes that no client asked for."""


class Owners:
    """Works out the owners of fields. With `settings.field_managers` off, only objects that are
    applied get owners."""

    def __init__(self, *, field_managers: bool) -> None:
        self._field_managers = field_managers

    def of_new(self, route: Route, given: Object, made: Object, writer: Writer) -> Entries:
        """The `managedFields` of a new object. `given`: as it was sent; `made`: with defaults."""
        if writer.owners is not None:
            return encode(writer.owners)
        if not self._field_managers:
            return []
        before, after = _empty(route), dict(made)
        for path in route.resource.strategy.admitted:
            group, field = path.split(".")
            if field not in (given.get(group) or {}) and field in (after.get(group) or {}):
                after[group] = {k: v for k, v in after[group].items() if k != field}
        return encode(after_update({}, before, after, _shape(route), _write(route, writer, UPDATE)))

    def of_applied(self, route: Route, applied: Object, writer: Writer) -> ByManager:
        """The owners of a new object that is applied."""
        return applied_as_new(applied, _shape(route), _write(route, writer, APPLY))

    def after_apply(
        self, route: Route, old: Object, applied: Object, writer: Writer, *, force: bool
    ) -> tuple[Object, ByManager]:
        """The object that an apply makes of `old`, and its owners. Raises: StatusError 409 for
        conflicts."""
        shape, write = _shape(route), _write(route, writer, APPLY)
        live, owners = _without_entries(old), _decoded(old["metadata"].get("managedFields")) or {}
        if not owners:
            owners = before_first_apply(_empty(route), live, shape, write)
        try:
            new, decided = after_apply(owners, live, applied, shape, write, force=force)
        except Conflicts as conflicts:
            details = {"causes": conflicts.causes}
            raise StatusError(409, conflicts.message, details=details) from None
        new = with_last_applied(new, applied, writer.name)
        if new == live and write.manager in decided:  # who changes nothing gets no time for it
            before = owners[write.manager].time if write.manager in owners else ""
            decided[write.manager] = Owned(decided[write.manager].fields, before)
        return new, decided

    def after_write(
        self, route: Route, old: Object, new: Object, writer: Writer, given: Any
    ) -> Entries:
        """The `managedFields` of a changed object; `given`: those that the client sent with it.

        They count where they can be read and the request is to the object itself; an object
        without any stays so."""
        if writer.owners is not None:
            return encode(writer.owners)
        stored = old["metadata"].get("managedFields")
        if not route.subresource and given == _RESET:
            return []
        owners = _decoded(given) if given and not route.subresource else None
        owners = owners or _decoded(stored)
        if not owners:
            return []
        write = _write(route, writer, UPDATE)
        before, after = _without_entries(old), _without_entries(new)
        return encode(after_update(owners, before, after, _shape(route), write))


def _shape(route: Route) -> Struct:
    return shape_of(route.message)


def _write(route: Route, writer: Writer, operation: str) -> Write:
    manager = Manager(writer.name, operation, route.resource.api_version, route.subresource)
    return Write(manager, writer.time, _IGNORED.get(route.subresource, ()))


def _decoded(entries: Any) -> ByManager | None:
    """The owners that these entries name; None if they cannot be read."""
    try:
        return decode(entries)
    except (ValueError, AttributeError):
        return None


def _without_entries(obj: Object) -> Object:
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    return {**obj, "metadata": metadata}


def _empty(route: Route) -> Object:
    """What Go writes of an empty object: nobody gets to own it by creating one."""
    resource = route.resource
    kind = {"kind": resource.kind, "apiVersion": resource.api_version}
    return kind | as_written({}, route.message)
