"""Agents in Node (grpc-js) and Go (grpc-go) on a served fake, with stubs made of protos/.

What a machine lacks is a skip: node and the npm modules in REFKUBELET_NODE_MODULES; go, protoc and
Debian's packages of grpc-go. `.ci/run` installs them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from places import ROOT

import fakecri
from fakecri import exits

HERE: Final = Path(__file__).parent
PROTO: Final = ROOT / "protos/cri/v1/api.proto"
NODE_MODULES: Final = os.environ.get("REFKUBELET_NODE_MODULES", "")
GOPATH: Final = Path("/usr/share/gocode")


def needs(programs: Sequence[str], directory: Path, what: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if shutil.which(program) is None]
    if not missing and not directory.is_dir():
        missing = [what]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def run_agent(command: Sequence[str | Path], **environment: str) -> list[dict[str, Any]]:
    """What the agent tells of a fake whose container crashes twice and then ends well."""
    with fakecri.serve(keep_events_s=300) as fake:
        fake.on("Version").hangs(times=1)
        fake.behaves(exits(0, after_s=0.1), container="web")
        fake.behaves(exits(7, after_s=0.1), container="web", first_attempts=2)
        done = subprocess.run(
            [*command, fake.endpoint.removeprefix("unix://")],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        fake.assert_order(["RunPodSandbox", "CreateContainer", ("StartContainer", "web")])
        fake.assert_called("StartContainer", container="web", times=3)
        assert [container.exit_code for container in fake.containers("web")] == [7, 7, 0]
    return [json.loads(line) for line in done.stdout.splitlines()]


def wanted(deadline: str, not_found: str) -> list[dict[str, Any]]:
    """`deadline`, `not_found`: the codes as the language writes them."""
    found = 'an error occurred when try to find container "nothing": not found'
    return [
        {"failed": "Version", "code": deadline},
        {"failed": "ContainerStatus", "code": not_found, "details": found},
        *({"attempt": attempt, "exit_code": code} for attempt, code in enumerate((7, 7, 0))),
    ]


def without_details_of_the_deadline(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each language has words of its own for its deadline."""
    told[0].pop("details")
    return told


@needs(["node"], Path(NODE_MODULES or "/nowhere"), "npm modules (REFKUBELET_NODE_MODULES)")
def test_an_agent_on_grpc_js(tmp_path: Path) -> None:
    # The socket is the last argument of every agent; this one wants the proto before it.
    told = run_agent(["node", HERE / "agent.js", PROTO], NODE_PATH=NODE_MODULES)
    assert without_details_of_the_deadline(told) == wanted("DEADLINE_EXCEEDED", "NOT_FOUND")


@needs(
    ["go", "protoc", "protoc-gen-go"],
    GOPATH / "src/google.golang.org/grpc",
    "golang-google-grpc-dev",
)
def test_an_agent_on_grpc_go(tmp_path: Path) -> None:
    # A package outside of runtime/, which is Go's own.
    stubs = tmp_path / "src/cri/v1"
    stubs.mkdir(parents=True)
    (stubs / "api.proto").write_text(PROTO.read_text())
    plugin = "plugins=grpc,Mapi.proto=cri/v1:."
    run(["protoc", f"--go_out={plugin}", "-I", ".", "api.proto"], stubs)
    (program := tmp_path / "src/agent").mkdir()
    shutil.copy(HERE / "agent.go", program)
    go = {"GO111MODULE": "off", "GOPATH": f"{tmp_path}:{GOPATH}", "GOCACHE": str(tmp_path / "c")}
    run(["go", "build", "-o", tmp_path / "agent.exe", "agent"], tmp_path, **go)
    told = run_agent([tmp_path / "agent.exe"])
    assert without_details_of_the_deadline(told) == wanted("DeadlineExceeded", "NotFound")


def run(command: Sequence[str | Path], directory: Path, **environment: str) -> None:
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
