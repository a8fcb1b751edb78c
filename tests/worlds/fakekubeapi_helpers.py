"""Short forms of requests for the tests of the fake API server."""

from typing import Any

from pods import manifest

from fakekubeapi import FakeApi, Response

PODS = "/api/v1/namespaces/default/pods"
POD_A = f"{PODS}/a"
NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


def pod(name: str = "a", node: str | None = "n", **spec: Any) -> dict[str, Any]:
    """A pod bound to that node; None: to none yet."""
    return manifest(name=name, **({"nodeName": node} if node else {}), **spec)


def configmap(name: str = "c", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "data": {"k": "v"}}


def ok(response: Response) -> dict[str, Any]:
    assert response.ok, response.body
    return response.body


def refused(response: Response, code: int, reason: str) -> str:
    """The message of a refusal, after checking its Status body."""
    assert response.status == code, response.body
    assert response.body["kind"] == "Status"
    assert response.body["status"] == "Failure"
    assert response.body["code"] == code
    assert response.body["reason"] == reason
    return str(response.body["message"])


async def create(api: FakeApi, path: str, body: dict[str, Any]) -> dict[str, Any]:
    return ok(await api.request("POST", path, body=body))


async def patch(
    api: FakeApi, path: str, body: Any, content_type: str = STRATEGIC_PATCH
) -> Response:
    return await api.request("PATCH", path, body=body, content_type=content_type)


async def get(api: FakeApi, path: str, **params: str) -> dict[str, Any]:
    return ok(await api.request("GET", path, params=params))


def names(listed: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


async def follow(api: FakeApi, path: str, events: list[dict[str, Any]], **params: str) -> None:
    """Watches, and keeps what comes."""
    async for event in api.watch(path, params=params):
        events.append(event)
