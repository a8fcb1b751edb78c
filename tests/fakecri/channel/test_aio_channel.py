"""Asyncio stubs on a fake without a socket, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio
import pytest
from kubecri.v1 import api_pb2 as cri
from kubecri.v1.api_pb2_grpc import RuntimeServiceStub

from fakecri import FakeCRI
from fakecri.channel.aio import InProcessChannel

pytestmark = pytest.mark.virtual_time


class Echo(grpc.GenericRpcHandler):  # type: ignore[misc]
    """A service that shows what handlers see and say beside messages."""

    async def unary(self, request: bytes, context: Any) -> bytes:
        await context.send_initial_metadata((("began", "yes"),))
        context.set_trailing_metadata((("ended", "yes"),))
        if request == b"raise":
            raise ValueError("nobody foresaw this")
        if request == b"abort":
            await context.abort(grpc.StatusCode.ABORTED, "as asked", (("why", "asked"),))
        if request == b"set":
            context.set_code(grpc.StatusCode.DATA_LOSS)
            context.set_details("some")
        return repr((context.invocation_metadata(), context.time_remaining())).encode()

    async def many(self, request: bytes, context: Any) -> Any:
        for number in range(int(request)):
            self.sent = number + 1
            yield str(number).encode()

    def service(self, handler_call_details: Any) -> Any:
        if handler_call_details.method == "/echo/many":
            return grpc.unary_stream_rpc_method_handler(self.many)
        return grpc.unary_unary_rpc_method_handler(self.unary)


@pytest.fixture
def echo() -> Echo:
    return Echo()


async def test_a_hang_of_two_hours_takes_no_time(fakecri: FakeCRI) -> None:
    fakecri.on("Version").hangs(times=1)
    stub = RuntimeServiceStub(fakecri.channel())
    began = asyncio.get_running_loop().time()
    with pytest.raises(grpc.aio.AioRpcError, match="Deadline Exceeded"):
        await stub.Version(cri.VersionRequest(), timeout=7200)
    assert asyncio.get_running_loop().time() - began == 7200
    fakecri.on("Version").delays(60)
    await stub.Version(cri.VersionRequest(), timeout=61)
    assert asyncio.get_running_loop().time() - began == 7260


async def test_metadata_go_both_ways(echo: Echo) -> None:
    call = InProcessChannel([echo]).unary_unary("/echo/one")(
        b"", timeout=5, metadata=(("token", "x"), ("raw-bin", b"\0"))
    )
    assert await call == repr(((("token", "x"), ("raw-bin", b"\0")), 5.0)).encode()
    assert [*await call.initial_metadata()] == [("began", "yes")]
    assert [*await call.trailing_metadata()] == [("ended", "yes")]


@pytest.mark.parametrize(
    ("request_", "code", "details", "trailing"),
    [
        (b"abort", grpc.StatusCode.ABORTED, "as asked", {"why": "asked"}),
        (b"set", grpc.StatusCode.DATA_LOSS, "some", {"ended": "yes"}),
        (
            b"raise",
            grpc.StatusCode.UNKNOWN,
            "Unexpected <class 'ValueError'>: nobody foresaw this",
            {"ended": "yes"},
        ),
    ],
)
async def test_a_handler_that_fails_gives_its_status(
    echo: Echo, request_: bytes, code: grpc.StatusCode, details: str, trailing: dict[str, str]
) -> None:
    call = InProcessChannel([echo]).unary_unary("/echo/one")(request_)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert (caught.value.code(), caught.value.details()) == (code, details)
    assert [*caught.value.trailing_metadata()] == [*trailing.items()]
    assert [*caught.value.initial_metadata()] == [("began", "yes")]


async def test_a_reader_that_waits_holds_the_stream_up(echo: Echo) -> None:
    call = InProcessChannel([echo]).unary_stream("/echo/many")(b"1000")
    assert await call.read() == b"0"
    await asyncio.sleep(1)
    assert 0 < echo.sent < 100
    assert len([message async for message in call]) == 999
    assert echo.sent == 1000


async def test_a_message_that_is_too_large_is_refused_on_its_way_back(echo: Echo) -> None:
    channel = InProcessChannel([echo], max_message_bytes=20)
    with pytest.raises(grpc.aio.AioRpcError, match=r"larger than max \(\d+ vs. 20\)"):
        await channel.unary_unary("/echo/one")(b"", metadata=(("long", "x" * 30),))


async def test_a_close_with_grace_lets_calls_end(fakecri: FakeCRI) -> None:
    channel = fakecri.channel()
    stub = RuntimeServiceStub(channel)
    with fakecri.on("Version").delays(5):
        short = stub.Version(cri.VersionRequest())
        await asyncio.sleep(1)
    fakecri.on("Version").hangs()
    hangs = stub.Version(cri.VersionRequest())
    began = asyncio.get_running_loop().time()
    await channel.close(grace=10)
    assert asyncio.get_running_loop().time() - began == 10
    assert (await short).runtime_api_version == "v1"
    assert (short.cancelled(), hangs.cancelled()) == (False, True)


async def test_streams_of_requests_are_refused_in_a_sentence(fakecri: FakeCRI) -> None:
    with pytest.raises(NotImplementedError, match="takes a stream of requests"):
        fakecri.channel().stream_stream("/x/Y")
