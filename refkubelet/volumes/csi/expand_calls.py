"""Asks CSI drivers to make volumes larger on the node (NODE-222.1), and tells what they answer.

Upstream: pkg/volume/csi/expander.go.
"""

from __future__ import annotations

from typing import Final

from kubecri.csi import api_pb2 as api

from kubeobjects.quantity import parse_integer
from refkubelet.api.client import ObjectReader
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.volumes.claims import ClaimedVolume
from refkubelet.volumes.csi.client import CsiError
from refkubelet.volumes.csi.drivers import CsiDrivers, NoDriver
from refkubelet.volumes.csi.mounts import CsiMount, csi_mount_of_claim
from refkubelet.volumes.csi.names import device_dir, staging_path, target_path, volume_dir
from refkubelet.volumes.csi.requests import EXPAND_VOLUME, volume_capability
from refkubelet.volumes.csi.secrets import NoSecret, secret_data

EXPAND: Final = "Expander.NodeExpand failed to expand the volume"
INFEASIBLE_CODES: Final = frozenset({"INVALID_ARGUMENT", "OUT_OF_RANGE", "NOT_FOUND"})
"""Codes of calls that will never work."""


class ExpandFailed(Exception):
    """The volume was not made larger; the text is the kubelet's. `code`: what the driver answered;
    `is_told`: the claim is told of it."""

    def __init__(self, text: str, *, code: str = "", is_told: bool = True) -> None:
        super().__init__(text)
        self.code = code
        self.is_told = is_told


class CannotExpand(ExpandFailed):
    """The driver cannot make volumes larger."""


class ExpandCalls:
    """The calls to all drivers."""

    def __init__(self, root_dir: str, drivers: CsiDrivers, secrets: ObjectReader) -> None:
        self._root_dir = root_dir
        self._drivers = drivers
        self._secrets = secrets

    async def node_expand(self, pod: Pod, claimed: ClaimedVolume, size: str) -> None:
        """Have the volume that is published for the pod made as large as `size`, a quantity. Raises
        `ExpandFailed`."""
        mount, root = csi_mount_of_claim(claimed), self._root_dir
        try:
            client = self._drivers.client(mount.driver)
        except NoDriver as error:
            raise ExpandFailed(str(error), is_told=False) from None
        try:
            capabilities = await client.capabilities()
        except CsiError as error:
            complaint = "Expander.NodeExpand failed to check if node supports expansion"
            raise ExpandFailed(f"{complaint} : {error}") from None
        if EXPAND_VOLUME not in capabilities:
            text = f"NodeExpand is not supported by the CSI driver {mount.driver}"
            raise CannotExpand(text)
        request = api.NodeExpandVolumeRequest(
            volume_id=mount.handle,
            volume_path=target_path(volume_dir(root, uid(pod), mount.name)),
            capacity_range=api.CapacityRange(required_bytes=parse_integer(size)),
            staging_target_path=staging_path(device_dir(root, mount.driver, mount.handle)),
            volume_capability=volume_capability(mount, capabilities),
            secrets=await self._secret(mount),
        )
        try:
            await client.call("NodeExpandVolume", request)
        except CsiError as error:
            colon = " " if error.code in INFEASIBLE_CODES else " : "
            raise ExpandFailed(f"{EXPAND}{colon}{error}", code=error.code) from None

    async def _secret(self, mount: CsiMount) -> dict[str, str]:
        """Raises `ExpandFailed`."""
        try:
            return await secret_data(self._secrets, mount.expand_secret)
        except NoSecret as error:
            where = "/".join(mount.expand_secret or ())
            text = f"expander.NodeExpand failed to get NodeExpandSecretRef {where}: {error}"
            raise ExpandFailed(text) from None
