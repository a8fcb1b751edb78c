"""The node's lease: what it says, when it is renewed, and what happens when it cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import Any

import pytest
from loops import virtual_loop

from fakekubeapi import FakeApi
from fakekubeapi.httpx_transport import InProcessTransport
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.node.lease import LeaseSettings, NodeLease
from refkubelet.node.lease_content import has_owner, renewed, with_owner

pytestmark = pytest.mark.virtual_time

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
NODES = "/api/v1/nodes"
A_SECOND_NS = 10**9


class World:
    """A lease on a fake API server, which has the Node unless `node` is False."""

    def __init__(self, drawn: float = 0.0) -> None:
        loop = virtual_loop()
        self.api = FakeApi(clock=loop.clock)
        self.client = LightkubeApiClient.in_process(InProcessTransport(self.api))
        settings = LeaseSettings("n1", duration_s=40, update_s=10.0, random=lambda: drawn)
        self.part = NodeLease(self.client, settings, loop.clock)

    async def add_node(self) -> None:
        await self.api.request("POST", NODES, body={"metadata": {"name": "n1"}})

    async def lease(self) -> dict[str, Any]:
        answer = await self.api.request("GET", f"{LEASES}/n1")
        return answer.body if answer.ok else {}

    def times(self, method: str) -> list[float]:
        return [round(r.started_s, 3) for r in self.api.requests(method, "/leases")]


@asynccontextmanager
async def leased(*, node: bool = True, drawn: float = 0.0) -> AsyncIterator[World]:
    world = World(drawn)
    if node:
        await world.add_node()
    task = asyncio.create_task(world.part.run())
    yield world
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await world.client.aclose()


def test_a_new_lease_is_held_by_the_node_NODE_040_1() -> None:
    lease = renewed(None, "n1", 40, 1_500_000_000_123_456_789)
    assert (lease["apiVersion"], lease["kind"]) == ("coordination.k8s.io/v1", "Lease")
    assert lease["metadata"] == {"name": "n1", "namespace": "kube-node-lease"}
    assert lease["spec"] == {
        "holderIdentity": "n1",
        "leaseDurationSeconds": 40,
        "renewTime": "2017-07-14T02:40:00.123456Z",
    }


def test_a_renewed_lease_keeps_what_it_has_NODE_040_1() -> None:
    base = {"metadata": {"resourceVersion": "7"}, "spec": {"holderIdentity": "x", "strategy": "s"}}
    lease = renewed(base, "n1", 20, A_SECOND_NS)
    assert lease["metadata"] == {"resourceVersion": "7"}
    assert lease["spec"]["holderIdentity"] == "x"
    assert lease["spec"]["strategy"] == "s"
    assert lease["spec"]["leaseDurationSeconds"] == 20
    assert lease["spec"]["renewTime"] == "1970-01-01T00:00:01.000000Z"
    assert base["spec"] == {"holderIdentity": "x", "strategy": "s"}


def test_the_owner_is_the_node_NODE_040_3() -> None:
    lease = renewed(None, "n1", 40, 0)
    assert not has_owner(lease)
    owned = with_owner(lease, "n1", "u")
    assert has_owner(owned)
    assert owned["metadata"]["name"] == "n1"
    (owner,) = owned["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}


async def test_the_lease_is_made_at_once_with_its_owner_NODE_040_NODE_041_1() -> None:
    async with leased() as world:
        await asyncio.sleep(1)
        lease = await world.lease()
        uid = (await world.api.request("GET", f"{NODES}/n1")).body["metadata"]["uid"]
        assert lease["metadata"]["ownerReferences"][0]["uid"] == uid
        assert [r.method for r in world.api.requests(path="/leases")][:2] == ["GET", "POST"]
        assert world.times("PUT") == []


@pytest.mark.parametrize(("drawn", "gap_s"), [(0.0, 10.0), (0.999, 10.4)])
async def test_it_is_renewed_every_quarter_of_its_duration_NODE_040_2(
    drawn: float, gap_s: float
) -> None:
    async with leased(drawn=drawn) as world:
        await asyncio.sleep(60)
        gaps = [b - a for a, b in pairwise([0.0, *world.times("PUT")])]
        assert len(gaps) == 5
        assert gaps == pytest.approx([gap_s] * 5, abs=0.01)
        assert len(world.times("GET")) == 1


async def test_no_lease_is_made_while_there_is_no_node_NODE_041_4() -> None:
    async with leased(node=False) as world:
        await asyncio.sleep(15)
        assert world.times("POST") == []
        await world.add_node()
        await asyncio.sleep(10)
        assert world.times("POST") == [20.0]


async def test_a_lease_that_cannot_be_read_is_tried_ever_slower_NODE_041_3() -> None:
    world = World()
    await world.add_node()
    with world.api.fails("GET", "/leases"):
        task = asyncio.create_task(world.part.run())
        await asyncio.sleep(30)
        tries = world.times("GET")
        gaps = [round(b - a, 2) for a, b in pairwise(tries)]
        assert gaps[:8] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 7.0, 7.0]
    await asyncio.sleep(8)
    assert (await world.lease())["spec"]["holderIdentity"] == "n1"
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_renewal_is_tried_five_times_then_read_again_NODE_041_2() -> None:
    async with leased() as world:
        await asyncio.sleep(5)
        with world.api.fails("PUT", "/leases", times=5):
            await asyncio.sleep(10)
        assert world.times("PUT") == [10.0] * 6
        assert world.times("GET") == [0.0, 10.0]


async def test_a_conflict_is_solved_by_reading_NODE_041_2() -> None:
    async with leased() as world:
        await asyncio.sleep(5)
        before = (await world.lease())["spec"]["renewTime"]
        changed = await world.lease()
        changed["metadata"]["labels"] = {"a": "b"}
        answer = await world.api.request("PUT", f"{LEASES}/n1", body=changed)
        assert answer.ok
        await asyncio.sleep(10)
        lease = await world.lease()
        assert lease["spec"]["renewTime"] > before
        assert lease["metadata"]["labels"] == {"a": "b"}


async def test_a_lease_that_was_deleted_is_made_again_NODE_041_1() -> None:
    async with leased() as world:
        await asyncio.sleep(5)
        await world.api.request("DELETE", f"{LEASES}/n1")
        await asyncio.sleep(10)
        assert (await world.lease())["metadata"]["ownerReferences"]


async def test_a_lease_without_an_owner_gets_one_NODE_040_3() -> None:
    world = World()
    await world.add_node()
    body = {"metadata": {"name": "n1"}, "spec": {"holderIdentity": "old"}}
    await world.api.request("POST", LEASES, body=body)
    task = asyncio.create_task(world.part.run())
    await asyncio.sleep(1)
    lease = await world.lease()
    assert lease["metadata"]["ownerReferences"][0]["name"] == "n1"
    assert lease["spec"]["holderIdentity"] == "old"
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_request_that_hangs_is_given_up_NODE_012() -> None:
    async with leased() as world:
        await asyncio.sleep(5)
        with world.api.hangs("PUT", "/leases", times=1):
            await asyncio.sleep(17)
            assert world.times("PUT")[:2] == [10.0, 20.0]
