"""Chooses the images to remove, and how much must be freed (GC-101..104, EVIC-072). Pure.

`detect` keeps the times of each image from one list to the next; the other functions choose from
its result. Times are monotonic seconds. What must never happen: an image is chosen that a listed
container uses, or that is pinned.
Upstream: pkg/kubelet/images/image_gc_manager.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct

from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.cri.records import ImageRecord

UNITS: Final = ("KiB", "MiB", "GiB", "TiB")


class KnownImage(Struct, frozen=True):
    """An image and its times. `last_used_s` None: not used since it was first listed."""

    id: str
    size_bytes: int
    first_seen_s: float
    last_used_s: float | None = None
    in_use: bool = False
    pinned: bool = False


class ImageGcPolicy(Struct, frozen=True):
    """The usage rule in percent of the image filesystem (GC-101), the ages in seconds (GC-103,
    GC-104; `max_age_s` 0: no age rule)."""

    high_percent: int = 85
    low_percent: int = 80
    min_age_s: float = 120.0
    max_age_s: float = 0.0

    @classmethod
    def of(cls, config: KubeletConfiguration) -> ImageGcPolicy:
        return cls(
            config.image_gc_high_threshold_percent,
            config.image_gc_low_threshold_percent,
            config.image_minimum_gc_age_s,
            config.image_maximum_gc_age_s,
        )

    @property
    def enabled(self) -> bool:
        """A high threshold of 100 % without a maximum age switches it off."""
        return self.high_percent != 100 or self.max_age_s > 0


def detect(
    known: Mapping[str, KnownImage],
    images: Iterable[ImageRecord],
    used_ids: AbstractSet[str],
    now_s: float,
) -> dict[str, KnownImage]:
    """The images by id, updated with a new list: new ones are first seen now, missing ones are
    dropped."""
    images_by_id = {}
    for image in images:
        before = known.get(image.id)
        used = image.id in used_ids
        last_used_s = now_s if used else before.last_used_s if before else None
        first_seen_s = before.first_seen_s if before else now_s
        images_by_id[image.id] = KnownImage(
            image.id,
            image.size_bytes,
            first_seen_s,
            last_used_s=last_used_s,
            in_use=used,
            pinned=image.pinned,
        )
    return images_by_id


def unused(known: Mapping[str, KnownImage]) -> list[KnownImage]:
    """The images that are neither used nor pinned, least recently used first; never used ones come
    first, ties by first detection (GC-102, GC-103)."""
    return sorted(
        (image for image in known.values() if not image.in_use and not image.pinned),
        key=lambda i: (-1.0 if i.last_used_s is None else i.last_used_s, i.first_seen_s),
    )


def images_to_remove(
    known: Mapping[str, KnownImage], now_s: float, min_age_s: float
) -> list[KnownImage]:
    """Unused images first seen at least `min_age_s` ago, in the order of `unused` (EVIC-072)."""
    return [image for image in unused(known) if now_s - image.first_seen_s >= min_age_s]


def images_too_old(
    known: Mapping[str, KnownImage], now_s: float, max_age_s: float, began_s: float
) -> list[KnownImage]:
    """Images not used for longer than `max_age_s`; none if it is 0, or while the kubelet, which
    began at `began_s`, has not run that long itself (GC-104)."""
    if max_age_s <= 0 or now_s - began_s <= max_age_s:
        return []
    return [
        image
        for image in unused(known)
        if image.last_used_s is None or now_s - image.last_used_s > max_age_s
    ]


def used_percent(capacity_bytes: int, available_bytes: int) -> int:
    """The used percentage of a filesystem; the available share is rounded down (GC-101).

    >>> used_percent(1000, 155), used_percent(1000, 2000)
    (85, 0)
    """
    return 100 - min(available_bytes, capacity_bytes) * 100 // capacity_bytes


def bytes_to_free(capacity_bytes: int, available_bytes: int, policy: ImageGcPolicy) -> int:
    """The bytes to free by the usage rule; 0 below the high threshold (GC-101).

    >>> bytes_to_free(1000, 100, ImageGcPolicy()), bytes_to_free(1000, 500, ImageGcPolicy())
    (100, 0)
    """
    if used_percent(capacity_bytes, available_bytes) < policy.high_percent:
        return 0
    return capacity_bytes * (100 - policy.low_percent) // 100 - available_bytes


def format_size(size_bytes: int) -> str:
    """A size with one decimal in the largest fitting unit; bytes without decimals (GC-105).

    >>> format_size(10 * 1024**3), format_size(1536), format_size(5), format_size(1024**5)
    ('10.0 GiB', '1.5 KiB', '5 B', '1024.0 TiB')
    """
    if size_bytes < 1024:
        return f"{size_bytes} B"
    power = min((size_bytes.bit_length() - 1) // 10, len(UNITS))
    return f"{size_bytes / 1024**power:.1f} {UNITS[power - 1]}"
