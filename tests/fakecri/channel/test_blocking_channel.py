"""Synchronous stubs on a fake without a socket: each call runs virtual time as far as it waits."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor  # noqa: TID251 - a client that has threads

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from kubecri.v1.api_pb2_grpc import ImageServiceStub, RuntimeServiceStub
from runtime_calls import container_config, pod_config

from fakecri import FakeCRI, exits
from fakecri.channel.blocking import BlockingChannel
from simclock import NothingToWaitFor

POD = pod_config("shop")
WEB = container_config("web")


@pytest.fixture
def channel(fakecri: FakeCRI) -> Iterator[BlockingChannel]:
    with fakecri.blocking_channel() as channel:
        yield channel


@pytest.fixture
def stub(channel: BlockingChannel) -> RuntimeServiceStub:
    return RuntimeServiceStub(channel)


def test_calls_are_answered(stub: RuntimeServiceStub) -> None:
    assert stub.Version(cri.VersionRequest(), timeout=5).runtime_api_version == "v1"
    answer, call = stub.Version.with_call(cri.VersionRequest(), metadata=(("a", "b"),))
    assert answer.runtime_name == "fakecri"
    assert (call.code(), call.done(), call.is_active()) == (grpc.StatusCode.OK, True, False)
    assert (call.initial_metadata(), call.trailing_metadata()) == ((), ())


def test_time_passes_in_sleep_and_stands_still_otherwise(
    fakecri: FakeCRI, channel: BlockingChannel, stub: RuntimeServiceStub
) -> None:
    fakecri.behaves(exits(3, after_s=3600), container="web")
    sandbox = stub.RunPodSandbox(cri.RunPodSandboxRequest(config=POD)).pod_sandbox_id
    create = cri.CreateContainerRequest(pod_sandbox_id=sandbox, config=WEB, sandbox_config=POD)
    web = stub.CreateContainer(create).container_id
    stub.StartContainer(cri.StartContainerRequest(container_id=web))
    began = channel.clock.monotonic_s()
    asked = cri.ContainerStatusRequest(container_id=web)
    channel.sleep(3599)
    assert stub.ContainerStatus(asked).status.state == cri.CONTAINER_RUNNING
    channel.sleep(2)
    assert stub.ContainerStatus(asked).status.exit_code == 3
    assert channel.clock.monotonic_s() - began == 3601


def test_errors_are_those_of_synchronous_stubs(stub: RuntimeServiceStub) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        stub.ContainerStatus(cri.ContainerStatusRequest(container_id="x"))
    error = caught.value
    assert error.code() is grpc.StatusCode.NOT_FOUND
    assert error.details() == 'an error occurred when try to find container "x": not found'
    assert isinstance(error, grpc.Call)
    assert str(error) == f"NOT_FOUND: {error.details()}"
    assert (error.initial_metadata(), error.trailing_metadata(), error.cancel()) == ((), (), False)


def test_a_deadline_passes_in_virtual_time(
    fakecri: FakeCRI, channel: BlockingChannel, stub: RuntimeServiceStub
) -> None:
    fakecri.on("Version").hangs()
    began = channel.clock.monotonic_s()
    with pytest.raises(grpc.RpcError) as caught:
        stub.Version(cri.VersionRequest(), timeout=7200)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert channel.clock.monotonic_s() - began == 7200


def test_what_would_block_for_ever_is_an_error(fakecri: FakeCRI, stub: RuntimeServiceStub) -> None:
    fakecri.on("Version").hangs()
    with pytest.raises(NothingToWaitFor):
        stub.Version(cri.VersionRequest())


def test_a_future_may_be_left_waited_for_and_cancelled(
    fakecri: FakeCRI, channel: BlockingChannel, stub: RuntimeServiceStub
) -> None:
    fakecri.on("Version").delays(10)
    call = stub.Version.future(cri.VersionRequest(), timeout=60)
    told: list[object] = []
    call.add_done_callback(told.append)
    with pytest.raises(grpc.FutureTimeoutError):
        call.result(timeout=4)
    assert (call.running(), call.time_remaining()) == (True, 56)
    channel.sleep(7)
    assert (call.done(), told) == (True, [call])
    assert call.result().runtime_name == "fakecri"
    assert call.exception() is None
    fakecri.on("Version").fails("UNAVAILABLE", "not yet", times=1)
    failed = stub.Version.future(cri.VersionRequest()).exception()
    assert failed is not None
    assert failed.details() == "not yet"
    other = stub.Version.future(cri.VersionRequest())
    assert other.cancel() is True
    with pytest.raises(grpc.FutureCancelledError):
        other.result()
    assert (other.cancelled(), other.code()) == (True, grpc.StatusCode.CANCELLED)


def test_options_may_be_given_by_place_and_not_mistyped(stub: RuntimeServiceStub) -> None:
    stub.Version(cri.VersionRequest(), 5, (("a", "b"),))
    answer, _ = stub.Version.with_call(cri.VersionRequest(), 5, (("a", "b"),))
    assert answer.runtime_name == "fakecri"
    with pytest.raises(TypeError, match="timeot"):
        stub.Version(cri.VersionRequest(), timeot=5)  # type: ignore[call-arg]


def test_a_callback_may_ask_its_call_and_make_another(
    fakecri: FakeCRI, channel: BlockingChannel, stub: RuntimeServiceStub
) -> None:
    fakecri.on("Version").delays(10, times=1)
    began = channel.clock.monotonic_s()
    told: list[object] = []

    def ended(call: grpc.Future[cri.VersionResponse]) -> None:
        told.append((call.result().runtime_name, channel.clock.monotonic_s() - began))
        told.append(stub.Version(cri.VersionRequest()).runtime_name)

    call = stub.Version.future(cri.VersionRequest())
    call.add_done_callback(ended)
    channel.sleep(60)
    assert told == [("fakecri", 10), "fakecri"]
    call.add_done_callback(lambda late: told.append(late))
    assert told[2:] == [call]
    assert channel.clock.monotonic_s() - began == 60


def test_a_callback_that_fails_is_logged_and_stops_nothing(
    fakecri: FakeCRI, stub: RuntimeServiceStub, caplog: pytest.LogCaptureFixture
) -> None:
    fakecri.on("Version").delays(10)
    call = stub.Version.future(cri.VersionRequest())
    told: list[object] = []
    call.add_done_callback(lambda _: told.append(1 / 0))
    call.add_done_callback(told.append)
    assert call.result().runtime_name == "fakecri"
    assert told == [call]
    assert "ZeroDivisionError" in caplog.text


def test_calls_are_asked_after_the_channel_was_closed(fakecri: FakeCRI) -> None:
    with fakecri.blocking_channel() as channel:
        stub = RuntimeServiceStub(channel)
        answered = stub.Version.future(cri.VersionRequest())
        answered.result()
        failed = stub.ContainerStatus.future(cri.ContainerStatusRequest(container_id="x"))
        error = failed.exception()
        fakecri.on("Version").hangs()
        running = stub.Version.future(cri.VersionRequest())
        events = stub.GetContainerEvents(cri.GetEventsRequest())
    assert answered.result().runtime_name == "fakecri"
    assert (answered.code(), answered.initial_metadata()) == (grpc.StatusCode.OK, ())
    assert error is failed.exception()
    assert failed.code() is grpc.StatusCode.NOT_FOUND
    assert (running.done(), running.code()) == (True, grpc.StatusCode.CANCELLED)
    with pytest.raises(grpc.FutureCancelledError):
        running.result()
    with pytest.raises(grpc.RpcError) as caught:
        next(events)
    assert caught.value.code() is grpc.StatusCode.CANCELLED
    with pytest.raises(ValueError, match="closed channel"):
        channel.sleep(1)


def test_a_stream_that_nothing_holds_is_cancelled(
    fakecri: FakeCRI, channel: BlockingChannel
) -> None:
    stub = RuntimeServiceStub(channel)
    events = stub.GetContainerEvents(cri.GetEventsRequest())
    channel.sleep(1)
    assert fakecri.calls("GetContainerEvents")[0].ended_s is None
    del events
    gc.collect()
    channel.sleep(1)
    assert fakecri.calls("GetContainerEvents")[0].ended_s is not None


def test_the_result_of_a_stream_is_how_it_ended(fakecri: FakeCRI, channel: BlockingChannel) -> None:
    images = ImageServiceStub(channel)
    whole = images.StreamImages(cri.StreamImagesRequest())
    assert (len(list(whole)), whole.result(), whole.exception()) == (1, None, None)
    fakecri.on("StreamImages").cuts_stream(after=1, code="UNAVAILABLE", message="gone")
    with pytest.raises(grpc.RpcError) as caught:
        images.StreamImages(cri.StreamImagesRequest()).result()
    assert isinstance(caught.value, grpc.Call)
    assert caught.value.details() == "gone"


def test_streams_are_iterated(fakecri: FakeCRI, channel: BlockingChannel) -> None:
    images = ImageServiceStub(channel)
    assert len(list(images.StreamImages(cri.StreamImagesRequest()))) == 1
    stub = RuntimeServiceStub(channel)
    events = stub.GetContainerEvents(cri.GetEventsRequest())
    sandbox = stub.RunPodSandbox(cri.RunPodSandboxRequest(config=POD))
    assert next(events).container_id == sandbox.pod_sandbox_id
    events.cancel()
    with pytest.raises(grpc.RpcError) as caught:
        next(events)
    assert caught.value.code() is grpc.StatusCode.CANCELLED


def test_a_closed_channel_refuses_calls(fakecri: FakeCRI) -> None:
    with fakecri.blocking_channel() as channel:
        stub = RuntimeServiceStub(channel)
        stub.Version(cri.VersionRequest())
    channel.close()
    with pytest.raises(ValueError, match="closed channel"):
        stub.Version(cri.VersionRequest())


async def test_inside_a_loop_it_says_what_to_use(fakecri: FakeCRI) -> None:
    channel = fakecri.blocking_channel()
    with pytest.raises(RuntimeError, match=r"use channel\(\) with asyncio stubs"):
        RuntimeServiceStub(channel).Version(cri.VersionRequest())


def test_it_is_ready_at_once(channel: BlockingChannel) -> None:
    grpc.channel_ready_future(channel).result(timeout=5)


def test_threads_take_turns(stub: RuntimeServiceStub) -> None:
    def ask(_: int) -> str:
        return stub.Version(cri.VersionRequest(), timeout=5).runtime_name

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert set(threads.map(ask, range(200))) == {"fakecri"}
    finally:
        sys.setswitchinterval(interval)
