"""The pytest plugin, the import, the clock of the loop, and the log files on a real disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import run_pod

from fakecri import FakeCRI
from fakecri.clockwork.files import HostFiles
from fakecri.core.file_work import CloseLog, OpenLog, WriteLog, WriteMessage
from fakecri.server import GrpcUpstream


@pytest.mark.virtual_time
async def test_the_fixture_works_in_virtual_time(fakecri: FakeCRI) -> None:
    await run_pod(fakecri)
    created_at_ns = fakecri.sandboxes()[0].created_at_ns
    assert created_at_ns // 10**18 == 1  # 2026-01-01, the start of virtual time
    assert fakecri.times_s("RunPodSandbox") == [0.0]


async def test_the_socket_fixture_serves_the_fixture(fakecri: FakeCRI, fakecri_socket: str) -> None:
    async with GrpcUpstream(fakecri_socket) as upstream:
        answer: Any = await upstream.call("Version", cri.VersionRequest(), timeout_s=10)
    assert answer.runtime_api_version == "v1"
    fakecri.assert_called("Version", times=1)


@pytest.mark.parametrize("module", ["fakecri", "fakecri.pytest_plugin"])
def test_importing_loads_nothing_heavy(module: str) -> None:
    code = (
        f"import sys, {module}; print([m for m in ('grpc', 'google.protobuf') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_every_public_name_exists() -> None:
    import fakecri

    assert all(getattr(fakecri, name) is not None for name in fakecri.__all__)
    assert sorted(fakecri.__all__) == fakecri.__all__
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = fakecri.nothing


def test_a_log_stays_the_same_file_until_reopened_CRI_104(tmp_path: Path) -> None:
    files = HostFiles(write_logs=True)
    path, rotated = tmp_path / "a/0.log", tmp_path / "a/0.log.1"
    files.do(OpenLog(str(path)))
    assert path.stat().st_mode & 0o777 == 0o640 & ~_umask()
    files.do(WriteLog(str(path), "one\n"))
    path.rename(rotated)
    files.do(WriteLog(str(path), "two\n"))
    assert not path.exists()
    files.do(OpenLog(str(path)))
    files.do(WriteLog(str(path), "three\n"))
    files.do(CloseLog(str(path)))
    files.do(WriteLog(str(path), "nobody hears\n"))
    assert (rotated.read_text(), path.read_text()) == ("one\ntwo\n", "three\n")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_without_logs_only_messages_are_written(tmp_path: Path) -> None:
    files = HostFiles(write_logs=False)
    files.do(OpenLog(str(tmp_path / "0.log")))
    files.do(WriteMessage(str(tmp_path / "message"), "bye"))
    assert [p.name for p in tmp_path.iterdir()] == ["message"]


def test_a_bad_path_costs_a_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    HostFiles(write_logs=True).do(OpenLog(f"{tmp_path}/file/0.log"))
    assert f"cannot write {tmp_path}/file/0.log" in caplog.text


def test_all_logs_close_with_their_owner(tmp_path: Path) -> None:
    files = HostFiles(write_logs=True)
    before = len(os.listdir("/proc/self/fd"))
    files.do(OpenLog(str(tmp_path / "0.log")))
    files.closer()()
    assert len(os.listdir("/proc/self/fd")) == before
