"""What a CSI driver can do, and how it is told what a volume is to be. Pure.

Rules: NODE-217.3 to .5 and .7, NODE-219, NODE-222.1. Upstream: pkg/volume/csi/csi_client.go.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from kubecri.csi import api_pb2 as api

from refkubelet.volumes.claims import ONCE_POD
from refkubelet.volumes.csi.mounts import ONCE, CsiMount

STAGE_UNSTAGE_VOLUME: Final = "STAGE_UNSTAGE_VOLUME"
VOLUME_MOUNT_GROUP: Final = "VOLUME_MOUNT_GROUP"
EXPAND_VOLUME: Final = "EXPAND_VOLUME"
SINGLE_NODE_MULTI_WRITER: Final = "SINGLE_NODE_MULTI_WRITER"
_MODES: Final = {
    ONCE: "SINGLE_NODE_WRITER",
    "ReadOnlyMany": "MULTI_NODE_READER_ONLY",
    "ReadWriteMany": "MULTI_NODE_MULTI_WRITER",
    ONCE_POD: "SINGLE_NODE_WRITER",
}
_FINER_MODES: Final = _MODES | {
    ONCE: "SINGLE_NODE_MULTI_WRITER",
    ONCE_POD: "SINGLE_NODE_SINGLE_WRITER",
}


def capability_names(answer: Any) -> frozenset[str]:
    """What a driver can do, from its NodeGetCapabilities."""
    kinds = api.NodeServiceCapability.RPC.Type
    names = {number: name for name, number in kinds.items()}
    types = (c.rpc.type for c in answer.capabilities if c.HasField("rpc"))
    return frozenset(names[number] for number in types if number in names)


def access_mode(mode: str, capabilities: Collection[str]) -> str:
    """The driver's name of an access mode.

    >>> access_mode("ReadWriteOncePod", ())
    'SINGLE_NODE_WRITER'
    """
    modes = _FINER_MODES if SINGLE_NODE_MULTI_WRITER in capabilities else _MODES
    return modes.get(mode, "UNKNOWN")


def volume_capability(
    mount: CsiMount, capabilities: Collection[str], group: int | None = None
) -> Any:
    """How the volume is to be had. `group`: the pod's fsGroup."""
    with_group = group is not None and VOLUME_MOUNT_GROUP in capabilities
    mode: Any = access_mode(mount.access_mode, capabilities)
    return api.VolumeCapability(
        mount=api.VolumeCapability.MountVolume(
            fs_type=mount.fs_type,
            mount_flags=mount.mount_options,
            volume_mount_group=str(group) if with_group else "",
        ),
        access_mode=api.VolumeCapability.AccessMode(mode=mode),
    )
