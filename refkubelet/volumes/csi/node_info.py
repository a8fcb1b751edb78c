"""What the cluster knows of this node's CSI drivers: the CSINode object, and the Node's annotation
and labels (NODE-216.3 to .6).

What must never happen here: a driver that another one registered meanwhile is lost, since both
change one object; so each change begins with what the server has, and one comes after the other.
Upstream: pkg/volume/csi/nodeinfomanager; csi_plugin.go: initializeCSINode.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from refkubelet.api.client import ApiClient, ApiError
from refkubelet.api.kinds import CSI_NODES, NODES
from refkubelet.model.objects import to_dict
from refkubelet.volumes.csi.node_objects import (
    DriverOnNode,
    NodeInfoError,
    driver_patch,
    is_owned_by,
    new_csi_node,
    removal_patch,
    with_driver,
    with_migrated,
    without_driver,
)
from simclock import Clock

__all__ = ["ApiClient", "CsiNodeInfo", "DriverOnNode", "NodeInfoError"]

log = logging.getLogger(__name__)

NOT_YET: Final = "CSINode is not yet initialized"
LOOK_S: Final = 1.0
"""The time between two looks whether the API server answers."""
PAUSES_S: Final = (0.01, 0.05, 0.25)
"""Before the second to the last try of one change."""
FIRST_DELAY_S: Final = 0.03
DELAY_FACTOR: Final = 8.0
MAX_DELAY_S: Final = 16.0


class CsiNodeInfo:
    """Keeps CSINode: `run` makes it, drivers come (`install`) and go (`uninstall`)."""

    def __init__(self, api: ApiClient, node_name: str, clock: Clock) -> None:
        self._api = api
        self._name = node_name
        self._clock = clock
        self._lock = asyncio.Lock()
        self._owner = ""  # the UID of the Node
        self._error: str | None = NOT_YET

    def not_ready(self) -> list[str]:
        """Why the node is not ready; empty: CSINode is there."""
        return [self._error] if self._error is not None else []

    async def run(self) -> None:
        """Make CSINode, as soon as the API server answers and there is the Node; then wait to be
        cancelled."""
        while not await self._answers():
            await self._clock.sleep(LOOK_S)
        delay_s = FIRST_DELAY_S
        while True:
            try:
                await self._repeated(self._initialize)
            except (ApiError, NodeInfoError) as error:
                text = f"error updating CSINode annotation: {_caused(error)}"
                self._error = f"failed to initialize CSINode: {text}"
                log.warning("%s", self._error)
            else:
                self._error = None
                break
            await self._clock.sleep(delay_s)
            delay_s = min(DELAY_FACTOR * delay_s, MAX_DELAY_S)
        await asyncio.Event().wait()

    async def install(self, driver: DriverOnNode) -> None:
        """Tell the cluster of a driver. Raises `NodeInfoError`."""
        if not driver.node_id:
            raise NodeInfoError("error adding CSI driver node info: driverNodeID must not be empty")
        await self._changed(
            lambda: self._patch_node(lambda node: driver_patch(node, driver)),
            "error updating Node object with CSI driver node info: error updating node",
        )
        await self._changed(
            lambda: self._install(driver),
            "error updating CSINode object with CSI driver node info: error updating CSINode",
        )

    async def uninstall(self, driver: str) -> None:
        """Tell the cluster that a driver is gone. Raises `NodeInfoError`."""
        await self._changed(
            lambda: self._uninstall(driver),
            "error uninstalling CSI driver from CSINode object error updating CSINode",
        )
        await self._changed(
            lambda: self._patch_node(lambda node: removal_patch(node, driver)),
            "error removing CSI driver node info from Node object error updating node",
        )

    async def _answers(self) -> bool:
        """Whether the API server answers: with CSINode, or that there is none."""
        try:
            await self._api.get(CSI_NODES, self._name)
        except ApiError as error:
            return error.not_found
        return True

    async def _changed(self, change: Callable[[], Awaitable[None]], what: str) -> None:
        """Make a change, with several tries. Raises `NodeInfoError`."""
        try:
            await self._repeated(change)
        except (ApiError, NodeInfoError) as error:
            raise NodeInfoError(f"{what}: {_caused(error)}") from None

    async def _repeated(self, change: Callable[[], Awaitable[None]]) -> None:
        """Make a change, with several tries. Raises as the last of them."""
        for pause_s in PAUSES_S:
            try:
                async with self._lock:
                    await change()
            except (ApiError, NodeInfoError) as error:
                log.debug("CSINode %s is not written yet: %s", self._name, error)
            else:
                return
            await self._clock.sleep(pause_s)
        async with self._lock:
            await change()

    # One try of a change; each raises ApiError, NodeInfoError

    async def _initialize(self) -> None:
        await self._know_owner()
        csi_node = await self._get()
        if csi_node is None:
            await self._create()
            return
        await self._check_owner(csi_node)
        changed = with_migrated(csi_node)
        if changed != csi_node:
            await self._api.replace(CSI_NODES, changed)

    async def _install(self, driver: DriverOnNode) -> None:
        await self._know_owner()
        csi_node = await self._get() or await self._create()
        await self._check_owner(csi_node)
        changed = with_driver(csi_node, driver)
        if changed != csi_node:
            await self._api.replace(CSI_NODES, changed)

    async def _uninstall(self, driver: str) -> None:
        await self._know_owner()
        csi_node = await self._get()
        if csi_node is None:
            return
        await self._check_owner(csi_node)
        changed = without_driver(csi_node, driver)
        if changed != csi_node:
            await self._api.replace(CSI_NODES, changed)

    async def _know_owner(self) -> None:
        if not self._owner:
            node = await self._api.get(NODES, self._name)
            self._owner = (node.metadata.uid if node.metadata is not None else None) or ""

    async def _patch_node(self, patch_for: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        patch = patch_for(to_dict(await self._api.get(NODES, self._name)))
        if patch:
            await self._api.patch(NODES, self._name, patch, subresource="status")

    async def _get(self) -> dict[str, Any] | None:
        try:
            return await self._api.get(CSI_NODES, self._name)
        except ApiError as error:
            if error.not_found:
                return None
            raise

    async def _create(self) -> dict[str, Any]:
        return await self._api.create(CSI_NODES, new_csi_node(self._name, self._owner))

    async def _check_owner(self, found: Mapping[str, Any]) -> None:
        """Delete a CSINode of an earlier Node; the next try makes it anew."""
        if is_owned_by(found, self._name, self._owner):
            return
        await self._api.delete(CSI_NODES, self._name)
        raise NodeInfoError(f"CSINode {self._name} was owned by different node, deleted it")


def _caused(error: Exception) -> str:
    text = error.message if isinstance(error, ApiError) else str(error)
    return f"timed out waiting for the condition; caused by: {text}"
