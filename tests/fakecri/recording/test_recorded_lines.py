"""Recorded calls as JSON lines: the same in every process, and back again as messages."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from kubecri.v1 import api_pb2 as pb
from runtime_calls import container_config

from fakecri.recording.plain import message_from, plain

RECORDING = """
import random
from kubecri.v1 import api_pb2 as pb
from fakecri import FakeCRI
from simclock import run_virtual

LABELS = {f"example.org/{name}": name for name in "hgfedcba"}
cri = FakeCRI()

async def main():
    config = pb.PodSandboxConfig(
        metadata=pb.PodSandboxMetadata(name="a", uid="u"), labels=LABELS, annotations=LABELS
    )
    await cri.call("RunPodSandbox", pb.RunPodSandboxRequest(config=config))
    await cri.call("ListPodSandbox", pb.ListPodSandboxRequest())
    pull = pb.PullImageRequest(image=pb.ImageSpec(image="a:1", annotations=LABELS))
    pull.auth.password = "secret"
    await cri.call("PullImage", pull)

run_virtual(main)
print(cri.recorder.to_jsonl(), end="")
"""


def test_the_lines_of_a_run_are_the_same_in_every_process() -> None:
    made = []
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run(
            [sys.executable, "-c", RECORDING], env=environment, capture_output=True, check=True
        )
        made.append(run.stdout)
    assert made[0] == made[1] == made[2]
    assert made[0].count(b"\n") == 3
    assert b"secret" not in made[0]


def test_rows_read_back_as_the_messages_they_were() -> None:
    config = container_config(
        "web",
        2,
        labels={"b": "2", "a": "1"},
        envs=[pb.KeyValue(key="A", value=b"\x00\xff")],
    )
    config.linux.security_context.run_as_user.value = 5
    request = pb.CreateContainerRequest(pod_sandbox_id="x", config=config)
    assert list(plain(request)["config"]["labels"]) == ["a", "b"]
    assert message_from(pb.CreateContainerRequest, plain(request)) == request


def test_a_row_of_another_shape_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"StopContainerRequest: .*timeout"):
        message_from(pb.StopContainerRequest, {"timeout": "soon"})
    later = {"container_id": "x", "field_of_a_later_version": 1}
    assert message_from(pb.StopContainerRequest, later) == pb.StopContainerRequest(container_id="x")
