"""What the volumes of pods ask of those that drivers make (`csi.volumes.CsiVolumes`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lightkube.models.core_v1 import Volume

from refkubelet.host.disk_use import VolumeSize
from refkubelet.model.objects import Pod
from refkubelet.volumes.claims import ClaimedVolume, VolumeOnNode


class DriverVolumes(Protocol):
    """The volumes of drivers."""

    def is_republished(self, driver: str) -> bool:
        """Whether volumes of that driver are set up again at each sync of the pod."""

    async def set_up(
        self, pod: Pod, claimed: ClaimedVolume, check: Callable[[], None]
    ) -> VolumeOnNode:
        """Make the volume of a claim ready; `check` may refuse it. Raises `NotAttached`,
        `MountFailed`, `ApiError`, OSError."""

    async def set_up_inline(self, pod: Pod, volume: Volume) -> VolumeOnNode:
        """Make an inline volume ready. Raises `MountFailed`, `ApiError`, OSError."""

    def expand(self, pod: Pod, claimed: ClaimedVolume) -> None:
        """Start to make the mounted volume of a claim larger, if it shall be."""

    async def measure(self, place: VolumeOnNode) -> VolumeSize | None:
        """What the driver says of the volume's size; None: it cannot tell. Raises
        `NotMeasured`."""

    async def tear_down(self, pod_uid: str) -> None:
        """End the volumes that the pod has. Raises OSError."""

    def is_left(self, pod_uid: str) -> bool:
        """Whether a pod that is gone still has some; these are being ended. Raises OSError."""
