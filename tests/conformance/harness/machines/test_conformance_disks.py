"""A disk of a case's own is as full as the case says, and is gone afterwards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kubelet_conformance.harness.machines.disks import OwnDisk, own_disk, shared_mounts, why_no_disk

MI = 1 << 20
real = pytest.mark.skipif(bool(why_no_disk()), reason=why_no_disk() or "none")


def free(root: Path) -> tuple[int, int]:
    found = os.statvfs(root)
    return found.f_bavail * found.f_frsize, found.f_favail


@real
@pytest.mark.slow
async def test_a_disk_is_as_full_as_wanted_and_leaves_nothing(tmp_path: Path) -> None:
    root = tmp_path / "kubelet"
    root.mkdir()
    async with own_disk(root) as disk:
        assert os.path.ismount(root)
        for wanted in (80 * MI, 300 * MI, 10 * MI):
            disk.leave(wanted)
            assert abs(free(root)[0] - wanted) < MI
        (root / "file").write_bytes(b"x" * 5 * MI)
        assert abs(free(root)[0] - 5 * MI) < MI
        disk.leave_inodes(500)
        assert free(root)[1] == 500
        disk.leave_inodes(2000)
        assert free(root)[1] == 2000
        image = tmp_path / "kubelet.img"
        assert image.stat().st_blocks * 512 < 64 * MI  # ballast is not written
    assert sorted(tmp_path.iterdir()) == [root]
    assert list(root.iterdir()) == []


@real
@pytest.mark.slow
async def test_mounts_are_shared_as_long_as_the_block_lasts(tmp_path: Path) -> None:
    at = tmp_path / "shared"
    async with shared_mounts(at):
        lines = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        found = next(fields for fields in lines if fields[4] == str(at))
        assert any(field.startswith("shared:") for field in found[6:])
    assert not os.path.ismount(at)


@real
async def test_what_a_command_says_is_the_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"mount .*missing"):
        async with own_disk(tmp_path / "missing"):
            pass
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_left_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than there is cannot be left."""
    monkeypatch.setattr(os, "posix_fallocate", lambda *_: pytest.fail("nothing to take"))
    OwnDisk(tmp_path).leave(free(tmp_path)[0] + 1000 * MI)
