"""What the plugins offer: per resource its plugin, its devices and their health. No I/O here.

A resource is registered from the first list of its plugin (or from the checkpoint) until five
minutes after the plugin has gone; until then its capacity stays and nothing is left to allocate.
Upstream: pkg/kubelet/cm/devicemanager/manager.go: genericDeviceUpdateCallback,
markResourceUnhealthy, GetCapacity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from refkubelet.container_manager.devices.plugins import Plugin
from refkubelet.container_manager.devices.types import Device

STOP_GRACE_S: Final = 300.0  # CG-084


@dataclass(slots=True)
class Stock:
    """The devices of one resource, by ID. `healthy` is what may be given."""

    devices: Mapping[str, Device] = field(default_factory=dict)
    healthy: frozenset[str] = frozenset()
    unhealthy: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Amounts:
    """How many devices there are, by resource: all of them, and the healthy ones. A resource that
    was dropped has 0 of both for good, so that the Node shows it is known and gone."""

    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]


class Inventory:
    """Resources by name, each with its plugin and its devices."""

    def __init__(self) -> None:
        self._stocks: dict[str, Stock] = {}
        self._plugins: dict[str, Plugin] = {}
        self._dropped: dict[str, None] = {}

    def restore(self, resources: Iterable[str], now_s: float) -> None:
        """Resources of the checkpoint: registered, but without a plugin and without devices."""
        for name in resources:
            self._stocks[name] = Stock()
            self._plugins[name] = Plugin(name, stopped_at_s=now_s)

    def connect(self, plugin: Plugin) -> Plugin | None:
        """A plugin has registered. Returns the plugin that it replaces, if any."""
        before = self._plugins.get(plugin.resource)
        self._plugins[plugin.resource] = plugin
        return before

    def update(self, resource: str, devices: Mapping[str, Device]) -> tuple[str, ...]:
        """The plugin's list. Returns the IDs of new devices and of those in other health."""
        before = self._stocks.get(resource, Stock()).devices
        healthy = frozenset(device.id for device in devices.values() if device.healthy)
        self._stocks[resource] = Stock(devices, healthy, frozenset(devices) - healthy)
        return tuple(
            device_id
            for device_id, device in devices.items()
            if device_id not in before or before[device_id].health != device.health
        )

    def disconnect(self, plugin: Plugin, now_s: float) -> bool:
        """The plugin is gone: none of its devices may be given any more. False when another has
        taken its place, which then keeps what it has."""
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
        """None: not registered."""
        return self._stocks.get(resource)

    def devices(self, resource: str) -> Mapping[str, Device]:
        stock = self._stocks.get(resource)
        return stock.devices if stock is not None else {}

    def healthy(self) -> dict[str, frozenset[str]]:
        """Every registered resource with its healthy devices."""
        return {name: stock.healthy for name, stock in self._stocks.items()}
