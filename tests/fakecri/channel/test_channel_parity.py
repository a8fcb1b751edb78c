"""A channel without a socket shows a client what one over a socket shows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from kubecri.v1 import api_pb2 as cri
from kubecri.v1.api_pb2_grpc import ImageServiceStub, RuntimeServiceStub
from runtime_calls import pod_config

from fakecri import FakeCRI
from fakecri.server import serve

POD = pod_config("shop")


@pytest.fixture(params=["in process", "socket"])
async def channel(
    request: pytest.FixtureRequest, fakecri: FakeCRI, tmp_path: Path
) -> AsyncIterator[grpc.aio.Channel]:
    if request.param == "in process":
        async with fakecri.channel() as channel:
            yield channel
        return
    async with serve(fakecri, f"unix://{tmp_path}/cri.sock") as server:
        sizes = [("grpc.max_receive_message_length", 16 << 20)]
        async with grpc.aio.insecure_channel(f"unix:{server.path}", options=sizes) as channel:
            yield channel


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what happens behind a socket has no event here
            await asyncio.sleep(0.01)


async def failure(call: Any) -> tuple[grpc.StatusCode, str | None]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert (await call.code(), await call.details()) == (
        caught.value.code(),
        caught.value.details(),
    )
    return caught.value.code(), caught.value.details()


async def test_a_call_is_answered_as_often_as_it_is_awaited(channel: grpc.aio.Channel) -> None:
    call = RuntimeServiceStub(channel).Version(cri.VersionRequest())
    assert (await call).runtime_api_version == "v1"
    assert await call == await call
    assert (await call.code(), call.done(), call.cancelled()) == (grpc.StatusCode.OK, True, False)
    assert call.cancel() is False


async def test_errors_have_the_runtimes_code_and_words(channel: grpc.aio.Channel) -> None:
    call = RuntimeServiceStub(channel).ContainerStatus(cri.ContainerStatusRequest(container_id="x"))
    assert await failure(call) == (
        grpc.StatusCode.NOT_FOUND,
        'an error occurred when try to find container "x": not found',
    )


async def test_an_unknown_method_is_unimplemented(channel: grpc.aio.Channel) -> None:
    ask = channel.unary_unary("/runtime.v1.RuntimeService/Nonsense")
    assert await failure(ask(b"")) == (
        grpc.StatusCode.UNIMPLEMENTED,
        "unknown method Nonsense for service runtime.v1.RuntimeService",
    )
    ask = channel.unary_unary("/some.Service/Nonsense")
    assert await failure(ask(b"")) == (
        grpc.StatusCode.UNIMPLEMENTED,
        "unknown service some.Service",
    )


async def test_a_deadline_ends_a_call_that_hangs(
    channel: grpc.aio.Channel, fakecri: FakeCRI
) -> None:
    fakecri.on("Version").hangs()
    call = RuntimeServiceStub(channel).Version(cri.VersionRequest(), timeout=0.2)
    assert 0 < call.time_remaining() <= 0.2
    code, details = await failure(call)
    assert code is grpc.StatusCode.DEADLINE_EXCEEDED
    # Over a socket the server's own answer may come first.
    assert details in ("Deadline Exceeded", "context deadline exceeded")


async def test_a_deadline_that_has_passed_ends_a_call_before_it_begins(
    channel: grpc.aio.Channel, fakecri: FakeCRI
) -> None:
    call = RuntimeServiceStub(channel).Version(cri.VersionRequest(), timeout=-1)
    assert await failure(call) == (grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
    assert not fakecri.calls("Version")


async def test_a_mistyped_option_is_an_error(channel: grpc.aio.Channel) -> None:
    method = channel.unary_unary("/runtime.v1.RuntimeService/Version")
    with pytest.raises(TypeError, match="timeot"):
        method(b"", timeot=1)  # type: ignore[call-arg]


async def test_a_cancelled_call_reaches_the_fake(
    channel: grpc.aio.Channel, fakecri: FakeCRI
) -> None:
    fakecri.on("Version").hangs()
    call = RuntimeServiceStub(channel).Version(cri.VersionRequest())
    await until(lambda: fakecri.calls("Version"))
    ended: list[Any] = []
    call.add_done_callback(ended.append)
    assert call.cancel() is True
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (call.cancelled(), await call.code()) == (True, grpc.StatusCode.CANCELLED)
    assert await call.details() == "Locally cancelled by application!"
    await until(lambda: fakecri.calls("Version")[0].ended_s is not None)
    assert ended == [call]


async def test_a_caller_that_stops_waiting_cancels_the_call(
    channel: grpc.aio.Channel, fakecri: FakeCRI
) -> None:
    fakecri.on("Version").hangs()
    call = RuntimeServiceStub(channel).Version(cri.VersionRequest())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(call, 0.1)
    assert call.cancelled()


async def test_a_stream_tells_events_until_it_is_cancelled(channel: grpc.aio.Channel) -> None:
    stub = RuntimeServiceStub(channel)
    events = stub.GetContainerEvents(cri.GetEventsRequest())
    first = asyncio.ensure_future(events.read())
    await asyncio.sleep(0.1)  # real time: over a socket the stream must be there first
    sandbox = await stub.RunPodSandbox(cri.RunPodSandboxRequest(config=POD))
    assert (await first).container_id == sandbox.pod_sandbox_id
    events.cancel()
    with pytest.raises(asyncio.CancelledError):
        await events.read()


async def test_a_stream_ends_with_eof_and_with_errors(
    channel: grpc.aio.Channel, fakecri: FakeCRI
) -> None:
    images = ImageServiceStub(channel)
    read = [answer async for answer in images.StreamImages(cri.StreamImagesRequest())]
    assert len(read) == 1
    whole = images.StreamImages(cri.StreamImagesRequest())
    await whole.read()
    assert await whole.read() is grpc.aio.EOF
    fakecri.on("StreamImages").cuts_stream(after=1, code="UNAVAILABLE", message="gone")
    cut = images.StreamImages(cri.StreamImagesRequest())
    await cut.read()
    with pytest.raises(grpc.aio.AioRpcError, match="gone"):
        await cut.read()
    assert await cut.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_request_may_have_16_mib_and_no_more(channel: grpc.aio.Channel) -> None:
    ask = channel.unary_unary("/runtime.v1.RuntimeService/Version")
    assert await ask(b"\x0a\xf0\xff\xff\x07" + b"v" * ((16 << 20) - 16))
    too_large = (16 << 20) + 1
    code, details = await failure(ask(b"x" * too_large))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    # Newer versions of gRPC say which side it was.
    wanted = f"Received message larger than max ({too_large} vs. {16 << 20})"
    assert (details or "").removeprefix("SERVER: ") == wanted


async def test_bytes_that_are_no_message_fail(channel: grpc.aio.Channel) -> None:
    ask = channel.unary_unary("/runtime.v1.RuntimeService/Version")
    code, details = await failure(ask(b"\xff\xff"))
    assert (code, bool(details)) == (grpc.StatusCode.UNKNOWN, True)


async def test_v1alpha2_is_served_too(channel: grpc.aio.Channel) -> None:
    ask = channel.unary_unary(
        "/runtime.v1alpha2.RuntimeService/Version",
        response_deserializer=cri.VersionResponse.FromString,
    )
    assert (await ask(b"")).runtime_api_version == "v1alpha2"


async def test_a_closed_channel_refuses_calls_and_ends_those_that_run(
    channel: grpc.aio.Channel, fakecri: FakeCRI
) -> None:
    fakecri.on("Version").hangs()
    await channel.channel_ready()
    assert channel.get_state() is grpc.ChannelConnectivity.READY
    stub = RuntimeServiceStub(channel)
    call = stub.Version(cri.VersionRequest())
    await asyncio.sleep(0.01)
    await channel.close()
    assert channel.get_state() is grpc.ChannelConnectivity.SHUTDOWN
    assert call.done()
    with pytest.raises(grpc.aio.UsageError, match="closed"):
        await stub.Version(cri.VersionRequest())
