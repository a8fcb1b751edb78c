"""subPaths stay below their volume, and cannot be exchanged once they are handed over: NODE-211."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from kubeobjects.structs import replace
from refkubelet.host.directories import mount_points_below
from refkubelet.volumes.mounting import NoMounts, RealMounts
from refkubelet.volumes.sub_paths import SubPathError, SubPathUse, prepare

PREPARE = 'failed to prepare subPath for volumeMount "v" of container "main"'
CREATE = 'failed to create subPath directory for volumeMount "v" of container "main"'
NO_MOUNTS = NoMounts()


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    (tmp_path / "host").mkdir()
    (tmp_path / "volume/dir").mkdir(parents=True)
    (tmp_path / "volume/file").write_text("inside")
    return tmp_path / "volume"


def use_of(volume: Path) -> SubPathUse:
    return SubPathUse(str(volume.parent / "root"), "u-1", "v", "main", 2)


def target_of(volume: Path) -> Path:
    return volume.parent / "root/pods/u-1/volume-subpaths/v/main/2"


def test_a_claims_lies_below_the_name_of_its_volume_NODE_211(
    volume: Path, real_mounts: RealMounts
) -> None:
    use = replace(use_of(volume), directory="pv")
    found = Path(prepare(str(volume), "dir", use, real_mounts))
    assert found == volume.parent / "root/pods/u-1/volume-subpaths/pv/main/2"
    with pytest.raises(SubPathError, match='for volumeMount "v"'):
        prepare(str(volume), "file/below", use, real_mounts)
    real_mounts.unmount_below(str(volume.parent / "root"))


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc", "error SubPath `/etc` must not be an absolute path"),
        ("..", "unable to provision SubPath `..`: must not contain '..'"),
        ("dir/../../host", "unable to provision SubPath `dir/../../host`: must not contain '..'"),
        ("root", PREPARE),
        ("root/etc", PREPARE),
        ("up", PREPARE),
        ("up/host/new/directories", PREPARE),
        ("file/below", PREPARE),
        ("ring", PREPARE),
        ("a\0b", PREPARE),
        ("n" * 256, PREPARE),
        ("dangling", CREATE),
    ],
)
def test_what_leads_elsewhere_is_refused_without_details_NODE_211(
    volume: Path, path: str, why: str
) -> None:
    for name, target in (("root", "/"), ("up", ".."), ("ring", "ring"), ("dangling", "none")):
        (volume / name).symlink_to(target)
    with pytest.raises(SubPathError) as refused:
        prepare(str(volume), path, use_of(volume), NO_MOUNTS)
    assert str(refused.value) == why
    assert os.listdir(volume.parent / "host") == []


def test_what_is_missing_gets_the_mode_of_the_volume_NODE_211(volume: Path) -> None:
    volume.chmod(0o2777)
    path = prepare(str(volume), "new/deep", use_of(volume), NO_MOUNTS)
    assert path == str(volume / "new/deep")
    assert {stat.S_IMODE((volume / p).stat().st_mode) for p in ("new", "new/deep")} == {0o2777}


def test_nothing_passes_for_seen_by_a_runtime_that_ended_NODE_211(
    volume: Path, real_mounts: RealMounts
) -> None:
    mounts = RealMounts(runtime_pid=2**22 + 1)  # beyond all processes
    for _ in range(2):
        given = prepare(str(volume), "dir", use_of(volume), mounts)
        assert given == str(volume / "dir")
    assert mount_points_below(volume.parent / "root") == []


def test_without_mounts_links_are_replaced_NODE_211(volume: Path) -> None:
    (volume / "link").symlink_to("dir")
    assert prepare(str(volume), "link", use_of(volume), NO_MOUNTS) == str(volume / "dir")


@pytest.mark.parametrize("path", ["dir", "file"])
def test_what_is_handed_over_cannot_be_exchanged_NODE_211(
    volume: Path, path: str, real_mounts: RealMounts
) -> None:
    """NODE-211.5."""
    before = (volume / path).stat()
    given = prepare(str(volume), path, use_of(volume), real_mounts)
    assert given == str(target_of(volume))
    (volume / path).rename(volume / "away")
    (volume / path).symlink_to(volume.parent / "host")
    assert os.path.samestat(os.stat(given), before)


def test_the_same_part_is_mounted_once_and_another_anew_NODE_211(
    volume: Path, real_mounts: RealMounts
) -> None:
    """NODE-211.5."""
    for _ in range(2):
        given = prepare(str(volume), "dir", use_of(volume), real_mounts)
    assert mount_points_below(given) == [given]
    prepare(str(volume), "file", use_of(volume), real_mounts)
    assert mount_points_below(given) == [given]
    assert Path(given).read_text() == "inside"


def test_a_runtime_that_does_not_see_the_mount_gets_the_path_NODE_211(
    volume: Path, real_mounts: RealMounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_mounts, "_runtime_sees", lambda target: False)
    assert prepare(str(volume), "dir", use_of(volume), real_mounts) == str(volume / "dir")
    assert mount_points_below(target_of(volume)) == []
