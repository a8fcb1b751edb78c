"""What a CSI driver says of the size of a volume (SRV-030.9).

Upstream: pkg/volume/csi/csi_metrics.go; csi_client.go: NodeGetVolumeStats.
"""

from __future__ import annotations

from typing import Any, Final

from kubecri.csi import api_pb2 as api

from kubeobjects.machine import FilesystemStats
from refkubelet.host.disk_use import DiskUse, VolumeSize
from refkubelet.volumes.csi.client import CsiClient, CsiError

GET_VOLUME_STATS: Final = "GET_VOLUME_STATS"


async def get_metrics(client: CsiClient, handle: str, path: str, time_ns: int) -> VolumeSize | None:
    """The size of the volume that is published at `path`, as of `time_ns`; None: the driver cannot
    tell. Raises `CsiError`."""
    if GET_VOLUME_STATS not in await client.capabilities():
        return None
    request = api.NodeGetVolumeStatsRequest(volume_id=handle, volume_path=path)
    answer = await client.call("NodeGetVolumeStats", request)
    if not answer.usage:
        text = "failed to get usage from response. usage is nil"
        raise CsiError(text, is_final=True)
    return volume_size(answer, time_ns)


def volume_size(answer: Any, time_ns: int) -> VolumeSize:
    """The size in a driver's answer. A unit that it does not tell is 0; of one told twice the last
    counts, and units that nobody knows do not."""
    unknown = api.VolumeUsage()
    units = {usage.unit: usage for usage in answer.usage}
    size = units.get(api.VolumeUsage.BYTES, unknown)
    inodes = units.get(api.VolumeUsage.INODES, unknown)
    room = FilesystemStats(
        device="",
        capacity_bytes=size.total,
        available_bytes=size.available,
        inodes=inodes.total,
        inodes_free=inodes.available,
        time_ns=time_ns,
    )
    return VolumeSize(DiskUse(size.used, inodes.used), time_ns, local=False, room=room)
