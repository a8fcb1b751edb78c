"""Objects with revisions, and the history of their changes: what etcd is to an API server.

One counter numbers every change of every object. Stored objects are never changed in place: a
change stores a new dict, so whoever holds an old one keeps a true snapshot. What must never
happen: a change without an entry in the history, or two entries with one number.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from fakeapi.errors import expired

Object = dict[str, Any]
ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]
DEFAULT_HISTORY: Final = 10_000


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Where an object lives. `resource` is qualified (`pods`, `leases.coordination.k8s.io`);
    `namespace` is "" for cluster-scoped objects."""

    resource: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Change:
    """One step of history. `previous` is the object before it, None for a new one."""

    revision: int
    type: ChangeType
    key: Key
    object: Object
    previous: Object | None


class Store:
    """The objects, the counter, and the last `history` changes (the older ones are forgotten)."""

    def __init__(self, history: int = DEFAULT_HISTORY) -> None:
        self.revision = 0
        self._objects: dict[Key, Object] = {}
        self._changes: deque[Change] = deque()
        self._history = history
        self._compacted = 0
        self._waiting: list[asyncio.Future[None]] = []

    def get(self, key: Key) -> Object | None:
        return self._objects.get(key)

    def keys(self, resource: str, namespace: str | None = None) -> list[Key]:
        """The keys of a resource in storage order (namespace, name); None = all namespaces."""
        return sorted(
            key
            for key in self._objects
            if key.resource == resource and namespace in (None, key.namespace)
        )

    def items(self, resource: str, namespace: str | None = None) -> Iterator[Object]:
        for key in self.keys(resource, namespace):
            yield self._objects[key]

    def namespaced_keys(self, namespace: str) -> list[Key]:
        """Everything that lives in a namespace, in storage order."""
        return sorted(key for key in self._objects if key.namespace == namespace)

    def put(self, key: Key, obj: Object) -> Object:
        """Store `obj` with the next revision; returns the stored object."""
        previous = self._objects.get(key)
        stored = self._stamp(obj)
        self._objects[key] = stored
        kind: ChangeType = "ADDED" if previous is None else "MODIFIED"
        self._record(
            Change(revision=self.revision, type=kind, key=key, object=stored, previous=previous)
        )
        return stored

    def remove(self, key: Key) -> Object:
        """Take the object out; returns its last state, stamped with the revision of the end."""
        previous = self._objects.pop(key)
        last = self._stamp(previous)
        self._record(
            Change(revision=self.revision, type="DELETED", key=key, object=last, previous=previous)
        )
        return last

    def changes_since(self, revision: int) -> list[Change]:
        """All changes after `revision`; raises 410 Expired when some of them are forgotten."""
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
        """Forget the whole history: every watch that has to catch up gets 410 Gone."""
        self._changes.clear()
        self._compacted = self.revision

    async def changed(self) -> None:
        """Wait for the next change."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        finally:
            if future in self._waiting:
                self._waiting.remove(future)

    def wake(self) -> None:
        """Let everybody who waits in `changed` look again."""
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
