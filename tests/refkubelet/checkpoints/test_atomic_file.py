"""State files are whole under their own name, whatever happens while they are written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from refkubelet.checkpoints.atomic_file import write_whole
from refkubelet.kuberuntime.images.pull_record_files import PullRecordFiles
from refkubelet.node.shutdown_state import ShutdownTimes, store_times


def test_the_bytes_are_on_the_disk_before_they_have_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, seen = tmp_path / "state", []
    write_whole(file, b"old")

    def fsync(descriptor: int) -> None:
        seen.append((os.fstat(descriptor).st_size, file.read_bytes()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(file, b"newer")
    assert seen == [(5, b"old")]
    assert file.read_bytes() == b"newer"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [f.name for f in tmp_path.iterdir()] == ["state"]


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "state"
    write_whole(file, b"old")

    def fsync(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="No space left"):
        write_whole(file, b"newer")
    assert file.read_bytes() == b"old"


def test_records_of_pulls_and_times_of_shutdowns_are_synced_NODE_064_BACK_211(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine goes down right after the one, and may at any time after the other."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_size))
    store_times(tmp_path / "state", ShutdownTimes(1))
    PullRecordFiles(tmp_path).write_intent("a:1")
    files = [f for f in sorted(tmp_path.rglob("*"), key=lambda f: f.name != "state") if f.is_file()]
    assert synced == [f.stat().st_size for f in files]
