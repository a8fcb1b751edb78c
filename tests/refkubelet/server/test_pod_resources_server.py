"""The pod-resources API on its socket (CG-085)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from device_world import asking
from kubecri.podresources import api_pb2, api_pb2_grpc
from loops import virtual_loop
from pods import make_pod

from refkubelet.server.pod_resources import PodResourcesLister
from refkubelet.server.pod_resources_server import BURST, PodResourcesServer
from simclock import RealClock

pytestmark = pytest.mark.slow
ONE = make_pod(asking(1), name="one")


@pytest.fixture
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("k")  # a socket's path must be short


@asynccontextmanager
async def pod_resources(root: Path) -> AsyncIterator[Any]:
    lister = PodResourcesLister(lambda: (ONE,), lambda: (ONE,))
    server = PodResourcesServer(root, lister, RealClock())
    await server.start()
    path = root / "pod-resources" / "kubelet.sock"
    options = [("grpc.default_authority", "localhost")]
    async with grpc.aio.insecure_channel(f"unix:{path}", options=options) as channel:
        yield api_pb2_grpc.PodResourcesListerStub(channel)
    await server.stop()
    assert not path.exists()


async def test_the_pod_resources_api_on_its_socket_CG_085(root: Path) -> None:
    async with pod_resources(root) as stub:
        listed = await stub.List(api_pb2.ListPodResourcesRequest())
        assert [p.name for p in listed.pod_resources] == ["one"]
        asked = api_pb2.GetPodResourcesRequest(pod_name="one", pod_namespace="default")
        assert (await stub.Get(asked)).pod_resources.containers[0].name == "main"
        await stub.GetAllocatableResources(api_pb2.AllocatableResourcesRequest())
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await stub.Get(api_pb2.GetPodResourcesRequest(pod_name="no", pod_namespace="x"))
        assert error.value.code() is grpc.StatusCode.UNKNOWN
        assert error.value.details() == "pod no in namespace x not found"


@pytest.mark.virtual_time
async def test_more_than_ten_calls_at_once_are_refused_CG_085(root: Path) -> None:
    loop = virtual_loop()
    server = PodResourcesServer(root, PodResourcesLister(lambda: (), lambda: ()), loop.clock)
    assert [server.allows() for _ in range(BURST + 1)] == [True] * BURST + [False]
    await loop.clock.sleep(0.01)
    assert [server.allows(), server.allows()] == [True, False]


async def test_a_socket_that_cannot_be_made_is_told(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (root / "pod-resources").write_text("a file, where a directory should be")
    server = PodResourcesServer(root, PodResourcesLister(lambda: (), lambda: ()), RealClock())
    await server.start()
    await server.stop()
    assert "cannot serve the pod-resources API at " in caplog.text
