"""The API client over HTTP and over the wire without it, against fakekubeapi in virtual time
(STAT-022, SRC-051)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from api_world import World, running_world
from pods import make_pod

from refkubelet.api.answers import watch_event
from refkubelet.api.client import ApiError
from refkubelet.api.kinds import (
    CSI_DRIVERS,
    NODES,
    PODS,
    SERVICES,
    SIGNING_REQUESTS,
    TRUST_BUNDLES,
    Kind,
)
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.api.paths import named, on_node
from refkubelet.model.objects import decode_pod
from refkubelet.model.pod import uid

pytestmark = pytest.mark.virtual_time


@pytest_asyncio.fixture(params=["http", "in-process"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async with running_world() as found:
        if request.param == "in-process":
            found.without_http()
        yield found


async def test_errors_carry_status_reason_and_message(world: World) -> None:
    with pytest.raises(ApiError) as caught:
        await world.client.get(PODS, "nobody", "default")
    error = caught.value
    assert (error.status, error.reason, error.not_found) == (404, "NotFound", True)
    assert error.message == 'pods "nobody" not found'


async def test_a_server_that_is_down_is_an_error_without_status(world: World) -> None:
    with world.api.down(), pytest.raises(ApiError) as caught:
        await world.client.get(NODES, "n1")
    assert caught.value.status == 0
    assert "GET http://fakekubeapi/api/v1/nodes/n1" in str(caught.value)


async def test_a_server_that_hangs_is_given_up(world: World) -> None:
    world.api.hangs("GET", "/nodes/")
    with pytest.raises(ApiError, match="no answer within 30 s"):
        await world.client.get(NODES, "n1")
    assert world.clock.monotonic_s() == 30


async def test_status_patches_are_strategic_merges_with_the_uid_STAT_022(world: World) -> None:
    made = await world.create_pod(make_pod(name="a", nodeName="n1"))
    patch = {"metadata": {"uid": uid(made)}, "status": {"phase": "Running"}}
    patched = await world.client.patch(PODS, "a", patch, "default", subresource="status")
    assert patched.status is not None
    assert patched.status.phase == "Running"
    request = world.api.requests("PATCH")[-1]
    assert request.content_type == "application/strategic-merge-patch+json"
    assert request.path == "/api/v1/namespaces/default/pods/a/status"
    with pytest.raises(ApiError) as caught:
        await world.client.patch(
            PODS, "a", {"metadata": {"uid": "other"}}, "default", subresource="status"
        )
    assert "metadata.uid: Invalid value" in str(caught.value)


async def test_deletion_sends_grace_and_precondition(world: World) -> None:
    made = await world.create_pod(make_pod(name="a", nodeName="n1"))
    with pytest.raises(ApiError) as caught:
        await world.client.delete(PODS, "a", "default", grace_period_s=0, uid="other")
    assert caught.value.conflict
    await world.client.delete(PODS, "a", "default", grace_period_s=0, uid=uid(made))
    with pytest.raises(ApiError):
        await world.client.get(PODS, "a", "default")


async def test_a_watch_tells_of_changes_and_of_an_outage(world: World) -> None:
    await world.create_pod(make_pod(name="a", nodeName="n1"))
    events = world.client.watch(PODS, "0", fields=on_node("n1"))
    first = await anext(events)
    assert (first.type, first.object.metadata and first.object.metadata.name) == ("ADDED", "a")
    await world.client.delete(PODS, "a", "default", grace_period_s=0)
    assert [(await anext(events)).type for _ in range(2)] == ["MODIFIED", "DELETED"]
    with world.api.down(), pytest.raises(ApiError, match="watch of http://fakekubeapi") as caught:
        await anext(events)
    assert caught.value.status == 0


async def test_a_watch_that_is_refused_has_the_servers_reason(world: World) -> None:
    await world.node()
    world.api.compact()
    with pytest.raises(ApiError) as caught:
        _ = [event async for event in world.client.watch(NODES, "1", fields=named("n1"))]
    assert caught.value.status == 410
    with pytest.raises(ApiError, match="resourceVersion: Invalid value") as caught:
        _ = [event async for event in world.client.watch(NODES, "x", fields=named("n1"))]
    assert caught.value.status == 500  # of a list it is 400


@pytest.mark.parametrize(
    "body",
    [
        {"items": [{}]},
        {"items": [None, 3, {"metadata": 7}, {"metadata": {"name": "x"}}]},
        {"metadata": "x", "items": []},
        {"items": 5},
        {"metadata": None, "items": None},
    ],
)
async def test_lists_of_nonsense_are_no_crash(body: dict[str, Any]) -> None:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, json=body))
    client = LightkubeApiClient.in_process(transport)
    with suppress(ApiError):
        assert (await client.list(PODS, fields=on_node("n1"))).items == ()
    await client.aclose()


@pytest.mark.parametrize(
    "line",
    [
        b'{"kind": "Status"}',
        b'{"type": "ADDED", "object": 3}',
        b"[]",
        b"<html>",
        b"[" * 100_000,
    ],
)
async def test_a_watch_that_is_none_is_an_api_error_and_no_crash(line: bytes) -> None:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=line + b"\n"))
    client = LightkubeApiClient.in_process(transport)
    with pytest.raises(ApiError, match=r"watch of /api/v1/pods: wanted") as caught:
        _ = [event async for event in client.watch(PODS, "1", fields=on_node("n1"))]
    assert (caught.value.status, caught.value.reason) == (0, "BadAnswer")
    await client.aclose()


async def test_an_error_with_an_odd_body_is_an_api_error_and_no_crash() -> None:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(500, content=b"[" * 100_000))
    client = LightkubeApiClient.in_process(transport)
    with pytest.raises(ApiError) as caught:
        await client.get(PODS, "web", "default")
    assert (caught.value.status, caught.value.message) == (500, "[" * 200)
    await client.aclose()


BOOKMARKED_POD = {  # as a kube-apiserver 1.36.2 sends it
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"resourceVersion": "12746"},
    "spec": {"containers": None},
    "status": {},
}


@pytest.mark.parametrize("kind", [CSI_DRIVERS, SIGNING_REQUESTS, TRUST_BUNDLES])
def test_a_bookmark_of_a_kind_that_must_have_a_spec_is_read_SRC_051(kind: Kind[Any]) -> None:
    event = watch_event(kind.decode, "BOOKMARK", {"metadata": {"resourceVersion": "7"}, "spec": {}})
    assert (event.type, event.object.metadata.resourceVersion) == ("BOOKMARK", "7")


@pytest.mark.parametrize("odd", [BOOKMARKED_POD, {}, {"metadata": None}, {"spec": 7}])
def test_of_a_bookmark_nothing_but_the_version_counts_SRC_051(odd: dict[str, Any]) -> None:
    event = watch_event(decode_pod, "BOOKMARK", odd)
    assert event.type == "BOOKMARK"
    assert event.object.metadata is not None
    wanted = "12746" if odd is BOOKMARKED_POD else ""
    assert event.object.metadata.resourceVersion == wanted


def test_bookmarks_of_nodes_and_services_have_a_version_too_SRC_051() -> None:
    body = {"metadata": {"resourceVersion": "7"}, "spec": {"ports": "?"}, "status": None}
    for kind in (NODES, SERVICES):
        assert watch_event(kind.decode, "BOOKMARK", body).object.metadata.resourceVersion == "7"
