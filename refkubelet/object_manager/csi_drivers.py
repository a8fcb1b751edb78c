"""CSIDriver objects: what the drivers of the cluster want of kubelets (NODE-217, NODE-218).

All of them are followed by one watch, which begins with the first volume of a driver.
Upstream: the informer in pkg/kubelet/volume_host.go: WaitForCacheSync, CSIDriverLister.
"""

from __future__ import annotations

import asyncio
from typing import Final

from lightkube.models.storage_v1 import CSIDriver

from refkubelet.api.client import ApiClient, ApiError
from refkubelet.api.kinds import CSI_DRIVERS
from refkubelet.api.reflector import Reflector
from simclock import Clock, Rng

SYNC_S: Final = 10.0
"""How long a volume waits for the first list; then it is tried again."""
NOT_SYNCED: Final = "timed out waiting for the CSIDriver objects of the API server"


class CsiDriverObjects:
    """The objects by name."""

    def __init__(self, api: ApiClient, clock: Clock, rng: Rng) -> None:
        self._objects: dict[str, CSIDriver] = {}
        self._wanted = asyncio.Event()
        self._synced = asyncio.Event()
        self._reflector = Reflector(api, CSI_DRIVERS, self._take, clock=clock, rng=rng)

    async def run(self) -> None:
        """Follow the objects, once one is wanted, until cancelled."""
        await self._wanted.wait()
        await self._reflector.run()

    def known(self, name: str) -> CSIDriver | None:
        """The object as it is known; None: there is none, or it was never wanted."""
        return self._objects.get(name)

    async def get(self, name: str) -> CSIDriver | None:
        """The object; None: there is none. Raises `ApiError` if the server does not answer."""
        self._wanted.set()
        try:
            async with asyncio.timeout(SYNC_S):
                await self._synced.wait()
        except TimeoutError:
            raise ApiError(0, "NotSynced", NOT_SYNCED) from None
        return self._objects.get(name)

    async def _take(self, drivers: tuple[CSIDriver, ...]) -> None:
        self._objects = {d.metadata.name or "": d for d in drivers if d.metadata is not None}
        self._synced.set()
