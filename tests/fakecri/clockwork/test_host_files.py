"""The files that containers write, on a real disk."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from runtime_calls import create, pod_config, run_pod, start

from fakecri import FakeCRI, prints
from fakecri.clockwork.files import HostFiles
from fakecri.core.file_work import CloseLog, OpenLog, WriteLog, WriteMessage


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


def test_files_have_the_time_of_the_fake(tmp_path: Path) -> None:
    """A client that removes logs by their age compares them with its clock, which is the fake's."""
    now_ns = [1_000_000_000_000_000_001]
    files = HostFiles(write_logs=True, wall_ns=lambda: now_ns[0])
    log, message = tmp_path / "0.log", tmp_path / "message"
    files.do(OpenLog(str(log)))
    assert log.stat().st_mtime_ns == now_ns[0]
    now_ns[0] += 7
    files.do(WriteLog(str(log), "one\n"))
    files.do(WriteMessage(str(message), "bye"))
    assert (log.stat().st_mtime_ns, message.stat().st_mtime_ns) == (now_ns[0], now_ns[0])


@pytest.mark.virtual_time
async def test_a_running_containers_log_has_the_time_that_the_cri_says(tmp_path: Path) -> None:
    cri = FakeCRI(write_logs=True)
    config = pod_config()
    config.log_directory = str(tmp_path)
    container_id = await create(cri, await run_pod(cri, config), config, log_path="0.log")
    await start(cri, container_id)
    age_ns = cri.container("c").started_at_ns - (tmp_path / "0.log").stat().st_mtime_ns
    assert 0 <= age_ns < 1000


def test_a_bad_path_costs_a_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    HostFiles(write_logs=True).do(OpenLog(f"{tmp_path}/file/0.log"))
    assert f"cannot write {tmp_path}/file/0.log" in caplog.text


def test_logs_need_no_open_file_while_nothing_is_written(tmp_path: Path) -> None:
    files = HostFiles(write_logs=True)
    before = os.listdir("/proc/self/fd")
    for number in range(300):
        files.do(OpenLog(str(tmp_path / f"{number}.log")))
        files.do(WriteLog(str(tmp_path / f"{number}.log"), "line\n"))
    assert os.listdir("/proc/self/fd") == before


def _removed(path: Path) -> None:
    path.unlink()


def _replaced(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.write_text("of another\n")
    path.with_name("moved").unlink()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _without_directory(path: Path) -> None:
    path.unlink()
    path.parent.rmdir()


@pytest.mark.parametrize(
    "happens", [_removed, _replaced, _pipe, _loop, _directory, _without_directory]
)
def test_output_for_a_log_that_was_taken_away_goes_nowhere_CRI_104(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, happens: Callable[[Path], None]
) -> None:
    files = HostFiles(write_logs=True)
    path = tmp_path / "a" / "0.log"
    files.do(OpenLog(str(path)))
    happens(path)
    files.do(WriteLog(str(path), "nobody hears\n"))
    assert not path.is_file() or path.read_text() == "of another\n"
    assert caplog.text == ""


@pytest.mark.virtual_time
async def test_more_containers_log_than_files_may_be_open(tmp_path: Path) -> None:
    cri = FakeCRI(write_logs=True)
    cri.behaves(prints("hello"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 30, hard))
    try:
        for number in range(100):
            config = pod_config(f"p{number}", log_directory=str(tmp_path / str(number)))
            sandbox = await run_pod(cri, config)
            await start(cri, await create(cri, sandbox, config, log_path="0.log"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(cri.containers()) == 100  # and all of them run
    assert len([*tmp_path.glob("*/*.log")]) == 100
    assert all(log.read_text().endswith(" stdout F hello\n") for log in tmp_path.glob("*/*.log"))
