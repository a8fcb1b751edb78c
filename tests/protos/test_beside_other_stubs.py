"""criapi beside other stubs of the same APIs in one process, whichever is imported first."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from places import ROOT

CHECK = """
import copy, pickle
from google.protobuf import json_format, text_format
from google.protobuf.any_pb2 import Any
from google.protobuf.internal import api_implementation

assert api_implementation.Type() == IMPLEMENTATION
for own, other in ((criapi.v1.api_pb2, theirs_v1), (criapi.v1alpha2.api_pb2, theirs_v1alpha2)):
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
import fakecri.cri.services  # reads the methods from the descriptors
assert fakecri.cri.services.METHODS["Version"].request_type is criapi.v1.api_pb2.VersionRequest
"""
OWN = "import criapi.v1.api_pb2_grpc, criapi.v1alpha2.api_pb2_grpc"
OWN_TOO = f"{OWN}, criapi.deviceplugin.api_pb2_grpc, criapi.podresources.api_pb2_grpc"
GENERATED = """
from cri.v1 import api_pb2 as theirs_v1, api_pb2_grpc as services
from cri.v1alpha2 import api_pb2 as theirs_v1alpha2
import deviceplugin.v1beta1.api_pb2_grpc, podresources.v1.api_pb2_grpc
"""
PUBLISHED = """
from cri_api.v1 import api_pb2 as theirs_v1
from cri_api.v1alpha2 import api_pb2 as theirs_v1alpha2
import cri_api.containers, cri_api.images
"""

Run = Callable[[str, str], None]


@pytest.fixture(params=["upb", "python"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a program with that implementation of protobuf, and modules of a folder."""

    def run_it(program: str, folder: str) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]),
            "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": request.param,
        }
        program = f"IMPLEMENTATION = {request.param!r}\n{program}{CHECK}"
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
    files = [path for path in protos.glob("*/*/api.proto") if "criapi" not in path.parts]
    assert len(files) == 4
    made = [f"--{kind}_out={folder}" for kind in ("python", "grpc_python")]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{protos}", *made, *map(str, files)]
    subprocess.run(command, check=True)
    return str(folder)


ORDERS = pytest.mark.parametrize("own_first", [True, False], ids=["ours-first", "theirs-first"])


@ORDERS
def test_stubs_generated_of_the_same_files(own_first: bool, run: Run, stubs: str) -> None:
    order = (OWN_TOO, GENERATED) if own_first else (GENERATED, OWN_TOO)
    run("\n".join(order), stubs)


@ORDERS
def test_the_published_client(own_first: bool, run: Run, tmp_path: Path) -> None:
    """container-runtime-interface-api of PyPI."""
    if find_spec("cri_api") is None:
        pytest.skip("container-runtime-interface-api is not installed")
    order = (OWN, PUBLISHED) if own_first else (PUBLISHED, OWN)
    run("\n".join(order), str(tmp_path))


def test_a_pool_that_already_has_the_names(tmp_path: Path, run: Run) -> None:
    """What is registered by hand in the default pool does not meet criapi's files either."""
    program = f"""
{OWN}
from google.protobuf import descriptor_pool
from google.protobuf.internal import builder
theirs_v1, theirs_v1alpha2 = [type("Module", (), {{}}) for _ in range(2)]
for own, module in ((criapi.v1.api_pb2, theirs_v1), (criapi.v1alpha2.api_pb2, theirs_v1alpha2)):
    file = descriptor_pool.Default().AddSerializedFile(own.DESCRIPTOR.serialized_pb)
    names = {{}}
    builder.BuildTopDescriptorsAndMessages(file, "theirs", names)
    for name, value in {{**names, "DESCRIPTOR": file}}.items():
        setattr(module, name, value)
"""
    run(program, str(tmp_path))
