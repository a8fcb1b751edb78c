"""The steps about CSI drivers, and the volumes that a scenario's node has of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import UNSET

from fakecri.csi import CsiFault as Rule
from fakecri.csi import FakeCsiDriver
from fakecri.deviceplugin.registered import csi_plugin
from fakekubeapi.errors import ApiUnreachable
from kubelet_conformance.harness import limits
from kubelet_conformance.scenarios.look.view import View
from kubelet_conformance.scenarios.play.programming import Programmer
from kubelet_conformance.scenarios.shape.csi import (
    Attach,
    CsiAbilities,
    CsiDriverStep,
    CsiFault,
    CsiVolume,
    volume_name,
)

TRIES_EACH_S: Final = 1.0
Work = Callable[[], Awaitable[None]]
STAGE = "STAGE_UNSTAGE_VOLUME"
SPEC = {"attachRequired": False, "volumeLifecycleModes": ["Persistent", "Ephemeral"]}
"""Of a CSIDriver object, where the scenario says nothing else."""


class CsiSteps:
    """The CSI drivers of a scenario, and the controller that attaches their volumes."""

    def __init__(self, view: View, programmer: Programmer) -> None:
        self._view = view
        self._node = view.node
        self._programmer = programmer
        self._listening: set[str] = set()
        self._attached: dict[str, str] = {}
        """Key of a volume -> what the Node's status calls it."""
        self._attachments: set[str] = set()
        """Keys of the volumes that have a VolumeAttachment."""
        self._working: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Make the drivers and the volumes that are there from the beginning."""
        for name, entry in self._view.scenario.csi_drivers.items():
            self._view.csi_drivers[name] = driver = FakeCsiDriver(name, capabilities=(STAGE,))
            self._change(driver, entry)
            given = {} if entry.spec is UNSET else entry.spec
            await self._node.storage.describe_driver(name, **{**SPEC, **given})
            if entry.starts:
                await self._start(driver)
        for key, volume in self._view.scenario.csi_volumes.items():
            await self._make(key, volume)

    async def _make(self, key: str, volume: CsiVolume) -> None:
        modes = volume.spec.get("accessModes") or ["ReadWriteOnce"]
        mode = volume.spec.get("volumeMode", "Filesystem")
        name = volume_name(key)
        uid = await self._node.api.create_claim(key, name, mode=mode, access=modes[0])
        csi = {"driver": volume.driver, "volumeHandle": volume.handle_of(key), **volume.source}
        claim = {"name": key, "uid": uid}
        await self._node.api.create_volume(name, {"csi": csi}, claim=claim, **volume.spec)

    # --- drivers ------------------------------------------------------------------------------

    async def csi_driver(self, step: CsiDriverStep) -> None:
        driver = self._view.csi_drivers[step.name]
        if step.set is not UNSET:
            self._change(driver, step.set)
            if step.set.spec is not UNSET:
                await self._node.storage.change_driver(step.name, **step.set.spec)
        if step.do is UNSET:
            return
        self._node.plugins.driver_is_disturbed(step.name)
        if step.do == "start":
            await self._start(driver)
            return
        if step.do == "stop":
            self._listening.discard(step.name)
            await self._node.plugins.withdraw(_socket(step.name))
        driver.kill()

    async def _start(self, driver: FakeCsiDriver) -> None:
        driver.restart()
        self._listening.add(driver.name)
        await self._node.plugins.offer(_socket(driver.name), csi_plugin(driver))

    def _change(self, driver: FakeCsiDriver, change: CsiAbilities) -> None:
        if change.capabilities is not UNSET:
            driver.capabilities = change.capabilities
        if change.max_volumes_per_node is not UNSET:
            driver.max_volumes = change.max_volumes_per_node
        if change.topology is not UNSET:
            driver.topology = change.topology

    async def csi_fault(self, step: CsiFault) -> None:
        driver = self._view.csi_drivers[step.driver]
        volume = "" if step.volume is UNSET else self._view.volume_handle(step.volume)
        self._node.plugins.driver_is_disturbed(step.driver)
        rule: Rule = driver.add_fault(step.rule(volume))
        if not step.maybe:
            self._programmer.must_act(rule, step)
        if step.label is not UNSET:
            self._programmer.remember(step.label, rule)

    # --- volumes ------------------------------------------------------------------------------

    async def attach(self, given: Attach | str) -> None:
        step = Attach(volume=given) if isinstance(given, str) else given
        await self._do(lambda: self._attach(step))

    async def detach(self, key: str) -> None:
        await self._do(lambda: self._detach(key))

    async def _do(self, work: Work) -> None:
        """Do what the controller does. In a world, where Node or server may be away for long, it is
        done in turn, as soon as it can be, and nobody waits for it."""
        if self._view.scenario.calm is UNSET:
            await self._node.run_until(
                self._node.api.node_object, within_s=limits.START_S, what="the Node is there"
            )
            await work()
        else:
            self._working = asyncio.create_task(_in_turn(self._working, work))

    async def _attach(self, step: Attach) -> None:
        volume = self._view.scenario.csi_volumes[step.volume]
        of_volume = (volume.driver, volume.handle_of(step.volume))
        storage = self._node.storage
        status: dict[str, Any] = {"attached": step.attach_error is UNSET, "attachError": None}
        if step.attach_error is not UNSET:
            status["attachError"] = step.attach_error
        if step.attachment_metadata is not UNSET:
            status["attachmentMetadata"] = step.attachment_metadata
        if step.volume in self._attachments:
            await storage.change_attachment(*of_volume, **status)
        else:
            await storage.create_attachment(*of_volume, volume=volume_name(step.volume), **status)
            self._attachments.add(step.volume)
        self._attached[step.volume] = storage.unique_name(*of_volume)
        await storage.tell_attached(*self._attached.values())

    async def _detach(self, key: str) -> None:
        volume = self._view.scenario.csi_volumes[key]
        self._attached.pop(key, None)
        await self._node.storage.tell_attached(*self._attached.values())
        if key in self._attachments:
            await self._node.storage.delete_attachment(volume.driver, volume.handle_of(key))
            self._attachments.discard(key)

    # --- the end ------------------------------------------------------------------------------

    async def calm(self) -> None:
        """All faults end, and drivers that are down come back."""
        for driver in self._view.csi_drivers.values():
            driver.faults.end_all()
            if driver.is_down or driver.name not in self._listening:
                await self._start(driver)

    async def leave(self) -> None:
        """No call is held up any more, and the controller does nothing."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)
        for driver in self._view.csi_drivers.values():
            driver.faults.end_all()


async def _in_turn(before: asyncio.Task[None] | None, work: Work) -> None:
    """Work after what was begun before, again and again until it can be done."""
    if before is not None:
        await before
    while True:
        try:
            return await work()
        except (RuntimeError, ApiUnreachable):  # there is no Node, or no server
            await asyncio.sleep(TRIES_EACH_S)


def _socket(driver: str) -> str:
    return f"{driver}.sock"
