"""Lists as streams (CRI-151)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri

from refkubelet.cri.client import CriClient
from refkubelet.cri.list_streaming import StreamedLists
from refkubelet.cri.target import CriCallError


class Broken(grpc.RpcError):
    def __init__(self, code: grpc.StatusCode) -> None:
        self._code = code

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return "broken"


class Runtime:
    """Streams three containers in two messages, and then `error`; `asked`: methods and filters."""

    def __init__(self, error: grpc.StatusCode | None = None) -> None:
        self.error = error
        self.asked: list[tuple[str, str, float | None]] = []

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        self.asked.append((method, str(request.filter), timeout_s))
        return {
            "ListContainers": cri.ListContainersResponse,
            "ListPodSandbox": cri.ListPodSandboxResponse,
            "ListImages": cri.ListImagesResponse,
        }[method]()

    async def stream(
        self, method: str, request: Any, *, timeout_s: float | None = None
    ) -> AsyncIterator[Any]:
        self.asked.append((method, str(request.filter), timeout_s))
        if self.error is grpc.StatusCode.UNIMPLEMENTED and method != "StreamImages":
            raise Broken(self.error)
        if method == "StreamContainers":
            for ids in ("ab", "c"):
                yield cri.StreamContainersResponse(containers=[_container(x) for x in ids])
        if method == "StreamImages":
            yield cri.StreamImagesResponse(images=[cri.Image(id="i", size=1)])
        if self.error is not None and method != "StreamImages":
            raise Broken(self.error)


def _container(name: str) -> cri.Container:
    return cri.Container(id=name, metadata=cri.ContainerMetadata(name=name))


def methods(runtime: Runtime) -> list[str]:
    return [method for method, _, _ in runtime.asked]


def test_the_messages_of_a_stream_are_one_list() -> None:
    runtime = Runtime()
    client = CriClient(StreamedLists(runtime), request_timeout_s=7)
    found = asyncio.run(client.list_containers(uid="u"))
    assert [c.id for c in found] == ["a", "b", "c"]
    ((method, asked, timeout_s),) = runtime.asked
    assert (method, timeout_s) == ("StreamContainers", 7)
    assert '"u"' in asked  # the same filter


def test_a_stream_without_messages_is_an_empty_list() -> None:
    assert asyncio.run(CriClient(StreamedLists(Runtime())).list_pod_sandboxes()) == ()


def test_a_runtime_without_streams_is_not_asked_for_them_again_CRI_151() -> None:
    runtime = Runtime(grpc.StatusCode.UNIMPLEMENTED)
    client = CriClient(StreamedLists(runtime))

    async def lists() -> None:
        assert await client.list_containers() == ()
        await client.list_pod_sandboxes()
        await client.list_containers()
        assert [i.id for i in await client.list_images()] == ["i"]

    asyncio.run(lists())
    assert methods(runtime) == [
        *("StreamContainers", "ListContainers", "ListPodSandbox", "ListContainers"),
        "StreamImages",  # of another service
    ]


@pytest.mark.parametrize("code", [grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED])
def test_what_came_before_an_error_is_no_list_CRI_151(code: grpc.StatusCode) -> None:
    runtime = Runtime(code)
    client = CriClient(StreamedLists(runtime))
    for _ in range(2):
        with pytest.raises(CriCallError) as caught:
            asyncio.run(client.list_containers())
        assert caught.value.code == code.name
    assert methods(runtime) == ["StreamContainers"] * 2
