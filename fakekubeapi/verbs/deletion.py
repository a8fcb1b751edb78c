"""How an object goes: at once, or marked until a kubelet or finalizers let it go (STAT-030,
MIRR-029). Step by step, each with what it may do; read `STEPS` first.

The mark is metadata.deletionTimestamp (now plus the grace period) and deletionGracePeriodSeconds.
A later delete can shorten the grace period, never lengthen it; with 0 the object goes. A pod is
marked even when it goes at once, so its watchers see MODIFIED, then DELETED; its generation grows
once, with the first mark (recorded runs s20, s21, s26).
Upstream: apiserver pkg/registry/rest: BeforeDelete; pkg/registry/generic/registry: Store.Delete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from fakekubeapi.bodies import copy_json
from fakekubeapi.errors import conflict, precondition_failed
from fakekubeapi.requests.routes import Route
from fakekubeapi.requests.shapes import check_shape
from fakekubeapi.resources import Resource
from fakekubeapi.storage.changes import Object
from fakekubeapi.verbs.server import Server
from kubeobjects.schema.messages import message
from simclock import Clock


@dataclass(slots=True)
class Leaving:
    """An object that somebody deletes."""

    route: Route
    options: Any
    """The DeleteOptions as they came, or None."""
    dry_run: bool = False
    obj: Object = field(default_factory=dict)
    """Its last or current state."""
    grace_s: int | None = None
    """How long it gets; None: this delete changes nothing."""
    gone: bool = False
    """Whether it has left the store, or would have."""

    @property
    def waits(self) -> bool:
        """Whether somebody else lets it go later: a kubelet after the grace period, or who owns a
        finalizer."""
        return bool(self.grace_s or self.obj["metadata"].get("finalizers"))


def found(leaving: Leaving, server: Server) -> None:
    """Object and options are looked at. Raises: StatusError 404 if there is no such object, 400 for
    malformed options."""
    leaving.obj = server.stored(leaving.route)
    check_shape(leaving.options, message("meta.v1.DeleteOptions"))


def allowed(leaving: Leaving, server: Server) -> None:
    """UID and version are compared with those that the options name. Raises: StatusError 409."""
    conditions = (leaving.options or {}).get("preconditions") or {}
    _check_preconditions(leaving.route.resource, leaving.obj, conditions)


def timed(leaving: Leaving, server: Server) -> None:
    """It gets its grace period, unless it has a shorter one already. Refuses nothing."""
    metadata, asked_s = leaving.obj["metadata"], (leaving.options or {}).get("gracePeriodSeconds")
    repeated = "deletionTimestamp" in metadata
    if repeated and asked_s is None:
        return
    grace_s = leaving.route.resource.strategy.delete_grace_s(leaving.obj, asked_s)
    if not repeated or grace_s < metadata.get("deletionGracePeriodSeconds", 0):
        leaving.grace_s = grace_s


def marked(leaving: Leaving, server: Server) -> None:
    """It says that it is being deleted, if anybody shall see that; stored unless this is a trial
    run. Refuses nothing."""
    resource, grace_s = leaving.route.resource, leaving.grace_s
    if grace_s is None or not (resource.strategy.graceful or leaving.waits):
        return
    leaving.obj = _with_mark(resource, leaving.obj, grace_s, server.clock)
    if not leaving.dry_run:
        leaving.obj = server.store.put(leaving.route.key, leaving.obj)


def removed(leaving: Leaving, server: Server) -> None:
    """It leaves the store unless it waits, or this is a trial run; a namespace takes its objects
    with it. Refuses nothing."""
    if leaving.grace_s is None or leaving.waits:
        return
    leaving.gone = True
    if leaving.dry_run:
        return
    leaving.obj = server.store.remove(leaving.route.key)
    if leaving.route.resource.qualified == "namespaces":
        # Stands in for the namespace controller of a whole cluster.
        for key in server.store.namespaced_keys(leaving.route.name):
            server.store.remove(key)
    server.controllers.after_write(leaving.route.key)


STEPS: Final[tuple[Callable[[Leaving, Server], None], ...]] = (
    found,
    allowed,
    timed,
    marked,
    removed,
)


def delete(leaving: Leaving, server: Server) -> Leaving:
    """Take the object through all steps; returns what became of it. Raises: StatusError as they
    do."""
    for step in STEPS:
        step(leaving, server)
    return leaving


def _with_mark(resource: Resource, obj: Object, grace_s: int, clock: Clock) -> Object:
    """`obj` with its deletion time: now plus grace. A shortened grace period counts from the first
    delete, but never ends in the past (recorded run s21)."""
    metadata = copy_json(obj["metadata"])
    now = clock.now()
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


def _duration(seconds: int) -> timedelta:
    """A duration as an API server holds it: nanoseconds in a signed 64-bit number, which overflows
    after 292 years."""
    nanoseconds = (seconds * 10**9 + 2**63) % 2**64 - 2**63
    return timedelta(microseconds=nanoseconds // 1000)


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
