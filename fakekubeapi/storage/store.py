"""Objects with revisions, and the history of their changes: what etcd is to an API server.

One counter numbers the changes of all objects; each change has one entry in the history, under its
own number. Stored objects are never changed in place: a change stores a new dict, so the old one
remains a true snapshot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fakekubeapi.errors import StatusError
from fakekubeapi.storage.changes import Change, ChangeType, Key, Object, Place
from fakekubeapi.storage.feeds import Feed, Feeds
from fakekubeapi.storage.index import History, KeyIndex
from fakekubeapi.storage.journal import Entry, Journal

DEFAULT_HISTORY: Final = 10_000


class Store:
    """The objects, their `revision` (the number of the last change; 0: none yet), and the last
    `history` changes; older ones are forgotten. `data`: a directory in which all of it is kept, and
    from which it is read at the start; None: in memory alone. Raises: DataError."""

    def __init__(self, history: int = DEFAULT_HISTORY, data: Path | None = None) -> None:
        self.revision = 0
        self.given_uids: dict[Key, str] = {}
        """The UIDs that objects get when they are created, where somebody has chosen one."""
        self._objects: dict[Key, Object] = {}
        self._keys = KeyIndex(self._objects)
        self._feeds = Feeds()
        self._history = History(history)
        self._waiting: list[asyncio.Future[None]] = []
        self._journal: Journal | None = None
        if data is not None:
            journal, entries, forgotten = Journal.open(data)
            for entry in entries:
                self._restore(entry, forgotten)
            self.revision = max(self.revision, forgotten)
            self._history.compacted = max(self._history.compacted, forgotten)
            self._journal = journal

    def get(self, key: Key) -> Object | None:
        """The stored object itself, not to be changed; None if there is none."""
        return self._objects.get(key)

    def keys(
        self, resource: str, namespace: str | None = None, after: tuple[str, str] | None = None
    ) -> list[Key]:
        """The keys of a resource by namespace and name. `namespace` None: of all namespaces;
        `after`: only those behind this namespace and name."""
        return self._keys.find(Place(resource, namespace), after)

    def keys_at(self, place: Place, after: tuple[str, str] | None = None) -> list[Key]:
        """The keys of the objects at a place, as `keys` has them."""
        return self._keys.find(place, after)

    def last_key(self, resource: str, namespace: str | None) -> Key | None:
        """The last of `keys`; None: there is none."""
        return self._keys.last(resource, namespace)

    def items(self, resource: str, namespace: str | None = None) -> Iterator[Object]:
        """The stored objects of a resource, in the order of `keys`; not to be changed."""
        for key in self.keys(resource, namespace):
            yield self._objects[key]

    def namespaced_keys(self, namespace: str) -> list[Key]:
        """The keys of all objects in a namespace, by resource and name."""
        resources = self._keys.resources()
        return [key for resource in resources for key in self.keys(resource, namespace)]

    def put(self, key: Key, obj: Object) -> Object:
        """Store `obj`, new or changed, under the next revision; returns the stored object, whose
        resourceVersion it is. Raises: StatusError 500 if it cannot be kept in the data directory;
        then nothing has changed."""
        previous = self._objects.get(key)
        kind: ChangeType = "ADDED" if previous is None else "MODIFIED"
        stored = self._stamped(obj)
        self._change(kind, key, stored, previous)
        return stored

    def remove(self, key: Key) -> Object:
        """Remove the object; returns its last state, with the revision of its removal as its
        resourceVersion. Raises: KeyError if there is none, StatusError 500 as `put` does."""
        previous = self._objects[key]
        last = self._stamped(previous)
        self._change("DELETED", key, last, previous)
        return last

    def close(self) -> None:
        """Let go of the data directory, if there is one."""
        if self._journal is not None:
            self._journal.close()

    def changes_since(self, revision: int) -> list[Change]:
        """All changes after `revision`, the oldest first. Raises: StatusError 410 (Expired) when
        some of them are forgotten."""
        return self._history.since(revision)

    def follow(self, place: Place, revision: int) -> Feed:
        """A feed of the changes after `revision`, to be given back with `unfollow`. Raises:
        StatusError 410 (Expired) when some of them are forgotten."""
        missed = self._history.since(revision, place)
        feed = self._feeds.open(place, revision, lambda: self._history.compacted)
        for change in missed:
            feed.put(change)
        return feed

    def unfollow(self, feed: Feed) -> None:
        """End a feed."""
        self._feeds.close(feed)

    def compact(self) -> None:
        """Forget the whole history: a watch that has not seen all of it gets 410 Expired."""
        self._history.forget(self.revision)
        if self._journal is not None:
            self._journal.rewrite(map(_entry_of, self._objects.items()), self.revision)

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
        """Let all that wait for a change go on, as a change would."""
        self._feeds.wake()
        self._wake_waiting()

    def _wake_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _stamped(self, obj: Object) -> Object:
        """The object as it is after the next change."""
        metadata = {**obj["metadata"], "resourceVersion": str(self.revision + 1)}
        return {**obj, "metadata": metadata}

    def _change(self, kind: ChangeType, key: Key, obj: Object, previous: Object | None) -> None:
        """Keep a change where it is to be kept, then let it count. `obj` has its revision."""
        revision = int(obj["metadata"]["resourceVersion"])
        change = Change(revision=revision, type=kind, key=key, object=obj, previous=previous)
        self._keep(change)
        self.revision = change.revision
        self._note(change.key, None if change.type == "DELETED" else change.object)
        self._history.add(change)
        self._feeds.tell(change)
        self._wake_waiting()

    def _note(self, key: Key, obj: Object | None) -> None:
        """Put an object where it is found; None: it is there no longer."""
        self._keys.note(key, self._objects.get(key), obj)
        if obj is None:
            del self._objects[key]
        else:
            self._objects[key] = obj

    def _keep(self, change: Change) -> None:
        if self._journal is None:
            return
        obj = None if change.type == "DELETED" else change.object
        try:
            if self._journal.has_far_more_than(len(self._objects)):
                self._journal.rewrite(map(_entry_of, self._objects.items()), self.revision)
            self._journal.append(Entry(change.revision, change.key, obj))
        except OSError as error:
            why = f"the change cannot be kept in the data directory: {error.strerror or error}"
            raise StatusError(500, why) from None

    def _restore(self, entry: Entry, forgotten: int) -> None:
        """Let a kept change count; one up to the revision `forgotten` makes no history."""
        key = Key(*entry.key)
        previous = self._objects.get(key)
        if entry.revision <= forgotten and entry.object is not None:
            self._note(key, entry.object)
            return
        if entry.object is not None:
            kind: ChangeType = "ADDED" if previous is None else "MODIFIED"
            self._change(kind, key, entry.object, previous)
        elif previous is not None:
            version = {**previous["metadata"], "resourceVersion": str(entry.revision)}
            last = {**previous, "metadata": version}
            self._change("DELETED", key, last, previous)


def _entry_of(item: tuple[Key, Object]) -> Entry:
    key, obj = item
    return Entry(int(obj["metadata"]["resourceVersion"]), key, obj)
