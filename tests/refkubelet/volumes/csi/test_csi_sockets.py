"""A driver on a real socket, over gRPC (NODE-217)."""

from __future__ import annotations

from pathlib import Path

import pytest
from kubecri.csi import api_pb2 as api

from fakecri.csi import FakeCsiDriver
from fakecri.deviceplugin.registered import ServedRegistry, csi_plugin
from refkubelet.volumes.csi.client import CsiClient, CsiError
from refkubelet.volumes.csi.sockets import GrpcCsiSockets


async def test_calls_and_errors_go_over_a_socket_NODE_217(tmp_path: Path) -> None:
    driver, path, registry = FakeCsiDriver("disks.example"), tmp_path / "a.sock", ServedRegistry()
    client = CsiClient(GrpcCsiSockets(), str(path))
    await registry.plug_in(path, csi_plugin(driver))
    try:
        assert await client.capabilities() == {"STAGE_UNSTAGE_VOLUME"}
        request = api.NodePublishVolumeRequest(
            volume_id="v", target_path=str(tmp_path / "none" / "mount")
        )
        with pytest.raises(CsiError, match="rpc error: code = Internal desc = no dir") as refused:
            await client.call("NodePublishVolume", request)
        assert refused.value.is_final
        driver.fails("NodePublishVolume", "at work", code="ABORTED")
        with pytest.raises(CsiError, match="rpc error: code = Aborted desc = at work") as busy:
            await client.call("NodePublishVolume", request)
        assert not busy.value.is_final
    finally:
        await registry.close()
    with pytest.raises(CsiError) as gone:
        await client.capabilities()
    assert not gone.value.is_final
    assert str(gone.value) == (
        'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while '
        f'dialing: dial unix {path}: connect: no such file or directory"'
    )
