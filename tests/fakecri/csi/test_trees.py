"""What containers leave in volumes is removed, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from fakecri.csi.trees import remove_tree

LEVELS = 1500


def _put_deep(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(LEVELS):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))
    os.close(fd)


def test_trees_of_any_depth_with_odd_files_are_removed(tmp_path: Path) -> None:
    volume, outside = tmp_path / "volume", tmp_path / "outside"
    for directory in (volume / "empty", volume / ".removed-0" / "below", outside):
        directory.mkdir(parents=True)
    (outside / "file").write_text("of the node")
    _put_deep(volume)
    os.mkfifo(volume / "fifo")
    (volume / "link").symlink_to(outside)
    remove_tree(volume)
    assert not volume.exists()
    assert (outside / "file").read_text() == "of the node"


def test_what_is_no_directory_stays_and_is_not_waited_for(tmp_path: Path) -> None:
    fifo, link = tmp_path / "fifo", tmp_path / "link"
    os.mkfifo(fifo)
    link.symlink_to(tmp_path)
    for path in (fifo, link, tmp_path / "nothing"):
        remove_tree(path)
    assert sorted(os.listdir(tmp_path)) == ["fifo", "link"]
