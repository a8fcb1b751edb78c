"""The proxy: passes messages on unchanged, records them, applies the fault rules."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as cri

from fakecri.cri.services import METHODS
from fakecri.errors import CriError
from fakecri.proxy import RecordingProxy
from fakecri.recording.call import Call
from fakecri.server import GrpcUpstream, serve


class Upstream:
    """A runtime of one container, `c1` of pod `web`, running before the proxy was there."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Message]] = []
        self.answers: dict[str, Message] = {
            "ListContainers": cri.ListContainersResponse(
                containers=[
                    cri.Container(
                        id="c1",
                        metadata=cri.ContainerMetadata(name="app"),
                        labels={"io.kubernetes.pod.name": "web"},
                    )
                ]
            )
        }

    async def call(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> Message:
        self.requests.append((method, request))
        if method == "StopContainer":
            raise CriError(grpc.StatusCode.UNKNOWN, "boom")
        return self.answers.get(method, METHODS[method].response_type())

    async def stream(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> AsyncIterator[Message]:
        self.requests.append((method, request))
        for number in range(2):
            yield cri.ContainerEventResponse(container_id=f"c{number}")


async def test_messages_and_errors_pass_and_are_recorded() -> None:
    upstream = Upstream()
    proxy = RecordingProxy(upstream)
    unknown = b"\xda\x3e\x03abc"  # field 1003
    upstream.answers["Version"] = cri.VersionResponse.FromString(b"\n\x01v" + unknown)
    request = cri.VersionRequest.FromString(unknown)
    answer = await proxy.call("Version", request, timeout_s=9)
    assert answer.SerializeToString() == b"\n\x01v" + unknown
    assert upstream.requests[0][1].SerializeToString() == unknown
    with pytest.raises(grpc.RpcError, match="boom"):
        await proxy.call("StopContainer", cri.StopContainerRequest(container_id="x"))
    version, stop = proxy.calls()
    assert (version.method, version.deadline_s, version.error) == ("Version", 9, None)
    assert stop.error == ("UNKNOWN", "boom")


async def test_credentials_reach_the_runtime_but_not_the_record_CRI_097() -> None:
    upstream = Upstream()
    proxy = RecordingProxy(upstream)
    auth = cri.AuthConfig(username="u", password="secret")
    await proxy.call("PullImage", cri.PullImageRequest(auth=auth))
    passed = upstream.requests[0][1]
    assert isinstance(passed, cri.PullImageRequest)
    assert passed.auth.password == "secret"
    assert "secret" not in str(proxy.calls("PullImage")[0].request)


async def test_faults_apply_to_containers_that_were_there_before() -> None:
    upstream = Upstream()
    proxy = RecordingProxy(upstream)
    await proxy.call("ListContainers", cri.ListContainersRequest())
    request = cri.ContainerStatusRequest(container_id="c1")
    with proxy.on("ContainerStatus", container="app", pod="web").fails("UNAVAILABLE", "down"):
        with pytest.raises(grpc.RpcError) as failure:
            await proxy.call("ContainerStatus", request)
    assert failure.value.code() is grpc.StatusCode.UNAVAILABLE
    assert [method for method, _ in upstream.requests] == ["ListContainers"]
    await proxy.call("ContainerStatus", request)
    assert proxy.count("ContainerStatus", container="app") == 2


async def test_a_hanging_call_goes_on_when_released() -> None:
    upstream = Upstream()
    proxy = RecordingProxy(upstream)
    arrived = asyncio.Event()

    def note_arrival(_: Call) -> bool:
        arrived.set()
        return True

    rule = proxy.on("Version", where=note_arrival).hangs()
    call = asyncio.create_task(proxy.call("Version", cri.VersionRequest()))
    await arrived.wait()
    assert upstream.requests == []
    rule.release()
    await call
    assert len(upstream.requests) == 1


async def test_a_hanging_call_ends_at_its_deadline() -> None:
    proxy = RecordingProxy(Upstream())
    proxy.on("Version").hangs()
    with pytest.raises(grpc.RpcError) as failure:
        await proxy.call("Version", cri.VersionRequest(), timeout_s=0.05)
    assert failure.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_streams_pass_and_are_recorded_CRI_140() -> None:
    proxy = RecordingProxy(Upstream())
    events = [e async for e in proxy.stream("GetContainerEvents", cri.GetEventsRequest())]
    assert len(events) == 2
    proxy.assert_called("GetContainerEvents", times=1)
    with proxy.on("GetContainerEvents").fails("UNIMPLEMENTED", "no events"):
        with pytest.raises(grpc.RpcError, match="no events"):
            [e async for e in proxy.stream("GetContainerEvents", cri.GetEventsRequest())]


async def test_a_proxy_behind_sockets_on_both_sides(tmp_path: Path) -> None:
    real, front = f"unix://{tmp_path}/real.sock", f"unix://{tmp_path}/front.sock"
    async with serve(Upstream(), real), GrpcUpstream(real) as upstream:
        proxy = RecordingProxy(upstream)
        async with serve(proxy, front), GrpcUpstream(front) as kubelet:
            await kubelet.call("ListContainers", cri.ListContainersRequest(), timeout_s=5)
            with pytest.raises(grpc.RpcError) as failure:
                await kubelet.call("StopContainer", cri.StopContainerRequest(), timeout_s=5)
    assert (failure.value.code().name, failure.value.details()) == ("UNKNOWN", "boom")
    proxy.assert_order(["ListContainers", "StopContainer"])


async def test_behaviours_are_refused_in_front_of_a_real_runtime() -> None:
    with pytest.raises(ValueError, match="in front of a real one"):
        RecordingProxy(Upstream()).on("StartContainer").exits(1)
