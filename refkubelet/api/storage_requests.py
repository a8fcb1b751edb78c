"""The requests about volumes: claims, persistent volumes, CSI drivers, attachments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from typing import Any

from lightkube.models.core_v1 import PersistentVolume, PersistentVolumeClaim
from lightkube.models.storage_v1 import CSIDriver, VolumeAttachment

from refkubelet.api import paths
from refkubelet.api.answers import (
    decode_claim,
    decode_csi_driver,
    decode_volume,
    decode_volume_attachment,
    every,
    one,
    watch_event,
)
from refkubelet.api.client import ObjectList, WatchEvent


class StorageRequests(ABC):
    """A part of `LightkubeApiClient`, which sends them. Every method raises `ApiError`."""

    @abstractmethod
    async def _json(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]: ...

    @abstractmethod
    def _watch(
        self, path: str, params: Mapping[str, str]
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]: ...

    async def get_claim(self, namespace: str, name: str) -> PersistentVolumeClaim:
        path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"
        return one(decode_claim, await self._json("GET", path))

    async def patch_claim_status(
        self, namespace: str, name: str, patch: Mapping[str, Any]
    ) -> PersistentVolumeClaim:
        path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}/status"
        return one(decode_claim, await self._json("PATCH", path, body=patch))

    async def get_volume(self, name: str) -> PersistentVolume:
        return one(decode_volume, await self._json("GET", f"/api/v1/persistentvolumes/{name}"))

    async def get_volume_attachment(self, name: str) -> VolumeAttachment:
        path = f"{paths.STORAGE}/volumeattachments/{name}"
        return one(decode_volume_attachment, await self._json("GET", path))

    async def list_csi_drivers(self) -> ObjectList[CSIDriver]:
        return every(decode_csi_driver, await self._json("GET", paths.CSI_DRIVERS))

    async def watch_csi_drivers(
        self, resource_version: str
    ) -> AsyncIterator[WatchEvent[CSIDriver]]:
        async for kind, value in self._watch(paths.CSI_DRIVERS, paths.watching(resource_version)):
            yield watch_event(decode_csi_driver, kind, value)

    async def get_csi_node(self, name: str) -> dict[str, Any]:
        return await self._json("GET", f"{paths.CSI_NODES}/{name}")

    async def create_csi_node(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self._json("POST", paths.CSI_NODES, body=body)

    async def replace_csi_node(self, body: Mapping[str, Any]) -> dict[str, Any]:
        path = f"{paths.CSI_NODES}/{body['metadata']['name']}"
        return await self._json("PUT", path, body=body)

    async def delete_csi_node(self, name: str) -> None:
        await self._json("DELETE", f"{paths.CSI_NODES}/{name}")
