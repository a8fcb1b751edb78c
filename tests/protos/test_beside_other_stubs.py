"""kubecri and fakecri beside other stubs of the same APIs in one process, whichever is first."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec

import pytest
from places import ROOT

MESSAGES = """
import copy, pickle
from google.protobuf import json_format, text_format
from google.protobuf.any_pb2 import Any
from google.protobuf.internal import api_implementation

assert api_implementation.Type() == IMPLEMENTATION
for own, other in ((kubecri.v1.api_pb2, theirs_v1), (kubecri.v1alpha2.api_pb2, theirs_v1alpha2)):
    asked = other.RunPodSandboxRequest(config={"metadata": {"name": "web"}, "labels": {"a": "b"}})
    mine = own.RunPodSandboxRequest.FromString(asked.SerializeToString())
    assert type(mine) is not type(asked)
    assert mine.config.metadata.name == "web" and mine.config.labels == {"a": "b"}
    assert other.RunPodSandboxRequest.FromString(mine.SerializeToString()) == asked
    assert own.DESCRIPTOR.pool is not other.DESCRIPTOR.pool
    plain = json_format.MessageToDict(mine, preserving_proto_field_name=True)
    assert json_format.ParseDict(plain, own.RunPodSandboxRequest()) == mine
    assert text_format.Parse(text_format.MessageToString(mine), type(mine)()) == mine
    assert pickle.loads(pickle.dumps(mine)) == mine == copy.deepcopy(mine)
    packed, unpacked = Any(), own.RunPodSandboxRequest()
    packed.Pack(mine)
    assert packed.Unpack(unpacked) and unpacked == mine
    nested = own.PodSandboxConfig.LabelsEntry
    assert nested.__module__ == own.__name__
    assert nested.__qualname__ == "PodSandboxConfig.LabelsEntry"
    assert own.ContainerState.Name(own.CONTAINER_RUNNING) == "CONTAINER_RUNNING"
"""
CALLS = """
import asyncio, time
import fakecri, grpc, grpc.aio
from simclock import run_virtual

POD = {"metadata": {"name": "web", "uid": "u"}}

async def agent(stub, cri):
    "Tries again and again, each time after twice as long, at last every five minutes."
    delay_s = 1
    while True:
        try:
            return await stub.RunPodSandbox(cri.RunPodSandboxRequest(config=POD), timeout=10)
        except grpc.RpcError as error:
            assert error.details() == "not yet"
        await asyncio.sleep(delay_s)
        delay_s = min(2 * delay_s, 300)

async def two_hours(services, cri, fake):
    began = asyncio.get_running_loop().time()
    answer = await agent(services.RuntimeServiceStub(fake.channel()), cri)
    assert type(answer) is cri.RunPodSandboxResponse and answer.pod_sandbox_id
    assert asyncio.get_running_loop().time() - began > 7200
    listed = await fake.call("ListPodSandbox", cri.ListPodSandboxRequest())
    assert type(listed.items[0]) is cri.PodSandbox and listed.items[0].metadata.name == "web"

for services, cri in ((services_v1, theirs_v1), (services_v1alpha2, theirs_v1alpha2)):
    fake = fakecri.FakeCRI()
    fake.on("RunPodSandbox").fails("UNAVAILABLE", "not yet", times=32)
    began = time.process_time()
    run_virtual(lambda: two_hours(services, cri, fake))
    used_s = time.process_time() - began
    assert used_s < 0.2, used_s
    fake.assert_called("RunPodSandbox", pod="web", times=33)

with fakecri.serve() as fake, grpc.insecure_channel(fake.endpoint) as channel:
    for services, cri in ((services_v1, theirs_v1), (services_v1alpha2, theirs_v1alpha2)):
        stub = services.RuntimeServiceStub(channel)
        assert stub.Version(cri.VersionRequest()).runtime_name
    fake.assert_called("Version", times=2)
"""
WRAPPERS = """
from cri_api.channel import Channel
from cri_api.containers import Containers
from cri_api.images import Images

with fakecri.serve(images=["localhost/busybox:1"]) as fake:
    channel = Channel(fake.endpoint)
    [image] = Images(channel).list_images()
    assert image["repoTags"] == ["localhost/busybox:1"]
    assert Containers(channel).list_containers() == []
    channel.channel.close()
"""
OWN = "import kubecri.v1.api_pb2_grpc, kubecri.v1alpha2.api_pb2_grpc"
OWN_TOO = f"{OWN}, kubecri.deviceplugin.api_pb2_grpc, kubecri.podresources.api_pb2_grpc"
GENERATED = """
from cri.v1 import api_pb2 as theirs_v1, api_pb2_grpc as services_v1
from cri.v1alpha2 import api_pb2 as theirs_v1alpha2, api_pb2_grpc as services_v1alpha2
import deviceplugin.v1beta1.api_pb2_grpc, podresources.v1.api_pb2_grpc
"""
PUBLISHED = """
from cri_api.v1 import api_pb2 as theirs_v1, api_pb2_grpc as services_v1
from cri_api.v1alpha2 import api_pb2 as theirs_v1alpha2, api_pb2_grpc as services_v1alpha2
"""
REGISTERED_BY_HAND = f"""
{OWN}
from types import SimpleNamespace
from google.protobuf import descriptor_pool
from google.protobuf.internal import builder

def registered(own):
    names = {{"DESCRIPTOR": descriptor_pool.Default().AddSerializedFile(own.serialized_pb)}}
    builder.BuildTopDescriptorsAndMessages(names["DESCRIPTOR"], "theirs", names)
    return SimpleNamespace(**names)

theirs_v1 = registered(kubecri.v1.api_pb2.DESCRIPTOR)
theirs_v1alpha2 = registered(kubecri.v1alpha2.api_pb2.DESCRIPTOR)
"""

Run = Callable[..., None]


@pytest.fixture(params=["upb", "python"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a program with that implementation of protobuf, and modules of a folder."""

    def run_it(*parts: str, folder: str = "") -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]),
            "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": request.param,
        }
        program = "\n".join((f"IMPLEMENTATION = {request.param!r}", *parts))
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    return run_it


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with stubs that protoc made of the same .proto files, as any client has them."""
    pytest.importorskip("grpc_tools", reason="grpcio-tools is not installed")
    folder, protos = tmp_path_factory.mktemp("stubs"), ROOT / "protos"
    files = [path for path in protos.glob("*/*/api.proto") if "kubecri" not in path.parts]
    assert len(files) == 7
    made = [f"--{kind}_out={folder}" for kind in ("python", "grpc_python")]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{protos}", *made, *map(str, files)]
    subprocess.run(command, check=True)
    return str(folder)


def order(own_first: bool, own: str, theirs: str) -> tuple[str, str]:
    return (own, theirs) if own_first else (theirs, own)


ORDERS = pytest.mark.parametrize("own_first", [True, False], ids=["ours-first", "theirs-first"])


@ORDERS
def test_a_client_with_stubs_of_the_same_files(own_first: bool, run: Run, stubs: str) -> None:
    run(*order(own_first, OWN_TOO, GENERATED), MESSAGES, CALLS, folder=stubs)


@ORDERS
def test_the_published_client(own_first: bool, run: Run) -> None:
    """container-runtime-interface-api of PyPI."""
    if find_spec("cri_api") is None:
        pytest.skip("container-runtime-interface-api is not installed (tox -e clients)")
    run(*order(own_first, OWN, PUBLISHED), MESSAGES, CALLS, WRAPPERS)


def test_names_that_are_registered_by_hand(run: Run) -> None:
    run(REGISTERED_BY_HAND, MESSAGES)
