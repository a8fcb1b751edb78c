"""Who refers to which object, how long it is followed, and what readers get meanwhile: NODE-207."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from lightkube.models.core_v1 import ConfigMap
from lightkube.models.meta_v1 import ObjectMeta
from loops import virtual_loop
from pods import container, make_pod

from refkubelet.api.client import ApiError, ObjectList, WatchEvent
from refkubelet.api.kinds import CONFIG_MAPS, Kind
from refkubelet.model.objects import Node, Pod
from refkubelet.object_manager.fetched import FetchedObjects, ttl_of
from refkubelet.object_manager.manager import ObjectManager
from refkubelet.object_manager.references import config_maps_of, secrets_of
from refkubelet.object_manager.watched import WatchedObjects
from simclock import Rng

pytestmark = pytest.mark.virtual_time
NOT_FOUND = ApiError(404, "NotFound", 'configmaps "m" not found')


def config_map(version: int = 1, **fields: Any) -> ConfigMap:
    metadata = ObjectMeta(name="m", uid="u", resourceVersion=str(version))
    return ConfigMap(metadata=metadata, data={"v": str(version)}, **fields)


class Server:
    """Has one ConfigMap, or none, or does not answer."""

    def __init__(self, found: ConfigMap | None) -> None:
        self.found = found
        self.answers = True
        self.asked = 0
        self.watches = 0

    async def get(self, kind: Kind[Any], name: str, namespace: str = "") -> Any:
        self.asked += 1
        if not self.answers:
            raise ApiError(500, "", "broken")
        if self.found is None:
            raise NOT_FOUND
        return self.found

    async def list(
        self, kind: Kind[Any], namespace: str = "", *, fields: str = ""
    ) -> ObjectList[Any]:
        self.asked += 1
        if not self.answers:
            await asyncio.Event().wait()
        return ObjectList((self.found,) if self.found else (), "1")

    async def watch(
        self, kind: Kind[Any], resource_version: str, namespace: str = "", *, fields: str = ""
    ) -> AsyncIterator[WatchEvent[Any]]:
        self.watches += 1
        try:
            await asyncio.sleep(1e6)
            yield WatchEvent("MODIFIED", config_map(2))
        finally:
            self.watches -= 1


def watched(server: Server) -> WatchedObjects[ConfigMap]:
    return WatchedObjects(
        server,
        CONFIG_MAPS,
        "configmap",
        clock=virtual_loop().clock,
        rng=Rng(1),
        sync_frequency_s=60.0,
    )


def using(name: str, uid: str) -> Pod:
    volumes = [{"name": "v", "configMap": {"name": name}}]
    return make_pod(volumes=volumes, namespace="n", name=uid, uid=uid)


def test_what_a_pod_refers_to_NODE_207() -> None:
    sources = [{"configMap": {"name": "p"}}, {"secret": {"name": "q"}}]
    env = [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "k", "key": "x"}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "l", "key": "x"}}},
    ]
    all_of = [{"configMapRef": {"name": "f"}}, {"secretRef": {"name": "g"}}]
    pod = make_pod(
        container(env=env),
        init=[container("i", envFrom=all_of)],
        volumes=[
            {"name": "a", "configMap": {"name": "c"}},
            {"name": "b", "secret": {"secretName": "s"}},
            {"name": "c", "projected": {"sources": sources}},
        ],
        imagePullSecrets=[{"name": "pull"}, {}],
    )
    assert config_maps_of(pod) == ("c", "p", "f", "k")
    assert secrets_of(pod) == ("pull", "s", "q", "g", "l")


async def test_only_what_a_pod_refers_to_can_be_read_NODE_207() -> None:
    server = Server(config_map())
    manager = ObjectManager(watched(server), config_maps_of)
    with pytest.raises(ApiError, match=r'^object "n"/"m" not registered$'):
        await manager.get("n", "m")
    manager.register_pod(using("m", "1"))
    manager.register_pod(using("m", "1"))
    manager.register_pod(using("m", "2"))
    assert (await manager.get("n", "m")).data == {"v": "1"}
    assert server.asked == 1
    manager.unregister_pod(using("m", "1"))
    assert await manager.get("n", "m")
    manager.register_pod(using("other", "2"))
    with pytest.raises(ApiError, match="not registered"):
        await manager.get("n", "m")


async def test_a_reader_waits_a_second_NODE_207() -> None:
    server = Server(config_map())
    server.answers = False
    store = watched(server)
    store.add(("n", "m"))
    clock = virtual_loop().clock
    began_s = clock.monotonic_s()
    text = "^failed to sync configmap cache: timed out waiting for the condition$"
    with pytest.raises(ApiError, match=text):
        await store.get(("n", "m"))
    assert clock.monotonic_s() - began_s == pytest.approx(1.0)
    store.remove(("n", "m"))


async def test_what_is_not_there_NODE_207() -> None:
    store = watched(Server(None))
    store.add(("n", "m"))
    with pytest.raises(ApiError, match=r'^404 NotFound: configmap "m" not found$'):
        await store.get(("n", "m"))
    store.remove(("n", "m"))


async def test_idle_and_immutable_objects_are_not_watched_NODE_207() -> None:
    server = Server(config_map())
    store = watched(server)
    task = asyncio.create_task(store.run())
    store.add(("n", "m"))
    await store.get(("n", "m"))
    await asyncio.sleep(290)
    assert server.watches == 1
    await asyncio.sleep(100)  # five minutes without a reader, and a round
    assert server.watches == 0
    server.found = config_map(7, immutable=True)
    assert (await store.get(("n", "m"))).data == {"v": "7"}
    await asyncio.sleep(1)
    assert server.watches == 0
    assert (await store.get(("n", "m"))).data == {"v": "7"}
    assert server.asked == 2
    task.cancel()


async def test_fetched_objects_age_NODE_207() -> None:
    server = Server(config_map())
    store = FetchedObjects(server, CONFIG_MAPS, virtual_loop().clock, lambda: 60.0)
    store.add(("n", "m"))
    for wait_s, asked in ((0, 1), (59, 1), (2, 2)):
        await asyncio.sleep(wait_s)
        assert await store.get(("n", "m"))
        assert server.asked == asked
    await asyncio.sleep(61)
    server.answers = False
    assert await store.get(("n", "m")), "the last one serves"
    server.answers, server.found = True, None
    for _ in range(2):
        with pytest.raises(ApiError, match='configmaps "m" not found'):
            await store.get(("n", "m"))
    assert server.asked == 5
    server.found = config_map(9)
    assert (await store.get(("n", "m"))).data == {"v": "9"}


def test_the_age_is_said_by_the_node_NODE_207() -> None:
    def node(text: str) -> Node:
        key = "node.alpha.kubernetes.io/ttl"
        return Node(metadata=ObjectMeta(name="n", annotations={key: text}))

    assert [ttl_of(node(text)) for text in ("0", "15", "x", "")] == [0, 15, 60, 60]
