"""What all nodes read once: each is told what concerns it, in order, and nothing is missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, cast

import pytest
from pods_on_nodes import PODS, create

from fakekubeapi import FakeApi
from fakekubeapi.in_process import InProcessWire
from kubenodes.shared_reads import REMEMBERED, Followed, PoolClient, SharedReads
from kubenodes.wire import NodeWire
from refkubelet.api.client import ApiError, ObjectList, WatchEvent
from refkubelet.api.kinds import CONFIG_MAPS, CSI_NODES
from refkubelet.api.kinds import PODS as POD_KIND
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.api.paths import named, on_node
from refkubelet.model.objects import ObjectMeta, Pod, PodSpec
from simclock import Rng, VirtualLoop

pytestmark = pytest.mark.virtual_time


def pod(uid: str, node: str, version: int) -> Pod:
    metadata = ObjectMeta(uid=uid, name=uid, resourceVersion=str(version))
    return Pod(metadata=metadata, spec=PodSpec(containers=[], nodeName=node))


def followed() -> Followed[Pod]:
    return Followed(lambda one: one.spec.nodeName or "", lambda: None)


async def first(events: AsyncIterator[WatchEvent[Pod]], count: int) -> list[tuple[str, str, str]]:
    """So many events, as type, UID and version."""
    some = [await asyncio.wait_for(anext(events), 1) for _ in range(count)]
    return [
        (one.type, one.object.metadata.uid or "", one.object.metadata.resourceVersion or "")
        for one in some
    ]


async def test_a_node_is_told_of_its_own_alone() -> None:
    pods = followed()
    await pods.take_all(ObjectList((pod("a", "n1", 3), pod("b", "n2", 4)), "5"))
    listed = await pods.listed("n1")
    assert ([one.metadata.uid for one in listed.items], listed.resource_version) == (["a"], "5")
    async with aclosing(pods.events("n1", "5")) as events:
        await pods.take(WatchEvent("ADDED", pod("c", "n2", 6)))
        await pods.take(WatchEvent("MODIFIED", pod("a", "n1", 7)))
        await pods.take(WatchEvent("DELETED", pod("a", "n1", 8)))
        assert await first(events, 2) == [("MODIFIED", "a", "7"), ("DELETED", "a", "8")]
    assert (await pods.listed("n1")).items == ()


async def test_what_happened_between_list_and_watch_is_told() -> None:
    pods = followed()
    await pods.take_all(ObjectList((), "5"))
    version = (await pods.listed("n1")).resource_version
    await pods.take(WatchEvent("ADDED", pod("a", "n1", 6)))
    async with aclosing(pods.events("n1", version)) as events:
        await pods.take(WatchEvent("MODIFIED", pod("a", "n1", 7)))
        assert await first(events, 2) == [("ADDED", "a", "6"), ("MODIFIED", "a", "7")]


async def test_after_another_list_the_differences_are_told() -> None:
    pods = followed()
    await pods.take_all(ObjectList((pod("a", "n1", 1), pod("b", "n1", 2), pod("c", "n1", 3)), "5"))
    async with aclosing(pods.events("n1", "5")) as events:
        now = (pod("b", "n1", 2), pod("c", "n1", 8), pod("d", "n1", 9), pod("e", "n2", 9))
        asking = asyncio.create_task(first(events, 3))
        await asyncio.sleep(0)
        await pods.take_all(ObjectList(now, "10"))
        told = await asking
    assert told == [("DELETED", "a", "1"), ("MODIFIED", "c", "8"), ("ADDED", "d", "9")]


async def test_who_listed_before_another_list_and_watches_after_it_misses_nothing() -> None:
    pods = followed()
    await pods.take_all(ObjectList((pod("a", "n1", 1),), "5"))
    version = (await pods.listed("n1")).resource_version
    await pods.take_all(ObjectList((pod("b", "n1", 4),), "7"))
    async with aclosing(pods.events("n1", version)) as events:
        assert await first(events, 2) == [("DELETED", "a", "1"), ("ADDED", "b", "4")]


async def test_who_comes_too_late_has_to_list_again() -> None:
    pods = followed()
    await pods.take_all(ObjectList((), "1"))
    for number in range(REMEMBERED + 1):
        await pods.take(WatchEvent("ADDED", pod(str(number), "n2", number + 2)))
    with pytest.raises(ApiError, match="410"):
        await anext(pods.events("n1", "1"))
    async with aclosing(pods.events("n2", "2")) as events:
        assert await first(events, 1) == [("ADDED", "1", "3")]


class _Bed:
    """Two nodes at an API server, by way of shared reads."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.api = FakeApi()
        wire = InProcessWire(self.api)
        self.reads = SharedReads(LightkubeApiClient.over(wire), loop.clock, Rng(1))
        self.lines = [NodeWire(wire), NodeWire(wire)]
        self.clients = [PoolClient(line, "http://fakekubeapi", self.reads) for line in self.lines]

    def watches(self, plural: str) -> int:
        """How often a watch of that kind was opened at the server."""
        return len([r for r in self.api.requests("GET", plural) if r.params.get("watch")])


async def test_a_hundred_questions_are_one_at_the_server() -> None:
    bed = _Bed()
    for _ in range(50):
        for client in bed.clients:
            await client.list(POD_KIND, fields=on_node("n1"))
    await asyncio.sleep(1)
    assert len(bed.api.requests("GET", "pods")) == 2  # a list and a watch
    assert bed.api.requests("GET", "pods")[0].params["fieldSelector"] == "spec.nodeName!="
    await bed.reads.close()


async def test_objects_of_pods_are_followed_as_long_as_somebody_does() -> None:
    bed = _Bed()
    fields = named("settings")
    listed = await bed.clients[0].list(CONFIG_MAPS, "default", fields=fields)

    async def first_event(client: PoolClient) -> WatchEvent[Any]:
        events = client.watch(CONFIG_MAPS, listed.resource_version, "default", fields=fields)
        async with aclosing(cast(AsyncGenerator[WatchEvent[Any], None], events)):
            return await anext(events)

    watching = [asyncio.create_task(first_event(client)) for client in bed.clients]
    await asyncio.sleep(1)
    body = {"metadata": {"name": "settings"}, "data": {"colour": "green"}}
    await bed.api.request("POST", "/api/v1/namespaces/default/configmaps", body=body)
    told = [await task for task in watching]
    assert [one.object.data for one in told] == [{"colour": "green"}] * 2
    assert bed.watches("configmaps") == 1
    await asyncio.sleep(1)
    await bed.clients[0].list(CONFIG_MAPS, "default", fields=fields)
    await asyncio.sleep(1)
    assert bed.watches("configmaps") == 2  # nobody watched, so it was forgotten
    await bed.reads.close()


async def test_a_node_whose_line_is_lost_reads_nothing() -> None:
    bed = _Bed()
    lost, other = bed.clients
    version = (await lost.list(POD_KIND, fields=on_node("n1"))).resource_version
    watching = asyncio.create_task(anext(lost.watch(POD_KIND, version, fields=on_node("n1"))))
    await asyncio.sleep(1)
    bed.lines[0].lose()
    with pytest.raises(ApiError, match="lost the network"):
        await watching
    for kind in (POD_KIND, CSI_NODES):
        with pytest.raises(ApiError, match="lost the network"):
            await lost.list(kind, fields=on_node("n1") if kind is POD_KIND else "")
    await create(bed.api, "web", "n1")
    await asyncio.sleep(1)
    assert len((await other.list(POD_KIND, fields=on_node("n1"))).items) == 1
    bed.lines[0].restore()
    assert len((await lost.list(POD_KIND, fields=on_node("n1"))).items) == 1
    await bed.reads.close()


async def test_after_an_outage_every_node_knows_what_its_own_list_would_say() -> None:
    bed = _Bed()
    known: dict[int, set[str]] = {0: set(), 1: set()}

    async def follow(number: int) -> None:
        fields = on_node(f"n{number}")
        listed = await bed.clients[number].list(POD_KIND, fields=fields)
        known[number] = {one.metadata.name or "" for one in listed.items}
        async for event in bed.clients[number].watch(
            POD_KIND, listed.resource_version, fields=fields
        ):
            change = known[number].discard if event.type == "DELETED" else known[number].add
            change(event.object.metadata.name or "")

    tasks = [asyncio.create_task(follow(number)) for number in known]
    dice = Rng(7).stream("pods")
    names: list[str] = []
    for step in range(60):
        await asyncio.sleep(dice.random() * 5)
        if names and dice.random() < 0.4:
            name = names.pop(dice.randrange(len(names)))
            options = {"gracePeriodSeconds": 0}
            await bed.api.request("DELETE", f"{PODS}/{name}", body=options)
        else:
            names.append(f"p{step}")
            await create(bed.api, names[-1], f"n{dice.randrange(2)}")
        if dice.random() < 0.15:
            bed.api.compact()
        if dice.random() < 0.15:
            with bed.api.down():
                await asyncio.sleep(dice.random() * 10)
    await asyncio.sleep(120)
    items = (await bed.api.request("GET", PODS)).body["items"]
    there: dict[int, set[Any]] = {
        number: {i["metadata"]["name"] for i in items if i["spec"]["nodeName"] == f"n{number}"}
        for number in known
    }
    assert known == there
    assert len(items) == len(names) > 5
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await bed.reads.close()


async def test_who_listed_when_it_was_followed_before_has_to_list_again() -> None:
    """Nobody watched for a moment, so that it was forgotten, and followed anew after a change."""
    pods = followed()
    with pytest.raises(ApiError, match="410"):
        await anext(pods.events("n1", "5"))
    await pods.take_all(ObjectList((pod("a", "n1", 6),), "7"))
    with pytest.raises(ApiError, match="410"):
        await anext(pods.events("n1", "5"))
    assert (await pods.listed("n1")).resource_version == "7"


async def test_nothing_is_missed_when_the_server_was_set_back() -> None:
    pods = followed()
    await pods.take_all(ObjectList((), "50"))
    await pods.take_all(ObjectList((), "5"))
    version = (await pods.listed("n1")).resource_version
    await pods.take(WatchEvent("ADDED", pod("a", "n1", 6)))
    async with aclosing(pods.events("n1", version)) as events:
        assert await first(events, 1) == [("ADDED", "a", "6")]


async def test_a_list_that_never_comes_is_an_error_of_the_api() -> None:
    bed = _Bed()
    bed.api.fails("GET", "pods", 500)
    with pytest.raises(ApiError, match="no answer within 30 s"):
        await bed.clients[0].list(POD_KIND, fields=on_node("n1"))
    await bed.reads.close()
