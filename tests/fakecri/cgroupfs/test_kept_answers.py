"""What the process of a mount keeps, and when it must ask again: told by a count of changes."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

import pytest

from fakecri.cgroupfs import CgroupFS
from fakecri.cgroupfs.outside.count import Count
from fakecri.cgroupfs.outside.requests import Requests
from simclock import Rng

NAMES = ("a", "b", "c")
STEPS = 400


def seen(fs: CgroupFS, path: str = "/") -> dict[str, tuple[int, int]]:
    """Every path below -> its mode and links."""
    at = fs.path(path)
    status = at.stat()
    found = {path: (status.st_mode, status.st_nlink)}
    if at.is_dir():
        for entry in at.iterdir():
            found |= seen(fs, str(entry))
    return found


@pytest.mark.parametrize("version", [1, 2])
def test_whatever_changes_what_is_there_is_counted(version: int) -> None:
    """Directories made, removed and renamed, controllers and pressure files switched."""
    fs = CgroupFS(version, controllers=["memory", "pids"])
    root = "/memory" if version == 1 else ""
    told: list[None] = []
    Requests(fs).on_structure(lambda: told.append(None))
    dice = Rng(version).stream("steps")
    steps: list[Callable[[str], object]] = [
        lambda path: fs.path(path).mkdir(),
        lambda path: fs.path(path).rmdir(),
        lambda path: fs.path(path).rename(f"{path}-new"),
        lambda path: fs.path(f"{path}/cgroup.subtree_control").write_text("+memory"),
        lambda path: fs.path(f"{path}/cgroup.subtree_control").write_text("-memory +pids"),
        lambda path: fs.path(f"{path}/cgroup.pressure").write_text(dice.choice("01")),
        lambda path: fs.path(f"{path}/pids.max").write_text("7"),
    ]
    changes = 0
    before = seen(fs)
    for _ in range(STEPS):
        told.clear()
        depth = dice.randint(1, 2)
        path = root + "".join(f"/{dice.choice(NAMES)}" for _ in range(depth))
        with suppress(OSError):
            dice.choice(steps)(path)
        after = seen(fs)
        assert told or after == before, path
        changes += after != before
        before = after
    assert changes > STEPS / 20


def test_what_is_only_read_and_written_is_not_counted() -> None:
    fs = CgroupFS(2)
    fs.path("/a").mkdir()
    told: list[None] = []
    Requests(fs).on_structure(lambda: told.append(None))
    fs.path("/cgroup.subtree_control").read_text()
    fs.path("/a/cgroup.freeze").write_text("1")
    fs.spawn("/a").kill()
    assert not told


def test_a_count_is_seen_by_whoever_has_its_file() -> None:
    count = Count.create()
    other = Count(os.dup(count.fd))
    count.add()
    count.add()
    assert (count.value, other.value) == (2, 2)
    count.close()
    count.add()
    assert other.value == 2
    other.close()
