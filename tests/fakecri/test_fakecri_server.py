"""The gRPC server over any CRI target, on a real unix socket and in real time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as cri
from runtime_calls import hear

from fakecri.cri.endpoint import EndpointError, socket_path
from fakecri.cri.services import METHODS, served_by
from fakecri.server import MAX_MESSAGE_BYTES, GrpcUpstream, serve


class StatusError(grpc.RpcError):
    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(f"{code}: {details}")
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


class EchoTarget:
    """Answers with what the test set; remembers what it was asked."""

    def __init__(self, **answers: Message | Exception | Callable[[Message], Message]) -> None:
        self.answers = answers
        self.seen: list[tuple[str, Message, float | None]] = []
        self.cancelled = asyncio.Event()

    async def call(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> Message:
        self.seen.append((method, request, timeout_s))
        answer = self.answers.get(method)
        if method == "Status" and answer is None:
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()
        if answer is None:
            return METHODS[method].response_type()
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Message) else answer(request)

    async def stream(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> AsyncIterator[Message]:
        self.seen.append((method, request, timeout_s))
        for number in range(3):
            yield cri.ContainerEventResponse(container_id=f"c{number}")
        if "then" in self.answers:
            error = self.answers["then"]
            assert isinstance(error, Exception)
            raise error


@pytest.fixture
def listen(tmp_path: Path) -> str:
    return f"unix://{tmp_path}/cri.sock"


async def test_every_unary_method_reaches_the_target(listen: str) -> None:
    target = EchoTarget(Status=cri.StatusResponse())
    async with serve(target, listen) as server, GrpcUpstream(server.endpoint) as client:
        for method in METHODS.values():
            if not method.streams:
                await client.call(method.name, method.request_type(), timeout_s=5)
    unary = [m.name for m in METHODS.values() if not m.streams]
    assert [name for name, _, _ in target.seen] == unary
    assert len(unary) == 34


async def test_messages_pass_unchanged_with_unknown_fields(listen: str) -> None:
    unknown = b"\xda\x3e\x03abc"  # field 1003, bytes "abc"
    request = cri.VersionRequest.FromString(b"\n\x01x" + unknown)
    target = EchoTarget(Version=cri.VersionResponse.FromString(b"\n\x050.1.0" + unknown))
    async with serve(target, listen) as server, GrpcUpstream(server.endpoint) as client:
        answer = await client.call("Version", request, timeout_s=5)
    assert target.seen[0][1].SerializeToString() == b"\n\x01x" + unknown
    assert answer.SerializeToString() == b"\n\x050.1.0" + unknown


async def test_v1alpha2_is_served_without_later_methods_CRI_010(listen: str) -> None:
    target = EchoTarget(Version=cri.VersionResponse(version="0.1.0", runtime_api_version="v1"))
    async with (
        serve(target, listen) as server,
        GrpcUpstream(server.endpoint, api_version="v1alpha2") as old,
    ):
        answer = await old.call("Version", cri.VersionRequest(), timeout_s=5)
        assert answer == cri.VersionResponse(version="0.1.0", runtime_api_version="v1alpha2")
        with pytest.raises(grpc.RpcError) as failure:
            await old.call("RuntimeConfig", cri.RuntimeConfigRequest(), timeout_s=5)
    assert failure.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert failure.value.details() == (
        "unknown method RuntimeConfig for service runtime.v1alpha2.RuntimeService"
    )
    assert len(served_by("v1alpha2")) == 29


@pytest.mark.parametrize(
    ("path", "details"),
    [
        ("/runtime.v1.ImageService/Squash", "unknown method Squash for service runtime.v1.Image"),
        ("/other.Service/X", "unknown service other.Service"),
    ],
)
async def test_unknown_paths_are_unimplemented_CRI_004(
    listen: str, path: str, details: str
) -> None:
    async with (
        serve(EchoTarget(), listen) as server,
        grpc.aio.insecure_channel(f"unix:{server.path}") as channel,
    ):
        with pytest.raises(grpc.RpcError) as failure:
            await channel.unary_unary(path)(b"", timeout=60)
    assert failure.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert failure.value.details().startswith(details)


async def test_errors_keep_code_and_text_CRI_009(listen: str) -> None:
    text = 'an error occurred when try to find container "x": not found'
    target = EchoTarget(ContainerStatus=StatusError(grpc.StatusCode.NOT_FOUND, text))
    async with serve(target, listen) as server, GrpcUpstream(server.endpoint) as client:
        with pytest.raises(grpc.RpcError) as failure:
            await client.call("ContainerStatus", cri.ContainerStatusRequest(), timeout_s=5)
    assert (failure.value.code(), failure.value.details()) == (grpc.StatusCode.NOT_FOUND, text)


async def test_an_error_that_is_no_status_is_internal_and_logged(
    listen: str, caplog: pytest.LogCaptureFixture
) -> None:
    target = EchoTarget(ImageFsInfo=RuntimeError("oops"))
    async with serve(target, listen) as server, GrpcUpstream(server.endpoint) as client:
        with pytest.raises(grpc.RpcError) as failure:
            await client.call("ImageFsInfo", cri.ImageFsInfoRequest(), timeout_s=5)
    assert failure.value.code() is grpc.StatusCode.INTERNAL
    assert failure.value.details() == "fakecri failed in ImageFsInfo: RuntimeError: oops"
    assert "ImageFsInfo failed" in caplog.text


async def test_deadline_reaches_the_target_and_cancels_it_CRI_006(listen: str) -> None:
    target = EchoTarget()
    async with serve(target, listen) as server, GrpcUpstream(server.endpoint) as client:
        with pytest.raises(grpc.RpcError) as failure:
            await client.call("Status", cri.StatusRequest(), timeout_s=0.3)
        await asyncio.wait_for(target.cancelled.wait(), 60)
        await client.call("Version", cri.VersionRequest())
    assert failure.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    deadline = target.seen[0][2]
    assert deadline is not None
    assert 0 < deadline <= 0.31  # the wire counts in whole units, rounded up
    assert target.seen[1][2] is None


async def test_streams_deliver_messages_then_the_error_CRI_140(listen: str) -> None:
    target = EchoTarget(then=StatusError(grpc.StatusCode.UNKNOWN, "broken"))
    got: list[Any] = []
    async with serve(target, listen) as server, GrpcUpstream(server.endpoint) as client:
        with pytest.raises(grpc.RpcError) as failure:
            await hear(client, got)
    assert [event.container_id for event in got] == ["c0", "c1", "c2"]
    assert failure.value.details() == "broken"


async def test_messages_up_to_16_MiB_pass_and_larger_fail_CRI_005(listen: str) -> None:
    size = [MAX_MESSAGE_BYTES - 1024]
    target = EchoTarget(ExecSync=lambda _: cri.ExecSyncResponse(stdout=b"x" * size[0]))
    async with serve(target, listen) as server, GrpcUpstream(server.endpoint) as client:
        answer = await client.call("ExecSync", cri.ExecSyncRequest(), timeout_s=20)
        assert isinstance(answer, cri.ExecSyncResponse)
        assert len(answer.stdout) == size[0]
        size[0] = MAX_MESSAGE_BYTES
        with pytest.raises(grpc.RpcError) as failure:
            await client.call("ExecSync", cri.ExecSyncRequest(), timeout_s=20)
    assert failure.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_stop_ends_hanging_calls_and_removes_the_socket(listen: str) -> None:
    async with serve(EchoTarget(), listen) as server, GrpcUpstream(server.endpoint) as client:
        hanging = asyncio.create_task(client.call("Status", cri.StatusRequest(), timeout_s=20))
        await client.call("Version", cri.VersionRequest(), timeout_s=5)
        await server.stop()
        with pytest.raises(grpc.RpcError):
            await hanging
    assert not socket_path(listen).exists()


async def code_of_version(client: GrpcUpstream) -> grpc.StatusCode | None:
    try:
        await client.call("Version", cri.VersionRequest(), timeout_s=5)
    except grpc.RpcError as error:
        return error.code()
    return None


async def test_upstream_works_again_after_the_runtime_came_back_CRI_001(listen: str) -> None:
    async with GrpcUpstream(listen) as client:
        assert await code_of_version(client) is grpc.StatusCode.UNAVAILABLE
        for _ in range(2):
            async with serve(EchoTarget(), listen), asyncio.timeout(60):
                while await code_of_version(client) is not None:  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.05)


async def test_a_dead_socket_file_is_replaced(listen: str) -> None:
    path = socket_path(listen)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    assert path.exists()
    async with serve(EchoTarget(), listen) as server, GrpcUpstream(server.endpoint) as client:
        await client.call("Version", cri.VersionRequest(), timeout_s=5)


async def test_a_living_socket_is_left_alone_and_its_owner_named(listen: str) -> None:
    with socket.socket(socket.AF_UNIX) as living:
        living.bind(str(socket_path(listen)))
        living.listen()
        with pytest.raises(EndpointError, match=r"pid \d+ \(.+\) listens there already"):
            async with serve(EchoTarget(), listen):
                pass
    assert socket_path(listen).exists()


@pytest.mark.parametrize(
    ("make", "endpoint", "message"),
    [
        (None, "unix://{tmp}/no/x.sock", "the directory {tmp}/no does not exist"),
        ("x.sock", "unix://{tmp}/x.sock", "the file exists and is no socket"),
        (None, "http://127.0.0.1:1", "wanted unix:///absolute/path.sock"),
        (None, "tcp://127.0.0.1:70000", "wanted tcp://HOST:PORT with a port to 65535"),
        (None, "unix://x.sock", "wanted unix:///absolute/path.sock"),
        (None, "unix:///" + "x" * 200, "takes at most 107"),
    ],
)
async def test_wrong_listen_endpoints_are_one_clear_error(
    tmp_path: Path, make: str | None, endpoint: str, message: str
) -> None:
    if make:
        (tmp_path / make).write_text("")
    with pytest.raises(EndpointError) as failure:
        async with serve(EchoTarget(), endpoint.format(tmp=tmp_path)):
            pass
    assert message.format(tmp=tmp_path) in str(failure.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none", "no such file\n  start it"),
        ("file", "the file is no socket"),
        ("dead", "nobody listens there"),
    ],
)
async def test_check_says_what_is_at_the_endpoint_instead(
    tmp_path: Path, name: str, words: str
) -> None:
    (tmp_path / "file").write_text("")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "dead"))
    async with GrpcUpstream(f"unix://{tmp_path}/{name}") as upstream:
        with pytest.raises(EndpointError, match=words):
            upstream.check(hint="start it")
