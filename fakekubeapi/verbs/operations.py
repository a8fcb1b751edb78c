"""What the verbs do to the store: create, get, list, update, patch, bind (delete: `deletion`).

Everything here is synchronous, so a request is one atomic step. Stored objects are never changed
in place, and bodies are copied before they are stored.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace
from typing import Any, Final

from fakekubeapi.access import ADMIN, User
from fakekubeapi.access.settings import AccessSettings
from fakekubeapi.bodies import encode
from fakekubeapi.errors import (
    StatusError,
    bad_request,
    conflict,
    invalid,
    not_found,
    other_uid,
)
from fakekubeapi.patches.patch import apply_patch
from fakekubeapi.requests.routes import Route
from fakekubeapi.requests.shapes import check_shape
from fakekubeapi.storage.selectors import Predicate
from fakekubeapi.storage.store import Key, Object, Store
from fakekubeapi.verbs import creation
from fakekubeapi.verbs.bindings import (
    binding_problem,
    is_disrupted,
    target_of,
    with_disruption,
)
from fakekubeapi.verbs.controllers import Controllers
from fakekubeapi.verbs.creation import New, Server
from fakekubeapi.verbs.deletion import Deletion
from fakekubeapi.verbs.ownership import SERVER, Owners, Writer
from fakekubeapi.verbs.posted import (
    appliable,
    check_applied_as_new,
    check_name,
    posted,
    written,
)
from fakekubeapi.verbs.strict_patches import require_known_patch
from kubeobjects.causes import invalid_value
from kubeobjects.metadata import DELETION
from kubeobjects.schema.messages import message
from simclock import Clock, Ids, format_rfc3339

MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
_SERVER_OWNED: Final = (
    "name",
    "namespace",
    "creationTimestamp",
    "generation",
    "resourceVersion",
)

_PLACES: Final = {"nodes": "minions", "services": "services/specs"}
"""Kinds that etcd has under another name."""


class Operations:
    """The verbs over one store. `clock` gives creation and deletion times, `ids` the UIDs."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, settings: AccessSettings) -> None:
        self._store = store
        self._clock = clock
        self._owners = Owners(settings)
        self.controllers = Controllers(store, clock, ids, settings)
        self._server = Server(store, clock, ids, settings, self._owners, self.controllers)
        self.deletion = Deletion(store, clock)

    def create(
        self,
        route: Route,
        body: Any,
        *,
        dry_run: bool,
        user: User = ADMIN,
        writer: Writer = SERVER,
        by_update: bool = False,
    ) -> Object:
        """Store a new object of `user`, completed with defaults and what the server sets; returns
        it. `writer`: who owns its fields from now on. `by_update`: a PUT or an apply makes it, so
        it may name a version, and keeps the marks of a deletion.

        With `dry_run` it is checked, but not stored. Raises: StatusError 400 for a body that does
        not fit the path, 404 for an unknown namespace, 409 if the object exists, 422 for wrong
        fields.
        """
        new = New(route, body, user, writer, by_update, dry_run)
        return creation.create(new, self._server)

    def get(self, route: Route) -> Object:
        """The stored object itself, not to be changed. Raises: StatusError 404."""
        found = self._store.get(route.key)
        if found is None:
            raise not_found(route.resource.qualified, route.name)
        return found

    def list(
        self,
        route: Route,
        matches: Predicate,
        *,
        limit: int = 0,
        start: str = "",
        count_rest: bool = False,
    ) -> Object:
        """A list object with the stored objects that match, in order of namespace and name.

        `limit` > 0 ends it after that many; then its `metadata.continue` is the `start` of the next
        part. With `count_rest`, for lists that nothing is selected from, its
        `metadata.remainingItemCount` says how many objects are left.
        Raises: StatusError 400 for a `start` that is not such a token.
        """
        keys = self._store.keys(route.resource.qualified, route.namespace)
        if start:
            last = _decode_continue(start)
            keys = [key for key in keys if (key.namespace, key.name) > last]
        items: list[Object] = []
        metadata: dict[str, Any] = {"resourceVersion": str(self._store.revision)}
        for i, key in enumerate(keys):
            obj = self._store.get(key)
            if obj is not None and matches(obj):
                items.append({k: v for k, v in obj.items() if k not in ("kind", "apiVersion")})
            if limit and len(items) == limit and i + 1 < len(keys):
                metadata["continue"] = _encode_continue(key)
                if count_rest:
                    metadata["remainingItemCount"] = len(keys) - i - 1
                break
        return {
            "kind": f"{route.resource.kind}List",
            "apiVersion": route.resource.api_version,
            "metadata": metadata,
            "items": items,
        }

    def update(
        self, route: Route, body: Any, *, dry_run: bool, writer: Writer = SERVER
    ) -> tuple[Object, bool]:
        """Replace the object (PUT); returns it as stored, and whether this created it.

        With `dry_run` nothing is stored. Raises: StatusError 400 for a body that does not fit the
        path, 404 if there is no such object, 409 if it has another UID or version than the body
        says, 422 for wrong fields.
        """
        resource, name = route.resource, route.name
        new = posted(route, body)
        if not new["metadata"].get("name"):
            raise bad_request(
                f"the name of the object ({name} based on URL) was undeterminable: name must be "
                "provided"
            )
        check_name(new["metadata"]["name"], name)
        old = self._store.get(route.key)
        if old is None and resource.strategy.allow_create_on_update and not route.subresource:
            if uid := new["metadata"].get("uid"):
                place = _place(route)
                raise other_uid(resource.qualified, name, place=place, wanted=uid, found="")
            made = self.create(route, body, dry_run=dry_run, writer=writer, by_update=True)
            return made, True
        if old is None:
            raise not_found(resource.qualified, name)
        new["metadata"].setdefault("resourceVersion", "0")
        uid, found = new["metadata"].get("uid"), old["metadata"]["uid"]
        if uid and uid != found:
            place = _place(route)
            raise other_uid(resource.qualified, name, place=place, wanted=uid, found=found)
        return self._replace(route, old, new, dry_run=dry_run, writer=writer), False

    def patch(
        self,
        route: Route,
        body: Any,
        content_type: str,
        *,
        dry_run: bool,
        strict: bool = False,
        writer: Writer = SERVER,
    ) -> Object:
        """Apply a patch of the kind `content_type` says; returns the object as stored.

        With `dry_run` nothing is stored. Raises: StatusError as `update` does, and 415 for another
        content type, 400, 422 or 500 for a patch that does not apply; if it is `strict`, 422 for
        fields that the kind does not have.
        """
        old = self.get(route)
        patched = apply_patch(content_type, old, body, route.message)
        if strict:
            require_known_patch(route.message, content_type, body, patched)
        if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
            raise bad_request(f"the patch leaves no {route.resource.kind} with metadata")
        given = patched["metadata"].get("name")
        if isinstance(given, str):
            check_name(given, route.name)
        try:
            new = posted(route, patched)
        except StatusError as error:
            if error.code != 400:
                raise
            why = error.message.rpartition(f" cannot be handled as a {route.resource.kind}: ")[2]
            cause = invalid_value("patch", encode(patched).decode(), why)
            raise invalid("", "", "", [cause]) from None
        return self._replace(route, old, new, dry_run=dry_run, writer=writer)

    def apply(
        self, route: Route, body: Any, *, dry_run: bool, force: bool, user: User, writer: Writer
    ) -> tuple[Object, bool]:
        """Apply an object (server-side apply); returns it as stored, and whether this created it.

        `force`: take the fields of others that differ. With `dry_run` nothing is stored. Raises:
        StatusError as `update` does, 400 for a body that is no object to be applied, 409 with its
        causes for fields of others that would change, 500 for fields that the type does not have.
        """
        applied = appliable(route, body)
        old = self._store.get(route.key)
        if old is None:
            if route.subresource:
                raise not_found(route.resource.qualified, route.name)
            check_applied_as_new(route, applied)
            owners = self._owners.of_applied(route, applied, writer.at(self._now_text()))
            writer = replace(writer, owners=owners)
            made = self.create(
                route, applied, dry_run=dry_run, user=user, writer=writer, by_update=True
            )
            return made, True
        new, owners = self._owners.after_apply(
            route, old, applied, writer.at(self._now_text()), force=force
        )
        writer = replace(writer, owners=owners)
        checked = posted(route, new)
        return self._replace(route, old, checked, dry_run=dry_run, writer=writer), False

    def bind(self, route: Route, body: Any) -> None:
        """Give an unbound pod its node, as a scheduler does (POST pods/binding). Raises:
        StatusError 404 without the pod, 422 without a node, 409 if the pod has a node."""
        check_shape(body, message("core.v1.Binding"))
        node = target_of(route, body or {})
        pod, name = self.get(route), route.name
        problem = binding_problem(pod)
        if problem:
            raise conflict("pods/binding", name, f"pod {name} {problem}")
        given = (body or {}).get("metadata") or {}
        metadata = dict(pod["metadata"])
        for field in ("labels", "annotations"):
            if given.get(field):
                metadata[field] = {**metadata.get(field, {}), **given[field]}
        condition = {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": self._now_text(),
        }
        status = pod.get("status", {})
        others = [c for c in status.get("conditions", []) if c["type"] != "PodScheduled"]
        changed = {
            **pod,
            "metadata": metadata,
            "spec": {**pod["spec"], "nodeName": node},
            "status": {**status, "conditions": [*others, condition]},
        }
        self._store.put(route.key, changed)

    def evict(self, route: Route, options: Any, *, dry_run: bool) -> None:
        """Delete a pod for an eviction; a condition tells it first. Raises: StatusError as
        `Deletion.delete` does."""
        pod = self.get(route)
        if not dry_run and not is_disrupted(pod):
            self.deletion.check(route, options)
            self._store.put(route.key, with_disruption(pod, self._now_text()))
        self.deletion.delete(route, options, dry_run=dry_run)

    # -- parts ---------------------------------------------------------------------------------

    def _now_text(self) -> str:
        return format_rfc3339(self._clock.wall_ns())

    def _replace(
        self, route: Route, old: Object, new: Object, *, dry_run: bool, writer: Writer
    ) -> Object:
        """Check `new` (a copy, changed here) against `old` and store it where they differ."""
        resource, name = route.resource, route.name
        was, now = old["metadata"], new["metadata"]
        version = now.get("resourceVersion")
        if version and not version.isdecimal():
            why = f'strconv.ParseUint: parsing "{version}": invalid syntax'
            raise StatusError(500, why, reason="")
        if version == "0" and resource.strategy.needs_resource_version:
            cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(resource.plural, resource.group, name, [cause])
        if version and version not in ("0", was["resourceVersion"]):
            raise conflict(resource.qualified, name, MODIFIED)
        for field in _SERVER_OWNED:
            now.pop(field, None)
            if field in was:
                now[field] = was[field]
        now["uid"] = now.get("uid") or was["uid"]  # what is sent of these is checked
        for field in DELETION:
            if field in was:
                now.setdefault(field, was[field])
        given = now.pop("managedFields", None)
        resource.strategy.prepare_update(new, old, route.subresource)
        resource.strategy.set_times(new, old, self._now_text())
        new = written(route.message, new)
        owners = self._owners.after_write(route, old, new, writer.at(self._now_text()), given)
        resource.strategy.admit(new)
        causes = resource.strategy.validate_update(new, old, route.subresource)
        if causes:
            raise invalid(resource.kind, resource.group, name, causes)
        if resource.strategy.has_generation and new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = was.get("generation", 0) + 1
        if owners:
            new["metadata"]["managedFields"] = owners
        return old if _same_but_times(new, old) else self._commit(route, new, dry_run=dry_run)

    def _commit(self, route: Route, new: Object, *, dry_run: bool) -> Object:
        """Store a changed object; one that is marked as deleted goes with its last finalizer."""
        if dry_run:
            return new
        metadata = new["metadata"]
        stored = self._store.put(route.key, new)
        self.controllers.after_write(route.key)
        leaving = "deletionTimestamp" in metadata and not metadata.get("finalizers")
        if leaving and not metadata.get("deletionGracePeriodSeconds"):
            return self._store.remove(route.key)
        return stored


def _place(route: Route) -> str:
    """Where an API server keeps the object in etcd."""
    plural = route.resource.plural
    parts = ("", "registry", _PLACES.get(plural, plural), route.key.namespace, route.name)
    return "/".join(part for number, part in enumerate(parts) if part or not number)


def _same_but_times(new: Object, old: Object) -> bool:
    """Whether a write changed nothing; that somebody has said again what he owns is no change."""

    def timeless(obj: Object) -> Object:
        entries = obj["metadata"].get("managedFields") or ()
        shown = [{k: v for k, v in entry.items() if k != "time"} for entry in entries]
        return {**obj, "metadata": {**obj["metadata"], "managedFields": shown}}

    return bool(new == old) or timeless(new) == timeless(old)


def _encode_continue(key: Key) -> str:
    return base64.urlsafe_b64encode(f"{key.namespace}/{key.name}".encode()).decode()


def _decode_continue(token: str) -> tuple[str, str]:
    try:
        namespace, _, name = base64.b64decode(token, b"-_", validate=True).decode().partition("/")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        why = "illegal base64 data at input byte 0"
        raise bad_request(f"invalid continue token: continue key is not valid: {why}") from None
    return namespace, name
