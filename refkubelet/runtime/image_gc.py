"""Garbage collection of images: GC-101..106, EVIC-072. `image_choice` decides, this carries out.

Every 5 minutes the collector looks which images there are and which are used, and then removes by
age and by usage of the image filesystem; under disk pressure the eviction manager has all unused
images removed. The times of images live in memory only (GC-103). What must never happen: one image
that cannot be removed keeps the others; two runs at a time, which would count freed space twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from refkubelet.failures import log_failure
from refkubelet.node.machine import FilesystemStats, Machine
from refkubelet.runtime.client import CriCallError, CriClient
from refkubelet.runtime.image_choice import (
    ImageGcPolicy,
    KnownImage,
    bytes_to_free,
    detect,
    format_size,
    images_to_remove,
    images_too_old,
    used_percent,
)
from refkubelet.runtime.options import RuntimeDeps

log = logging.getLogger(__name__)

IMAGE_GC_PERIOD_S: Final = 300.0
FAILURES_TOLD: Final = 2  # GC-105: the first failure in a row is only logged


class ImageGcError(Exception):
    """Images could not be removed, or too few; the text says why."""


class ImageGC:
    """One per kubelet; the age of the kubelet counts from its making (GC-104)."""

    def __init__(
        self, client: CriClient, machine: Machine, deps: RuntimeDeps, policy: ImageGcPolicy
    ) -> None:
        self._client = client
        self._machine = machine
        self._clock = deps.clock
        self._events = deps.events
        self._policy = policy
        self._began_s = deps.clock.monotonic_s()
        self._known: dict[str, KnownImage] = {}
        self._failures = 0
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Collect for ever: at once, then every 5 minutes."""
        while True:
            await self.collect()
            await self._clock.sleep(IMAGE_GC_PERIOD_S)

    async def collect(self) -> None:
        """One run. A failure is logged, and from the second in a row an event on the node (GC-105);
        never an exception."""
        try:
            await self.garbage_collect()
        except Exception as error:
            what = "image garbage collection failed"
            log_failure(log, what, error, CriCallError, ImageGcError, OSError)
            self._failures += 1
            if self._failures >= FAILURES_TOLD:
                self._events.node_event("Warning", "ImageGCFailed", str(error))
        else:
            self._failures = 0

    async def garbage_collect(self) -> None:
        """Look, then the age rule, then the usage rule (GC-101).

        Raises `CriCallError`, `ImageGcError`, and OSError when the filesystem cannot be read.
        """
        async with self._turn:
            await self._detect()
            if not self._policy.enabled:
                return
            now_s = self._clock.monotonic_s()
            old = images_too_old(self._known, now_s, self._policy.max_age_s, self._began_s)
            _, errors = await self._remove(old)
            _raise(errors)
            await self._free_by_usage(await self._image_filesystem())

    async def delete_unused_images(self) -> None:
        """Remove every unused image that is old enough (EVIC-072). Raises `CriCallError`, and
        `ImageGcError` for images that stay although they should go."""
        async with self._turn:
            await self._detect()
            _, errors = await self._remove(self._candidates())
            _raise(errors)

    async def _detect(self) -> None:
        """GC-102: dead containers use their image, too, and so do mounts of images. A container
        that vanishes meanwhile fails the run, and the next one is right (GC-106)."""
        used: set[str] = set()
        for container in await self._client.list_containers():
            used.add(container.image_id)
            record = await self._client.container_status(container.id)
            used.update(record.mounted_images)
        images = await self._client.list_images()
        self._known = detect(self._known, images, used, self._clock.monotonic_s())

    def _candidates(self) -> list[KnownImage]:
        return images_to_remove(self._known, self._clock.monotonic_s(), self._policy.min_age_s)

    async def _image_filesystem(self) -> FilesystemStats:
        filesystems = await self._client.image_fs_info()
        if not filesystems:
            raise ImageGcError("the runtime names no image filesystem")
        stats = self._machine.filesystem(filesystems[0].mountpoint)
        if stats.capacity_bytes == 0:
            message = "invalid capacity 0 on image filesystem"
            self._events.node_event("Warning", "InvalidDiskCapacity", message)
            raise ImageGcError(message)
        return stats

    async def _free_by_usage(self, disk: FilesystemStats) -> None:
        wanted = bytes_to_free(disk.capacity_bytes, disk.available_bytes, self._policy)
        if wanted <= 0:
            return
        freed, errors = await self._remove(self._candidates(), enough_bytes=wanted)
        _raise(errors)
        if freed >= wanted:
            return
        percent = used_percent(disk.capacity_bytes, disk.available_bytes)
        self._events.node_event(
            "Warning",
            "FreeDiskSpaceFailed",
            f"Insufficient free disk space on the node's image filesystem ({percent}% of "
            f"{format_size(disk.capacity_bytes)} used). Failed to free sufficient space by "
            f"deleting unused images (freed {freed} bytes). Investigate disk usage, as it could "
            "be used by active images, logs, volumes, or other data.",
        )
        raise ImageGcError(f"wanted to free {wanted} bytes of images, freed {freed}")

    async def _remove(
        self, images: Iterable[KnownImage], enough_bytes: int | None = None
    ) -> tuple[int, list[str]]:
        """Remove in order until enough is freed (None: all); the freed bytes and the errors."""
        freed, errors = 0, []
        for image in images:
            if enough_bytes is not None and freed >= enough_bytes:
                break
            try:
                await self._client.remove_image(image.id)
            except CriCallError as error:
                errors.append(f"cannot remove image {image.id}: {error.text}")
                continue
            log.info("removed image %s, %s", image.id, format_size(image.size_bytes))
            self._known.pop(image.id, None)
            freed += image.size_bytes
        return freed, errors


def _raise(errors: list[str]) -> None:
    if errors:
        raise ImageGcError("; ".join(errors))
