"""Garbage collection of images (GC-101..106, EVIC-072); `choice` decides what is removed.

Every 5 minutes the collector lists images and their users, and removes images by age and by usage
of the image filesystem; under disk pressure the eviction manager lets it remove all unused images.
The times of images are kept in memory only (GC-103). What must never happen: an image that cannot
be removed stops the removal of others; two runs at a time, which would count freed space twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from kubeobjects.golang.duration import format_duration
from kubeobjects.golang.errors import aggregate
from kubeobjects.machine import FilesystemStats
from refkubelet.cri.client import CriClient
from refkubelet.cri.target import CriCallError
from refkubelet.failures import log_failure
from refkubelet.host.machine import Machine
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.images.choice import (
    ImageGcPolicy,
    KnownImage,
    bytes_to_free,
    detect,
    format_size,
    images_to_remove,
    images_too_old,
    unused,
    used_percent,
)
from refkubelet.telemetry.spans import IMAGES

log = logging.getLogger(__name__)

IMAGE_GC_PERIOD_S: Final = 300.0
UNLIMITED: Final = 2**63 - 1
AfterFreeing = Callable[[Sequence[str], int], None]
FAILURES_TOLD: Final = 2  # GC-105: the first failure in a row is only logged


def _nothing(kept: Sequence[str], began_ns: int) -> None:
    """The default of `AfterFreeing`: do nothing."""


class ImageGcError(Exception):
    """Images could not be removed, or not enough of them; the text says why."""


EXPECTED: Final = (CriCallError, ImageGcError, OSError)  # failures that are told in one line


class ImageGC:
    """The image collector; make it when the kubelet starts, whose age it needs (GC-104). `removed`:
    the number of removed images by reason, `age` or `space` (GC-106)."""

    def __init__(
        self,
        client: CriClient,
        machine: Machine,
        deps: RuntimeDeps,
        policy: ImageGcPolicy,
        after_freeing: AfterFreeing = _nothing,
    ) -> None:
        """`after_freeing` is called after a run with the ids of the images that were kept, and the
        begin of the run."""
        self._client = client
        self._machine = machine
        self._clock = deps.clock
        self._spans = deps.measures.spans
        self._events = deps.events
        self._policy = policy
        self._after_freeing = after_freeing
        self._began_s = deps.clock.monotonic_s()
        self._known: dict[str, KnownImage] = {}
        self._failures = 0
        self.removed: Counter[str] = Counter()
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Collect at once and then every 5 minutes, for ever."""
        while True:
            await self.collect()
            await self._clock.sleep(IMAGE_GC_PERIOD_S)

    async def collect(self) -> None:
        """Do one run. A failure is logged, and from the second in a row on recorded as a node event
        (GC-105); it raises nothing."""
        try:
            await self.garbage_collect()
        except Exception as error:
            log_failure(log, "image garbage collection failed", error, *EXPECTED)
            self._failures += 1
            if self._failures >= FAILURES_TOLD:
                self._events.node_event("Warning", "ImageGCFailed", str(error))
        else:
            self._failures = 0

    async def garbage_collect(self) -> None:
        """List the images, then remove by age, then by usage (GC-101). Raises `CriCallError`,
        `ImageGcError`, and OSError if the filesystem cannot be read."""
        async with self._turn:
            with self._spans.span("Images/GarbageCollect", scope=IMAGES):
                await self._detect()
                if not self._policy.enabled:
                    return
                began_ns = self._clock.wall_ns()
                await self._free_by_age()
                await self._free_by_usage(await self._image_filesystem(), began_ns)

    async def delete_unused_images(self) -> None:
        """Remove every unused image that is old enough (EVIC-072). Raises `CriCallError`, and
        `ImageGcError` if an image cannot be removed."""
        async with self._turn:
            await self._detect()
            await self._free(None, self._clock.wall_ns())

    async def _detect(self) -> None:
        """List the images and find the used ones: dead containers and image volumes use theirs,
        too (GC-102). A container that vanishes meanwhile fails the run (GC-106)."""
        used: set[str] = set()
        for container in await self._client.list_containers():
            used.add(container.image_id)
            record = await self._client.container_status(container.id)
            used.update(record.mounted_images)
        images = await self._client.list_images()
        self._known = detect(self._known, images, used, self._clock.monotonic_s())

    async def _image_filesystem(self) -> FilesystemStats:
        filesystems = (await self._client.image_fs_info()).images
        if not filesystems:
            raise ImageGcError("the runtime names no image filesystem")
        stats = self._machine.filesystem(filesystems[0].mountpoint)
        if stats.capacity_bytes == 0:
            message = "invalid capacity 0 on image filesystem"
            self._events.node_event("Warning", "InvalidDiskCapacity", message)
            raise ImageGcError(message)
        return stats

    async def _free_by_age(self) -> None:
        age_s = self._policy.max_age_s
        now_s = self._clock.monotonic_s()
        errors = []
        for image in images_too_old(self._known, now_s, age_s, self._began_s):
            errors += await self._remove(image, "age")
        if errors:
            raise ImageGcError(
                f"wanted to free images older than {format_duration(age_s)}, encountered errors in "
                f"image deletion: {aggregate(errors)}"
            )

    async def _free_by_usage(self, disk: FilesystemStats, began_ns: int) -> None:
        """Remove unused images if the filesystem is fuller than the high threshold. Raises
        `ImageGcError` if that does not free enough, with a node event."""
        excess_bytes = bytes_to_free(disk.capacity_bytes, disk.available_bytes, self._policy)
        if excess_bytes <= 0:
            return
        freed = await self._free(excess_bytes, began_ns)
        if freed >= excess_bytes:
            return
        percent = used_percent(disk.capacity_bytes, disk.available_bytes)
        message = (
            f"Insufficient free disk space on the node's image filesystem ({percent}% of "
            f"{format_size(disk.capacity_bytes)} used). Failed to free sufficient space by "
            f"deleting unused images (freed {freed} bytes). Investigate disk usage, as it could "
            "be used by active images, logs, volumes, or other data."
        )
        self._events.node_event("Warning", "FreeDiskSpaceFailed", message)
        raise ImageGcError(message)

    async def _free(self, wanted_bytes: int | None, began_ns: int) -> int:
        """Remove unused images in order until `wanted_bytes` are freed (None: all of them); returns
        the freed bytes. Young images stay (GC-103); after a failure the next image follows
        (GC-106)."""
        now_s = self._clock.monotonic_s()
        freed, errors, remaining_ids = 0, list[str](), list[str]()
        for image in unused(self._known):
            failed = [] if self._is_young(image, now_s) else await self._remove(image, "space")
            if image.id in self._known:
                errors += failed
                remaining_ids.append(image.id)
                continue
            freed += image.size_bytes
            if wanted_bytes is not None and freed >= wanted_bytes:
                break
        if errors:
            goal = UNLIMITED if wanted_bytes is None else wanted_bytes
            raise ImageGcError(
                f"wanted to free {goal} bytes, but freed {freed} bytes space with errors in "
                f"image deletion: {aggregate(errors)}"
            )
        self._after_freeing(remaining_ids, began_ns)
        return freed

    def _is_young(self, image: KnownImage, now_s: float) -> bool:
        return not images_to_remove({image.id: image}, now_s, self._policy.min_age_s)

    async def _remove(self, image: KnownImage, reason: str) -> list[str]:
        """Remove one image; returns its error, if any."""
        try:
            await self._client.remove_image(image.id)
        except Exception as error:  # the other images are removed all the same
            if not isinstance(error, CriCallError):
                log_failure(log, f"cannot remove image {image.id}", error)
            return [str(error) or repr(error)]
        log.info("removed image %s, %s", image.id, format_size(image.size_bytes))
        self._known.pop(image.id, None)
        self.removed[reason] += 1
        return []
