"""Pods for tests of nodes, and what to ask of them, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fakekubeapi import FakeApi

PODS: Final = "/api/v1/namespaces/default/pods"


def pod(name: str, node: str, **spec: Any) -> dict[str, Any]:
    """A pod of one container `main` that is bound to that node."""
    container = {"name": "main", "image": "example.com/app:1"}
    return {
        "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": [container], **spec},
    }


async def create(api: FakeApi, name: str, node: str, **spec: Any) -> None:
    """Create it. Raises AssertionError when the server refuses."""
    answer = await api.request("POST", PODS, body=pod(name, node, **spec))
    assert answer.status == 201, answer.body


async def is_phase(api: FakeApi, name: str, phase: str) -> dict[str, Any]:
    """The pod, once it is in that phase; its test gives up first if it never is."""
    while True:
        answer = await api.request("GET", f"{PODS}/{name}")
        if answer.body.get("status", {}).get("phase") == phase:
            return dict(answer.body)
        await asyncio.sleep(0.1)


async def everything(api: FakeApi) -> list[str]:
    """The paths of all pods, Nodes, Leases, CSINodes and events."""
    paths: list[str] = []
    for kind in (
        "/api/v1/pods",
        "/api/v1/nodes",
        "/api/v1/events",
        "/apis/coordination.k8s.io/v1/leases",
        "/apis/storage.k8s.io/v1/csinodes",
    ):
        items = (await api.request("GET", kind)).body["items"]
        paths += [f"{kind}/{item['metadata']['name']}" for item in items]
    return paths
