"""The fake API server of a case, as the harness and a user see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

NAMESPACE: Final = "default"
STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"


class ApiServer:
    """A `fakeapi.FakeApi` with the few requests the harness makes."""

    def __init__(self, fake: Any) -> None:
        self.fake = fake
        self._event_order: dict[str, int] = {}

    def pods(self) -> dict[str, dict[str, Any]]:
        """All pods by name, read from the store: faults and outages do not blind the harness, and
        its looking is not among the recorded requests."""
        return {pod["metadata"]["name"]: pod for pod in self.fake.store.items("pods")}

    def events(self) -> list[dict[str, Any]]:
        """All events in the order in which they were first seen here; a repeated event keeps its
        place."""
        found = {event["metadata"]["name"]: event for event in self.fake.store.items("events")}
        for name in sorted(found, key=lambda n: int(found[n]["metadata"]["resourceVersion"])):
            self._event_order.setdefault(name, len(self._event_order))
        return [found[name] for name in self._event_order if name in found]

    def node(self, name: str) -> dict[str, Any]:
        """The Node; {} when there is none."""
        found = (n for n in self.fake.store.items("nodes") if n["metadata"]["name"] == name)
        return next(found, {})

    def pods_asked(self) -> int:
        """How often somebody was told the pods of the cluster, or began to watch them."""
        asked = self.fake.requests("GET", r"^/api/v1/pods$")
        return sum(record.status == 200 for record in asked)

    async def create(self, manifest: Mapping[str, Any]) -> None:
        """Create a pod in the default namespace. Raises RuntimeError when it is refused."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        await self._must("POST", path, body=dict(manifest))

    async def create_secret(self, manifest: Mapping[str, Any]) -> None:
        """Create a Secret in the default namespace. Raises RuntimeError when it is refused."""
        await self._must("POST", f"/api/v1/namespaces/{NAMESPACE}/secrets", body=dict(manifest))

    async def create_object(self, plural: str, manifest: Mapping[str, Any]) -> None:
        """Create another object of the core group in the default namespace, for example of
        `configmaps`. Raises RuntimeError when it is refused."""
        await self._must("POST", f"/api/v1/namespaces/{NAMESPACE}/{plural}", body=dict(manifest))

    async def create_runtime_class(self, name: str, handler: str) -> None:
        """Create a RuntimeClass. Raises RuntimeError when it is refused."""
        body = {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": name},
            "handler": handler,
        }
        await self._must("POST", "/apis/node.k8s.io/v1/runtimeclasses", body=body)

    async def resize(self, name: str, spec: Mapping[str, Any]) -> None:
        """Give a pod other resources: `spec` has what changes, of `containers`, `initContainers`
        (`name` and `resources` of each) and `resources`."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/resize"
        await self._must("PATCH", path, body={"spec": spec}, content_type=STRATEGIC_MERGE)

    async def debug(self, name: str, containers: Sequence[Mapping[str, Any]]) -> None:
        """Give a pod these ephemeral containers."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/ephemeralcontainers"
        body = {"spec": {"ephemeralContainers": [dict(c) for c in containers]}}
        await self._must("PATCH", path, body=body, content_type=MERGE_PATCH)

    async def delete(self, name: str, grace_s: int | None) -> None:
        """Delete a pod as a user does; grace None: the pod's own."""
        body: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        await self._must("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}", body=body)

    def vanish(self, name: str) -> None:
        """Take a pod out so that nobody is told: it was not marked as deleted, and whoever watches
        has to list the pods anew (410)."""
        store = self.fake.store
        (key,) = (key for key in store.keys("pods", NAMESPACE) if key.name == name)
        store.remove(key)
        self.fake.compact()

    async def patch(self, name: str, patch: Mapping[str, Any], *, status: bool) -> None:
        """Merge-patch a pod, or its status."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}{'/status' if status else ''}"
        await self._must("PATCH", path, body=dict(patch), content_type=MERGE_PATCH)

    async def _must(self, method: str, path: str, **arguments: Any) -> None:
        answer = await self.fake.request(method, path, **arguments)
        if answer.status >= 300:
            said = answer.body.get("message") if isinstance(answer.body, dict) else answer.body
            raise RuntimeError(f"{method} {path} was refused with {answer.status}: {said}")
