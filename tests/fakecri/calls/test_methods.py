"""Statistics, metrics, streaming lists, checkpoints, signals, users, events: the methods that a
kubelet uses behind feature gates."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import UNKNOWN_ID, run_pod, started

from fakecri import FakeCRI


async def outcome(call: Awaitable[Any]) -> str:
    try:
        await call
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


async def ended(stream: Any) -> str:
    try:
        async with asyncio.timeout(1):
            async for _ in stream:
                pass
    except TimeoutError:
        return "STILL OPEN"
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


async def streamed(fake: FakeCRI, method: str, request: Any) -> list[Any]:
    return [message async for message in fake.stream(method, request)]


@pytest.mark.virtual_time
async def test_every_method_of_both_services_is_played() -> None:
    """Nothing answers UNIMPLEMENTED; the calls are empty, so most are refused otherwise."""
    from fakecri.cri.services import METHODS

    fake = FakeCRI()
    fake.streaming  # noqa: B018 (made here: it is not what is tested)
    for method in METHODS.values():
        if method.streams:
            stream = fake.stream(method.name, method.request_type())
            code = await ended(stream)
        else:
            code = await outcome(fake.call(method.name, method.request_type()))
        assert code != "UNIMPLEMENTED", method.name


@pytest.mark.virtual_time
async def test_resources_of_a_pod_are_kept_also_when_it_is_stopped_CRI_122() -> None:
    fake = FakeCRI()
    sandbox = await run_pod(fake)
    await fake.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
    wanted = cri.LinuxContainerResources(cpu_shares=512)
    request = cri.UpdatePodSandboxResourcesRequest(pod_sandbox_id=sandbox, resources=wanted)
    await fake.call("UpdatePodSandboxResources", request)
    kept = fake.sandboxes(pod="web")[0].resources
    assert kept is not None
    assert kept.cpu_shares == 512
    request.pod_sandbox_id = UNKNOWN_ID
    assert await outcome(fake.call("UpdatePodSandboxResources", request)) == "NOT_FOUND"


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("method", "request_message", "field"),
    [
        ("StreamPodSandboxes", cri.StreamPodSandboxesRequest(), "pod_sandboxes"),
        ("StreamContainers", cri.StreamContainersRequest(), "containers"),
        ("StreamContainerStats", cri.StreamContainerStatsRequest(), "container_stats"),
        ("StreamPodSandboxStats", cri.StreamPodSandboxStatsRequest(), "pod_sandbox_stats"),
        ("StreamPodSandboxMetrics", cri.StreamPodSandboxMetricsRequest(), "pod_sandbox_metrics"),
    ],
)
async def test_streaming_lists_send_each_item_once_in_batches_CRI_150(
    method: str, request_message: Any, field: str
) -> None:
    fake = FakeCRI()
    assert await streamed(fake, method, request_message) == []
    fake.limit_list_batches(2)
    for number in range(5):
        await started(fake, pod=f"p{number}")
    sizes = [len(getattr(m, field)) for m in await streamed(fake, method, request_message)]
    assert sizes == [2, 2, 1]


@pytest.mark.virtual_time
async def test_images_are_streamed_in_batches_too_CRI_150() -> None:
    fake = FakeCRI(images=())
    assert await streamed(fake, "StreamImages", cri.StreamImagesRequest()) == []
    fake.limit_list_batches(2)
    for number in range(3):
        fake.images.add(f"localhost/image:{number}")
    messages = await streamed(fake, "StreamImages", cri.StreamImagesRequest())
    tags = [image.repo_tags[0] for message in messages for image in message.images]
    assert tags == [f"localhost/image:{number}" for number in range(3)]
    assert len(messages) == 2


@pytest.mark.virtual_time
async def test_streaming_lists_filter_like_the_unary_ones_CRI_150() -> None:
    fake = FakeCRI()
    container = await started(fake, "a")
    await started(fake, "b")
    request = cri.StreamContainersRequest(filter=cri.ContainerFilter(id=container[:9]))
    (message,) = await streamed(fake, "StreamContainers", request)
    assert [c.metadata.name for c in message.containers] == ["a"]
