"""What a user sees of the package beside its work: names, hints, texts of objects, errors."""

from __future__ import annotations

import traceback
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from kubecri.v1.api_pb2_grpc import RuntimeServiceStub

import fakecri
from fakecri import FakeCRI, exits

POD = cri.PodSandboxConfig(
    metadata=cri.PodSandboxMetadata(name="shop", namespace="ns", uid="u1", attempt=0)
)
WEB = cri.ContainerConfig(
    metadata=cri.ContainerMetadata(name="web"), image=cri.ImageSpec(image="localhost/busybox:1")
)


def test_dir_has_every_public_name() -> None:
    assert set(fakecri.__all__) <= set(dir(fakecri))


def test_misspelt_words_are_answered_with_the_right_one() -> None:
    with pytest.raises(AttributeError, match="'FakeCry'; did you mean FakeCRI"):
        _ = fakecri.FakeCry
    with pytest.raises(TypeError, match=r"no argument 'run_name'; did you mean runtime_name"):
        FakeCRI(run_name="x")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="'StartContaner'; did you mean StartContainer"):
        FakeCRI().on("StartContaner")


@pytest.mark.virtual_time
async def test_objects_tell_what_they_are() -> None:
    fake = FakeCRI(images=["localhost/busybox:1"])
    assert repr(fake) == "<FakeCRI 0 pods, containers: none; 0 calls, 0 rules>"
    sandbox: Any = await fake.call("RunPodSandbox", cri.RunPodSandboxRequest(config=POD))
    create = cri.CreateContainerRequest(
        pod_sandbox_id=sandbox.pod_sandbox_id, config=WEB, sandbox_config=POD
    )
    made: Any = await fake.call("CreateContainer", create)
    await fake.call("StartContainer", cri.StartContainerRequest(container_id=made.container_id))
    fake.behaves(exits(1), container="web")
    assert repr(fake) == "<FakeCRI 1 pods, containers: shop/web RUNNING; 3 calls, 1 rules>"
    fake.kill("web")
    web = made.container_id[:13]
    assert repr(fake.container("web")) == f"<Container ns/shop/web/0 EXITED 137 Error {web}>"
    assert repr(fake.sandboxes()[0]) == f"<Sandbox ns/shop READY {sandbox.pod_sandbox_id[:13]}>"
    assert repr(fake.calls()[-1]) == "<Call 0.000 s  StartContainer shop/web#0 (0.000 s)>"
    assert repr(fake.rules()[0]) == "<containers (container='web'): exits(code=1), 0 hits>"
    assert repr(fake.on("Version", pod="a")) == "<on Version (pod='a'), no verb yet>"
    assert repr(fake.images) == "<ImageStore localhost/busybox:1>"
    fake.crash()
    assert repr(fake).startswith("<FakeCRI down, 1 pods")


def test_errors_of_a_served_fake_have_the_callers_frames_alone() -> None:
    with fakecri.serve() as fake:
        with pytest.raises(AssertionError) as caught:
            fake.assert_called("Version")
        with pytest.raises(LookupError, match="no container") as missing:
            fake.container("web")
        with grpc.insecure_channel(fake.endpoint.replace("unix://", "unix:")) as channel:
            RuntimeServiceStub(channel).Version(cri.VersionRequest())
        with pytest.raises(ZeroDivisionError) as own:
            fake.calls("Version", where=lambda call: 1 / 0)
    for error in (caught, missing):
        names = [frame.name for frame in traceback.extract_tb(error.tb)]
        assert "body" not in names
        assert "_run" not in names
        assert len(error.traceback.filter(error)) == 1
    assert "<lambda>" in [frame.name for frame in traceback.extract_tb(own.tb)]


def test_a_served_fake_tells_where_and_what() -> None:
    with fakecri.serve() as fake:
        assert repr(fake) == (
            f"<served at {fake.endpoint}: <FakeCRI 0 pods, containers: none; 0 calls, 0 rules>>"
        )


async def _ask() -> None:
    await FakeCRI().call("Version", cri.VersionRequest())


def test_trio_is_refused_in_a_sentence() -> None:
    trio = pytest.importorskip("trio")
    with pytest.raises(RuntimeError, match=r"this task runs on trio: run it with asyncio"):
        trio.run(_ask)


@pytest.mark.parametrize(
    ("name", "kind"), [("clock", "Clock"), ("ids", "Ids"), ("node", "FakeNode")]
)
def test_a_part_of_another_type_is_refused_by_its_name(name: str, kind: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: wanted a {kind}, got 5"):
        FakeCRI(**{name: 5})
