"""The inventory of resources: for each its plugin, its devices and their health. No I/O.

A resource is registered from the first list of its plugin, or from the checkpoint, until five
minutes after the plugin is gone; in these minutes its capacity stays, but no device is allocatable.
Upstream: pkg/kubelet/cm/devicemanager/manager.go: genericDeviceUpdateCallback,
markResourceUnhealthy, GetCapacity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from refkubelet.container_manager.devices.plugins import Plugin
from refkubelet.container_manager.devices.types import Device

STOP_GRACE_S: Final = 300.0  # CG-084


@dataclass(slots=True)
class Stock:
    """The devices of one resource, by ID. Only `healthy` ones may be allocated."""

    devices: Mapping[str, Device] = field(default_factory=dict)
    healthy: frozenset[str] = frozenset()
    unhealthy: frozenset[str] = frozenset()


class Amounts(Struct, frozen=True):
    """The number of devices by resource: all, and the healthy ones. A dropped resource stays with
    0, so that the Node's status shows it."""

    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]


class Inventory:
    """Resources by name, each with its plugin and its devices."""

    def __init__(self) -> None:
        self._stocks: dict[str, Stock] = {}
        self._plugins: dict[str, Plugin] = {}
        self._dropped: dict[str, None] = {}

    def restore(self, resources: Iterable[str], now_s: float) -> None:
        """Add the resources of the checkpoint, without a connected plugin and devices."""
        for name in resources:
            self._stocks[name] = Stock()
            self._plugins[name] = Plugin(name, stopped_at_s=now_s)

    def connect(self, plugin: Plugin) -> Plugin | None:
        """Add a plugin that has registered; returns the plugin that it replaces, if any."""
        before = self._plugins.get(plugin.resource)
        self._plugins[plugin.resource] = plugin
        return before

    def update(self, resource: str, devices: Mapping[str, Device]) -> tuple[str, ...]:
        """Replace the devices of a resource; returns the IDs of devices that are new or have
        another health."""
        before = self._stocks.get(resource, Stock()).devices
        healthy = frozenset(device.id for device in devices.values() if device.healthy)
        self._stocks[resource] = Stock(devices, healthy, frozenset(devices) - healthy)
        return tuple(
            device_id
            for device_id, device in devices.items()
            if device_id not in before or before[device_id].health != device.health
        )

    def disconnect(self, plugin: Plugin, now_s: float) -> bool:
        """Mark the devices of a plugin that is gone as unhealthy. False: another plugin has
        replaced it, and nothing changes."""
        if self._plugins.get(plugin.resource) is not plugin:
            return False
        plugin.stopped_at_s = now_s
        stock = self._stocks.get(plugin.resource, Stock())
        everything = stock.healthy | stock.unhealthy
        self._stocks[plugin.resource] = Stock(stock.devices, frozenset(), everything)
        return True

    def drop_expired(self, now_s: float) -> tuple[str, ...]:
        """Forget the resources whose plugin has been gone for more than `STOP_GRACE_S`."""
        expired = tuple(
            name
            for name in self._stocks
            if (gone_s := self._plugins[name].stopped_at_s) is not None
            and now_s - gone_s > STOP_GRACE_S
        )
        for name in expired:
            del self._stocks[name], self._plugins[name]
            self._dropped[name] = None
        return expired

    def amounts(self) -> Amounts:
        """All devices and the healthy ones, by resource; 0 of resources that were dropped."""
        none = dict.fromkeys(self._dropped, 0)
        stocks = self._stocks.items()
        return Amounts(
            {**none, **{name: len(s.healthy) + len(s.unhealthy) for name, s in stocks}},
            {**none, **{name: len(s.healthy) for name, s in stocks}},
        )

    def plugins(self) -> tuple[Plugin, ...]:
        return tuple(self._plugins.values())

    def plugin(self, resource: str) -> Plugin | None:
        return self._plugins.get(resource)

    def stock(self, resource: str) -> Stock | None:
        """The devices of a resource; None: it is not registered."""
        return self._stocks.get(resource)

    def devices(self, resource: str) -> Mapping[str, Device]:
        """By ID; none of a resource that no plugin has."""
        stock = self._stocks.get(resource)
        return stock.devices if stock is not None else {}

    def healthy(self) -> dict[str, frozenset[str]]:
        """Every registered resource with its healthy devices."""
        return {name: stock.healthy for name, stock in self._stocks.items()}
