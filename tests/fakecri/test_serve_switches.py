"""`fakecri serve` as other programs start it: switches, readiness, TCP, reflection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from kubecri.v1 import api_pb2 as cri
from kubecri.v1.api_pb2_grpc import ImageServiceStub, RuntimeServiceStub
from test_fakecri_cli import COMMAND, running

from fakecri.cli import main
from fakecri.control.client import ControlClient
from fakecri.server import GrpcUpstream


async def test_what_a_fake_is_made_with_may_be_said_in_switches(tmp_path: Path) -> None:
    listen, control = f"unix://{tmp_path}/cri.sock", f"unix://{tmp_path}/ctl.sock"
    words = [
        "--image",
        "mine:1",
        "--image",
        "mine:2",
        "--sandbox-image",
        "mine:2",
        "--runtime-name",
        "containerd",
        "--runtime-version",
        "v2",
        "--runtime-handler",
        "gvisor",
        "--cgroup-driver",
        "systemd",
        "--program",
        "pg",
        "--keep-events",
        "300",
        "--memory",
        "1Gi",
        "--cpus",
        "3",
        "--disk",
        "5Gi",
        "--swap",
        "1Mi",
        "--pid-limit",
        "77",
    ]
    async with running("serve", "--listen", listen, "--control", control, *words):
        async with GrpcUpstream(listen) as client:
            version: Any = await client.call("Version", cri.VersionRequest())
            assert (version.runtime_name, version.runtime_version) == ("containerd", "v2")
            images: Any = await client.call("ListImages", cri.ListImagesRequest())
            pinned = {image.repo_tags[0]: image.pinned for image in images.images}
            assert pinned == {"docker.io/library/mine:1": False, "docker.io/library/mine:2": True}
            config: Any = await client.call("RuntimeConfig", cri.RuntimeConfigRequest())
            assert config.linux.cgroup_driver == cri.SYSTEMD
            status: Any = await client.call("Status", cri.StatusRequest())
            assert [handler.name for handler in status.runtime_handlers] == ["", "gvisor"]
        node = ControlClient(control).request("GET", "/v1/node")
    assert (node["memory_bytes"], node["pid_limit"], node["swap_total_bytes"]) == (
        1 << 30,
        77,
        1 << 20,
    )
    assert node["filesystems"]["/"]["capacity_bytes"] == 5 << 30


async def test_a_file_tells_that_calls_are_answered(tmp_path: Path) -> None:
    listen, ready = f"unix://{tmp_path}/cri.sock", tmp_path / "ready"
    async with running("serve", "--listen", listen, "--ready-file", str(ready)):
        async with asyncio.timeout(60):
            while not ready.exists():  # noqa: ASYNC110 - another process has no event for us
                await asyncio.sleep(0.01)
        assert ready.read_text() == f"{listen}\n"
        async with GrpcUpstream(listen) as client:
            await client.call("Version", cri.VersionRequest(), timeout_s=5)
    assert list(tmp_path.iterdir()) == []


def test_ctl_waits_until_the_fake_is_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    control = f"unix://{tmp_path}/ctl.sock"
    wait = ["ctl", "--control", control, "wait", "--ready", "--timeout"]
    assert main([*wait, "0.1"]) == 1
    assert "not ready within 0.1 s: cannot connect" in capsys.readouterr().err

    async def begin_to_wait_first() -> int | None:
        waiting = await asyncio.create_subprocess_exec(*COMMAND, *wait, "100")
        async with running("serve", "--listen", f"unix://{tmp_path}/c.sock", "--control", control):
            return await waiting.wait()

    assert asyncio.run(begin_to_wait_first()) == 0
    assert main(["ctl", "--control", control, "wait"]) == 2
    assert "wanted a METHOD or --ready" in capsys.readouterr().err


async def test_ctl_resets_the_fake(tmp_path: Path) -> None:
    listen, control = f"unix://{tmp_path}/cri.sock", f"unix://{tmp_path}/ctl.sock"
    (script := tmp_path / "s.yaml").write_text("behaviors: [{container: web, exits: {code: 3}}]\n")
    words = ("serve", "--listen", listen, "--control", control, "--script", str(script))
    never = b"fakecri serve: never hit: containers (container='web'): exits(code=3)\n"
    async with running(*words, says=never):
        client = ControlClient(control)
        client.request("POST", "/v1/rules", {"faults": [{"on": "Version", "hangs": {}}]})
        client.request("PATCH", "/v1/node", {"memory_bytes": 5})
        ctl = ("ctl", "--control", control, "reset")
        assert await (await asyncio.create_subprocess_exec(*COMMAND, *ctl)).wait() == 0
        rules = client.request("GET", "/v1/rules")
        assert [(row["id"], row["what"]) for row in rules] == [
            (1, "containers (container='web'): exits(code=3)")
        ]
        assert client.request("GET", "/v1/node")["memory_bytes"] == 8 << 30


@asynccontextmanager
async def on_tcp(*words: str) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "serve", "--listen", "tcp://127.0.0.1:0", *words,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), 200)).decode()
        yield line.split("listening on tcp://")[1].strip()
    finally:
        process.terminate()
        _, errors = await process.communicate()
    assert b"warning: every process that reaches this port can use the fake" in errors


async def test_tcp_is_served_with_a_warning_and_tells_its_services() -> None:
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

    async with on_tcp() as address, grpc.aio.insecure_channel(address) as channel:
        answer = await RuntimeServiceStub(channel).Version(cri.VersionRequest(), timeout=20)
        assert answer.runtime_name == "fakecri"
        assert await ImageServiceStub(channel).ListImages(cri.ListImagesRequest())
        ask = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
        requests = [
            reflection_pb2.ServerReflectionRequest(list_services=""),
            reflection_pb2.ServerReflectionRequest(file_containing_symbol="runtime.v1.PodSandbox"),
        ]
        services, file = [answer async for answer in ask(iter(requests))]
        names = {service.name for service in services.list_services_response.service}
        assert {"runtime.v1.RuntimeService", "runtime.v1alpha2.ImageService"} <= names
        assert file.file_descriptor_response.file_descriptor_proto


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--listen", "tcp://127.0.0.1:70000"), "wanted tcp://HOST:PORT with a port to 65535"),
        (("--listen", "tcp://nowhere.invalid:0"), "the host is not of this machine"),
        (("--ready-file", "/nowhere/ready"), "cannot write --ready-file /nowhere/ready: no such"),
        (("--ready-file", ""), "cannot write --ready-file"),
        (("--pod-network", "nonsense"), "--pod-network"),
        (("--image", "UPPER"), "'UPPER': invalid reference format"),
    ],
)
def test_wrong_switches_are_told_in_a_sentence(
    tmp_path: Path, words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--listen", f"unix://{tmp_path}/cri.sock", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_size_may_have_a_unit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--listen", "unix:///x", "--memory", "much"])
    assert "wanted bytes: 4096, 64Mi, 1Gi, ...; got 'much'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--keep-events", "inf"), "--keep-events: wanted seconds: "),
        (("--cpus", "0"), "--cpus: wanted a whole number from 1, got '0'"),
        (("--pid-limit", "0"), "--pid-limit: wanted a whole number from 1, got '0'"),
        (("--node-address", "here"), "--node-address: wanted an IP address, got 'here'"),
    ],
)
def test_a_machine_that_cannot_be_is_refused(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--listen", "unix:///nowhere/x.sock", *words])
    assert sentence in capsys.readouterr().err


def test_a_ready_file_that_cannot_be_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there").mkdir()
    listen = f"unix://{tmp_path}/cri.sock"
    assert main(["serve", "--listen", listen, "--ready-file", f"{tmp_path}/there"]) == 2
    assert "cannot write --ready-file" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["there"]
