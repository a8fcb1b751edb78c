"""The pod-resources API on its socket (CG-085)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from device_world import asking
from kubecri.podresources import api_pb2, api_pb2_grpc
from kubecri.podresources_v1alpha1 import api_pb2 as alpha_pb2
from kubecri.podresources_v1alpha1 import api_pb2_grpc as alpha_grpc
from loops import virtual_loop
from pods import make_pod

from refkubelet.server.pod_resources.answers import PodResourcesLister
from refkubelet.server.pod_resources.socket import BURST, PATIENCE_S, PodResourcesServer
from refkubelet.telemetry.server_metrics import PodResourcesMetrics
from simclock import RealClock

pytestmark = pytest.mark.slow
ONE = make_pod(asking(1), name="one")


@pytest.fixture
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("k")  # a socket's path must be short


class OneDevice:
    """Every first container has the device `d1` of `example.com/gpu`."""

    def given(self, pod_uid: str, container: str) -> Iterable[tuple[str, str, int | None]]:
        return [("example.com/gpu", "d1", 0)] if container == "main" else []

    def healthy_devices(self) -> Iterable[tuple[str, str, int | None]]:
        return []


@asynccontextmanager
async def channel_to(
    root: Path, metrics: PodResourcesMetrics | None = None
) -> AsyncIterator[grpc.aio.Channel]:
    lister = PodResourcesLister(lambda: (ONE,), lambda: (ONE,), devices=OneDevice())
    server = PodResourcesServer(root, lister, RealClock(), metrics=metrics)
    await server.start()
    path = root / "pod-resources" / "kubelet.sock"
    options = [("grpc.default_authority", "localhost")]
    async with grpc.aio.insecure_channel(f"unix:{path}", options=options) as channel:
        yield channel
    await server.stop()
    assert not path.exists()


@asynccontextmanager
async def pod_resources(
    root: Path, metrics: PodResourcesMetrics | None = None
) -> AsyncIterator[Any]:
    async with channel_to(root, metrics) as channel:
        yield api_pb2_grpc.PodResourcesListerStub(channel)


async def test_monitors_of_v1alpha1_get_the_devices_CG_085(root: Path) -> None:
    async with channel_to(root) as channel:
        stub = alpha_grpc.PodResourcesListerStub(channel)
        listed = await stub.List(alpha_pb2.ListPodResourcesRequest())
    (pod,) = listed.pod_resources
    assert (pod.name, pod.namespace) == ("one", "default")
    (container,) = pod.containers
    (devices,) = container.devices
    assert (container.name, devices.resource_name) == ("main", "example.com/gpu")
    assert list(devices.device_ids) == ["d1"]


async def test_calls_are_counted_SRV_039(root: Path) -> None:
    metrics = PodResourcesMetrics()
    async with channel_to(root, metrics) as channel:
        stub, alpha = (
            api_pb2_grpc.PodResourcesListerStub(channel),
            alpha_grpc.PodResourcesListerStub(channel),
        )
        await stub.List(api_pb2.ListPodResourcesRequest())
        await stub.List(api_pb2.ListPodResourcesRequest())
        await stub.GetAllocatableResources(api_pb2.AllocatableResourcesRequest())
        await alpha.List(alpha_pb2.ListPodResourcesRequest())
        for name in ("one", "no"):
            asked = api_pb2.GetPodResourcesRequest(pod_name=name, pod_namespace="default")
            try:
                await stub.Get(asked)
            except grpc.aio.AioRpcError:
                assert name == "no"
    assert metrics.total.values == {("v1",): 5, ("v1alpha1",): 1}
    assert {name: calls.values for name, calls in metrics.calls.items()} == {
        "list": {("v1",): 2},
        "get_allocatable": {("v1",): 1},
        "get": {("v1",): 2},
    }
    assert {name: calls.values for name, calls in metrics.errors.items() if calls.values} == {
        "get": {("v1",): 1}
    }


@pytest.mark.virtual_time
@pytest.mark.parametrize(("known_after_s", "waits_s"), [(0, 0), (1, 1), (60, PATIENCE_S)])
async def test_a_call_waits_for_the_first_pods_but_not_for_ever_CG_085(
    root: Path, known_after_s: float, waits_s: float
) -> None:
    """CG-085.6."""
    clock = virtual_loop().clock
    lister = PodResourcesLister(lambda: (), lambda: ())
    known = clock.monotonic_s() + known_after_s
    server = PodResourcesServer(root, lister, clock, all_known=lambda: clock.monotonic_s() >= known)
    server.begin()
    began_s = clock.monotonic_s()
    await server.known()
    assert clock.monotonic_s() - began_s == pytest.approx(waits_s, abs=0.06)


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
    """CG-085.1."""
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
