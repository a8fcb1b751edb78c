"""The static pods behind a URL."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from loops import virtual_loop
from pods import manifest

from refkubelet.host.network import HttpAnswer, HttpRequest, NetworkError
from refkubelet.model.objects import Pod
from refkubelet.model.pod_updates import PodSource
from refkubelet.pods.manifest import ManifestError
from refkubelet.pods.manifest_list import read_manifests
from refkubelet.pods.url_source import UrlSettings, UrlSource

pytestmark = pytest.mark.virtual_time

URL = "http://192.0.2.1/pods"


def one(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", **manifest(name=name, **spec)}


def text_of(*pods: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "PodList", "items": list(pods)})


class World:
    """A source whose answers may be changed, and what it delivered: names of pods."""

    def __init__(self) -> None:
        self.clock = virtual_loop().clock
        self.answer: HttpAnswer | NetworkError = HttpAnswer(200, body=json.dumps(one()))
        self.asked: list[tuple[float, HttpRequest, float | None]] = []
        self.delivered: list[list[str]] = []
        self.pods: Sequence[Pod] = ()
        settings = UrlSettings(URL, {"X-A": ("1", "2"), "X-B": ("3",)}, 20.0)
        network: Any = self
        self.part = UrlSource(settings, network, node_name="n1", clock=self.clock)

    async def http_get(self, request: HttpRequest, timeout_s: float | None) -> HttpAnswer:
        self.asked.append((self.clock.monotonic_s(), request, timeout_s))
        if isinstance(self.answer, NetworkError):
            raise self.answer
        return self.answer

    async def deliver(self, pods: Sequence[Pod]) -> None:
        self.pods = pods
        self.delivered.append([pod.metadata.name or "" for pod in pods])


@asynccontextmanager
async def asked() -> AsyncIterator[World]:
    world = World()
    task = asyncio.create_task(world.part.run(world.deliver))
    await asyncio.sleep(1)
    yield world
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_the_url_is_asked_at_once_and_every_period_SRC_020() -> None:
    async with asked() as world:
        await asyncio.sleep(60)
        times = [when for when, _, _ in world.asked]
        assert [round(time - times[0]) for time in times] == [0, 20, 40, 60]
        _, request, timeout_s = world.asked[0]
        assert request.url == URL
        assert request.headers == (("X-A", "1"), ("X-A", "2"), ("X-B", "3"))
        assert request.body_bytes == 10 * 1024 * 1024
        assert timeout_s == 10.0


async def test_a_pod_of_a_url_is_one_of_source_http_SRC_034_SRC_035() -> None:
    async with asked() as world:
        (pod,) = world.pods
        assert pod.metadata.name == "a-n1"
        assert (pod.metadata.annotations or {})["kubernetes.io/config.source"] == "http"
        assert pod.spec.tolerations is None
        assert world.part.source is PodSource.HTTP


@pytest.mark.parametrize(
    "answer",
    [
        HttpAnswer(500, body=json.dumps(one("b"))),
        HttpAnswer(204),
        NetworkError("connection refused"),
        HttpAnswer(200, body="{", broken="unexpected EOF"),
        HttpAnswer(200, body="no pod"),
        HttpAnswer(200, body=text_of(one("b"), {"spec": {}})),
    ],
)
async def test_what_is_no_answer_changes_nothing_SRC_021_1_SRC_022_2(
    answer: HttpAnswer | NetworkError,
) -> None:
    async with asked() as world:
        world.answer = answer
        await asyncio.sleep(20)
        assert world.delivered == [["a-n1"]]
        assert world.part.error


async def test_an_empty_answer_removes_the_pods_SRC_021_2_SRC_023() -> None:
    async with asked() as world:
        before, world.answer = world.answer, HttpAnswer(200)
        await asyncio.sleep(20)
        assert world.delivered == [["a-n1"], []]
        assert world.part.error == f"zero-length data received from {URL}"
        world.answer = before  # the same bytes as before do not bring them back
        await asyncio.sleep(20)
        assert world.delivered == [["a-n1"], []]


async def test_a_list_has_several_pods_SRC_022_1() -> None:
    async with asked() as world:
        world.answer = HttpAnswer(200, body=text_of(one("b"), manifest(name="c")))
        await asyncio.sleep(20)
        assert world.delivered[-1] == ["b-n1", "c-n1"]


async def test_the_same_bytes_are_read_once_SRC_023() -> None:
    async with asked() as world:
        await asyncio.sleep(60)
        assert len(world.asked) == 4
        assert world.delivered == [["a-n1"]]


def test_an_item_that_is_wrong_is_named_SRC_022_2() -> None:
    data = text_of(one("a"), one("b", containers=[])).encode()
    with pytest.raises(ManifestError, match=r"items\[1\]: invalid pod"):
        read_manifests(data, source=PodSource.HTTP, origin=URL, node_name="n1")
    for items, words in ((5, "^items: wanted a list of pods$"), ([7], r"^items\[0\]: ")):
        with pytest.raises(ManifestError, match=words):
            read_list(items)
    with pytest.raises(ManifestError, match="line 1"):
        read_manifests(b"{", source=PodSource.HTTP, origin=URL, node_name="n1")


def read_list(items: object) -> tuple[Pod, ...]:
    text = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": items}).encode()
    return read_manifests(text, source=PodSource.HTTP, origin=URL, node_name="n1")


def test_items_of_a_list_need_not_say_their_kind_SRC_022_1() -> None:
    bare = {key: value for key, value in manifest(name="a").items() if key in ("metadata", "spec")}
    assert [pod.metadata.name for pod in read_list([bare, manifest(name="b")])] == ["a-n1", "b-n1"]
    assert read_list(None) == ()
    text = json.dumps(manifest(name="b")).encode()
    (elsewhere,) = read_manifests(text, source=PodSource.HTTP, origin="http://b/", node_name="n1")
    (here,) = read_manifests(text, source=PodSource.HTTP, origin=URL, node_name="n1")
    assert here.metadata.uid == read_list([manifest(name="b")])[0].metadata.uid
    assert here.metadata.uid != elsewhere.metadata.uid
