"""The storage driver made for tests: what it does on the disk, answers, and how it misbehaves."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from kubecri.csi import api_pb2 as api
from kubecri.csi import api_pb2_grpc as services
from kubecri.pluginregistration import api_pb2 as registration

from fakecri.csi import CsiCall, FakeCsiDriver
from fakecri.deviceplugin import InProcessPlugins
from fakecri.deviceplugin.registered import InProcessRegistry, ServedRegistry, csi_plugin
from fakecri.errors import CriError

DISKS = "disks.example"
BOTH_WAYS = ("NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume")


def requests(root: Path, volume: str = "v1") -> dict[str, Any]:
    """A request of each method that changes something, for one volume."""
    staging, target = str(root / "globalmount"), str(root / "pod" / "mount")
    return {
        "NodeStageVolume": api.NodeStageVolumeRequest(
            volume_id=volume, staging_target_path=staging
        ),
        "NodePublishVolume": api.NodePublishVolumeRequest(
            volume_id=volume, staging_target_path=staging, target_path=target
        ),
        "NodeUnpublishVolume": api.NodeUnpublishVolumeRequest(volume_id=volume, target_path=target),
        "NodeUnstageVolume": api.NodeUnstageVolumeRequest(
            volume_id=volume, staging_target_path=staging
        ),
    }


def directories(root: Path) -> None:
    """What a kubelet makes before it calls."""
    (root / "globalmount").mkdir()
    (root / "pod").mkdir()


async def refused(driver: FakeCsiDriver, method: str, request: Any, **how: Any) -> tuple[str, str]:
    with pytest.raises(CriError) as error:
        await driver.call(method, request, **how)
    return error.value.code().name, error.value.details()


@pytest.mark.virtual_time
async def test_what_it_says_of_itself() -> None:
    driver = FakeCsiDriver(
        DISKS, node_id="n1", max_volumes=3, topology={"zone": "a"}, capabilities=["EXPAND_VOLUME"]
    )
    info: Any = await driver.call("NodeGetInfo", api.NodeGetInfoRequest())
    assert (info.node_id, info.max_volumes_per_node) == ("n1", 3)
    assert dict(info.accessible_topology.segments) == {"zone": "a"}
    named: Any = await driver.call("GetPluginInfo", api.GetPluginInfoRequest())
    assert named.name == DISKS
    can: Any = await driver.call("NodeGetCapabilities", api.NodeGetCapabilitiesRequest())
    assert [c.rpc.type for c in can.capabilities] == [api.NodeServiceCapability.RPC.EXPAND_VOLUME]
    bare: Any = await FakeCsiDriver(DISKS).call("NodeGetInfo", api.NodeGetInfoRequest())
    assert not bare.HasField("accessible_topology")


@pytest.mark.virtual_time
async def test_a_volume_is_staged_published_and_taken_away_each_call_twice(tmp_path: Path) -> None:
    directories(tmp_path)
    driver, asked = FakeCsiDriver(DISKS), requests(tmp_path)
    mount = tmp_path / "pod" / "mount"
    for method in BOTH_WAYS[:2] * 2:
        await driver.call(method, asked[method])
    assert (mount / "volume_id").read_text() == "v1"
    assert driver.published == {str(mount): "v1"}
    assert driver.staged == {"v1": str(tmp_path / "globalmount")}
    for method in ("NodeUnpublishVolume", "NodeUnpublishVolume", *BOTH_WAYS[3:] * 2):
        await driver.call(method, asked[method])
    assert not mount.exists()
    assert (driver.published, driver.staged) == ({}, {})
    assert driver.methods("NodeUnstageVolume") == ["NodeUnstageVolume"] * 2
    assert driver.calls[0] == CsiCall("NodeStageVolume", asked["NodeStageVolume"])
    assert driver.requests("NodePublishVolume")[0].volume_id == "v1"


@pytest.mark.virtual_time
async def test_a_bad_driver_leaves_something(tmp_path: Path) -> None:
    directories(tmp_path)
    driver, asked = FakeCsiDriver(DISKS, capabilities=[]), requests(tmp_path)
    asked["NodePublishVolume"].staging_target_path = ""
    await driver.call("NodePublishVolume", asked["NodePublishVolume"])
    driver.leaves = "files"
    await driver.call("NodeUnpublishVolume", asked["NodeUnpublishVolume"])
    assert [file.name for file in (tmp_path / "pod" / "mount").iterdir()] == ["volume_id"]
    driver.leaves = "directory"
    await driver.call("NodeUnpublishVolume", asked["NodeUnpublishVolume"])
    assert list((tmp_path / "pod").iterdir()) == [tmp_path / "pod" / "mount"]
    assert list((tmp_path / "pod" / "mount").iterdir()) == []
    (tmp_path / "pod" / "mount").rmdir()
    (tmp_path / "pod").rmdir()
    await driver.call("NodeUnpublishVolume", asked["NodeUnpublishVolume"])


@pytest.mark.virtual_time
async def test_what_a_kubelet_must_do_first(tmp_path: Path) -> None:
    driver, asked = FakeCsiDriver(DISKS), requests(tmp_path)
    staging = tmp_path / "globalmount"
    said = await refused(driver, "NodeStageVolume", asked["NodeStageVolume"])
    assert said == ("INTERNAL", f"no directory to stage to: {staging}")
    said = await refused(driver, "NodePublishVolume", asked["NodePublishVolume"])
    assert said == ("FAILED_PRECONDITION", f"volume v1 is not staged at {staging}")
    staging.mkdir()
    await driver.call("NodeStageVolume", asked["NodeStageVolume"])
    said = await refused(driver, "NodePublishVolume", asked["NodePublishVolume"])
    assert said == ("INTERNAL", f"no directory to publish in: {tmp_path / 'pod'}")
    other = requests(tmp_path, "v2")["NodePublishVolume"]
    assert (await refused(driver, "NodePublishVolume", other))[0] == "FAILED_PRECONDITION"
    driver.capabilities = []
    said = await refused(driver, "NodeStageVolume", asked["NodeStageVolume"])
    assert said == ("UNIMPLEMENTED", f"{DISKS} has not the capability STAGE_UNSTAGE_VOLUME")


@pytest.mark.virtual_time
async def test_how_full_a_volume_is_and_its_new_size(tmp_path: Path) -> None:
    driver = FakeCsiDriver(DISKS, capabilities=["GET_VOLUME_STATS", "EXPAND_VOLUME"])
    driver.used = {"BYTES": (100, 30), "INODES": (10, 1)}
    wish = api.NodeGetVolumeStatsRequest(volume_id="v1", volume_path=str(tmp_path))
    stats: Any = await driver.call("NodeGetVolumeStats", wish)
    rows = [(u.unit, u.total, u.used, u.available) for u in stats.usage]
    assert rows == [(api.VolumeUsage.BYTES, 100, 30, 70), (api.VolumeUsage.INODES, 10, 1, 9)]
    wish.volume_path = str(tmp_path / "none")
    assert (await refused(driver, "NodeGetVolumeStats", wish))[0] == "NOT_FOUND"
    larger = api.NodeExpandVolumeRequest(capacity_range=api.CapacityRange(required_bytes=7))
    grown: Any = await driver.call("NodeExpandVolume", larger)
    assert grown.capacity_bytes == 7


@pytest.mark.virtual_time
async def test_faults_of_calls(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    directories(tmp_path)
    driver, asked = FakeCsiDriver(DISKS, capabilities=[]), requests(tmp_path)
    method, request = "NodePublishVolume", asked["NodePublishVolume"]
    request.staging_target_path = ""
    driver.fails(method, "no disk", code="NOT_FOUND", times=1)
    assert await refused(driver, method, request) == ("NOT_FOUND", "no disk")
    assert driver.published == {}
    driver.fails(method, "too late", done=True)
    assert await refused(driver, method, request) == ("INTERNAL", "too late")
    assert list(driver.published.values()) == ["v1"]
    driver.delays(method, 5.0, times=1)
    began_s = loop.time()
    await driver.call(method, request)
    await driver.call(method, request)
    assert loop.time() - began_s == pytest.approx(5)
    driver.hangs(method)
    said = await refused(driver, method, request, timeout_s=120)
    assert said == ("DEADLINE_EXCEEDED", "context deadline exceeded")
    driver.works(method)
    await driver.call(method, request)
    with pytest.raises(ValueError, match="'NodeStage' is no method of a CSI driver; wanted"):
        driver.fails("NodeStage", "x")


@pytest.mark.virtual_time
async def test_requests_are_not_shared_with_the_caller() -> None:
    driver, request = FakeCsiDriver(DISKS), api.NodeUnstageVolumeRequest(volume_id="v1")
    seen: list[CsiCall] = []
    driver.on_call = seen.append
    await driver.call("NodeUnstageVolume", request)
    request.volume_id = "v2"
    assert seen == driver.calls
    assert driver.requests("NodeUnstageVolume")[0].volume_id == "v1"


@pytest.mark.virtual_time
async def test_a_kubelet_in_process_reaches_it_while_it_listens(tmp_path: Path) -> None:
    registry, driver = InProcessRegistry(InProcessPlugins()), FakeCsiDriver(DISKS)
    path = tmp_path / "disks.sock"
    with pytest.raises(ConnectionRefusedError, match="no CSI driver listens at"):
        registry.csi.connect(str(path))
    plugin = csi_plugin(driver)
    await registry.plug_in(path, plugin)
    told: Any = await (await registry.connect(str(path))).call(
        "GetInfo", registration.InfoRequest()
    )
    assert (told.type, told.name, list(told.supported_versions)) == ("CSIPlugin", DISKS, ["1.0.0"])
    connection = registry.csi.connect(str(path))
    named: Any = await connection.call("GetPluginInfo", api.GetPluginInfoRequest(), timeout_s=1)
    assert named.name == DISKS
    path.unlink()
    with pytest.raises(ConnectionRefusedError):  # as with a socket whose file is gone
        registry.csi.connect(str(path))
    await registry.unplug(path)
    with pytest.raises(CriError) as error:
        await connection.call("NodeGetInfo", api.NodeGetInfoRequest())
    assert error.value.code() is grpc.StatusCode.UNAVAILABLE
    await connection.close()


async def test_it_is_served_beside_its_registration(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    directory = tmp_path_factory.mktemp("d")
    directories(directory)
    path, driver, registry = directory / "disks.sock", FakeCsiDriver(DISKS), ServedRegistry()
    await registry.plug_in(path, csi_plugin(driver, name="other.example"))
    try:
        options = [("grpc.default_authority", "localhost")]
        async with grpc.aio.insecure_channel(f"unix:{path}", options=options) as channel:
            node = services.NodeStub(channel)
            for method, request in requests(directory).items():
                await getattr(node, method)(request, timeout=30)
            assert driver.methods() == list(BOTH_WAYS)
            await node.NodeGetCapabilities(api.NodeGetCapabilitiesRequest(), timeout=30)
            await node.NodeGetInfo(api.NodeGetInfoRequest(), timeout=30)
            named = await services.IdentityStub(channel).GetPluginInfo(
                api.GetPluginInfoRequest(), timeout=30
            )
            assert named.name == DISKS
            with pytest.raises(grpc.aio.AioRpcError, match="has not the capability EXPAND_VOLUME"):
                await node.NodeExpandVolume(api.NodeExpandVolumeRequest(), timeout=30)
            with pytest.raises(grpc.aio.AioRpcError, match="GET_VOLUME_STATS"):
                await node.NodeGetVolumeStats(api.NodeGetVolumeStatsRequest(), timeout=30)
    finally:
        await registry.close()
    assert not path.exists()
