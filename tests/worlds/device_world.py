"""A device manager with plugins in the same process, in virtual time, and pods for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from loops import virtual_loop
from pods import container

from fakecri.deviceplugin import FakeDevicePlugin, InProcessPlugins, PluginDevice
from refkubelet.container_manager.devices.allocator import DeviceDeps
from refkubelet.container_manager.devices.manager import DeviceManager
from refkubelet.container_manager.providers.hints import Affinities, AllocationError, TopologyHint
from refkubelet.model.objects import Pod
from refkubelet.model.pod import containers, uid

WIDGET = "vendor.example/widget"


def asking(count: int, name: str = "main", resource: str = WIDGET, **fields: Any) -> dict[str, Any]:
    """A container that asks for so many devices."""
    return container(name, limits={resource: str(count)}, **fields)


class Towards(Affinities):
    """The merged hint is the same for all."""

    def __init__(self, mask: int) -> None:
        self._mask = mask

    def affinity(self, pod_uid: str, container_name: str) -> TopologyHint:
        return TopologyHint(self._mask, True)


class DeviceWorld:
    """`pods`: the active ones; `running`: containers that ran before the manager was made."""

    def __init__(self, root_dir: Path) -> None:
        loop = virtual_loop()
        self.clock = loop.clock
        self.root_dir = root_dir
        self.plugins = InProcessPlugins()
        self.pods: list[Pod] = []
        self.running: list[tuple[str, str]] = []
        self.sources_ready = True
        self.affinities: Affinities | None = None
        self.health_changed: list[str] = []
        self._run: asyncio.Task[None] | None = None
        self.manager = self._manager()

    def _manager(self) -> DeviceManager:
        return DeviceManager(
            DeviceDeps(
                self.clock,
                self.plugins,
                self.root_dir,
                active_pods=lambda: tuple(self.pods),
                sources_ready=lambda: self.sources_ready,
                running=self._running,
                affinities=lambda: self.affinities,
                numa_nodes=lambda: (0, 1),
                health_changed=self.health_changed.append,
            )
        )

    async def _running(self) -> list[tuple[str, str]]:
        return self.running

    @property
    def file(self) -> Path:
        return self.root_dir / "device-plugins" / "kubelet_internal_checkpoint"

    async def start(self) -> None:
        self._run = asyncio.create_task(self.manager.run())
        await asyncio.sleep(0)

    async def stop(self) -> None:
        assert self._run is not None
        self._run.cancel()
        await asyncio.gather(self._run, return_exceptions=True)

    async def restart(self) -> None:
        await self.stop()
        self.manager = self._manager()
        await self.start()
        await self.clock.sleep(0.1)

    async def plugin(
        self, *devices: str | PluginDevice, resource: str = WIDGET
    ) -> FakeDevicePlugin:
        """A registered plugin whose devices are known."""
        plugin = FakeDevicePlugin(resource, devices)
        await self.plugins.start(plugin)
        await self.clock.sleep(0.1)
        return plugin

    async def admit(self, one: Pod) -> str | None:
        """Allocate for every container; the rejection's message."""
        self.pods.append(one)
        try:
            for each in containers(one):
                await self.manager.allocate(one, each)
        except AllocationError as error:
            self.pods.remove(one)
            return error.message
        return None

    def given(self, one: Pod, name: str = "main") -> list[str]:
        return sorted({device for _, device, _ in self.manager.given(uid(one), name)})
