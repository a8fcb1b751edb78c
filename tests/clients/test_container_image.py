"""The container image of `fakecri serve`: built, started, asked over its socket, stopped.

It is built on the image that REFKUBELET_IMAGE_BASE names, which must have Python 3.11; `.ci/run`
makes one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from kubecri.v1.api_pb2_grpc import RuntimeServiceStub
from places import ROOT

BASE: Final = os.environ.get("REFKUBELET_IMAGE_BASE", "")
TAG: Final = "refkubelet-test/fakecri"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        not BASE or shutil.which("docker") is None,
        reason="needs Docker and a base image (REFKUBELET_IMAGE_BASE)",
    ),
]


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    run(str(ROOT / "image/build"), TAG, BASE)
    yield TAG
    run("docker", "image", "rm", "--force", TAG)


@pytest.fixture
def container(image: str, tmp_path: Path) -> Iterator[str]:
    script = tmp_path / "script.yaml"
    script.write_text("behaviors: [{container: web, exits: {code: 3}}]\n")
    name = run(
        "docker", "run", "--detach", "--volume", f"{tmp_path}:/run/fakecri", image,
        "serve", "--listen", "unix:///run/fakecri/cri.sock",
        "--control", "unix:///run/fakecri/ctl.sock", "--script", "/run/fakecri/script.yaml",
    )  # fmt: skip
    yield name
    run("docker", "rm", "--force", name)


def test_the_image_serves_the_fake(container: str, tmp_path: Path) -> None:
    run("docker", "exec", container, "fakecri", "ctl", "wait", "--ready", "--timeout", "100")
    with grpc.insecure_channel(f"unix:{tmp_path}/cri.sock") as channel:
        answer = RuntimeServiceStub(channel).Version(cri.VersionRequest(), timeout=20)
    assert answer.runtime_name == "fakecri"
    rules = run("docker", "exec", container, "fakecri", "ctl", "rules")
    assert rules == "1: containers (container='web'): exits(code=3) (0 hits)"
    run("docker", "stop", container)
    assert run("docker", "inspect", "--format", "{{.State.ExitCode}}", container) == "0"
    assert not (tmp_path / "cri.sock").exists()
