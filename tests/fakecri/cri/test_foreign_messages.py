"""Messages of other stubs than kubecri's: the fake takes them, and answers with their like."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from kubecri.v1 import api_pb2 as cri
from kubecri.v1alpha2 import api_pb2 as alpha

from fakecri import FakeCRI
from fakecri.proxy import RecordingProxy

pytestmark = pytest.mark.virtual_time


def stubs(package: str = "runtime.v1") -> Any:
    """Message classes of the CRI in a pool of their own, as another client's stubs are. A package
    has as many letters as `runtime.v1`."""
    text = cri.DESCRIPTOR.serialized_pb.replace(b"runtime.v1", package.encode())
    pool = DescriptorPool()
    file = pool.AddSerializedFile(text)
    module = ModuleType("theirs")
    for name, descriptor in file.message_types_by_name.items():
        setattr(module, name, GetMessageClass(descriptor))
    return module


theirs = stubs()
POD = {"metadata": {"name": "shop", "uid": "u1"}}


async def test_a_client_gets_answers_in_its_own_classes() -> None:
    fake = FakeCRI()
    asked = theirs.RunPodSandboxRequest(config=POD)
    sandbox: Any = await fake.call("RunPodSandbox", asked)
    assert type(sandbox) is theirs.RunPodSandboxResponse
    listed: Any = await fake.call("ListPodSandbox", theirs.ListPodSandboxRequest())
    assert [type(item) for item in listed.items] == [theirs.PodSandbox]
    assert listed.items[0].id == sandbox.pod_sandbox_id
    fake.assert_called("RunPodSandbox", pod="shop", times=1)
    assert type(fake.calls("RunPodSandbox")[0].request) is cri.RunPodSandboxRequest


async def test_the_answer_in_a_class_that_the_caller_names() -> None:
    fake = FakeCRI()
    mixed = await fake.call("Version", cri.VersionRequest(), response=theirs.VersionResponse)
    assert type(mixed) is theirs.VersionResponse
    own = await fake.call("Version", theirs.VersionRequest(), response=cri.VersionResponse)
    assert type(own) is cri.VersionResponse
    assert own.runtime_name == mixed.runtime_name != ""


async def test_a_client_of_v1alpha2_CRI_010() -> None:
    asked: Any = alpha.VersionRequest()
    answer = await FakeCRI().call("Version", asked)
    assert type(answer) is alpha.VersionResponse
    assert answer.runtime_api_version == "v1alpha2"


async def test_classes_without_descriptors_are_told_by_their_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such as those of betterproto."""

    class VersionRequest:
        def SerializeToString(self) -> bytes:
            return b""

        @classmethod
        def FromString(cls, data: bytes) -> VersionRequest:
            return cls()

    class VersionResponse:
        def __init__(self, data: bytes) -> None:
            self.data = data

        def SerializeToString(self) -> bytes:
            return self.data

        @classmethod
        def FromString(cls, data: bytes) -> VersionResponse:
            return cls(data)

    fake = FakeCRI()
    asked: Any = VersionRequest()
    plain = await fake.call("Version", asked)
    assert type(plain) is cri.VersionResponse, "the stubs' answer cannot be found"
    given = await fake.call("Version", asked, response=VersionResponse)
    assert cri.VersionResponse.FromString(given.data) == plain
    monkeypatch.setattr(sys.modules[__name__], "VersionResponse", VersionResponse, raising=False)
    found = await fake.call("Version", asked)
    assert type(found) is VersionResponse


async def test_fields_that_are_newer_than_ours_pass_through() -> None:
    """What our contract does not know yet is kept, so that answers by rule lose nothing."""
    newer = FileDescriptorProto.FromString(cri.DESCRIPTOR.serialized_pb)
    message = next(m for m in newer.message_type if m.name == "VersionResponse")
    message.field.add(name="colour", number=99, type=9, label=1)
    file = DescriptorPool().AddSerializedFile(newer.SerializeToString())
    later = GetMessageClass(file.message_types_by_name["VersionResponse"])
    fake = FakeCRI()
    fake.on("Version").answers(later(colour="blue"))
    seen: Any = await fake.call("Version", cri.VersionRequest(), response=later)
    assert seen.colour == "blue"


async def test_streams() -> None:
    fake = FakeCRI()
    await fake.call("RunPodSandbox", theirs.RunPodSandboxRequest(config=POD))
    asked: Any = theirs.StreamPodSandboxesRequest()
    pods = [answer async for answer in fake.stream("StreamPodSandboxes", asked)]
    assert [type(answer) for answer in pods] == [theirs.StreamPodSandboxesResponse]
    images = fake.stream("StreamImages", cri.StreamImagesRequest(), response=alpha.ImageSpec)
    with pytest.raises(TypeError, match="response: wanted a class StreamImagesResponse"):
        await anext(images)
    named = theirs.StreamImagesResponse
    images = fake.stream("StreamImages", cri.StreamImagesRequest(), response=named)
    assert [type(answer) async for answer in images] == [named]


async def test_answers_in_bytes() -> None:
    fake = FakeCRI()
    data = await fake.call_bytes("ListPodSandbox", theirs.ListPodSandboxRequest())
    assert data == await fake.call_bytes("ListPodSandbox", cri.ListPodSandboxRequest())


@pytest.mark.parametrize("by_function", [False, True])
async def test_rules_answer_with_messages_of_any_stubs(by_function: bool) -> None:
    fake = FakeCRI()
    told = theirs.VersionResponse(runtime_name="other")
    fake.on("Version").answers((lambda request: told) if by_function else told)
    assert (await fake.call("Version", cri.VersionRequest())).runtime_name == "other"
    answer: Any = await fake.call("Version", theirs.VersionRequest())
    assert type(answer) is theirs.VersionResponse
    assert answer is not told


async def test_a_proxy_takes_them_too() -> None:
    proxy = RecordingProxy(FakeCRI())
    answer: Any = await proxy.call("Version", theirs.VersionRequest())
    assert type(answer) is theirs.VersionResponse
    proxy.assert_called("Version", times=1)


@pytest.mark.parametrize(
    ("request_", "response", "words"),
    [
        (theirs.StatusRequest(), None, "Version: wanted a VersionRequest, got StatusRequest"),
        (theirs.VersionResponse(), None, "wanted a VersionRequest, got VersionResponse"),
        (
            stubs("another.v1").VersionRequest(),
            None,
            "VersionRequest, got another.v1.VersionRequest",
        ),
        (cri.VersionRequest, None, "wanted a VersionRequest, got .*class"),
        (cri.VersionRequest(), theirs.StatusResponse, "response: wanted a class VersionResponse"),
        (cri.VersionRequest(), theirs.VersionResponse(), "wanted a class VersionResponse, got"),
        (cri.VersionRequest(), dict, "response: wanted a class VersionResponse, got <class .dict"),
    ],
)
async def test_what_does_not_fit_is_refused_and_not_recorded(
    request_: Any, response: Any, words: str
) -> None:
    fake = FakeCRI()
    with pytest.raises(TypeError, match=words):
        await fake.call("Version", request_, response=response)
    assert fake.calls() == []
