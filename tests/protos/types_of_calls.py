"""Nothing of this is run: `tox -e type` has mypy read it, which must agree with every line.

A type that a line does not have, and an `ignore` that nothing needs, are errors there.
"""

from typing import Any, assert_type

from google.protobuf.message import Message
from kubecri.deviceplugin.api_pb2 import AllocateRequest, AllocateResponse
from kubecri.deviceplugin.api_pb2_grpc import DevicePluginAsyncStub
from kubecri.v1 import api_pb2 as cri
from kubecri.v1.api_pb2_grpc import (
    ImageServiceStub,
    RuntimeServiceAsyncStub,
    RuntimeServiceServicer,
    RuntimeServiceStub,
)

from fakecri import CriTarget, FakeCRI
from fakecri.proxy import RecordingProxy
from refkubelet.cri.target import BytesTarget

SANDBOX = cri.RunPodSandboxRequest()


class Theirs:
    """A client's own class of an answer."""


async def calls_by_name(fake: FakeCRI, proxy: RecordingProxy) -> None:
    assert_type(await fake.call("RunPodSandbox", SANDBOX), cri.RunPodSandboxResponse)
    assert_type(await proxy.call("RunPodSandbox", SANDBOX), cri.RunPodSandboxResponse)
    images = cri.ListImagesRequest()
    assert_type(await fake.call("ListImages", images, timeout_s=2), cri.ListImagesResponse)
    async for event in fake.stream("GetContainerEvents", cri.GetEventsRequest()):
        assert_type(event, cri.ContainerEventResponse)


async def other_classes(fake: FakeCRI, theirs: Message, unknown: Any, method: str) -> None:
    assert_type(await fake.call("RunPodSandbox", theirs, response=Theirs), Theirs)
    async for item in fake.stream("StreamImages", theirs, response=Theirs):
        assert_type(item, Theirs)
    assert_type(await fake.call(method, unknown), Message)


async def what_is_refused(fake: FakeCRI, some: Message, method: str) -> None:
    await fake.call("RunPodSandbox", cri.VersionRequest())  # type: ignore[call-overload]
    await fake.call("RunPodSandbx", SANDBOX)  # type: ignore[call-overload]
    await fake.call("GetContainerEvents", cri.GetEventsRequest())  # type: ignore[call-overload]
    fake.stream("Version", cri.VersionRequest())  # type: ignore[call-overload]
    await fake.call("RunPodSandbox", some)  # type: ignore[call-overload]
    await fake.call(method, some)  # type: ignore[call-overload]


async def a_fake_is_a_target(fake: FakeCRI, some: Message, method: str) -> None:
    target: CriTarget = fake
    with_bytes: BytesTarget = fake
    assert_type(await target.call(method, some), Message)
    assert_type(await with_bytes.call_bytes(method, some), bytes)


def blocking_stubs(runtime: RuntimeServiceStub, images: ImageServiceStub) -> None:
    assert_type(runtime.Version(cri.VersionRequest(), timeout=2), cri.VersionResponse)
    later = images.ListImages.future(cri.ListImagesRequest())
    assert_type(later.result(), cri.ListImagesResponse)
    for event in runtime.GetContainerEvents(cri.GetEventsRequest()):
        assert_type(event, cri.ContainerEventResponse)
    runtime.Version(cri.StatusRequest())  # type: ignore[arg-type]


async def asynchronous_stubs(
    runtime: RuntimeServiceAsyncStub, plugin: DevicePluginAsyncStub
) -> None:
    assert_type(await runtime.Version(cri.VersionRequest(), timeout=2), cri.VersionResponse)
    assert_type(await plugin.Allocate(AllocateRequest()), AllocateResponse)
    events = runtime.GetContainerEvents(cri.GetEventsRequest())
    async for event in events:
        assert_type(event, cri.ContainerEventResponse)
    events.cancel()
    await runtime.Version(cri.StatusRequest())  # type: ignore[arg-type]


def stub_of_a_channel(fake: FakeCRI, untyped: Any) -> None:
    """Which kind of stub it is, a channel of unknown type does not tell."""
    assert_type(RuntimeServiceStub(fake.channel()), RuntimeServiceAsyncStub)
    assert_type(RuntimeServiceAsyncStub(untyped), RuntimeServiceAsyncStub)
    blocking: RuntimeServiceStub = RuntimeServiceStub(fake.blocking_channel())
    assert_type(blocking.Version(cri.VersionRequest()), cri.VersionResponse)


class Blocking(RuntimeServiceServicer):
    def Version(self, request: cri.VersionRequest, context: Any) -> cri.VersionResponse:
        return cri.VersionResponse()


class Asynchronous(RuntimeServiceServicer):
    async def Version(self, request: cri.VersionRequest, context: Any) -> cri.VersionResponse:
        return cri.VersionResponse()


class Wrong(RuntimeServiceServicer):
    async def Version(  # type: ignore[override]
        self, request: cri.VersionRequest, context: Any
    ) -> cri.StatusResponse:
        return cri.StatusResponse()
