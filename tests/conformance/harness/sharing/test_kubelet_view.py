"""What a tenant asks of the server of the kubelet that it shares."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubelet_conformance.harness.kubelets.base import HttpAnswer, HttpRequest
from kubelet_conformance.harness.sharing.kubelet_view import SharedPods, TenantKubelet
from kubelet_conformance.harness.sharing.tenancy import MustBeAlone, Tenancy, namespace_of

OWN = namespace_of(3)


class World:
    """A tenant of a kubelet whose server answers with the path that it was asked for."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.tenancy = Tenancy(OWN)

    async def http(self, request: HttpRequest) -> HttpAnswer:
        """What the kubelet answers."""
        self.paths.append(request.path)
        return HttpAnswer(200, f"{request.method} {request.path}", {})

    def asked(self, path: str) -> str:
        """What the tenant gets."""
        whole: Any = self
        kubelet = TenantKubelet(whole, SharedPods(whole), self.tenancy)
        return asyncio.run(kubelet.http(HttpRequest(path=path))).text


def test_what_is_asked_of_a_pod_is_asked_of_the_tenants() -> None:
    world = World()
    path = "/containerLogs/default/web/default?tailLines=1"
    assert world.asked(path) == f"GET {path}"
    assert world.paths == [f"/containerLogs/{OWN}/web/default?tailLines=1"]


@pytest.mark.parametrize("path", ["/healthz", "/healthz/syncloop", "/healthz?verbose"])
def test_what_is_of_no_pod_is_the_same_for_all(path: str) -> None:
    assert World().asked(path) == f"GET {path}"


@pytest.mark.parametrize(
    "path",
    [
        "/pods",
        "/metrics",
        "/stats/summary",
        "/containerLogs/elsewhere/web/main",
        "/healthz/../x",
    ],
)
def test_what_is_of_others_too_must_be_alone(path: str) -> None:
    world = World()
    with pytest.raises(MustBeAlone, match="the kubelet's own server"):
        world.asked(path)
    assert world.tenancy.reasons
    assert not world.paths
