"""The fixtures' options: marker, overridden fixture, script, shared server; and wrong ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = """
import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from kubecri.v1.api_pb2_grpc import RuntimeServiceStub
from fakecri import FakeNode

POD = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="shop", uid="u1"))

@pytest.fixture
def fakecri_options():
    return {"runtime_name": "mine", "images": ["mine:1"]}

def test_the_fixture_counts(fakecri):
    with fakecri.blocking_channel() as channel:
        assert RuntimeServiceStub(channel).Version(cri.VersionRequest()).runtime_name == "mine"
    assert len(fakecri.images.images) == 1

@pytest.mark.fakecri(runtime_name="marked", node=FakeNode(memory_bytes=5))
class TestMarked:
    @pytest.mark.fakecri(cgroup_driver="systemd")
    def test_markers_count_before_it(self, fakecri):
        with fakecri.blocking_channel() as channel:
            stub = RuntimeServiceStub(channel)
            assert stub.Version(cri.VersionRequest()).runtime_name == "marked"
            assert stub.RuntimeConfig(cri.RuntimeConfigRequest()).linux.cgroup_driver == cri.SYSTEMD
        assert len(fakecri.images.images) == 1
        fakecri.node.memory_bytes += 1

    def test_a_node_of_a_marker_is_new_for_each_test(self, fakecri):
        fakecri.node.memory_bytes += 1
        assert fakecri.node.memory_bytes == 6

@pytest.mark.fakecri(script="whole.yaml")
def test_a_script_may_say_it_all(fakecri, fakecri_server):
    assert fakecri.node.memory_bytes == fakecri_server.node.memory_bytes == 1 << 30
    with fakecri.blocking_channel() as channel:
        stub = RuntimeServiceStub(channel)
        version = stub.Version(cri.VersionRequest())
        assert (version.runtime_name, version.runtime_version) == ("mine", "v2")  # fixture, script

@pytest.mark.fakecri(clock="manual")
def test_a_server_with_a_manual_clock(fakecri_server):
    assert fakecri_server.advance(5) == 5

@pytest.mark.parametrize("number", [1, 2])
def test_a_shared_server_is_as_new(fakecri_shared_server, number):
    assert fakecri_shared_server.sandboxes() == []
    with grpc.insecure_channel(fakecri_shared_server.endpoint.replace("//", "")) as channel:
        RuntimeServiceStub(channel).RunPodSandbox(cri.RunPodSandboxRequest(config=POD))
    fakecri_shared_server.assert_called("RunPodSandbox", times=1)
"""

WRONG = """
import pytest

@pytest.mark.fakecri(imgaes=[])
def test_misspelt(fakecri): pass

@pytest.mark.fakecri(clock="manual")
def test_a_clock_of_servers(fakecri): pass

@pytest.mark.fakecri(clock="fast")
def test_no_such_clock(fakecri_server): pass

@pytest.mark.fakecri("busybox")
def test_without_a_name(fakecri): pass

@pytest.mark.fakecri(script="nothing.yaml")
def test_no_such_script(fakecri): pass

@pytest.mark.fakecri(node=3)
def test_no_node(fakecri): pass

class TestNoOptions:
    @pytest.fixture
    def fakecri_options(self): pass
    def test_none(self, fakecri): pass
"""


def ran(directory: Path, tests: str) -> str:
    (directory / "test_one.py").write_text(tests)
    (directory / "whole.yaml").write_text(
        "runtime: {name: theirs, version: v2}\nnode: {memory: 1Gi}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers"],
        cwd=directory, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_options_come_from_fixtures_and_markers(tmp_path: Path) -> None:
    said = ran(tmp_path, TESTS)
    assert "7 passed" in said, said


def test_wrong_options_are_told_in_a_sentence(tmp_path: Path) -> None:
    said = ran(tmp_path, WRONG)
    assert "7 errors" in said, said
    assert "Traceback" not in said
    assert "During handling" not in said
    for sentence in (
        "fakecri: FakeCRI has no argument 'imgaes'; did you mean images?",
        "real and manual are for fakecri_server",
        "fakecri: clock: wanted real or manual, got 'fast'",
        "the marker fakecri takes options by name",
        "fakecri: cannot read nothing.yaml: no such file or directory",
        "fakecri: node: wanted a FakeNode, got 3",
        "fakecri: options: wanted a dict, got None",
    ):
        assert sentence in said
