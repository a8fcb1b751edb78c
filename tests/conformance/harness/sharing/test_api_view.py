"""Two tenants at one API server: each sees, changes and disturbs its own objects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakekubeapi import FakeApi
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.sharing.api_view import TenantApi
from kubelet_conformance.harness.sharing.tenancy import MustBeAlone, Tenancy, namespace_of
from simclock import run_virtual

PODS = "/api/v1/namespaces/default/pods"


def with_two(check: Callable[[FakeApi, TenantApi, TenantApi], Awaitable[None]]) -> None:
    async def main() -> None:
        whole = FakeApi()
        for number in (1, 2):
            body = {"metadata": {"name": namespace_of(number)}}
            await whole.request("POST", "/api/v1/namespaces", body=body)
        await check(whole, *(TenantApi(whole, Tenancy(namespace_of(n))) for n in (1, 2)))

    run_virtual(main)


def manifest() -> dict[str, Any]:
    return dict(pod("web", container("main")).manifest)


def test_each_has_its_own_pods_in_the_namespace_of_the_case() -> None:
    async def check(whole: FakeApi, one: TenantApi, two: TenantApi) -> None:
        made = await one.request("POST", PODS, body=manifest())
        assert made["metadata"]["namespace"] == "default"
        assert one.pods()["web"]["metadata"]["namespace"] == "default"
        assert two.pods() == {}
        assert [item["metadata"]["namespace"] for item in whole.store.items("pods")] == ["t-00001"]

    with_two(check)


def test_a_change_of_one_is_none_for_the_other() -> None:
    async def check(_: FakeApi, one: TenantApi, two: TenantApi) -> None:
        before = one.revision, two.revision
        await one.request("POST", PODS, body=manifest())
        assert one.revision != before[0]
        assert two.revision == before[1]

    with_two(check)


def test_a_change_that_is_forgotten_counts_as_one() -> None:
    async def check(whole: FakeApi, one: TenantApi, two: TenantApi) -> None:
        before = two.revision
        await one.request("POST", PODS, body=manifest())
        whole.compact()
        assert two.revision != before

    with_two(check)


def test_faults_and_requests_are_those_of_ones_own_namespace() -> None:
    async def check(whole: FakeApi, one: TenantApi, two: TenantApi) -> None:
        pods = PODS.replace("/default/", f"/{namespace_of(1)}/")
        with one.fake.fails("POST", "/pods$"):
            await two.request("POST", PODS, body=manifest())
            await one.request("POST", PODS, body=manifest())  # a user, who meets no faults
            answer = await whole.request("POST", pods, body=manifest())
            assert answer.status == 500
        by_user, other = one.fake.requests("POST", "^/api/v1/namespaces/default/pods$")
        assert (by_user.path, by_user.status) == (PODS, 201)
        assert (other.path, other.status) == (PODS, 500)
        assert by_user.seq in one.by_users
        assert other.seq not in one.by_users
        assert len(two.fake.requests()) == 1

    with_two(check)


@pytest.mark.parametrize("pattern", ["/nodes/", "/leases", "^/api/v1/pods$", "tokenreviews", "x"])
def test_requests_that_may_be_of_others_must_be_alone(pattern: str) -> None:
    async def check(_: FakeApi, one: TenantApi, two: TenantApi) -> None:
        for ask in (one.fake.requests, one.fake.fails):
            with pytest.raises(MustBeAlone):
                ask("GET", pattern)

    with_two(check)


@pytest.mark.parametrize(
    "path", ["/api/v1/nodes/node", "/api/v1/persistentvolumes", "/api/v1/namespaces/kube-system/x"]
)
def test_objects_of_the_cluster_must_be_alone(path: str) -> None:
    async def check(_: FakeApi, one: TenantApi, two: TenantApi) -> None:
        with pytest.raises(MustBeAlone):
            await one.request("POST", path, body={})

    with_two(check)


@pytest.mark.parametrize("name", ["store", "down", "users", "delays", "compact", "access"])
def test_the_server_itself_must_be_alone(name: str) -> None:
    async def check(_: FakeApi, one: TenantApi, two: TenantApi) -> None:
        with pytest.raises(MustBeAlone):
            getattr(one.fake, name)

    with_two(check)
