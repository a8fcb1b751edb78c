"""What a container leaves in its volumes is removed, whatever it is: LIFE-073, NODE-208."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from refkubelet.host.untrusted_files import opened_below
from refkubelet.volumes.mounting import RealMounts
from refkubelet.volumes.removal import remove_empty_volumes, remove_tree
from simclock.aside import PIECE

DEEP = 3000  # more than the interpreter's frames, and than descriptors


def make_deep(top: Path, levels: int) -> None:
    """A directory in a directory and so on, a file in the last."""
    fd = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)


async def test_depth_does_not_matter_LIFE_073(tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    make_deep(tmp_path / "volume", DEEP)
    await remove_tree(str(tmp_path / "volume"))
    assert not (tmp_path / "volume").exists()


async def test_links_are_removed_and_not_followed_LIFE_073(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "below").mkdir(parents=True)
    (tmp_path / "volume/a").mkdir(parents=True)
    (tmp_path / "volume/link").symlink_to(outside)
    (tmp_path / "volume/a/link").symlink_to(outside / "below")
    os.mkfifo(tmp_path / "volume/fifo")
    (tmp_path / "volume/.removed-1").mkdir()
    (tmp_path / "volume/a/.removed-2").mkdir()
    await remove_tree(str(tmp_path / "volume"))
    assert not (tmp_path / "volume").exists()
    assert (outside / "below").is_dir()


@pytest.mark.virtual_time
async def test_others_run_while_a_wide_tree_is_removed_LIFE_073(tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    for number in range(2 * PIECE + 1):
        (tmp_path / f"volume/{number}").touch()
    removing = asyncio.create_task(remove_tree(str(tmp_path / "volume")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not removing.done()
    await removing
    assert not (tmp_path / "volume").exists()


async def test_a_link_in_place_of_the_tree_goes_alone_LIFE_073(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "volume").symlink_to("outside")
    await remove_tree(str(tmp_path / "volume"))
    await remove_tree(str(tmp_path / "none"))
    assert (tmp_path / "outside").is_dir()
    assert not (tmp_path / "volume").is_symlink()


@pytest.mark.parametrize("place", ["a", "a/b"])
async def test_what_is_mounted_is_not_emptied_NODE_208(
    tmp_path: Path, place: str, real_mounts: RealMounts
) -> None:
    (tmp_path / "volume" / place).mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").touch()
    with opened_below(tmp_path, "other") as other:
        real_mounts.bind(other, str(tmp_path / "volume" / place))
    with pytest.raises(OSError, match="busy"):
        await remove_tree(str(tmp_path / "volume"))
    assert (tmp_path / "other/file").exists()


def test_volumes_of_others_go_only_while_they_are_empty_NODE_208(tmp_path: Path) -> None:
    own = tmp_path / "volumes/kubernetes.io~empty-dir/mine"
    empty, full = (tmp_path / "volumes/kubernetes.io~nfs" / name for name in ("empty", "full"))
    for volume in (own, empty, full):
        volume.mkdir(parents=True)
    for volume in (own, full):
        (volume / "file").touch()
    with pytest.raises(OSError, match="not empty"):
        remove_empty_volumes(str(tmp_path), ["volumes/kubernetes.io~empty-dir"])
    assert (own / "file").exists()
    assert (full / "file").exists()
    assert not empty.exists()
    (full / "file").unlink()
    remove_empty_volumes(str(tmp_path), ["volumes/kubernetes.io~empty-dir"])
    assert not full.exists()
    remove_empty_volumes(str(tmp_path / "none"), [])
