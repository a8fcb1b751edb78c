"""Volumes of drivers: how often a driver is asked, side by side, and when it fails (NODE-217,
NODE-218, NODE-219)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from csi_world import DRIVER, HANDLE, NODE, claimed, csi_world, inline, web

from fakecri.csi import FakeCsiDriver
from refkubelet.api.client import ApiError
from refkubelet.host.untrusted_files import opened_below
from refkubelet.model.objects import Node, to_dict
from refkubelet.volumes.csi.client import CsiError
from refkubelet.volumes.csi.names import unique_volume_name
from refkubelet.volumes.mount_errors import MountFailed, NotAttached
from refkubelet.volumes.mounting import RealMounts

pytestmark = pytest.mark.virtual_time

BOTH = ["Persistent", "Ephemeral"]
UNIQUE = unique_volume_name(DRIVER, HANDLE)


async def test_two_pods_stage_a_volume_once_NODE_217(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world:
        world.driver.delays("NodeStageVolume", 3.0)
        set_up = world.set_up
        await asyncio.gather(set_up(web("a"), claimed()), set_up(web("b"), claimed()))
        assert world.methods() == ["stage", "publish", "publish"]
        await world.volumes.tear_down("a")
        await world.clock.sleep(10)
        assert world.methods()[3:] == ["unpublish"]
        await world.volumes.tear_down("b")
        await world.clock.sleep(10)
        assert world.methods()[4:] == ["unpublish", "unstage"]
        assert not world.driver.staged
        assert not (tmp_path / "plugins/kubernetes.io/csi" / DRIVER).is_dir() or not any(
            (tmp_path / "plugins/kubernetes.io/csi" / DRIVER).iterdir()
        )


async def test_a_pod_that_comes_while_a_volume_is_unstaged_stages_it_again_NODE_219(
    tmp_path: Path,
) -> None:
    async with csi_world(tmp_path) as world:
        await world.set_up(web("a"), claimed())
        world.driver.delays("NodeUnstageVolume", 5.0)
        await world.volumes.tear_down("a")
        await world.clock.sleep(1)
        await world.set_up(web("b"), claimed())
        assert world.methods()[3:] == ["unstage", "stage", "publish"]
        await world.clock.sleep(300)
        assert world.methods()[3:] == ["unstage", "stage", "publish"]
        assert world.driver.staged


async def test_a_failed_unstage_is_tried_again_until_a_pod_wants_the_volume_NODE_219(
    tmp_path: Path,
) -> None:
    async with csi_world(tmp_path) as world:
        await world.set_up(web("a"), claimed())
        world.driver.fails("NodeUnstageVolume", "busy")
        await world.volumes.tear_down("a")
        await world.clock.sleep(3)
        assert world.methods().count("unstage") == 3  # at once, after 0.5 s, after 1 s more
        await world.set_up(web("b"), claimed())
        await world.clock.sleep(600)
        assert world.methods().count("unstage") == 3
        assert world.methods()[-2:] == ["stage", "publish"]


async def test_the_end_is_tried_for_two_minutes_NODE_219(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world:
        await world.set_up(web(), claimed())
        world.driver.fails("NodeUnpublishVolume", "busy")
        begun_s = world.clock.monotonic_s()
        with pytest.raises(OSError, match="is not unpublished: rpc error: code = Internal desc"):
            await world.volumes.tear_down("uid-web")
        assert 60 < world.clock.monotonic_s() - begun_s <= 123
        assert world.use.in_use(()) == []  # it is not attachable
        world.driver.works("NodeUnpublishVolume")
        await world.volumes.tear_down("uid-web")
        assert not world.driver.published


async def test_volumes_of_a_pod_that_is_gone_are_ended_by_the_next_kubelet_NODE_219(
    tmp_path: Path,
) -> None:
    driver = FakeCsiDriver(DRIVER)
    async with csi_world(tmp_path, driver) as first:
        await first.set_up(web(), claimed())
    async with csi_world(tmp_path, driver, registered=False) as world:
        assert world.use.in_use([UNIQUE]) == []
        await world.clock.sleep(0)
        assert world.use.in_use([UNIQUE]) == [UNIQUE]
        assert world.volumes.is_left("uid-web")
        await world.clock.sleep(5)
        assert world.volumes.is_left("uid-web")  # there is no driver yet
        await world.register()
        await world.clock.sleep(10)
        assert not world.volumes.is_left("uid-web")
        assert world.methods()[2:] == ["unpublish", "unstage"]
        assert world.use.in_use([UNIQUE]) == []


async def test_what_was_left_staged_is_ended_at_the_start_NODE_219(tmp_path: Path) -> None:
    driver = FakeCsiDriver(DRIVER)
    async with csi_world(tmp_path, driver) as first:
        await first.set_up(web(), claimed())
        driver.fails("NodeUnstageVolume", "not now")
        await first.volumes.tear_down("uid-web")
    driver.works("NodeUnstageVolume")
    async with csi_world(tmp_path, driver) as world:
        await world.clock.sleep(1)
        assert not driver.staged
        assert world.use.in_use([UNIQUE]) == []


async def test_a_call_that_hangs_is_given_up_and_may_have_worked_NODE_217(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world:
        world.driver.hangs("NodePublishVolume", times=1)
        begun_s = world.clock.monotonic_s()
        with pytest.raises(MountFailed, match="code = DeadlineExceeded"):
            await world.set_up(web(), claimed())
        assert world.clock.monotonic_s() - begun_s == pytest.approx(120)
        await world.volumes.tear_down("uid-web")
        assert world.methods() == ["stage", "publish", "unpublish"]


async def test_what_failed_for_good_is_not_undone_NODE_217(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world:
        world.driver.fails("NodePublishVolume", "no such disk", code="NOT_FOUND")
        with pytest.raises(MountFailed, match="no such disk"):
            await world.set_up(web(), claimed())
        await world.volumes.tear_down("uid-web")
        await world.clock.sleep(1)
        assert world.methods() == ["stage", "publish", "unstage"]


async def test_a_volume_is_used_only_when_the_node_says_so_NODE_217(tmp_path: Path) -> None:
    async with csi_world(tmp_path, attachRequired=True) as world:
        shown = {"metadata": {"name": NODE}, "status": {}}
        attached = {"volumesAttached": [{"name": UNIQUE, "devicePath": ""}]}
        for status, reported in ((attached, []), ({}, [UNIQUE])):
            world.node = Node.from_dict({**shown, "status": status})
            world.volumes.reported(reported)
            with pytest.raises(NotAttached):
                await world.set_up(web(), claimed())
        assert world.volumes.in_use(()) == [UNIQUE]
        world.node = Node.from_dict({**shown, "status": attached})
        with pytest.raises(MountFailed, match="has GET error for volume attachment csi-"):
            await world.set_up(web(), claimed())
        assert world.methods() == []
        await world.volumes.tear_down("uid-web")
        assert world.volumes.in_use(()) == []


async def test_a_refused_volume_is_not_touched_NODE_217(tmp_path: Path) -> None:
    def refuse() -> None:
        raise MountFailed("SetUp failed", "for another pod")

    async with csi_world(tmp_path) as world:
        with pytest.raises(MountFailed, match="for another pod"):
            await world.set_up(web(), claimed(), refuse)
        assert world.methods() == []


async def test_without_the_api_server_a_volume_waits_NODE_218(tmp_path: Path) -> None:
    async with csi_world(tmp_path, volumeLifecycleModes=BOTH) as world:
        with world.api.down(), pytest.raises(ApiError, match="timed out waiting for the CSIDriver"):
            await world.volumes.set_up_inline(web(), inline())
        assert world.methods() == []
        await world.clock.sleep(60)
        await world.volumes.set_up_inline(web(), inline())
        assert world.methods() == ["publish"]


async def test_a_driver_that_is_let_go_is_not_asked_NODE_219(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world:
        client = world.drivers.client(DRIVER)
        world.sockets.leave(str(world.socket))
        with pytest.raises(CsiError, match="code = Unavailable") as caught:
            await client.capabilities()
        assert not caught.value.is_final


async def test_a_driver_that_is_not_registered_fails_its_volumes_NODE_217(tmp_path: Path) -> None:
    async with csi_world(tmp_path, registered=False, volumeLifecycleModes=BOTH) as world:
        wanted = f"driver name {DRIVER} not found in the list of registered CSI drivers"
        with pytest.raises(MountFailed, match=wanted) as device:
            await world.set_up(web(), claimed())
        with pytest.raises(MountFailed, match=wanted) as volume:
            await world.volumes.set_up_inline(web(), inline())
        assert (device.value.step, volume.value.step) == ("MountDevice failed", "SetUp failed")


async def test_what_is_mounted_without_a_record_may_be_any_volume_NODE_219(
    tmp_path: Path, real_mounts: RealMounts
) -> None:
    driver = FakeCsiDriver(DRIVER)
    async with csi_world(tmp_path, driver) as first:
        place = await first.set_up(web(), claimed())
    (Path(place.path).parent / "vol_data.json").write_text("{")
    source = tmp_path / "source"
    source.mkdir()
    with opened_below(str(source), "") as opened:
        real_mounts.bind(opened, place.path)  # of the same file system, as drivers do it
    async with csi_world(tmp_path, driver) as world:
        await world.clock.sleep(600)
        assert world.methods() == ["stage", "publish"]
        await world.set_up(web("other"), claimed(csi={"driver": DRIVER, "volumeHandle": "disk-2"}))
        await world.volumes.tear_down("other")
        await world.clock.sleep(1)
        assert world.methods()[2:] == ["stage", "publish", "unpublish", "unstage"]
        assert driver.staged.keys() == {HANDLE}
    real_mounts.unmount_below(str(tmp_path))


async def test_a_volume_that_is_left_out_of_the_status_is_not_reported_NODE_217(
    tmp_path: Path,
) -> None:
    async with csi_world(tmp_path, attachRequired=True) as world:
        attached = {"volumesAttached": [{"name": UNIQUE, "devicePath": ""}]}
        world.node = Node.from_dict({"metadata": {"name": NODE}, "status": attached})
        world.volumes.reported([UNIQUE])
        assert world.volumes.in_use([UNIQUE]) == []  # what is being written to the Node
        with pytest.raises(NotAttached):
            await world.set_up(web(), claimed())
        world.volumes.reported(world.volumes.in_use([UNIQUE]))
        with pytest.raises(MountFailed, match="GET error"):
            await world.set_up(web(), claimed())


async def test_what_fails_of_a_staged_volume_is_its_set_up_NODE_217(tmp_path: Path) -> None:
    async with csi_world(tmp_path, volumeLifecycleModes=BOTH) as world:
        await world.set_up(web("a"), claimed())
        world.driver.fails("NodeGetCapabilities", "not now")
        with pytest.raises(MountFailed, match="failed to check for STAGE_UNSTAGE_VOLUME") as error:
            await world.set_up(web("b"), claimed())
        with pytest.raises(MountFailed, match="has VOLUME_MOUNT_GROUP capability: rpc") as inlined:
            await world.volumes.set_up_inline(web("b"), inline())
        await world.drivers.let_go(DRIVER)
        with pytest.raises(MountFailed, match="SetUpAt failed to get CSI client: ") as gone:
            await world.set_up(web("b"), claimed())
        assert {e.value.step for e in (error, inlined, gone)} == {"SetUp failed"}


async def test_tokens_are_in_the_kubelets_order_NODE_218(tmp_path: Path) -> None:
    wanted = [{"audience": "vault"}, {"audience": "a"}]
    async with csi_world(tmp_path, volumeLifecycleModes=BOTH, tokenRequests=wanted) as world:
        body: Any = {"apiVersion": "v1", "kind": "Pod", **to_dict(web())}
        body["spec"]["serviceAccountName"] = "default"
        made = await world.request("POST", "/api/v1/namespaces/default/pods", body)
        pod = web(made["metadata"]["uid"])
        pod.spec.serviceAccountName = "default"
        await world.volumes.set_up_inline(pod, inline())
        (request,) = world.driver.requests("NodePublishVolume")
        text = request.volume_context["csi.storage.k8s.io/serviceAccount.tokens"]
        assert list(json.loads(text)) == ["a", "vault"]
        assert [list(one) for one in json.loads(text).values()] == [
            ["token", "expirationTimestamp"]
        ] * 2
