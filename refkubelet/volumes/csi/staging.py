"""Stages volumes: once for the node, before the first pod's and until after the last one's
(NODE-217.3, NODE-219.2).

What must never happen here: a volume is unstaged that a pod has; two calls for one volume at the
same time.
Upstream: pkg/volume/csi/csi_attacher.go: MountDevice, UnmountDevice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Final
from weakref import WeakValueDictionary

from kubecri.csi import api_pb2 as api

from refkubelet.failures import Complaints, end_tasks
from refkubelet.host.directories import make_directory
from refkubelet.operation_backoff import failed
from refkubelet.volumes.csi.attachments import VolumeUse
from refkubelet.volumes.csi.client import CsiClient, CsiError
from refkubelet.volumes.csi.drivers import CsiDrivers, NoDriver
from refkubelet.volumes.csi.mounts import CsiMount
from refkubelet.volumes.csi.names import device_dir, staging_path
from refkubelet.volumes.csi.records import (
    VolumeRecord,
    device_data,
    device_records,
    records_of_pods,
    remove_mount,
    write_record,
)
from refkubelet.volumes.csi.requests import STAGE_UNSTAGE_VOLUME, volume_capability
from refkubelet.volumes.mount_errors import MOUNT_DEVICE, MountFailed
from simclock import Clock

log = logging.getLogger(__name__)

EXPECTED: Final = (CsiError, NoDriver, OSError)


class Staging:
    """The staged volumes."""

    def __init__(self, root_dir: str, drivers: CsiDrivers, clock: Clock, *, use: VolumeUse) -> None:
        self._root_dir = root_dir
        self._drivers = drivers
        self._clock = clock
        self._use = use
        self._locks = WeakValueDictionary[str, asyncio.Lock]()  # those that somebody holds
        self._staged: set[str] = set()
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._complaints = Complaints(log, clock)

    def is_staged(self, name: str) -> bool:
        """Whether this kubelet has staged the volume of that unique name."""
        return name in self._staged

    def lock(self, name: str) -> asyncio.Lock:
        """Held by all that is done with the volume of that unique name."""
        lock = self._locks.get(name)
        if lock is None:
            lock = self._locks[name] = asyncio.Lock()
        return lock

    async def stage(
        self,
        mount: CsiMount,
        client: CsiClient,
        *,
        capabilities: Collection[str],
        group: int | None,
        publish_context: Mapping[str, str],
        secrets: Mapping[str, str],
    ) -> str:
        """Stage the volume, if that is not done yet; returns its staging path. Raises
        `MountFailed`, OSError."""
        directory = device_dir(self._root_dir, mount.driver, mount.handle)
        record = VolumeRecord(mount.driver, mount.handle, directory, staging_path(directory))
        if mount.unique_name in self._staged:
            return record.mount
        make_directory(record.mount)
        write_record(directory, device_data(mount))
        request = api.NodeStageVolumeRequest(
            volume_id=mount.handle,
            publish_context=publish_context,
            staging_target_path=record.mount,
            volume_capability=volume_capability(mount, capabilities, group),
            secrets=secrets,
            volume_context=mount.attributes,
        )
        try:
            await client.call("NodeStageVolume", request)
        except CsiError as error:
            if error.is_final:
                with suppress(OSError):
                    remove_mount(record)
            raise MountFailed(MOUNT_DEVICE, str(error)) from None
        self._staged.add(mount.unique_name)
        return record.mount

    def end_unused(self) -> None:
        """Look at what is on the disk, and begin to unstage what no pod wants or has."""
        of_pods, all_read = records_of_pods(self._root_dir)
        had = {record.unique_name for record in of_pods}
        staged = device_records(self._root_dir)
        self._use.keep(had | {record.unique_name for record in staged})
        for record in staged:
            name = record.unique_name
            if name in had or name in self._ending or self._use.is_wanted(name):
                continue
            if not all_read and name not in self._staged:
                continue  # a pod of an earlier kubelet may have it
            task = asyncio.create_task(self._end(record), name=f"end of volume {name}")
            self._ending[name] = task

    async def stop(self) -> None:
        """End all tasks."""
        await end_tasks(self._ending.values())

    async def _end(self, record: VolumeRecord) -> None:
        """Unstage the volume: tried again until that is done, or a pod wants it."""
        name, retry = record.unique_name, None
        try:
            while not await self._ended(record):
                retry = failed(retry, self._clock.monotonic_s())
                await self._clock.sleep(retry.delay_s)
        finally:
            del self._ending[name]
        self.end_unused()

    async def _ended(self, record: VolumeRecord) -> bool:
        """Try to unstage the volume; whether that was done, or a pod wants it."""
        name, complaint = record.unique_name, f"volume {record.unique_name} stays staged"
        async with self.lock(name):
            if self._use.is_wanted(name):
                return True
            try:
                await self._unstage(record)
            except Exception as error:
                self._complaints.failed(complaint, error, *EXPECTED)
                return False
        self._complaints.over(complaint)
        return True

    async def _unstage(self, record: VolumeRecord) -> None:
        """Raises one of `EXPECTED`."""
        client = self._drivers.client(record.driver)
        self._staged.discard(record.unique_name)
        if STAGE_UNSTAGE_VOLUME in await client.capabilities():
            request = api.NodeUnstageVolumeRequest(
                volume_id=record.handle, staging_target_path=record.mount
            )
            await client.call("NodeUnstageVolume", request)
        remove_mount(record)
