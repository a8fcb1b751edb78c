"""`fakecri serve --cgroups`: other processes read what the fake's containers use."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import create, pod_config, run_pod, start

from fakecri.cgroupfs.outside import why_no_mount
from fakecri.cli import main
from fakecri.server import GrpcUpstream

LACKS = why_no_mount() or ("" if os.geteuid() == 0 else "needs root")
SCRIPT = "behaviors: [{container: web, uses: {memory: 7340032, pids: 2}}]"


@pytest.mark.skipif(bool(LACKS), reason=LACKS)
@pytest.mark.parametrize(
    ("version", "file"),
    [(1, "memory/kubepods/memory.usage_in_bytes"), (2, "kubepods/memory.current")],
)
async def test_usage_is_there_for_other_processes(tmp_path: Path, version: int, file: str) -> None:
    directory, listen = tmp_path / "cgroup", f"unix://{tmp_path}/cri.sock"
    directory.mkdir()
    (tmp_path / "script.yaml").write_text(SCRIPT)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fakecri", "serve", "--listen", listen),
        *("--script", str(tmp_path / "script.yaml"), "--cgroup-version", str(version)),
        *("--cgroups", str(directory)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        said = [await asyncio.wait_for(process.stdout.readline(), 200) for _ in range(2)]
        assert said[0] == f"fakecri serve: cgroups at {directory}\n".encode()
        async with GrpcUpstream(listen) as client:
            await start_web(client)
        assert (directory / file).read_text() == f"{7 << 20}\n"  # another process answers
    finally:
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 200) == 0
    assert list(directory.iterdir()) == []


async def start_web(client: GrpcUpstream) -> None:
    pod = pod_config("shop", linux=cri.LinuxPodSandboxConfig(cgroup_parent="/kubepods/podu"))
    await start(client, await create(client, await run_pod(client, pod), pod, "web"))


def test_a_place_that_cannot_be_mounted_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    words = ["serve", "--listen", f"unix://{tmp_path}/s", "--cgroups", str(tmp_path)]
    assert main(words) == 2
    assert capsys.readouterr().err.startswith("fakecri: error: --cgroups: mount")
