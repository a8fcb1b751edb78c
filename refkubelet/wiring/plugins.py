"""The plug-in manager, and which part of the kubelet takes which plug-ins."""

from __future__ import annotations

from kubeobjects.resource_names import is_extended_resource
from refkubelet.container_manager.devices.manager import DeviceManager
from refkubelet.container_manager.devices.plugins import PluginError
from refkubelet.container_manager.devices.registration import API_VERSION
from refkubelet.plugin_manager.manager import PluginManager
from refkubelet.plugin_manager.registration import (
    NotSupported,
    PluginEntry,
    PluginHandler,
    PluginRefused,
)
from refkubelet.volumes.csi.drivers import CsiDrivers, DriverRefused
from refkubelet.wiring.base import Base
from refkubelet.wiring.csi import Csi
from refkubelet.wiring.resources import Resources


class DevicePlugins:
    """The handler of DevicePlugin: the device manager (CG-087)."""

    def __init__(self, devices: DeviceManager) -> None:
        self._devices = devices

    def validate(self, entry: PluginEntry) -> None:
        """Raises `PluginRefused`."""
        if API_VERSION not in entry.versions:
            raise PluginRefused(
                f"manager version, {API_VERSION}, is not among plugin supported versions "
                f"[{' '.join(entry.versions)}]"
            )
        if not is_extended_resource(entry.name):
            raise PluginRefused(
                f'invalid name of device plugin socket: the ResourceName "{entry.name}" is invalid'
            )

    async def register(self, entry: PluginEntry) -> None:
        """Raises `PluginRefused`."""
        try:
            await self._devices.found(entry.name, entry.endpoint)
        except PluginError as error:
            raise PluginRefused(str(error)) from None

    async def let_go(self, entry: PluginEntry) -> None:
        await self._devices.lost(entry.name)


class CsiPlugins:
    """The handler of CSIPlugin: the CSI drivers (NODE-216)."""

    def __init__(self, drivers: CsiDrivers) -> None:
        self._drivers = drivers

    def validate(self, entry: PluginEntry) -> None:
        """Raises `PluginRefused`."""
        try:
            self._drivers.validate(entry.name, entry.endpoint, entry.versions)
        except DriverRefused as refused:
            raise PluginRefused(str(refused)) from None

    async def register(self, entry: PluginEntry) -> None:
        """Raises `PluginRefused`."""
        try:
            await self._drivers.register(entry.name, entry.endpoint, entry.versions)
        except DriverRefused as refused:
            raise PluginRefused(str(refused)) from None

    async def let_go(self, entry: PluginEntry) -> None:
        await self._drivers.let_go(entry.name)


def build_plugin_manager(base: Base, resources: Resources, csi: Csi | None) -> PluginManager | None:
    """None: there is no way to plug-ins."""
    deps = base.deps
    if deps.plugins.registrations is None or resources.devices is None:
        return None
    handlers: dict[str, PluginHandler] = {
        "DevicePlugin": DevicePlugins(resources.devices),
        "CSIPlugin": CsiPlugins(csi.drivers) if csi is not None else NotSupported("CSI drivers"),
        "DRAPlugin": NotSupported("DRA drivers"),
    }
    return PluginManager(deps.directories.root, deps.plugins.registrations, handlers, deps.clock)
