"""Prove that `kubecri` works with old and new protobuf and grpcio: each pair in a fresh venv, with
protobuf in C and in Python, and beside other stubs of the same APIs.

    python protos/compat.py [PROTOBUF,GRPCIO ...]

Without arguments: the oldest supported pair, one in between, and the newest of the package index.
Prints two lines per pair and ends with 1 if one of them fails. Takes about half a minute a pair.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PROTOS = Path(__file__).resolve().parent
IMPLEMENTATIONS = ("upb", "python")
PAIRS = ("==4.25.*,==1.62.*", "==5.29.*,==1.71.*", "==6.*,==1.76.*", ">=4.25,>=1.62")

# A call over a unix socket, with every warning an error: import, serialise, serve, stream. The same
# file is in protobuf's default pool, too, as other stubs have it.
PROGRAM = """
import sys, warnings
warnings.simplefilter("error")
from concurrent import futures
from importlib.metadata import version
import grpc
from kubecri.csi import api_pb2 as storage
from kubecri.deviceplugin import api_pb2 as devices, api_pb2_grpc as devices_grpc
from kubecri.health import api_pb2 as health
from kubecri.pluginregistration import api_pb2 as registration
from kubecri.podresources import api_pb2 as resources
from kubecri.v1 import api_pb2, api_pb2_grpc
from kubecri.v1alpha2 import api_pb2 as alpha, api_pb2_grpc as alpha_grpc

class Runtime(api_pb2_grpc.RuntimeServiceServicer):
    def Version(self, request, context):
        return api_pb2.VersionResponse(version="0.1.0", runtime_name=request.version)
    def StreamContainers(self, request, context):
        yield api_pb2.StreamContainersResponse(containers=[api_pb2.Container(id="c")])

server = grpc.server(futures.ThreadPoolExecutor(2))
api_pb2_grpc.add_RuntimeServiceServicer_to_server(Runtime(), server)
server.add_insecure_port("unix://" + sys.argv[1])
server.start()
with grpc.insecure_channel("unix://" + sys.argv[1]) as channel:
    stub = api_pb2_grpc.RuntimeServiceStub(channel)
    assert stub.Version(api_pb2.VersionRequest(version="me")).runtime_name == "me"
    answers = list(stub.StreamContainers(api_pb2.StreamContainersRequest()))
    assert [c.id for answer in answers for c in answer.containers] == ["c"]
server.stop(0).wait()
assert alpha.VersionRequest.DESCRIPTOR.full_name == "runtime.v1alpha2.VersionRequest"
assert alpha_grpc.RuntimeServiceStub
assert devices_grpc.DevicePluginStub
assert devices.Device(ID="d").SerializeToString() == b"\\x0a\\x01d"
assert resources.ClaimResource(share_id="").HasField("share_id")
assert registration.PluginInfo(type="D").SerializeToString() == b"\\x0a\\x01D"
assert storage.VolumeCondition(message="m").SerializeToString() == b"\\x12\\x01m"
assert health.HealthCheckResponse(status="SERVING").SerializeToString() == b"\\x08\\x01"

from google.protobuf import descriptor_pool
from google.protobuf.internal import api_implementation, builder

theirs = {}
for own in (api_pb2, alpha, devices, resources, health):
    file = descriptor_pool.Default().AddSerializedFile(own.DESCRIPTOR.serialized_pb)
    builder.BuildTopDescriptorsAndMessages(file, "theirs", theirs)
for answer in answers:
    other = theirs["StreamContainersResponse"].FromString(answer.SerializeToString())
    assert type(other) is not type(answer) and other.containers[0].id == "c"
implementation = api_implementation.Type()
print("protobuf", version("protobuf"), f"({implementation})", "grpcio", version("grpcio"))
"""


def attempt(pair: str) -> list[tuple[bool, str]]:
    """Of each implementation whether the pair works with it, and the versions it came to, or the
    end of what went wrong."""
    protobuf, grpcio = pair.split(",")
    with tempfile.TemporaryDirectory() as directory:
        venv.create(directory, with_pip=True)
        python = Path(directory) / "bin" / "python"
        wanted = [f"protobuf{protobuf}", f"grpcio{grpcio}"]
        works, text = _run([str(python), "-m", "pip", "install", "-q", *wanted], "upb")
        if not works:
            return [(works, text)]
        call = [str(python), "-c", PROGRAM, str(Path(directory) / "cri.sock")]
        return [_run(call, implementation) for implementation in IMPLEMENTATIONS]


def _run(command: list[str], implementation: str) -> tuple[bool, str]:
    chosen = {"PYTHONPATH": str(PROTOS), "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": implementation}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **chosen})
    if done.returncode != 0:
        return False, done.stderr.strip()[-2000:]
    return True, done.stdout.strip()


def main(pairs: list[str]) -> int:
    failed = 0
    for pair in pairs or list(PAIRS):
        for works, text in attempt(pair):
            failed += not works
            print(f"{'works' if works else 'FAILS'}  python {sys.version.split()[0]}  {text}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
