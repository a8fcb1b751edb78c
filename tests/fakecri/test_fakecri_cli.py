"""`fakecri serve` and `fakecri proxy` as a user runs them: own processes, real sockets."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import run_pod, sandbox_status

from fakecri.cli import main
from fakecri.control.client import ControlClient
from fakecri.server import GrpcUpstream

COMMAND = [sys.executable, "-m", "fakecri"]


@asynccontextmanager
async def running(*arguments: str, says: bytes = b"") -> AsyncIterator[asyncio.subprocess.Process]:
    """The command, from the moment it listens; afterwards it has ended with code 0 on SIGTERM, and
    has said that on stderr."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), 200)
    assert b"listening on unix://" in line
    try:
        yield process
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        _, errors = await asyncio.wait_for(process.communicate(), 200)
        assert (process.returncode, errors) == (0, says)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def test_serve_answers_plays_its_script_and_removes_its_socket(tmp_path: Path) -> None:
    script, listen = tmp_path / "script.yaml", f"unix://{tmp_path}/cri.sock"
    script.write_text(
        "faults:\n- {on: ListImages, fails: {code: UNAVAILABLE, message: away, times: 1}}\n"
    )
    async with (
        running("serve", "--listen", listen, "--script", str(script)),
        GrpcUpstream(listen) as client,
    ):
        version = await client.call("Version", cri.VersionRequest(), timeout_s=5)
        assert isinstance(version, cri.VersionResponse)
        assert version.runtime_api_version == "v1"
        with pytest.raises(grpc.RpcError) as failure:
            await client.call("ListImages", cri.ListImagesRequest(), timeout_s=5)
        assert failure.value.details() == "away"
        await client.call("ListImages", cri.ListImagesRequest(), timeout_s=5)
    assert not (tmp_path / "cri.sock").exists()


async def test_serve_tells_at_its_end_which_rules_were_never_hit(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(
        "behaviors:\n- {container: wep, exits: {}}\nfaults:\n- {on: Version, hangs: {}}\n"
    )
    words = ("serve", "--listen", f"unix://{tmp_path}/cri.sock", "--script", str(script))
    says = (
        b"fakecri serve: never hit: containers (container='wep'): exits()\n"
        b"fakecri serve: never hit: Version (anything) hangs\n"
    )
    async with running(*words, says=says):
        pass


async def test_serve_names_an_image_directory_that_a_kubelet_can_look_at(tmp_path: Path) -> None:
    """CRI-098, EVIC-023: the kubelet asks the machine for the filesystem of that directory."""
    listen = f"unix://{tmp_path}/cri.sock"
    async with (
        running("serve", "--listen", listen, "--image-root", str(tmp_path)),
        GrpcUpstream(listen) as client,
    ):
        answer: Any = await client.call("ImageFsInfo", cri.ImageFsInfoRequest(), timeout_s=5)
        assert answer.image_filesystems[0].fs_id.mountpoint == str(tmp_path)


async def test_proxy_passes_calls_records_them_and_outlives_its_upstream(tmp_path: Path) -> None:
    real, front = f"unix://{tmp_path}/real.sock", f"unix://{tmp_path}/front.sock"
    record = tmp_path / "calls.jsonl"
    async with GrpcUpstream(front) as client:
        async with running("serve", "--listen", real) as runtime:
            proxy = running("proxy", "--upstream", real, "--listen", front, "--record", str(record))
            async with proxy:
                await client.call("Status", cri.StatusRequest(), timeout_s=5)
                with pytest.raises(grpc.RpcError) as failure:
                    await client.call("ContainerStatus", cri.ContainerStatusRequest(), timeout_s=5)
                assert failure.value.code() is grpc.StatusCode.UNKNOWN
                runtime.send_signal(signal.SIGTERM)
                await runtime.wait()
                with pytest.raises(grpc.RpcError) as failure:
                    await client.call("Status", cri.StatusRequest(), timeout_s=5)
                assert failure.value.code() is grpc.StatusCode.UNAVAILABLE
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    assert [row["method"] for row in rows] == ["Status", "ContainerStatus", "Status"]
    assert rows[1]["error"]["code"] == "UNKNOWN"
    assert rows[2]["error"]["code"] == "UNAVAILABLE"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and stderr of a command that must fail at once."""
    code = main(arguments)
    return code, capsys.readouterr().err


def test_wrong_endpoints_are_one_line_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listen = f"unix://{tmp_path}/cri.sock"
    code, error = run(capsys, "serve", "--listen", "http://127.0.0.1:1")
    assert (code, error.count("\n")) == (2, 1)
    assert "wanted unix:///absolute/path.sock" in error
    code, error = run(capsys, "proxy", "--upstream", f"unix://{tmp_path}/no", "--listen", listen)
    assert code == 2
    assert f"cannot connect to the runtime at unix://{tmp_path}/no: no such file" in error
    assert "correct --upstream" in error


def test_a_living_socket_is_an_error_that_names_its_owner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket(socket.AF_UNIX) as living:
        living.bind(str(tmp_path / "cri.sock"))
        living.listen()
        code, error = run(capsys, "serve", "--listen", f"unix://{tmp_path}/cri.sock")
    assert code == 2
    assert f"pid {os.getpid()} (" in error
    assert "listens there already" in error


async def answer_as_http(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    writer.close()


async def test_a_socket_that_is_no_cri_is_an_error(tmp_path: Path) -> None:
    async with await asyncio.start_unix_server(answer_as_http, tmp_path / "web.sock"):
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *("proxy", "--upstream", f"unix://{tmp_path}/web.sock"),
            *("--listen", f"unix://{tmp_path}/cri.sock"),
            stderr=asyncio.subprocess.PIPE,
        )
        _, error = await asyncio.wait_for(process.communicate(), 200)
    assert process.returncode == 2
    assert b"answers, but not as a CRI v1 runtime" in error
    assert b"Traceback" not in error


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        (
            "--script",
            "faults:\n- {on: Start, hangs: {}}\n",
            "file:2:8: faults[0].on: CRI v1 has no method 'Start'",
        ),
        ("--script", "images: []\nimages: []\n", "file:2:1: key 'images' is given twice"),
        ("--script", None, "file: no such file or directory"),
    ],
)
def test_wrong_files_are_one_line_and_code_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    option: str,
    content: str | None,
    message: str,
) -> None:
    if content is not None:
        (tmp_path / "file").write_text(content)
    listen = f"unix://{tmp_path}/cri.sock"
    code, error = run(capsys, "serve", "--listen", listen, option, str(tmp_path / "file"))
    assert (code, error.count("\n")) == (2, 1)
    assert message in error


def test_an_image_directory_that_does_not_exist_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listen, missing = f"unix://{tmp_path}/cri.sock", str(tmp_path / "no")
    code, error = run(capsys, "serve", "--listen", listen, "--image-root", missing)
    wanted = f"fakecri: error: --image-root {missing}: no such directory\n"
    assert (code, error) == (2, wanted)


def test_a_record_that_cannot_be_written_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listen, record = f"unix://{tmp_path}/cri.sock", str(tmp_path / "no" / "calls.jsonl")
    code, error = run(capsys, "serve", "--listen", listen, "--record", record)
    assert (code, error) == (
        2,
        f"fakecri: error: cannot write --record {record}: no such file or directory\n",
    )


def test_help_needs_no_heavy_import() -> None:
    import subprocess

    script = (
        "import sys\n"
        "from fakecri.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('grpc', 'google.protobuf', 'yaml') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("usage: fakecri")
    assert done.stdout.endswith("[]\n")


def test_serving_without_a_script_needs_no_yaml() -> None:
    import subprocess

    script = (
        "import sys\n"
        "from fakecri.cli import main\n"
        "main(['serve', '--listen', 'unix:///no', '--image-root', '/no/such'])\n"
        "print([m for m in ('yaml', 'kubeobjects.yaml') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr == "fakecri: error: --image-root /no/such: no such directory\n"
    assert done.stdout == "[]\n"


def test_the_cri_and_its_control_need_a_socket_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = f"unix://{tmp_path}/cri.sock"
    assert main(["serve", "--listen", same, "--control", f"{tmp_path}/./cri.sock"]) == 2
    assert f"listen and control are both {same}" in capsys.readouterr().err


async def test_ctl_and_record_tell_the_same_seconds_since_the_start(tmp_path: Path) -> None:
    listen, control = f"unix://{tmp_path}/cri.sock", f"unix://{tmp_path}/ctl.sock"
    record = tmp_path / "calls.jsonl"
    sockets = ("--listen", listen, "--control", control)
    async with (
        running("serve", *sockets, "--record", str(record), "--keep-calls", "2"),
        GrpcUpstream(listen) as client,
    ):
        for _ in range(3):
            await client.call("Version", cri.VersionRequest(), timeout_s=5)
        ask = ControlClient(control).request
        kept = ask("GET", "/v1/calls")
        written = [json.loads(line) for line in record.read_text().splitlines()]
        assert [row["t_start"] for row in kept] == pytest.approx(
            [row["t_start"] for row in written[1:]], abs=0.01
        )
        later = ask("GET", "/v1/calls", query={"since_s": kept[1]["t_start"]})
        assert [row["seq"] for row in later] == [3]
        assert ask("GET", "/v1/state")["calls"] == {
            "seen": 3,
            "kept": 2,
            "by_method": {"Version": 3},
        }
        assert 0 <= kept[1]["t_start"] <= ask("GET", "/v1/clock")["since_start_s"] < 60


async def test_serve_gives_pods_addresses_of_the_network_that_was_asked_for(tmp_path: Path) -> None:
    listen = f"unix://{tmp_path}/cri.sock"
    words = ("serve", "--listen", listen, "--pod-network", "fd00:9::/64")
    async with running(*words), GrpcUpstream(listen) as client:
        status = await sandbox_status(client, await run_pod(client))
        assert status.network.ip == "fd00:9::2"
