"""How large volumes of claims and drivers are (SRV-030.8, SRV-030.9)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from csi_world import DRIVER, HANDLE, CsiWorld, claimed, csi_world, inline, web
from kubecri.csi import api_pb2 as api
from loops import virtual_loop
from pods import container, make_pod

from kubeobjects.machine import FilesystemStats
from refkubelet.host.disk_use import DiskUse, VolumeSize, used_of
from refkubelet.model.objects import Pod
from refkubelet.volumes.claims import VolumeOnNode
from refkubelet.volumes.csi.client import CsiError
from refkubelet.volumes.csi.metrics import get_metrics, volume_size
from refkubelet.volumes.metrics import VolumeSizes

pytestmark = pytest.mark.virtual_time

STATS = "GET_VOLUME_STATS"
CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}


def filesystem(path: str) -> FilesystemStats:
    if path == "/gone":
        raise FileNotFoundError(path)
    return FilesystemStats("8:1", 100, 60, 10, 4, 7, kept_bytes=5)


def told(*usage: tuple[Any, int, int, int]) -> VolumeSize:
    """The size in an answer with these units, totals, used and available amounts."""
    answer = api.NodeGetVolumeStatsResponse()
    for unit, total, used, available in usage:
        answer.usage.add(unit=unit, total=total, used=used, available=available)
    return volume_size(answer, 7)


def pod_with(*volumes: dict[str, Any]) -> Pod:
    mounts = [{"name": v["name"], "mountPath": f"/{v['name']}"} for v in volumes]
    return make_pod(container(volumeMounts=mounts), uid="uid-web", volumes=volumes)


def metrics(places: dict[str, VolumeOnNode], world: CsiWorld | None = None) -> VolumeSizes:
    drivers = world.volumes if world is not None else None
    return VolumeSizes(lambda _: places, filesystem, virtual_loop().clock, drivers)


async def test_a_local_volume_has_the_numbers_of_its_filesystem_SRV_030() -> None:
    place = VolumeOnNode("/data", read_only=False, name="pv", is_local=True)
    found = await metrics({"v": place}).of(pod_with(CLAIM))
    room = filesystem("/data")
    assert found == {"v": VolumeSize(DiskUse(35, 6), 7, local=False, room=room, claim="data")}
    assert used_of(room) == DiskUse(35, 6)


async def test_an_ephemeral_volume_has_the_claim_of_its_pod_SRV_030() -> None:
    place = VolumeOnNode("/data", read_only=False, name="pv", is_local=True)
    own = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    assert (await metrics({"v": place}).of(pod_with(own)))["v"].claim == "web-v"


async def test_what_cannot_be_measured_takes_nothing_from_the_others_SRV_030(
    caplog: pytest.LogCaptureFixture,
) -> None:
    places = {
        "gone": VolumeOnNode("/gone", read_only=False, is_local=True),
        "path": VolumeOnNode("/path", read_only=False, name="pv"),
        "v": VolumeOnNode("/data", read_only=False, is_local=True),
    }
    claims = [{**CLAIM, "name": name} for name in places]
    with caplog.at_level(logging.WARNING):
        assert list(await metrics(places).of(pod_with(*claims))) == ["v"]
    assert caplog.messages == ["the size of volume gone of web_default(uid-web) is unknown: /gone"]


async def test_a_driver_is_asked_for_its_volumes_SRV_030(tmp_path: Path) -> None:
    async with csi_world(tmp_path, volumeLifecycleModes=["Persistent", "Ephemeral"]) as world:
        world.driver.capabilities = (STATS,)
        bound = await world.set_up(web(), claimed())
        own = await world.volumes.set_up_inline(web("other"), inline())
        measured = metrics({"v": bound, "w": own}, world)
        found = await measured.of(pod_with(CLAIM, {**inline().to_dict(), "name": "w"}))
        asked = [(r.volume_id, r.volume_path) for r in world.driver.requests("NodeGetVolumeStats")]
        assert asked == [(HANDLE, bound.path), (own.handle, own.path)]
        assert [(size.claim, size.local) for size in found.values()] == [
            ("data", False),
            ("", False),
        ]
        room = found["v"].room
        assert room is not None
        assert (room.capacity_bytes, found["v"].used.bytes) == (1 << 30, 1 << 20)
        await world.drivers.let_go(DRIVER)
        assert await measured.of(pod_with(CLAIM)) == {}


async def test_a_driver_without_the_capability_is_not_asked_SRV_030(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world:
        client = world.drivers.client(DRIVER)
        assert await get_metrics(client, HANDLE, "/v", 7) is None
        world.driver.capabilities, world.driver.used = (STATS,), {}
        with pytest.raises(CsiError, match=r"^failed to get usage from response. usage is nil$"):
            await get_metrics(client, HANDLE, str(tmp_path), 7)


def test_units_that_nobody_knows_do_not_count_SRV_030() -> None:
    size = told(("UNKNOWN", 9, 9, 9), ("INODES", 10, 4, 6), ("INODES", 20, 5, 15))
    assert size.used == DiskUse(0, 5)
    assert size.room == FilesystemStats("", 0, 0, 20, 15, 7)
    answer = api.NodeGetVolumeStatsResponse()
    answer.usage.add(total=3).unit = 77  # type: ignore[assignment]
    assert volume_size(answer, 7).used == DiskUse()
