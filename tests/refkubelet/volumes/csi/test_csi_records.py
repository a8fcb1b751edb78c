"""What is on the disk of CSI volumes, and what a crash makes of it (NODE-219.3)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from csi_world import DRIVER, HANDLE, claimed

from refkubelet.model.names import GOING
from refkubelet.volumes.csi.mounts import csi_mount_of_claim
from refkubelet.volumes.csi.names import device_dir, volume_dir
from refkubelet.volumes.csi.records import (
    FILE,
    device_data,
    device_records,
    pod_data,
    pod_records,
    records_of_pods,
    remove_leftovers,
    remove_mount,
    write_record,
)
from refkubelet.volumes.mounting import RealMounts

MOUNT = csi_mount_of_claim(claimed())


def pods_volume(root: Path, pod_uid: str = "uid-web") -> Path:
    directory = volume_dir(str(root), pod_uid, "pv")
    write_record(directory, pod_data(MOUNT, "n1"))
    (Path(directory) / "mount").mkdir()
    return Path(directory)


def test_what_is_written_is_read_NODE_219(tmp_path: Path) -> None:
    directory = pods_volume(tmp_path)
    (found,) = pod_records(str(tmp_path), "uid-web")
    assert (found.driver, found.handle) == (DRIVER, HANDLE)
    assert found.mount == str(directory / "mount")
    assert records_of_pods(str(tmp_path)) == ([found], True)
    data = json.loads((directory / FILE).read_text())
    assert data["attachmentID"].startswith("csi-")
    del data["attachmentID"]
    assert data == {
        "specVolID": "pv",
        "volumeHandle": HANDLE,
        "driverName": DRIVER,
        "nodeName": "n1",
        "volumeLifecycleMode": "Persistent",
    }


def test_staged_volumes_are_found_NODE_219(tmp_path: Path) -> None:
    assert device_records(str(tmp_path)) == []
    directory = device_dir(str(tmp_path), DRIVER, HANDLE)
    write_record(directory, device_data(MOUNT))
    (found,) = device_records(str(tmp_path))
    assert (found.driver, found.handle, found.mount) == (DRIVER, HANDLE, f"{directory}/globalmount")
    remove_mount(found)
    assert not Path(directory).exists()


def test_what_is_left_is_removed_only_if_it_is_empty_NODE_219(tmp_path: Path) -> None:
    directory = pods_volume(tmp_path)
    (directory / "mount" / "file").write_text("kept")
    (found,) = pod_records(str(tmp_path), "uid-web")
    with pytest.raises(OSError, match="not empty"):
        remove_mount(found)
    assert (directory / "mount" / "file").read_text() == "kept"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"driverName": "d"}', "[" * 100_000])
def test_a_spoiled_record_holds_nothing_up_NODE_219(tmp_path: Path, text: str) -> None:
    directory = pods_volume(tmp_path)
    (directory / FILE).write_text(text)
    assert pod_records(str(tmp_path), "uid-web") == []
    remove_leftovers(str(tmp_path), "uid-web")
    assert not directory.parent.exists()


def test_a_spoiled_record_of_a_mount_is_an_error_NODE_219(
    tmp_path: Path, real_mounts: RealMounts
) -> None:
    directory = pods_volume(tmp_path)
    (directory / FILE).write_text("{")
    real_mounts.tmpfs(str(directory / "mount"), 4096)
    with pytest.raises(OSError, match="the record of what is mounted there cannot be read"):
        pod_records(str(tmp_path), "uid-web")
    assert records_of_pods(str(tmp_path)) == ([], False)
    real_mounts.unmount_below(str(directory))


def test_what_is_mounted_stays_NODE_219(tmp_path: Path, real_mounts: RealMounts) -> None:
    directory = pods_volume(tmp_path)
    real_mounts.tmpfs(str(directory / "mount"), 4096)
    (found,) = pod_records(str(tmp_path), "uid-web")
    remove_mount(found)
    assert (directory / FILE).exists()
    real_mounts.unmount_below(str(directory))


def test_directories_that_are_being_removed_are_of_no_pod_NODE_219(tmp_path: Path) -> None:
    pods_volume(tmp_path, f"{GOING}0-uid-web")
    assert records_of_pods(str(tmp_path)) == ([], True)
