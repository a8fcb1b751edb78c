"""Objects with revisions, and the history of their changes: what etcd is to an API server.

One counter numbers the changes of all objects; each change has one entry in the history, under its
own number. Stored objects are never changed in place: a change stores a new dict, so the old one
remains a true snapshot.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from fakekubeapi.errors import expired

Object = dict[str, Any]
ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]
DEFAULT_HISTORY: Final = 10_000


class Key(NamedTuple):
    """What identifies a stored object; sorted, keys are in storage order."""

    resource: str
    """The qualified name: `pods`, `leases.coordination.k8s.io`."""
    namespace: str
    """"" for cluster-scoped objects."""
    name: str


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the history."""

    revision: int
    type: ChangeType
    key: Key
    object: Object
    """The object after the change; a deleted one as it was last, with this revision."""
    previous: Object | None
    """The object before the change; None if it is new."""


class Store:
    """The objects, their `revision` (the number of the last change; 0: none yet), and the last
    `history` changes; older ones are forgotten."""

    def __init__(self, history: int = DEFAULT_HISTORY) -> None:
        self.revision = 0
        self._objects: dict[Key, Object] = {}
        self._changes: deque[Change] = deque()
        self._history = history
        self._compacted = 0
        self._waiting: list[asyncio.Future[None]] = []

    def get(self, key: Key) -> Object | None:
        """The stored object itself, not to be changed; None if there is none."""
        return self._objects.get(key)

    def keys(self, resource: str, namespace: str | None = None) -> list[Key]:
        """The keys of a resource by namespace and name. `namespace` None: of all namespaces."""
        return sorted(
            key
            for key in self._objects
            if key.resource == resource and namespace in (None, key.namespace)
        )

    def items(self, resource: str, namespace: str | None = None) -> Iterator[Object]:
        """The stored objects of a resource, in the order of `keys`; not to be changed."""
        for key in self.keys(resource, namespace):
            yield self._objects[key]

    def namespaced_keys(self, namespace: str) -> list[Key]:
        """The keys of all objects in a namespace, by resource and name."""
        return sorted(key for key in self._objects if key.namespace == namespace)

    def put(self, key: Key, obj: Object) -> Object:
        """Store `obj`, new or changed, under the next revision; returns the stored object, whose
        resourceVersion it is."""
        previous = self._objects.get(key)
        stored = self._stamp(obj)
        self._objects[key] = stored
        kind: ChangeType = "ADDED" if previous is None else "MODIFIED"
        self._record(
            Change(revision=self.revision, type=kind, key=key, object=stored, previous=previous)
        )
        return stored

    def remove(self, key: Key) -> Object:
        """Remove the object; returns its last state, with the revision of its removal as its
        resourceVersion. Raises: KeyError if there is none."""
        previous = self._objects.pop(key)
        last = self._stamp(previous)
        self._record(
            Change(revision=self.revision, type="DELETED", key=key, object=last, previous=previous)
        )
        return last

    def changes_since(self, revision: int) -> list[Change]:
        """All changes after `revision`, the oldest first. Raises: StatusError 410 (Expired) when
        some of them are forgotten."""
        if revision < self._compacted:
            raise expired(revision, self._compacted)
        newer: list[Change] = []
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            newer.append(change)
        newer.reverse()
        return newer

    def compact(self) -> None:
        """Forget the whole history: a watch that has not seen all of it gets 410 Expired."""
        self._changes.clear()
        self._compacted = self.revision

    async def changed(self) -> None:
        """Wait for the next change, or for `wake`."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        finally:
            if future in self._waiting:
                self._waiting.remove(future)

    def wake(self) -> None:
        """Let all that wait in `changed` go on, as a change would."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _stamp(self, obj: Object) -> Object:
        self.revision += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self.revision)}
        return {**obj, "metadata": metadata}

    def _record(self, change: Change) -> None:
        self._changes.append(change)
        while len(self._changes) > self._history:
            self._compacted = self._changes.popleft().revision
        self.wake()
