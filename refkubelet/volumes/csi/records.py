"""What is on the disk of CSI volumes: for each that a pod has, and for each that is staged, a
directory with `vol_data.json`, which says of which driver it is (NODE-219.3).

What must never happen here: something is removed that is mounted, or that has content.
Upstream: pkg/volume/csi: saveVolumeData, loadVolumeData, removeMountDir.
"""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from refkubelet.checkpoints.atomic_file import read_json, write_whole
from refkubelet.checkpoints.content import CheckpointError
from refkubelet.host.directories import is_mount_point, make_directory, mount_points_below
from refkubelet.host.untrusted_files import directories_in
from refkubelet.model.names import GOING, pod_dir
from refkubelet.volumes.csi.mounts import CsiMount
from refkubelet.volumes.csi.names import (
    CSI_MOUNTS,
    attachment_name,
    devices_dir,
    staging_path,
    target_path,
    unique_volume_name,
)

log = logging.getLogger(__name__)

FILE: Final = "vol_data.json"


class VolumeRecord(Struct, frozen=True):
    """A volume that was asked for. `directory`: where the record is; `mount`: where the volume is
    mounted, in that directory."""

    driver: str
    handle: str
    directory: str
    mount: str

    @property
    def unique_name(self) -> str:
        """Its name in the Node's volumesInUse."""
        return unique_volume_name(self.driver, self.handle)


def pod_data(mount: CsiMount, node_name: str) -> dict[str, str]:
    """The record of a pod's volume."""
    return {
        "specVolID": mount.name,
        "volumeHandle": mount.handle,
        "driverName": mount.driver,
        "nodeName": node_name,
        "volumeLifecycleMode": mount.mode,
        "attachmentID": attachment_name(mount.handle, mount.driver, node_name),
    }


def device_data(mount: CsiMount) -> dict[str, str]:
    """The record of a staged volume."""
    return {"volumeHandle": mount.handle, "driverName": mount.driver}


def write_record(directory: str, data: Mapping[str, str]) -> None:
    """Write the record, and the directory if it is missing. Raises OSError."""
    make_directory(directory)
    write_whole(Path(directory) / FILE, json.dumps(data).encode() + b"\n")


def has_volumes(root_dir: str, pod_uid: str) -> bool:
    """Whether there is a directory for volumes of drivers in the pod's."""
    return os.path.isdir(os.path.join(pod_dir(root_dir, pod_uid), CSI_MOUNTS))


def pod_records(root_dir: str, pod_uid: str) -> list[VolumeRecord]:
    """The volumes that the pod has. Raises OSError for a record that cannot be read beside
    something that is mounted."""
    return list(_records(_places(root_dir, pod_uid)))


def remove_leftovers(root_dir: str, pod_uid: str) -> None:
    """Remove the empty directories of the pod's volumes, with records that could not be read.
    Raises OSError for one with anything else in it."""
    for directory, mount in _places(root_dir, pod_uid):
        remove_mount(VolumeRecord("", "", directory, mount))
    with suppress(FileNotFoundError):
        os.rmdir(os.path.join(pod_dir(root_dir, pod_uid), CSI_MOUNTS))


def records_of_pods(root_dir: str) -> tuple[list[VolumeRecord], bool]:
    """The volumes of all pods that have a directory, and whether these are all: something that is
    mounted has no record that can be read, and may be any volume."""
    records: list[VolumeRecord] = []
    all_read = True
    for directory in directories_in(os.path.join(root_dir, "pods")):
        name = os.path.basename(directory)
        if name.startswith(GOING):
            continue
        try:
            records += pod_records(root_dir, name)
        except OSError as error:
            all_read = False
            log.warning("%s", error)
    return records, all_read


def device_records(root_dir: str) -> list[VolumeRecord]:
    """The volumes that are staged; what cannot be read is left out."""
    records: list[VolumeRecord] = []
    for driver in directories_in(devices_dir(root_dir)):
        for directory in directories_in(driver):
            try:
                records += _records([(directory, staging_path(directory))])
            except OSError as error:
                log.warning("%s", error)
    return records


def remove_mount(record: VolumeRecord) -> None:
    """Remove the empty directories of a volume and its record; nothing if it is still mounted.
    Raises OSError."""
    if is_mount_point(record.mount):
        return
    with suppress(FileNotFoundError):
        os.rmdir(record.mount)
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(record.directory, FILE))
    with suppress(FileNotFoundError):
        os.rmdir(record.directory)


def _places(root_dir: str, pod_uid: str) -> list[tuple[str, str]]:
    """The directories of the pod's volumes, and where in them each is mounted."""
    above = os.path.join(pod_dir(root_dir, pod_uid), CSI_MOUNTS)
    return [(directory, target_path(directory)) for directory in directories_in(above)]


def _records(places: list[tuple[str, str]]) -> Iterator[VolumeRecord]:
    """The records in these directories. Raises OSError as `pod_records`."""
    for directory, mount in places:
        path = os.path.join(directory, FILE)
        try:
            data = read_json(Path(path))
            yield VolumeRecord(str(data["driverName"]), str(data["volumeHandle"]), directory, mount)
        except (FileNotFoundError, CheckpointError, ValueError, KeyError, TypeError) as error:
            if mount_points_below(mount):
                text = f"the record of what is mounted there cannot be read: {error!r}"
                raise OSError(errno.EBUSY, text, path) from None
