"""The gRPC services of a fake storage driver, for a server that the caller starts.

In real time only: grpc runs threads of its own.
"""

from __future__ import annotations

from typing import Any

from kubecri.csi import api_pb2_grpc as services

from fakecri.csi.driver import FakeCsiDriver
from fakecri.errors import CriError


def add_driver(driver: FakeCsiDriver, server: Any) -> None:
    """Let the server answer for the driver."""
    services.add_IdentityServicer_to_server(_Identity(driver), server)
    services.add_NodeServicer_to_server(_Node(driver), server)


async def _answer(driver: FakeCsiDriver, method: str, request: Any, context: Any) -> Any:
    try:
        return await driver.call(method, request, timeout_s=context.time_remaining())
    except CriError as error:
        await context.abort(error.code(), error.details())


class _Identity(services.IdentityServicer):
    def __init__(self, driver: FakeCsiDriver) -> None:
        self._driver = driver

    async def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return await _answer(self._driver, "GetPluginInfo", request, context)


class _Node(services.NodeServicer):
    def __init__(self, driver: FakeCsiDriver) -> None:
        self._driver = driver

    async def NodeStageVolume(self, request: Any, context: Any) -> Any:
        return await _answer(self._driver, "NodeStageVolume", request, context)

    async def NodeUnstageVolume(self, request: Any, context: Any) -> Any:
        return await _answer(self._driver, "NodeUnstageVolume", request, context)

    async def NodePublishVolume(self, request: Any, context: Any) -> Any:
        return await _answer(self._driver, "NodePublishVolume", request, context)

    async def NodeUnpublishVolume(self, request: Any, context: Any) -> Any:
        return await _answer(self._driver, "NodeUnpublishVolume", request, context)

    async def NodeGetVolumeStats(self, request: Any, context: Any) -> Any:
        return await _answer(self._driver, "NodeGetVolumeStats", request, context)

    async def NodeExpandVolume(self, request: Any, context: Any) -> Any:
        return await _answer(self._driver, "NodeExpandVolume", request, context)

    async def NodeGetCapabilities(self, request: Any, context: Any) -> Any:
        return await _answer(self._driver, "NodeGetCapabilities", request, context)

    async def NodeGetInfo(self, request: Any, context: Any) -> Any:
        return await _answer(self._driver, "NodeGetInfo", request, context)
