"""The fake API server of a case, as the harness and a user see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NAMESPACE: Final = "default"
MERGE_PATCH: Final = "application/merge-patch+json"


class ApiServer:
    """A `fakeapi.FakeApi` with the few requests the harness makes."""

    def __init__(self, fake: Any) -> None:
        self.fake = fake

    async def pods(self) -> dict[str, dict[str, Any]]:
        """All pods by name."""
        found = await self._get("/api/v1/pods")
        return {item["metadata"]["name"]: item for item in found}

    async def events(self) -> list[dict[str, Any]]:
        """All events, oldest first."""
        return await self._get("/api/v1/events")

    async def node(self, name: str) -> dict[str, Any]:
        """The Node; {} when there is none."""
        answer = await self.fake.request("GET", f"/api/v1/nodes/{name}")
        return dict(answer.body) if answer.status == 200 else {}

    async def _get(self, path: str) -> list[dict[str, Any]]:
        answer = await self.fake.request("GET", path)
        if answer.status != 200:
            raise RuntimeError(f"the fake API server answered GET {path} with {answer.status}")
        return list(answer.body.get("items") or [])

    async def create(self, manifest: Mapping[str, Any]) -> None:
        """Create a pod in the default namespace. Raises RuntimeError when it is refused."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        await self._must("POST", path, body=dict(manifest))

    async def delete(self, name: str, grace_s: int | None) -> None:
        """Delete a pod as a user does; grace None: the pod's own."""
        body: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        await self._must("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}", body=body)

    async def patch(self, name: str, patch: Mapping[str, Any], *, status: bool) -> None:
        """Merge-patch a pod, or its status."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}{'/status' if status else ''}"
        await self._must("PATCH", path, body=dict(patch), content_type=MERGE_PATCH)

    async def _must(self, method: str, path: str, **arguments: Any) -> None:
        answer = await self.fake.request(method, path, **arguments)
        if answer.status >= 300:
            said = answer.body.get("message") if isinstance(answer.body, dict) else answer.body
            raise RuntimeError(f"{method} {path} was refused with {answer.status}: {said}")
