"""The fake API server of a case, behind `node.api` and the snapshots.

The harness reads the server's store directly, so it sees objects during faults and outages, too,
and its reads are not among the recorded requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # cases are listed faster without the server
    from fakekubeapi import FakeApi

NAMESPACE: Final = "default"
"""The namespace of all pods of the suite."""
MIRROR: Final = "kubernetes.io/config.mirror"
EVENTS: Final = r"/events(/|$)"


class ApiServer:
    """A `fakekubeapi.FakeApi`, and what the harness reads and changes there."""

    def __init__(self, fake: FakeApi, *, later: bool = False) -> None:
        """`later`: others have been here before."""
        self.fake = fake
        self._store = fake.store
        self._looked_at = fake.store.revision if later else 0
        self._event_order: dict[str, int] = {}
        self.by_users: set[int] = set()
        """The numbers of the requests that the case made, not the kubelet."""

    @property
    def revision(self) -> int:
        """The number of the last change of any object."""
        return self.fake.store.revision

    def pods(self) -> dict[str, dict[str, Any]]:
        """All pods by name."""
        return {pod["metadata"]["name"]: pod for pod in self._items("pods")}

    def changed_pods(self, node_name: str) -> list[dict[str, Any]]:
        """The pods of a node, without mirrors, after each of their changes since the last call, the
        oldest first; as they are now, where the server has forgotten what came in between."""
        from fakekubeapi.errors import StatusError  # cases are listed faster without the server

        looked_at, self._looked_at = self._looked_at, self._store.revision
        try:
            changed: Iterable[dict[str, Any]] = [
                self._own(change.object)
                for change in self._store.changes_since(looked_at)
                if change.key.resource == "pods"
                and change.type != "DELETED"
                and self._is_own(change.key.namespace)
            ]
        except StatusError:
            changed = self._items("pods")
        return [
            pod
            for pod in changed
            if pod["spec"].get("nodeName") == node_name
            and MIRROR not in (pod["metadata"].get("annotations") or {})
        ]

    def _is_own(self, namespace: str) -> bool:
        """Whether what is in that namespace is this case's."""
        return True

    def _own(self, stored: dict[str, Any]) -> dict[str, Any]:
        """A stored object as this case sees it."""
        return stored

    def _items(self, plural: str) -> Iterable[dict[str, Any]]:
        return self.fake.store.items(plural)

    def names(self, plural: str) -> list[str]:
        """The names of all objects of a kind."""
        return [item["metadata"]["name"] for item in self._items(plural)]

    def events(self) -> list[dict[str, Any]]:
        """All events in the order in which they were first seen here; a repeated event keeps its
        place."""
        by_name = {event["metadata"]["name"]: event for event in self._items("events")}
        for name in sorted(by_name, key=lambda n: int(by_name[n]["metadata"]["resourceVersion"])):
            self._event_order.setdefault(name, len(self._event_order))
        return [by_name[name] for name in self._event_order if name in by_name]

    def event_times_s(self) -> dict[str, float]:
        """Name of an event -> when it was last reported, in seconds of the loop's clock."""
        times_s: dict[str, float] = {}
        for record in self.fake.requests(path=EVENTS):
            own = record.body.get("metadata") or {} if isinstance(record.body, dict) else {}
            name = record.path.partition("/events/")[2] or own.get("name")
            if name and record.method != "GET":
                times_s[name] = record.started_s
        return times_s

    def node(self, name: str) -> dict[str, Any]:
        """The Node object; {} when there is none."""
        return self.stored("nodes", name)

    def stored(self, plural: str, name: str) -> dict[str, Any]:
        """An object of the pods' namespace, or of none; {} when there is none. `plural`: with its
        group, if it has one."""
        for item in self._items(plural):
            metadata = item["metadata"]
            if metadata["name"] == name and metadata.get("namespace", NAMESPACE) == NAMESPACE:
                return item
        return {}

    def pod_lists(self) -> int:
        """How many requests for all pods of the cluster, lists and watches, were answered: a
        kubelet that has begun to follow its pods has made one."""
        records = self.fake.requests("GET", r"^/api/v1/pods$")
        return sum(record.status == 200 for record in records)

    def vanish(self, name: str) -> None:
        """Remove a pod so that no watch is told of it; the next watch from an old version gets 410
        (Gone), so that its client must list the pods again. Raises LookupError."""
        store = self.fake.store
        keys = [key for key in store.keys("pods", NAMESPACE) if key.name == name]
        if not keys:
            raise LookupError(f"the API server has no pod {name}")
        store.remove(keys[0])
        self.fake.compact()

    async def request(self, method: str, path: str, **arguments: Any) -> Any:
        """Send a request as a user, for the body of its answer; `arguments` of `FakeApi.request`.
        Faults are for the kubelet's requests alone. Raises RuntimeError with the server's message
        when it is refused."""
        self.by_users.add(self.fake.request_count + 1)
        answer = await self.fake.request(method, path, undisturbed=True, **arguments)
        if answer.status >= 300:
            reason = answer.body.get("message") if isinstance(answer.body, dict) else answer.body
            raise RuntimeError(f"{method} {path} was refused with {answer.status}: {reason}")
        return answer.body
