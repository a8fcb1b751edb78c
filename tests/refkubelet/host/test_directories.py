"""Directories that the kubelet makes: all that were missing have their mode (NODE-200)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from refkubelet.host.directories import make_directory


def modes(path: Path, count: int) -> list[str]:
    return [oct(stat.S_IMODE(p.stat().st_mode)) for p in (path, *path.parents)[:count]]


def test_all_that_were_missing_have_the_mode_NODE_200(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o700)
    before = os.umask(0o022)
    try:
        make_directory(str(tmp_path / "a/b/c"))
        make_directory(str(tmp_path / "a/b/c/d"), 0o755)
        make_directory(str(tmp_path / "a/b"), 0o755)
    finally:
        os.umask(before)
    assert modes(tmp_path / "a/b/c/d", 4) == ["0o755", "0o750", "0o750", "0o700"]


def test_a_file_in_the_way_is_an_error_NODE_200(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(OSError, match=r"File exists|Not a directory"):
        make_directory(str(tmp_path / "a/b"))
    with pytest.raises(FileExistsError):
        make_directory(str(tmp_path / "a"))
    assert (tmp_path / "a").read_text() == ""
