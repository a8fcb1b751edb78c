"""`node.plugins`: device plugins and storage drivers beside the kubelet
(Feature.DEVICE_PLUGINS)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fakecri.csi import CsiCall, FakeCsiDriver
from fakecri.deviceplugin import FakeDevicePlugin
from fakecri.deviceplugin.registered import RegisteredPlugin
from fakecri.errors import CriError
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import failure
from kubelet_conformance.harness.node.parts import Parts
from kubelet_conformance.harness.node.watch import Watch


class NodePlugins:
    """Starts and ends fake device plugins. A `FakeDevicePlugin` holds what the plugin does, and
    records what it was asked."""

    def __init__(self, parts: Parts, watch: Watch) -> None:
        self._parts = parts
        self._watch = watch

    async def plug_in(self, plugin: FakeDevicePlugin, *, faithful: bool = True) -> None:
        """Start the plugin and register it, as soon as the kubelet takes registrations.

        A kubelet that refuses it says so in `plugin.refusals`. A `faithful` plugin registers again
        after each restart of the kubelet. Raises ExpectationFailed when the kubelet takes no
        registration within limits.REGISTER_S.
        """
        deadline_s = self._watch.now_s + limits.REGISTER_S
        before = len(plugin.refusals)
        while True:
            try:
                await self._parts.the_plugins().start(plugin, faithful=faithful)
                return
            except CriError as error:
                if len(plugin.refusals) > before:
                    return
                if self._watch.now_s >= deadline_s:
                    expected = "a kubelet that takes registrations"
                    raise failure(self._watch, expected, str(error)) from None
            await self._parts.the_plugins().stop(plugin)
            await self._watch.pause()

    async def unplug(self, plugin: FakeDevicePlugin) -> None:
        """End the plugin: its socket and its streams are gone, and its devices with them."""
        await self._parts.the_plugins().stop(plugin)

    @property
    def directory(self) -> Path:
        """The device-plugins directory, where the kubelet keeps its checkpoint of devices."""
        default = self._parts.paths.root / "device-plugins"
        return Path(getattr(self._parts.plugins, "directory", default))

    # --- plug-ins that the kubelet finds --------------------------------------------------

    async def offer(self, file: str, plugin: RegisteredPlugin) -> None:
        """Let a plug-in listen at a socket below the kubelet's plugins_registry; one that listens
        there already ends first, and the socket is made anew."""
        driver = plugin.csi
        if driver is not None and not any(driver is each for each in self._watch.drivers):
            self._watch.drivers.append(driver)
        if driver is not None:
            self._watch.listening[driver.name] = self.socket(file)
        await self._parts.the_registry().plug_in(self.socket(file), plugin)

    async def withdraw(self, file: str) -> None:
        """End the plug-in at that socket, and remove it."""
        self._listens_no_more(self.socket(file))
        await self._parts.the_registry().unplug(self.socket(file))

    def driver_is_disturbed(self, driver: str) -> None:
        """Say that something is done to that storage driver now, or to calls to it."""
        self._watch.plan("driver", driver)

    @property
    def drivers(self) -> Sequence[FakeCsiDriver]:
        """All storage drivers that there were."""
        return self._watch.drivers

    def driver_calls(self) -> list[CsiCall]:
        """The calls of the kubelet to all storage drivers, in order of arrival."""
        calls = [call for driver in self.drivers for call in driver.calls]
        return sorted(calls, key=lambda call: call.started_s)

    def remove_socket(self, file: str) -> None:
        """Remove that socket; the plug-in lives on, and what is connected stays so."""
        self._listens_no_more(self.socket(file))
        self.socket(file).unlink()

    def _listens_no_more(self, path: Path) -> None:
        kept = {name: at for name, at in self._watch.listening.items() if at != path}
        self._watch.listening = kept

    def socket(self, file: str) -> Path:
        """The path of that socket."""
        return self._parts.paths.root / "plugins_registry" / file
