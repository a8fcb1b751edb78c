"""The delete verb: an object goes at once, or is marked until a kubelet or finalizers let it go
(STAT-030, MIRR-029).

The mark is metadata.deletionTimestamp (now plus the grace period) and deletionGracePeriodSeconds.
A later delete can shorten the grace period, never lengthen it; with 0 the object goes. A pod is
marked even when it goes at once, so its watchers see MODIFIED, then DELETED; its generation grows
once, with the first mark (recorded runs s20, s21, s26).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from fakekubeapi.bodies import copy_json
from fakekubeapi.errors import conflict, not_found, precondition_failed
from fakekubeapi.requests.routes import Route
from fakekubeapi.requests.shapes import check_shape
from fakekubeapi.resources import Resource
from fakekubeapi.storage.store import Object, Store
from kubeobjects.schema.messages import message
from simclock import Clock


class Deletion:
    """The delete verb over one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def delete(self, route: Route, options: Any, *, dry_run: bool) -> tuple[Object, bool]:
        """Delete the object at `route`; returns its last or current state, and whether it is gone.

        `options` is a DeleteOptions body or None (gracePeriodSeconds, preconditions). With
        `dry_run` nothing is changed. A deleted namespace takes its objects with it. Raises:
        StatusError 404 if there is no such object, 409 if a precondition does not hold, 400 if
        `options` is malformed.
        """
        resource, key = route.resource, route.key
        obj = self._store.get(key)
        if obj is None:
            raise not_found(resource.qualified, route.name)
        check_shape(options, message("meta.v1.DeleteOptions"))
        options = options or {}
        _check_preconditions(resource, obj, options.get("preconditions") or {})
        grace_s = _effective_grace_s(resource, obj, options.get("gracePeriodSeconds"))
        metadata = obj["metadata"]
        marked = "deletionTimestamp" in metadata
        if grace_s is None or (marked and grace_s >= metadata.get("deletionGracePeriodSeconds", 0)):
            return obj, False
        waits = bool(grace_s or metadata.get("finalizers"))
        if dry_run:
            shown = resource.strategy.graceful or waits
            return (self._marked(resource, obj, grace_s) if shown else obj), not waits
        if resource.strategy.graceful or waits:
            obj = self._store.put(key, self._marked(resource, obj, grace_s))
        if waits:
            return obj, False
        last = self._store.remove(key)
        if resource.qualified == "namespaces":
            self._empty_namespace(route.name)
        return last, True

    def check(self, route: Route, options: Any) -> None:
        """Raise StatusError 404 or 409 if such a deletion would be refused."""
        obj = self._store.get(route.key)
        if obj is None:
            raise not_found(route.resource.qualified, route.name)
        _check_preconditions(route.resource, obj, (options or {}).get("preconditions") or {})

    def _marked(self, resource: Resource, obj: Object, grace_s: int) -> Object:
        """`obj` with its deletion time: now plus grace. A shortened grace period counts from the
        first delete, but never ends in the past (recorded run s21)."""
        metadata = copy_json(obj["metadata"])
        now = self._clock.now()
        end = now + _duration(grace_s)
        if "deletionTimestamp" in metadata:
            first_end = datetime.fromisoformat(metadata["deletionTimestamp"])
            running = metadata.get("deletionGracePeriodSeconds", 0)
            end = max(now, first_end - _duration(running - grace_s))
        elif resource.strategy.has_generation:
            metadata["generation"] = metadata.get("generation", 0) + 1
        metadata["deletionTimestamp"] = end.strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata["deletionGracePeriodSeconds"] = grace_s
        return {**obj, "metadata": metadata}

    def _empty_namespace(self, name: str) -> None:
        # Stands in for the namespace controller of a whole cluster.
        for key in self._store.namespaced_keys(name):
            self._store.remove(key)


def _duration(seconds: int) -> timedelta:
    """A duration as an API server holds it: nanoseconds in a signed 64-bit number, which overflows
    after 292 years."""
    nanoseconds = (seconds * 10**9 + 2**63) % 2**64 - 2**63
    return timedelta(microseconds=nanoseconds // 1000)


def _effective_grace_s(resource: Resource, obj: Object, asked: int | None) -> int | None:
    """The grace period a delete asks for; None for a repeated delete that names none, which
    changes nothing."""
    if asked is None and "deletionTimestamp" in obj["metadata"]:
        return None
    return resource.strategy.delete_grace_s(obj, asked)


def _check_preconditions(resource: Resource, obj: Object, wanted: dict[str, Any]) -> None:
    name, metadata = obj["metadata"]["name"], obj["metadata"]
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    if resource.qualified != "namespaces":  # they have their own way to be deleted
        _check_before_delete(resource, obj, uid, version)
    if uid and uid != metadata["uid"]:
        raise precondition_failed(
            resource.qualified, name, field="UID", wanted=uid, found=metadata["uid"]
        )
    if version and version != metadata["resourceVersion"]:
        raise precondition_failed(
            resource.qualified,
            name,
            field="ResourceVersion",
            wanted=version,
            found=metadata["resourceVersion"],
        )


def _check_before_delete(
    resource: Resource, obj: Object, uid: str | None, version: str | None
) -> None:
    """The same in the words for all kinds but one."""
    metadata = obj["metadata"]
    for word, asked, found, end in (
        ("UID", uid, metadata["uid"], "deleted and then recreated"),
        ("ResourceVersion", version, metadata["resourceVersion"], "modified"),
    ):
        if asked and asked != found:
            raise conflict(
                f"{resource.kind}.{resource.group}".rstrip("."),
                metadata["name"],
                f"the {word} in the precondition ({asked}) does not match the {word} in record "
                f"({found}). The object might have been {end}",
            )
