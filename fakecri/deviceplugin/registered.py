"""Plug-ins that a kubelet finds by their sockets below plugins_registry, in one process or served.

A plug-in tells what it is (GetInfo) and is told how its registration went; of a device plugin the
device service is on the same socket, of a storage driver the CSI services. `InProcessRegistry` is
for virtual time: there the sockets are files that nobody listens at. What must never happen here: a
socket is left behind.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from kubecri.deviceplugin import api_pb2_grpc as device_services
from kubecri.pluginregistration import api_pb2 as api
from kubecri.pluginregistration import api_pb2_grpc as services

from fakecri.csi.driver import FakeCsiDriver
from fakecri.csi.in_process import InProcessCsi
from fakecri.csi.serving import add_driver
from fakecri.deviceplugin.in_process import InProcessPlugins
from fakecri.deviceplugin.plugin import FakeDevicePlugin
from fakecri.deviceplugin.serving import DeviceService, passed
from fakecri.errors import CriError, status_code, unknown


@dataclass(slots=True)
class RegisteredPlugin:
    """What a plug-in tells; change it at any time. `device`: of a device plugin; `csi`: of a
    storage driver. `broken`: GetInfo fails with that text; `slow_s`: how long GetInfo takes.
    `told`: every status that a kubelet sent (registered, error); `asked`: how often GetInfo was
    called."""

    type: str
    name: str
    versions: tuple[str, ...] = ("v1beta1",)
    endpoint: str = ""
    device: FakeDevicePlugin | None = None
    csi: FakeCsiDriver | None = None
    broken: str = ""
    slow_s: float = 0.0
    asked: int = 0
    told: list[tuple[bool, str]] = field(default_factory=list)

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        """Answer a call of the Registration service. Raises CriError."""
        if method == "NotifyRegistrationStatus":
            self.told.append((request.plugin_registered, request.error))
            return api.RegistrationStatusResponse()
        self.asked += 1
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.sleep(self.slow_s)
        except TimeoutError:
            raise CriError(status_code("DEADLINE_EXCEEDED"), "Deadline Exceeded") from None
        if self.broken:
            raise unknown(self.broken)
        if self.csi is not None and self.csi.is_down:
            raise CriError(status_code("UNAVAILABLE"), "connection refused")
        return api.PluginInfo(
            type=self.type,
            name=self.name,
            endpoint=self.endpoint,
            supported_versions=self.versions,
        )


def csi_plugin(
    driver: FakeCsiDriver, *, name: str = "", versions: tuple[str, ...] = ("1.0.0",)
) -> RegisteredPlugin:
    """The plug-in of a storage driver, which says that its name is the driver's, or `name`."""
    return RegisteredPlugin("CSIPlugin", name or driver.name, versions=versions, csi=driver)


class InProcessRegistry:
    """The sockets below plugins_registry, in virtual time. `devices`: where a kubelet finds the
    device service of those that are device plugins; `csi`: where it finds storage drivers."""

    def __init__(self, devices: InProcessPlugins) -> None:
        self._devices = devices
        self.csi = InProcessCsi()
        self._listening: dict[str, RegisteredPlugin] = {}

    async def plug_in(self, path: Path, plugin: RegisteredPlugin) -> None:
        """Make the socket; one that is there is made anew."""
        await self.unplug(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
        self._listening[str(path)] = plugin
        if plugin.device is not None:
            self._devices.listen_at(str(path), plugin.device)
        if plugin.csi is not None:
            self.csi.listen_at(str(path), plugin.csi)

    async def unplug(self, path: Path) -> None:
        """Remove the socket; the plug-in does not answer any more."""
        path.unlink(missing_ok=True)
        self._listening.pop(str(path), None)
        self._devices.leave(str(path))
        self.csi.leave(str(path))

    async def connect(self, path: str) -> InProcessRegistration:
        """A kubelet's connection. Raises ConnectionRefusedError."""
        if path not in self._listening:
            raise ConnectionRefusedError(f"no plug-in listens at {path}")
        return InProcessRegistration(self._listening[path])

    async def close(self) -> None:
        """Nothing is held."""


class InProcessRegistration:
    """A kubelet's connection to one plug-in."""

    def __init__(self, plugin: RegisteredPlugin) -> None:
        self._plugin = plugin

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        return await self._plugin.call(method, request, timeout_s=timeout_s)

    async def close(self) -> None:
        """Nothing is held."""


class ServedRegistry:
    """The same with real sockets, for kubelets in processes. `close` it."""

    def __init__(self) -> None:
        self._servers: dict[Path, tuple[Any, RegisteredPlugin]] = {}

    async def plug_in(self, path: Path, plugin: RegisteredPlugin) -> None:
        """Listen; one that listens there ends first."""
        await self.unplug(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        server = grpc.aio.server()
        services.add_RegistrationServicer_to_server(_Service(plugin), server)
        if plugin.device is not None:
            service = DeviceService(plugin.device)
            device_services.add_DevicePluginServicer_to_server(service, server)
        if plugin.csi is not None:
            add_driver(plugin.csi, server)
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        self._servers[path] = server, plugin

    async def unplug(self, path: Path) -> None:
        """End the plug-in and remove its socket."""
        server, plugin = self._servers.pop(path, (None, None))
        if server is None or plugin is None:
            return
        if plugin.device is not None:
            plugin.device.end_streams()
        await server.stop(None)
        path.unlink(missing_ok=True)

    async def close(self) -> None:
        """End all."""
        for path in list(self._servers):
            await self.unplug(path)


class _Service(services.RegistrationServicer):
    def __init__(self, plugin: RegisteredPlugin) -> None:
        self._plugin = plugin

    async def GetInfo(self, request: Any, context: Any) -> Any:
        return await passed(self._plugin, "GetInfo", request, context)

    async def NotifyRegistrationStatus(self, request: Any, context: Any) -> Any:
        return await passed(self._plugin, "NotifyRegistrationStatus", request, context)
