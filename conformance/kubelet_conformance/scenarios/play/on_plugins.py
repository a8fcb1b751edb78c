"""The steps about what is plugged into the kubelet, and requests to it."""

from __future__ import annotations

import asyncio

from msgspec import UNSET, Struct

from fakecri.deviceplugin import FakeDevicePlugin, PluginDevice
from kubelet_conformance.harness.expect import failure
from kubelet_conformance.harness.kubelets.login_plugins import LoginPlugin, answer_of
from kubelet_conformance.scenarios.look.plugged import ask
from kubelet_conformance.scenarios.look.view import View
from kubelet_conformance.scenarios.play.programming import Programmer
from kubelet_conformance.scenarios.shape.plugged import (
    Ask,
    Device,
    DeviceFault,
    Login,
    LoginPlugIn,
    PlugIn,
    SetDevices,
)


class _CallsOf(Struct, frozen=True):
    """Whether a fault of a device plug-in has met a call: `hits` calls came since."""

    plugin: FakeDevicePlugin
    method: str
    before: int

    @property
    def hits(self) -> int:
        return sum(call.method == self.method for call in self.plugin.calls[self.before :])


class PluginSteps:
    """What a scenario plugs into its kubelet, and asks it."""

    def __init__(self, view: View, programmer: Programmer) -> None:
        self._view = view
        self._node = view.node
        self._programmer = programmer
        self._match_images: dict[str, tuple[str, ...]] = {}

    # --- device plug-ins ----------------------------------------------------------------------

    async def plug_in(self, step: PlugIn) -> None:
        plugin = FakeDevicePlugin(step.resource, _devices(step.devices))
        plugin.pre_start_required = step.pre_start
        if old := self._view.device_plugins.get(step.resource):
            plugin.calls = old.calls  # what a plug-in of that resource was asked, all in all
        self._view.device_plugins[step.resource] = plugin
        await self._node.plugins.plug_in(plugin, faithful=step.again)
        refused = "; ".join(plugin.refusals)
        if step.refused is UNSET and refused:
            raise RuntimeError(f"the kubelet refused the plug-in: {refused}")
        if step.refused is not UNSET and not step.refused.fits(refused):
            raise failure(self._node, f"a plug-in that is refused: {step.refused}", refused)

    async def devices(self, step: SetDevices) -> None:
        self._view.device_plugins[step.resource].set_devices(*_devices(step.are))

    async def device_fault(self, step: DeviceFault) -> None:
        plugin = self._view.device_plugins[step.resource]
        times = None if step.times is UNSET else step.times
        if step.ends is not UNSET:
            plugin.works(step.on)
            return
        if step.fails is not UNSET:
            plugin.fails(step.on, step.fails.message, code=step.fails.code, times=times)
        elif step.delays is not UNSET:
            plugin.delays(step.on, step.delays.delay_s, times=times)
        else:
            plugin.hangs(step.on, times=times)
        self._programmer.must_act(_CallsOf(plugin, step.on, len(plugin.calls)), step)

    async def unplug(self, resource: str) -> None:
        await self._node.plugins.unplug(self._view.device_plugins[resource])

    # --- credential plug-ins ------------------------------------------------------------------

    async def logins(self, given: tuple[LoginPlugIn, ...]) -> None:
        plugins = []
        for each in given:
            more = {"defaultCacheDuration": each.cached}
            plugins.append(LoginPlugin(each.name, each.match_images, more))
            self._match_images[each.name] = each.match_images
        await self._node.logins.use(*plugins)

    async def login(self, step: Login) -> None:
        places = self._match_images[step.name] if step.places is UNSET else step.places
        text = answer_of(*places, user=step.user)
        if step.text is not UNSET:
            text = step.text
        self._node.logins.answers(step.name, text, code=step.code, takes_s=step.takes)

    # --- requests -----------------------------------------------------------------------------

    async def ask(self, step: Ask) -> None:
        self._view.asked[step.label] = asyncio.create_task(ask(self._view, step))
        await asyncio.sleep(0)  # it is on its way before the next step

    async def leave(self) -> None:
        """End all requests that still wait."""
        for task in self._view.asked.values():
            task.cancel()
        await asyncio.gather(*self._view.asked.values(), return_exceptions=True)


def _devices(given: tuple[str | Device, ...]) -> list[str | PluginDevice]:
    return [
        one if isinstance(one, str) else PluginDevice(one.id, one.health, one.numa) for one in given
    ]
