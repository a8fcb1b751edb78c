"""Files that pods and users can touch: LIFE-145, NODE-211, SRC-003."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from refkubelet.host.untrusted_files import (
    NotRegularError,
    OutsideError,
    TooLargeError,
    open_regular,
    opened_below,
    read_tail,
    read_whole,
)

SECRET = "of the node"


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A volume, with a file of the node beside it."""
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "volume" / "a" / "b").mkdir(parents=True)
    (tmp_path / "volume" / "a" / "file").write_text("inside")
    return tmp_path / "volume"


def odd_file(path: Path, kind: str) -> None:
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    else:
        path.symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", ["fifo", "directory", "socket", "device"])
@pytest.mark.parametrize("follow_links", [True, False])
def test_what_is_no_file_is_refused_at_once_LIFE_145(
    tmp_path: Path, kind: str, follow_links: bool
) -> None:
    odd_file(tmp_path / "odd", kind)
    with pytest.raises(OSError):
        read_whole(tmp_path / "odd", 10, follow_links=follow_links)
    with pytest.raises(OSError):
        read_tail(str(tmp_path / "odd"), 10)


def test_a_fifo_is_named_as_what_it_is_LIFE_145(tmp_path: Path) -> None:
    odd_file(tmp_path / "odd", "fifo")
    with pytest.raises(NotRegularError, match="Not a regular file"):
        read_whole(tmp_path / "odd", 10, follow_links=True)


def test_no_more_bytes_than_asked_for_are_read_LIFE_137(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 10)
    assert read_whole(file, 10, follow_links=False) == b"x" * 10
    with pytest.raises(TooLargeError, match="larger than 9 bytes"):
        read_whole(file, 9, follow_links=False)
    assert read_tail(str(file), 3) == b"xxx"


def test_a_file_without_a_size_is_limited_too_LIFE_137() -> None:
    with pytest.raises(TooLargeError):
        read_whole("/proc/self/maps", 5, follow_links=False)


def test_links_are_followed_where_that_is_asked_for_SRC_003(volume: Path) -> None:
    link = volume.parent / "link"
    link.symlink_to("secret")
    assert read_whole(link, 100, follow_links=True) == SECRET.encode()
    with pytest.raises(OSError, match="symbolic links"):
        read_whole(link, 100, follow_links=False)


def test_a_tail_is_read_through_links_of_trusted_directories_only_LIFE_145(volume: Path) -> None:
    above = volume.parent
    (above / "kubelet").symlink_to("volume")
    path = str(above / "kubelet" / "a" / "file")
    assert read_tail(path, 4, [str(above / "kubelet")]) == b"side"
    with pytest.raises(OSError):
        read_tail(path, 4)
    with pytest.raises(OSError):
        read_tail(path, 4, [str(above / "kube")])


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("out", "/"),
        ("out", ".."),
        ("a/out", "../.."),
        ("a/out", "b/../../.."),
        ("out", "../secret"),
        ("out", "../volume2"),
        ("out", "{volume}2"),
    ],
)
def test_a_link_out_of_the_root_is_refused_NODE_211(volume: Path, link: str, target: str) -> None:
    (volume.parent / "volume2").mkdir()
    (volume / link).symlink_to(target.format(volume=volume))
    for path in (link, f"{link}/secret", f"{link}/x/y"):
        with pytest.raises(OutsideError), opened_below(volume, path, make_mode=0o755):
            pass
    assert not (volume.parent / "x").exists()
    assert not (volume.parent / "volume2" / "x").exists()


@pytest.mark.parametrize("path", ["..", "../secret", "a/../..", "/etc", "/"])
def test_a_path_out_of_the_root_is_refused_NODE_211(volume: Path, path: str) -> None:
    with pytest.raises(OutsideError), opened_below(volume, path):
        pass


@pytest.mark.parametrize("target", ["a/file", "./a/b/../file", "{volume}/a/file", "again"])
def test_a_link_that_stays_below_is_followed_NODE_211(volume: Path, target: str) -> None:
    (volume / "again").symlink_to("a/file")
    (volume / "in").symlink_to(target.format(volume=volume))
    with opened_below(volume, "in") as found:
        assert (found.path, found.read(100)) == (str(volume.resolve() / "a/file"), b"inside")


def test_links_in_a_ring_end_NODE_211(volume: Path) -> None:
    (volume / "ring").symlink_to("ring")
    with pytest.raises(OSError, match="symbolic links"), opened_below(volume, "ring"):
        pass


def test_missing_directories_get_the_mode_asked_for_NODE_211(volume: Path) -> None:
    old = os.umask(0o077)
    try:
        with opened_below(volume, "a/new/deep", make_mode=0o2777) as made:
            assert made.is_directory
    finally:
        os.umask(old)
    for path in ("a/new", "a/new/deep"):
        assert stat.S_IMODE((volume / path).stat().st_mode) == 0o2777


def test_what_is_missing_is_made_behind_a_link_that_stays_below_NODE_211(volume: Path) -> None:
    (volume / "in").symlink_to("a")
    (volume / "absolute").symlink_to(volume / "a")
    for path in ("in/new/deep", "absolute/other"):
        with opened_below(volume, path, make_mode=0o755) as made:
            assert made.is_directory
    assert (volume / "a/new/deep").is_dir()
    assert (volume / "a/other").is_dir()


def test_where_a_link_leads_is_not_made_NODE_211(volume: Path) -> None:
    (volume / "dangling").symlink_to("a/none")
    (volume / "twice").symlink_to("dangling/more")
    for path in ("dangling", "dangling/new", "twice", "twice/new"):
        with pytest.raises(FileNotFoundError), opened_below(volume, path, make_mode=0o755):
            pass
    assert not (volume / "a" / "none").exists()


def test_what_was_opened_stays_when_its_name_is_exchanged_NODE_211(volume: Path) -> None:
    with opened_below(volume, "a/file") as found:
        (volume / "a" / "file").unlink()
        (volume / "a" / "file").symlink_to(volume.parent / "secret")
        assert found.read(100) == b"inside"


def test_no_descriptor_stays_open_NODE_211(volume: Path) -> None:
    (volume / "in").symlink_to("a")
    before = len(os.listdir("/proc/self/fd"))
    for path in ("a/file", "in/b", "none", "a/file/x", "new/dir"):
        try:
            with opened_below(volume, path, make_mode=0o755):
                pass
        except OSError:
            pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_vanishes_between_two_looks_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    real_open = os.open

    def vanishing(name: str, flags: int, *mode: int) -> int:
        if name == str(path) and flags & os.O_PATH:
            path.unlink()
        return real_open(name, flags, *mode)

    monkeypatch.setattr(os, "open", vanishing)
    os.close(open_regular(str(path), os.O_WRONLY | os.O_CREAT))
    assert path.read_text() == ""
    with pytest.raises(FileNotFoundError):
        open_regular(str(tmp_path / "none"), os.O_RDONLY)
