"""The writer of volumes: links, updates, what a kubelet that was killed left behind."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from refkubelet.volumes.atomic_writer import AtomicWriter
from refkubelet.volumes.ownership import give_at_once, must_change
from refkubelet.volumes.payload import FileProjection, PayloadError
from simclock import Ids, RealClock, Rng


def write(volume: Path, **texts: str) -> bool:
    """Write files; `__` in a name is a slash."""
    payload = {
        name.replace("__", "/"): FileProjection(text.encode(), 0o640)
        for name, text in texts.items()
    }
    return AtomicWriter(RealClock(), Ids(Rng(1))).write(str(volume), payload, lambda: None)


def seen(volume: Path) -> dict[str, str]:
    names = [name for name in os.listdir(volume) if not name.startswith("..")]
    return {
        str(file.relative_to(volume)): file.read_text()
        for name in names
        for file in ([volume / name] if (volume / name).is_file() else (volume / name).rglob("*"))
        if file.is_file()
    }


def own_names(volume: Path) -> list[str]:
    return [name for name in os.listdir(volume) if name.startswith("..")]


def test_files_have_their_modes_whatever_the_umask_is_NODE_206(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        assert write(tmp_path, a="1", d__b="2")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "d/b").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "..data").stat().st_mode) == 0o755
    assert os.readlink(tmp_path / "d") == "..data/d"


def test_an_update_replaces_all_and_leaves_nothing_NODE_206(tmp_path: Path) -> None:
    write(tmp_path, a="1", d__b="2", d__c="3")
    assert write(tmp_path, a="1", d__c="4")
    assert seen(tmp_path) == {"a": "1", "d/c": "4"}
    assert len(own_names(tmp_path)) == 2
    assert write(tmp_path, x="1")
    assert seen(tmp_path) == {"x": "1"}
    assert not (tmp_path / "d").is_symlink()


def test_the_same_is_not_written_again_but_links_are_mended_NODE_206(tmp_path: Path) -> None:
    write(tmp_path, a="1")
    before = os.readlink(tmp_path / "..data")
    (tmp_path / "a").unlink()
    assert not write(tmp_path, a="1")
    assert os.readlink(tmp_path / "..data") == before
    assert seen(tmp_path) == {"a": "1"}


def test_what_a_killed_kubelet_left_is_no_obstacle_NODE_206(tmp_path: Path) -> None:
    write(tmp_path, a="1")
    os.symlink("..nowhere", tmp_path / "..data_tmp")
    assert write(tmp_path, a="2")
    assert seen(tmp_path) == {"a": "2"}


def test_a_failure_leaves_the_old_content_NODE_206(tmp_path: Path) -> None:
    write(tmp_path, a="1")
    with pytest.raises(PayloadError):
        write(tmp_path, __etc="2")

    def fail() -> None:
        raise OSError("no")

    writer = AtomicWriter(RealClock(), Ids(Rng(2)))
    with pytest.raises(OSError, match="no"):
        writer.write(str(tmp_path), {"a": FileProjection(b"2", 0o644)}, fail)
    assert seen(tmp_path) == {"a": "1"}
    assert len(own_names(tmp_path)) == 2


def test_the_group_may_read_and_links_are_not_followed_NODE_212(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    outside.chmod(0o600)
    volume = tmp_path / "v"
    volume.mkdir(mode=0o700)
    write(volume, a="1")
    os.symlink(outside, volume / "link")
    group = os.getgid()
    give_at_once(str(volume), group, read_only=True)
    assert stat.S_IMODE(outside.stat().st_mode) == 0o600
    assert stat.S_IMODE((volume / "a").stat().st_mode) == 0o640
    assert stat.S_IMODE(volume.stat().st_mode) == 0o2750
    found = volume.stat()
    assert not must_change(found, group, "OnRootMismatch", read_only=True)
    assert must_change(found, group, "Always", read_only=True)
    assert must_change(found, group, "OnRootMismatch", read_only=False)
    assert must_change(found, group + 1, "OnRootMismatch", read_only=True)
