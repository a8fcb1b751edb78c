"""The images in the status of the Node, listed every 30 s (NODE-035).

Upstream: pkg/kubelet/images/image_gc_manager.go: imageCache; nodestatus/setters.go: Images.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from refkubelet.cri.records import ImageRecord
from refkubelet.cri.target import CriCallError
from refkubelet.failures import Complaints
from simclock import Clock

log = logging.getLogger(__name__)

PERIOD_S: Final = 30.0
NAMES_SHOWN: Final = 5  # of each image
ALL: Final = -1


class NodeImages:
    """Keeps the runtime's last list of images; a failed call changes nothing. `most`:
    nodeStatusMaxImages."""

    def __init__(
        self, list_images: Callable[[], Awaitable[Sequence[ImageRecord]]], most: int, clock: Clock
    ) -> None:
        self._list_images = list_images
        self._most = most
        self._clock = clock
        self._shown: list[dict[str, Any]] = []
        self._complaints = Complaints(log, clock)

    def fields(self) -> Mapping[str, Any]:
        """The field `images` of the Node's status; none before the runtime's first answer."""
        return {"images": self._shown} if self._shown else {}

    async def run(self) -> None:
        """Look again every `PERIOD_S` seconds, for ever; the last list counts while a look
        fails."""
        complaint = "cannot list the images for the Node's status"
        while True:
            with self._complaints.guarded(complaint, CriCallError):
                self._shown = images_shown(await self._list_images(), self._most)
            await self._clock.sleep(PERIOD_S)


def images_shown(images: Iterable[ImageRecord], most: int) -> list[dict[str, Any]]:
    """The largest `most` images (-1: all), as JSON: up to five names of each, digests before tags.
    Of equally large images the greater ID comes first."""
    largest = sorted(images, key=lambda image: (image.size_bytes, image.id), reverse=True)
    return [
        {
            "names": [*image.repo_digests, *image.repo_tags][:NAMES_SHOWN],
            "sizeBytes": image.size_bytes,
        }
        for image in (largest if most == ALL else largest[:most])
    ]
