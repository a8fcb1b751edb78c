"""Accepts the registrations of device plugins and follows their lists of devices (CG-084).

When a plugin registers, the watcher connects to it, reads its options, and follows its list in a
separate task. The end of one plugin does not affect the others.
Upstream: pkg/kubelet/cm/devicemanager/plugin/v1beta1/server.go, handler.go, client.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from refkubelet.container_manager.devices.inventory import Inventory
from refkubelet.container_manager.devices.plugins import (
    DeviceConnection,
    Plugin,
    PluginDirectory,
    PluginError,
)
from refkubelet.container_manager.devices.registration import refusal
from refkubelet.container_manager.devices.types import Device
from refkubelet.failures import end_tasks, log_failure
from simclock import Clock

log = logging.getLogger(__name__)


class PluginWatcher:
    """Adds plugins to the inventory. `updated`: called with every list of devices (resource, ID ->
    device); `registrations`: counts registrations by resource."""

    def __init__(
        self,
        directory: PluginDirectory,
        inventory: Inventory,
        clock: Clock,
        *,
        updated: Callable[[str, dict[str, Device]], None],
        registrations: Counter[str],
    ) -> None:
        self._directory = directory
        self._inventory = inventory
        self._clock = clock
        self._updated = updated
        self._registrations = registrations
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._found: dict[str, Plugin | None] = {}  # by the plug-in manager
        self._turns = count(1)
        self._turn_of: dict[str, int] = {}  # the turn of each resource's last registration

    async def run(self) -> None:
        """Accept registrations until cancelled. If the directory cannot be used, that is logged,
        and the kubelet runs without plugins."""
        try:
            await self._directory.open(self.register)
        except OSError as error:
            log.error("device plugins cannot register: %s: %s", error.filename or "", error)
            await asyncio.Event().wait()
        try:
            await asyncio.Event().wait()
        finally:
            await self._directory.close()
            await end_tasks(self._watches.values())
            for plugin in self._inventory.plugins():
                await plugin.close()

    async def register(self, request: Any) -> None:
        """Handle Registration.Register: check, connect, follow. Raises `PluginError`. Of two
        registrations of one resource at the same time the later one wins, whichever plugin answers
        first."""
        resource, endpoint = request.resource_name, request.endpoint
        if (why := refusal(request.version, resource)) is not None:
            self._registrations[resource] += 1
            log.error("bad registration of the device plugin at %s: %s", endpoint, why)
            raise PluginError(why)
        await self._take(resource, endpoint, self._directory.connect)

    async def found(self, resource: str, path: str) -> None:
        """Take the plugin whose socket the plug-in manager has found (CG-087). Raises
        `PluginError`."""
        await self._take(resource, path, self._directory.connect_at)
        self._found[resource] = self._inventory.plugin(resource)

    async def lost(self, resource: str) -> None:
        """The plug-in manager does not find the plugin's socket any more: its devices become
        unhealthy, unless another plugin has registered since."""
        plugin = self._found.pop(resource, None)
        if plugin is None or self._inventory.plugin(resource) is not plugin:
            return
        watch = self._watches.pop(resource, None)
        if watch is not None:
            await end_tasks([watch])
        if self._inventory.disconnect(plugin, self._clock.monotonic_s()):
            await plugin.close()

    async def _take(
        self,
        resource: str,
        endpoint: str,
        connect: Callable[[str], Awaitable[DeviceConnection]],
    ) -> None:
        """Connect to the plugin and follow it. Raises `PluginError`."""
        turn = next(self._turns)
        self._registrations[resource] += 1
        try:
            connection = await connect(endpoint)
        except OSError as error:
            log.error("cannot reach the device plugin of %s: %s", resource, error)
            raise PluginError(f"failed to dial device plugin: {error}") from None
        try:
            plugin = await Plugin.connected(resource, connection)
        except PluginError as error:
            await connection.close()
            raise PluginError(f"failed to get device plugin options: {error}") from None
        if turn < self._turn_of.get(resource, 0):
            log.info("device plugin %s of %s: a newer one has registered", endpoint, resource)
            await plugin.close()
            return
        self._turn_of[resource] = turn
        log.info("device plugin of %s registered, at %s", resource, endpoint)
        await self._replace(plugin)

    async def _replace(self, plugin: Plugin) -> None:
        """Replace the resource's plugin in the inventory at once, then wait for the end of the old
        one."""
        before = self._inventory.connect(plugin)
        watch = self._watches.pop(plugin.resource, None)
        if watch is not None:
            watch.cancel()
        name = f"device plugin {plugin.resource}"
        self._watches[plugin.resource] = asyncio.create_task(self._follow(plugin), name=name)
        if watch is not None:
            await asyncio.gather(watch, return_exceptions=True)
        if before is not None:
            await before.close()

    async def _follow(self, plugin: Plugin) -> None:
        """Take every list of the plugin; when its stream ends, its devices become unhealthy."""
        try:
            async for devices in plugin.devices():
                self._updated(plugin.resource, devices)
        except PluginError as error:
            log.error("ListAndWatch of device plugin %s ended: %s", plugin.resource, error)
        except Exception as error:
            log_failure(log, f"following device plugin {plugin.resource} ended", error)
        if self._inventory.disconnect(plugin, self._clock.monotonic_s()):
            await plugin.close()
