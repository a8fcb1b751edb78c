"""hostPath types are checked, and made where they say so: NODE-204."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest
from lightkube.models.core_v1 import HostPathVolumeSource

from refkubelet.volumes.host_paths import CHECKS, HostPathError, check_host_path

KINDS = ("Directory", "File", "Socket", "CharDevice", "BlockDevice")
WORDS = ("a directory", "a file", "a socket file", "a character device", "a block device")


def make(place: Path) -> dict[str, str]:
    """A path of each kind; block devices are not everywhere."""
    (place / "Directory").mkdir()
    (place / "File").touch()
    os.mkfifo(place / "Fifo")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(place / "Socket"))
    (place / "link").symlink_to("Directory")
    paths = {kind: str(place / kind) for kind in ("Directory", "File", "Fifo", "Socket")}
    return paths | {"CharDevice": "/dev/null", "link": str(place / "link")}


@pytest.mark.parametrize(("kind", "what"), list(zip(KINDS, WORDS, strict=True)))
def test_another_kind_is_refused_NODE_204(tmp_path: Path, kind: str, what: str) -> None:
    for found, path in make(tmp_path).items():
        source = HostPathVolumeSource(path, type=kind)
        if found == kind or (kind == "Directory" and found == "link"):
            check_host_path(source)
            continue
        with pytest.raises(HostPathError) as refused:
            check_host_path(source)
        assert str(refused.value) == f"hostPath type check failed: {path} is not {what}"


@pytest.mark.parametrize("kind", sorted(CHECKS))
def test_what_is_missing_is_made_only_where_it_may_be_NODE_204(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "new"
    old = os.umask(0)
    try:
        check_host_path(HostPathVolumeSource(str(path), type=kind))
    except HostPathError:
        assert not kind.endswith("OrCreate")
        assert not path.exists()
    else:
        mode = path.stat().st_mode
        wanted = {"DirectoryOrCreate": (True, 0o755), "FileOrCreate": (False, 0o644)}
        assert (stat.S_ISDIR(mode), stat.S_IMODE(mode)) == wanted[kind]
    finally:
        os.umask(old)


def test_directories_are_made_with_those_above_files_are_not_NODE_204(tmp_path: Path) -> None:
    check_host_path(HostPathVolumeSource(str(tmp_path / "a/b"), type="DirectoryOrCreate"))
    assert (tmp_path / "a/b").is_dir()
    with pytest.raises(FileNotFoundError):
        check_host_path(HostPathVolumeSource(str(tmp_path / "x/y"), type="FileOrCreate"))


@pytest.mark.parametrize("kind", [None, "", "Directory"])
def test_a_path_with_steps_back_is_refused_NODE_204(kind: str | None) -> None:
    with pytest.raises(HostPathError, match=r"`/a/\.\./b`: must not contain"):
        check_host_path(HostPathVolumeSource("/a/../b", type=kind))


def test_without_a_type_nothing_is_checked_NODE_204(tmp_path: Path) -> None:
    check_host_path(HostPathVolumeSource(str(tmp_path / "none"), type=""))
    assert not (tmp_path / "none").exists()
