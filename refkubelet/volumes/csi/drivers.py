"""The CSI drivers of this node: which are registered, and at which sockets (NODE-216).

The plug-in manager hands over those that it finds. What must never happen here: a driver that the
cluster does not know of is used.
Upstream: pkg/volume/csi/csi_plugin.go: RegistrationHandler; csi_drivers_store.go.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kubecri.csi import api_pb2 as api
from msgspec import Struct

from kubeobjects.golang.strconv import quoted
from refkubelet.volumes.csi.client import CsiClient, CsiError, CsiSockets
from refkubelet.volumes.csi.names import told
from refkubelet.volumes.csi.node_info import CsiNodeInfo, DriverOnNode, NodeInfoError
from refkubelet.volumes.csi.versions import (
    Version,
    VersionError,
    highest_supported,
    shown_version,
)

log = logging.getLogger(__name__)


class NoDriver(Exception):
    """No driver of that name is registered; the text is the kubelet's."""


class DriverRefused(Exception):
    """A driver cannot be registered; the text is the kubelet's."""


class _Registered(Struct, frozen=True):
    endpoint: str
    version: Version


class CsiDrivers:
    """The registered drivers."""

    def __init__(self, sockets: CsiSockets, node_info: CsiNodeInfo) -> None:
        self._sockets = sockets
        self._node_info = node_info
        self._known: dict[str, _Registered] = {}

    def client(self, driver: str) -> CsiClient:
        """The way to a driver. Raises `NoDriver`."""
        registered = self._known.get(driver)
        if registered is None:
            raise NoDriver(f"driver name {driver} not found in the list of registered CSI drivers")
        return CsiClient(self._sockets, registered.endpoint)

    def validate(self, driver: str, endpoint: str, versions: Sequence[str]) -> None:
        """Raises `DriverRefused` for one that cannot be used."""
        try:
            self._version("ValidatePlugin", driver, versions)
        except DriverRefused as refused:
            text = f"validation failed for CSI Driver {driver} at endpoint {endpoint}: {refused}"
            raise DriverRefused(text) from None

    async def register(self, driver: str, endpoint: str, versions: Sequence[str]) -> None:
        """Ask the driver at that socket for the node's ID, and tell the cluster. Raises
        `DriverRefused`."""
        version = self._version("RegisterPlugin", driver, versions)
        self._known[driver] = _Registered(endpoint, version)
        try:
            info = await self.client(driver).call("NodeGetInfo", api.NodeGetInfoRequest())
            on_node = DriverOnNode(
                name=driver,
                node_id=info.node_id,
                max_volumes=info.max_volumes_per_node,
                topology=dict(info.accessible_topology.segments),
            )
            await self._node_info.install(on_node)
        except (CsiError, NodeInfoError) as error:
            await self.let_go(driver)
            raise DriverRefused(str(error)) from None

    async def let_go(self, driver: str) -> None:
        """The driver is gone: the cluster is told so."""
        self._known.pop(driver, None)
        try:
            await self._node_info.uninstall(driver)
        except NodeInfoError as error:
            log.error("CSI driver %s is gone, and the cluster is not told: %s", driver, error)

    def _version(self, step: str, driver: str, versions: Sequence[str]) -> Version:
        """The version to speak. Raises `DriverRefused`."""
        failed = told(f"{step} for CSI driver {quoted(driver)} failed.")
        if not versions:
            text = f"{failed} Plugin returned an empty list for supported versions"
            raise DriverRefused(text)
        try:
            version = highest_supported(versions)
        except VersionError as error:
            listed = " ".join(map(quoted, versions))
            raise DriverRefused(
                f"{failed} None of the versions specified [{listed}] are supported. err={error}"
            ) from None
        registered = self._known.get(driver)
        if registered is not None and registered.version >= version:
            listed = quoted(shown_version(registered.version))
            raise DriverRefused(
                f"{failed} Another driver with the same name is already registered with a higher "
                f"supported version: {listed}"
            )
        return version
