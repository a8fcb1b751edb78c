"""The API client, the API source, the node informer and mirror pods, against fakeapi in virtual
time: lightkube's own HTTP client over an in-process transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import httpx2
import msgspec
import pytest
import pytest_asyncio

from fakeapi import FakeApi
from fakeapi.httpx_transport import InProcessTransport
from refkubelet.api.answers import decode_node, decode_service, watch_event
from refkubelet.api.client import ApiError
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.api.node_informer import NodeInformer
from refkubelet.model.objects import Node, Pod, decode_pod, to_dict
from refkubelet.model.pod import uid
from refkubelet.pods.api_source import ApiSource
from refkubelet.pods.mirror import MirrorClient, MirrorError, mirror_pod
from simtime import Clock, Rng, VirtualLoop

pytestmark = pytest.mark.virtual_time

STATIC_UID = "27b79038f0d0a88b3dbf5d3cabc1f1c0"


class World:
    """A fake API server, a client of it, and tasks that end with the test."""

    def __init__(self, stack: AsyncExitStack) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.clock: Clock = loop.clock
        self.rng = Rng(1)
        self.api = FakeApi(clock=self.clock)
        self.client = LightkubeApiClient.in_process(InProcessTransport(self.api))
        self._stack = stack
        stack.push_async_callback(self.client.aclose)

    def start(self, part: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(part)

        async def end() -> None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

        self._stack.push_async_callback(end)

    async def node(self, name: str = "n1") -> Node:
        value = {"metadata": {"name": name}}
        return await self.client.create_node(msgspec.convert(value, Node))

    def use(self, transport: InProcessTransport) -> None:
        """From now on the client's requests go there."""
        self.client._http._transport = transport  # type: ignore[attr-defined]


class SilentWatches(InProcessTransport):
    """Watches are accepted, and nothing is heard of them."""

    silent = True

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.silent and "watch" in request.url.params:
            return httpx2.Response(200, stream=Silence())
        return await super().handle_async_request(request)


class Silence(httpx2.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    async def aclose(self) -> None:
        """Nothing is open."""


class RefusedVersions(InProcessTransport):
    """Watches from the version that the first of them asks for are refused."""

    def __init__(self, api: FakeApi, status: int) -> None:
        super().__init__(api)
        self.status = status
        self.refused: str | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        version = request.url.params.get("resourceVersion")
        if "watch" in request.url.params and request.url.path.endswith("/pods"):
            self.refused = self.refused or version
            if version == self.refused:
                return httpx2.Response(self.status, json={"message": "not that version"})
        return await super().handle_async_request(request)


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        yield World(stack)


def pod(name: str, *, node: str = "n1", **metadata: Any) -> Pod:
    return decode_pod(
        {
            "metadata": {"name": name, "namespace": "default", **metadata},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i:1"}]},
        }
    )


def static_pod() -> Pod:
    marks = {
        "kubernetes.io/config.hash": STATIC_UID,
        "kubernetes.io/config.seen": "2026-11-21T09:22:20.483347357Z",
        "kubernetes.io/config.source": "file",
    }
    return pod("st-n1", uid=STATIC_UID, annotations=marks)


# -- client ------------------------------------------------------------------------------------


async def test_errors_carry_status_reason_and_message(world: World) -> None:
    with pytest.raises(ApiError) as caught:
        await world.client.get_pod("default", "nobody")
    error = caught.value
    assert (error.status, error.reason, error.not_found) == (404, "NotFound", True)
    assert error.message == 'pods "nobody" not found'


async def test_a_server_that_is_down_is_an_error_without_status(world: World) -> None:
    with world.api.down(), pytest.raises(ApiError) as caught:
        await world.client.get_node("n1")
    assert caught.value.status == 0
    assert "GET http://fakeapi/api/v1/nodes/n1" in str(caught.value)


async def test_a_server_that_hangs_is_given_up(world: World) -> None:
    world.api.hangs("GET", "/nodes/")
    with pytest.raises(ApiError, match="no answer within 30 s"):
        await world.client.get_node("n1")
    assert world.clock.monotonic_s() == 30


async def test_status_patches_are_strategic_merges_with_the_uid_STAT_022(world: World) -> None:
    made = await world.client.create_pod(pod("a"))
    patch = {"metadata": {"uid": uid(made)}, "status": {"phase": "Running"}}
    patched = await world.client.patch_pod_status("default", "a", patch)
    assert patched.status is not None
    assert patched.status.phase == "Running"
    request = world.api.requests("PATCH")[-1]
    assert request.content_type == "application/strategic-merge-patch+json"
    assert request.path == "/api/v1/namespaces/default/pods/a/status"
    with pytest.raises(ApiError) as caught:
        await world.client.patch_pod_status("default", "a", {"metadata": {"uid": "other"}})
    assert caught.value.conflict


async def test_deletion_sends_grace_and_precondition(world: World) -> None:
    made = await world.client.create_pod(pod("a"))
    with pytest.raises(ApiError) as caught:
        await world.client.delete_pod("default", "a", grace_period_s=0, uid="other")
    assert caught.value.conflict
    await world.client.delete_pod("default", "a", grace_period_s=0, uid=uid(made))
    with pytest.raises(ApiError):
        await world.client.get_pod("default", "a")


# -- API source --------------------------------------------------------------------------------


class Source:
    """An API source of node n1 and what it delivered."""

    def __init__(self, world: World) -> None:
        self.sets: list[list[str]] = []
        self._more = asyncio.Event()
        informer = NodeInformer(world.client, "n1", world.clock, world.rng)
        source = ApiSource(world.client, "n1", informer, world.clock, world.rng)
        world.start(informer.run())
        world.start(source.run(self.take))

    async def take(self, pods: Sequence[Pod]) -> None:
        self.sets.append([p.metadata.name or "" for p in pods if p.metadata])
        self._more.set()

    async def until(self, *names: str, by_s: float = 60.0) -> None:
        async with asyncio.timeout(by_s):
            while not self.sets or self.sets[-1] != list(names):
                self._more.clear()
                await self._more.wait()


async def test_the_pods_of_this_node_arrive_and_go_SRC_050(world: World) -> None:
    await world.client.create_pod(pod("old"))
    await world.client.create_pod(pod("elsewhere", node="n2"))
    source = Source(world)
    await source.until("old")
    await world.client.create_pod(pod("new"))
    await source.until("old", "new")
    await world.client.delete_pod("default", "old", grace_period_s=0)
    await source.until("new")


async def test_pods_are_not_asked_for_before_the_node_was_SRC_050(world: World) -> None:
    world.api.fails("GET", "/nodes", status=500, times=3)
    source = Source(world)
    await source.until()
    paths = [r.path for r in world.api.requests("GET") if r.status == 200]
    assert paths[0] == "/api/v1/nodes"
    assert world.api.requests(path="/api/v1/pods")[0].started_s > 1


async def test_an_outage_loses_nothing_SRC_060(world: World) -> None:
    await world.client.create_pod(pod("a"))
    source = Source(world)
    await source.until("a")
    with world.api.down():
        await asyncio.sleep(100)
        assert source.sets[-1] == ["a"]
    await world.client.create_pod(pod("b"))
    await source.until("a", "b")


async def test_a_connection_lost_without_a_word_is_noticed_SRC_051(world: World) -> None:
    """The server is silent, and so is the network: no end, no error, no more events."""

    source = Source(world)
    await source.until()
    transport = SilentWatches(world.api)
    world.use(transport)
    await asyncio.sleep(301)  # the first watch is over
    await world.client.create_pod(pod("a"))
    await asyncio.sleep(60)
    assert source.sets[-1] == []
    transport.silent = False
    await source.until("a", by_s=400)


async def test_a_watch_without_an_answer_is_given_up_SRC_051(world: World) -> None:
    source = Source(world)
    await source.until()
    with world.api.hangs("GET", "/api/v1/pods", times=1):
        await asyncio.sleep(301)
        await world.client.create_pod(pod("a"))
        await source.until("a", by_s=40)


@pytest.mark.parametrize("status", [403, 410, 500, 504])
async def test_after_a_refused_watch_everything_is_listed_anew_SRC_051(
    world: World, status: int
) -> None:
    """A server with restored data refuses the version of before for ever (504)."""

    source = Source(world)
    await source.until()
    transport = RefusedVersions(world.api, status)
    world.use(transport)
    await asyncio.sleep(301)
    await world.client.create_pod(pod("a"))
    await source.until("a", by_s=10)


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
        assert (await client.list_pods("n1")).items == ()
    await client.aclose()


# -- mirrors -----------------------------------------------------------------------------------


def mirror_client(world: World, node: Node | None) -> MirrorClient:
    return MirrorClient(world.client, "n1", lambda: node)


async def test_the_mirror_is_posted_as_a_real_kubelet_posts_it_MIRR_022_MIRR_023(
    world: World,
) -> None:
    """Against the recorded request of s20."""

    node = await world.node()
    await mirror_client(world, node).create_mirror(static_pod())
    body = world.api.requests("POST", "/api/v1/namespaces/default/pods")[-1].body
    assert node.metadata is not None
    assert body["metadata"] == {
        "name": "st-n1",
        "namespace": "default",
        "uid": STATIC_UID,
        "annotations": {
            "kubernetes.io/config.hash": STATIC_UID,
            "kubernetes.io/config.mirror": STATIC_UID,
            "kubernetes.io/config.seen": "2026-11-21T09:22:20.483347357Z",
            "kubernetes.io/config.source": "file",
        },
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "name": "n1",
                "uid": node.metadata.uid,
                "controller": True,
            }
        ],
    }
    assert uid(await world.client.get_pod("default", "st-n1")) != STATIC_UID


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (None, "node n1 is not known yet"),
        ({"name": "n1"}, "UID unset for node n1"),
        (
            {"name": "n1", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "node n1 is being deleted",
        ),
    ],
)
async def test_no_mirror_without_a_usable_node_MIRR_024(
    world: World, metadata: dict[str, Any] | None, reason: str
) -> None:
    node = msgspec.convert({"metadata": metadata}, Node) if metadata else None
    with pytest.raises(MirrorError, match=reason):
        await mirror_client(world, node).create_mirror(static_pod())
    await mirror_client(world, node).reconcile(static_pod(), None)  # only logged: MIRR-021
    assert world.api.requests("POST") == []


async def test_an_outdated_mirror_is_replaced_MIRR_025(world: World) -> None:
    node = await world.node()
    mirrors = mirror_client(world, node)
    await mirrors.reconcile(static_pod(), None)
    first = await world.client.get_pod("default", "st-n1")
    await mirrors.reconcile(static_pod(), first)
    assert len(world.api.requests("POST", "/api/v1/namespaces/default/pods")) == 1
    value = to_dict(static_pod())
    value["metadata"]["annotations"]["kubernetes.io/config.hash"] = "other"
    await mirrors.reconcile(decode_pod(value), first)
    second = await world.client.get_pod("default", "st-n1")
    assert uid(second) != uid(first)
    deletion = world.api.requests("DELETE")[-1].body
    assert deletion["gracePeriodSeconds"] == 0
    assert deletion["preconditions"] == {"uid": uid(first)}


async def test_a_mirror_being_deleted_is_replaced_at_once_MIRR_029(world: World) -> None:
    node = await world.node()
    mirrors = mirror_client(world, node)
    await mirrors.create_mirror(static_pod())
    await world.client.delete_pod("default", "st-n1", grace_period_s=30)
    dying = await world.client.get_pod("default", "st-n1")
    await mirrors.reconcile(static_pod(), dying)
    fresh = await world.client.get_pod("default", "st-n1")
    assert uid(fresh) != uid(dying)
    assert fresh.metadata is not None
    assert fresh.metadata.deletionTimestamp is None


async def test_missing_and_foreign_mirrors_are_no_error_MIRR_026(world: World) -> None:
    mirrors = mirror_client(world, await world.node())
    assert not await mirrors.delete_mirror("st-n1_default", None)
    await mirrors.create_mirror(static_pod())
    assert not await mirrors.delete_mirror("st-n1_default", "other")
    assert await mirrors.delete_mirror("st-n1_default", None)  # orphans: MIRR-031
    assert "preconditions" not in world.api.requests("DELETE")[-1].body


async def test_standalone_there_are_no_mirrors_SRC_052() -> None:
    mirrors = MirrorClient(None, "n1", lambda: None)
    await mirrors.create_mirror(static_pod())
    assert not await mirrors.delete_mirror("st-n1_default", None)


def test_the_mirror_never_changes_the_static_pod() -> None:
    static = static_pod()
    before = to_dict(static)
    mirror_pod(static, msgspec.convert({"metadata": {"name": "n1", "uid": "u"}}, Node))
    assert to_dict(static) == before


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
        _ = [event async for event in client.watch_pods("n1", "1")]
    assert (caught.value.status, caught.value.reason) == (0, "BadAnswer")
    await client.aclose()


async def test_an_error_with_an_odd_body_is_an_api_error_and_no_crash() -> None:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(500, content=b"[" * 100_000))
    client = LightkubeApiClient.in_process(transport)
    with pytest.raises(ApiError) as caught:
        await client.get_pod("default", "web")
    assert (caught.value.status, caught.value.message) == (500, "[" * 200)
    await client.aclose()


BOOKMARKED_POD = {  # as a kube-apiserver 1.36.2 sends it
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"resourceVersion": "12746"},
    "spec": {"containers": None},
    "status": {},
}


@pytest.mark.parametrize("odd", [BOOKMARKED_POD, {}, {"metadata": None}, {"spec": 7}])
def test_of_a_bookmark_nothing_but_the_version_counts_SRC_051(odd: dict[str, Any]) -> None:
    event = watch_event(decode_pod, "BOOKMARK", odd)
    assert event.type == "BOOKMARK"
    assert event.object.metadata is not None
    wanted = "12746" if odd is BOOKMARKED_POD else ""
    assert event.object.metadata.resourceVersion == wanted


def test_bookmarks_of_nodes_and_services_have_a_version_too_SRC_051() -> None:
    body = {"metadata": {"resourceVersion": "7"}, "spec": {"ports": "?"}, "status": None}
    for decode in (decode_node, decode_service):
        assert watch_event(decode, "BOOKMARK", body).object.metadata.resourceVersion == "7"
