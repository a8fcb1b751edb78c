"""Volumes of drivers that were made larger: what claims ask for, and what happens when pods end or
the API server fails meanwhile (NODE-222)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from csi_world import DRIVER, HANDLE, CsiWorld, claimed, csi_world, web
from lightkube.models.core_v1 import PersistentVolumeClaim

from fakecri.csi import FakeCsiDriver
from kubeobjects.structs import replace
from refkubelet.api.kinds import CLAIMS
from refkubelet.volumes.claims import ClaimedVolume
from refkubelet.volumes.csi.expansion import (
    Expansion,
    Report,
    Turn,
    expansion,
    marked_failed,
    marked_finished,
)
from refkubelet.volumes.csi.names import unique_volume_name
from refkubelet.volumes.mount_errors import MountFailed

pytestmark = pytest.mark.virtual_time

EXPAND = "EXPAND_VOLUME"
METHOD = "NodeExpandVolume"
CLAIMS_PATH = "/api/v1/namespaces/default/persistentvolumeclaims"
PENDING = {"storage": "NodeResizePending"}
TWO = {"storage": "2Gi"}


def claim(*modes: str, **status: Any) -> PersistentVolumeClaim:
    """A claim with that status, which has 1Gi unless it says something else."""
    spec = {"accessModes": list(modes or ["ReadWriteOnce"]), "resources": {"requests": TWO}}
    body = {
        "metadata": {"name": "data", "namespace": "default", "resourceVersion": "7"},
        "spec": spec,
        "status": {"capacity": {"storage": "1Gi"}, **status},
    }
    return PersistentVolumeClaim.from_dict(body)


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        ({}, Expansion(Turn.NODE, "3Gi", Report.END)),
        ({"allocatedResources": TWO, "allocatedResourceStatuses": PENDING}, "2Gi"),
        ({"allocatedResourceStatuses": PENDING}, Expansion(Turn.CONTROLLER, "0")),
        ({"allocatedResources": TWO}, Expansion(Turn.CONTROLLER, "2Gi")),
        (
            {"allocatedResources": TWO, "capacity": TWO},
            Expansion(Turn.NOBODY, "2Gi", Report.FAILURES),
        ),
        (
            {
                "allocatedResources": TWO,
                "capacity": TWO,
                "allocatedResourceStatuses": {"storage": "ControllerResizeInfeasible"},
            },
            Expansion(Turn.CONTROLLER, "2Gi"),
        ),
    ],
)
def test_the_claim_decides_NODE_222(status: dict[str, Any], wanted: Expansion | str) -> None:
    found = expansion(claim(**status), "3Gi")
    assert found == (Expansion(Turn.NODE, wanted) if isinstance(wanted, str) else wanted)


def test_a_claim_without_anything_is_of_an_old_controller_NODE_222() -> None:
    assert expansion(PersistentVolumeClaim(), "3Gi").report is Report.END


def test_a_reason_that_is_there_stays_NODE_222() -> None:
    there = {"type": "NodeResizeError", "status": "True", "message": "the first"}
    assert marked_failed(claim(conditions=[there]), "why", "now", infeasible=False) == {}
    gone = claim(conditions=[{**there, "status": "False"}])
    (condition,) = marked_failed(gone, "why", "now", infeasible=False)["status"]["conditions"]
    assert condition["message"] == "failed to expand pvc with why"


def test_what_is_not_there_is_not_removed_NODE_222() -> None:
    patch = {"metadata": {"resourceVersion": "7"}, "status": {"capacity": TWO}}
    assert marked_finished(claim(), "2Gi") == patch


ONE = {"storage": "1Gi"}
GROWING = {"capacity": ONE, "allocatedResources": TWO, "allocatedResourceStatuses": PENDING}


async def growing(world: CsiWorld, **status: Any) -> ClaimedVolume:
    """A claim at the API server that shall have 2Gi, as a pod has it; `status`: another one."""
    body = claim().to_dict()
    del body["metadata"]["resourceVersion"]
    await world.request("POST", CLAIMS_PATH, body)
    await world.client.patch(
        CLAIMS, "data", {"status": status or GROWING}, "default", subresource="status"
    )
    return replace(claimed(capacity=TWO), claim=await world.client.get(CLAIMS, "data", "default"))


def driver() -> FakeCsiDriver:
    return FakeCsiDriver("disks.example", capabilities=("STAGE_UNSTAGE_VOLUME", EXPAND))


async def size(world: CsiWorld) -> str:
    found = await world.client.get(CLAIMS, "data", "default")
    assert found.status is not None
    return str((found.status.capacity or {})["storage"])


async def test_a_pod_that_ends_waits_for_its_driver_and_nothing_follows_NODE_222(
    tmp_path: Path,
) -> None:
    async with csi_world(tmp_path, driver()) as world:
        await world.set_up(web(), claimed())
        grows = await growing(world)
        world.driver.delays(METHOD, 30.0)
        world.volumes.expand(web(), grows)
        await world.clock.sleep(10)
        world.driver.fails("NodeUnstageVolume", "busy")  # what follows would find it staged
        began_s = world.clock.monotonic_s()
        await world.volumes.tear_down("uid-web")
        assert world.clock.monotonic_s() - began_s == pytest.approx(20, abs=1)
        assert world.methods()[:4] == ["stage", "publish", "expand", "unpublish"]
        assert await size(world) == "2Gi"


async def test_a_call_that_fails_when_its_pod_has_ended_is_the_last_NODE_222(
    tmp_path: Path,
) -> None:
    async with csi_world(tmp_path, driver()) as world:
        await world.set_up(web(), claimed())
        grows = await growing(world)
        world.driver.hangs(METHOD)  # until its time is over
        world.volumes.expand(web(), grows)
        await world.clock.sleep(10)
        await world.volumes.tear_down("uid-web")
        await world.clock.sleep(300)
        assert world.driver.methods(METHOD) == [METHOD]


async def test_a_pod_that_ends_before_its_turn_is_not_asked_for_NODE_222(tmp_path: Path) -> None:
    async with csi_world(tmp_path, driver()) as world:
        await world.set_up(web(), claimed())
        grows = await growing(world)
        lock = world.staging.lock(unique_volume_name(DRIVER, HANDLE))
        async with lock:  # something else is done with the volume
            world.volumes.expand(web(), grows)
            await world.clock.sleep(1)
            ending = asyncio.create_task(world.volumes.tear_down("uid-web"))
            await world.clock.sleep(1)
        await ending
        await world.clock.sleep(1)
        assert world.methods() == ["stage", "publish", "unpublish", "unstage"]


async def test_a_pod_that_ends_gives_up_what_waits_NODE_222(tmp_path: Path) -> None:
    async with csi_world(tmp_path, driver()) as world:
        await world.set_up(web(), claimed())
        grows = await growing(world)
        world.driver.fails(METHOD, "no")
        world.volumes.expand(web(), grows)
        await world.clock.sleep(2)
        asked = len(world.driver.methods(METHOD))
        began_s = world.clock.monotonic_s()
        await world.volumes.tear_down("uid-web")
        assert world.clock.monotonic_s() - began_s < 1
        await world.clock.sleep(300)
        assert len(world.driver.methods(METHOD)) == asked > 0


async def test_another_pod_goes_on_NODE_222(tmp_path: Path) -> None:
    async with csi_world(tmp_path, driver()) as world:
        for uid in ("a", "b"):
            await world.set_up(web(uid), claimed())
        grows = await growing(world)
        world.driver.fails(METHOD, "no", times=1)
        world.volumes.expand(web("a"), grows)
        await asyncio.sleep(0.1)
        await world.volumes.tear_down("a")
        world.volumes.expand(web("b"), grows)
        await world.clock.sleep(10)
        paths = [request.volume_path for request in world.driver.requests(METHOD)]
        assert ["/a/" in path for path in paths] == [True, False]
        assert await size(world) == "2Gi"


async def test_a_pod_that_ends_at_once_hinders_nobody_NODE_222(tmp_path: Path) -> None:
    async with csi_world(tmp_path, driver()) as world:
        for uid in ("a", "b"):
            await world.set_up(web(uid), claimed())
        grows = await growing(world)
        world.volumes.expand(web("a"), grows)
        await world.volumes.tear_down("a")
        world.volumes.expand(web("b"), grows)
        await world.clock.sleep(10)
        assert await size(world) == "2Gi"


async def test_what_another_pod_has_had_done_is_not_done_again_NODE_222(tmp_path: Path) -> None:
    async with csi_world(tmp_path, driver()) as world:
        await world.set_up(web("a"), claimed())
        grows = await growing(world, capacity=ONE)  # the controller is of old
        world.driver.fails(METHOD, "no", times=4)
        world.volumes.expand(web("a"), grows)
        await world.clock.sleep(4)  # the next try comes at 7.5 s
        await world.set_up(web("b"), grows)
        assert await size(world) == "2Gi"
        await world.clock.sleep(300)
        assert len(world.driver.methods(METHOD)) == 5


async def test_a_claim_without_a_size_is_left_alone_while_in_use_NODE_222(tmp_path: Path) -> None:
    async with csi_world(tmp_path, driver()) as world:
        await world.set_up(web(), claimed())
        grows = await growing(world, phase="Bound")
        world.volumes.expand(web(), grows)
        await world.clock.sleep(60)
        assert world.driver.methods(METHOD) == []
        await world.client.patch(
            CLAIMS, "data", {"status": GROWING}, "default", subresource="status"
        )
        known = await world.client.get(CLAIMS, "data", "default")
        world.volumes.expand(web(), replace(grows, claim=known))
        await world.clock.sleep(60)
        assert await size(world) == "2Gi"


async def test_a_success_forgets_the_failures_before_NODE_222(tmp_path: Path) -> None:
    async with csi_world(tmp_path, driver()) as world:
        await world.set_up(web(), claimed())
        world.driver.fails(METHOD, "no", times=1)
        world.volumes.expand(web(), await growing(world))
        await world.clock.sleep(10)
        three = {"storage": "3Gi"}
        status = {"allocatedResources": three, "allocatedResourceStatuses": PENDING}
        await world.client.patch(
            CLAIMS, "data", {"status": status}, "default", subresource="status"
        )
        known = await world.client.get(CLAIMS, "data", "default")
        world.driver.fails(METHOD, "no", times=1)
        world.volumes.expand(web(), replace(claimed(capacity=three), claim=known))
        await world.clock.sleep(10)
        assert await size(world) == "3Gi"


async def test_the_pauses_after_failures_do_not_depend_on_syncs_NODE_222(tmp_path: Path) -> None:
    async with csi_world(tmp_path, driver()) as world:
        await world.set_up(web(), claimed())
        grows = await growing(world)
        world.driver.fails(METHOD, "no")
        for _ in range(10):
            world.volumes.expand(web(), grows)
            await world.clock.sleep(1)
        assert len(world.driver.methods(METHOD)) == 5  # after 0, 0.5, 1.5, 3.5 and 7.5 s


async def test_a_claim_that_cannot_be_written_is_tried_again_NODE_222(tmp_path: Path) -> None:
    async with csi_world(tmp_path, driver()) as world:
        await world.set_up(web(), claimed())
        grows = await growing(world)
        path = f"{CLAIMS_PATH}/data/status"
        with world.api.fails("PATCH", path):
            world.volumes.expand(web(), grows)
            await world.clock.sleep(0.2)
        assert world.driver.methods(METHOD) == []
        messages = [event.message for event in world.events.events]
        assert 'patchPVCStatus failed to patch PVC "data"' in messages[-1]
        await world.clock.sleep(10)
        assert await size(world) == "2Gi"


@pytest.mark.parametrize(
    ("status", "what"),
    [
        (GROWING, "update pvc status failed: patchPVCStatus failed"),
        ({"capacity": ONE}, "update PVC status failed : patchPVCStatus failed"),
    ],
)
async def test_an_end_that_cannot_be_written_says_so_NODE_222(
    tmp_path: Path, status: dict[str, Any], what: str
) -> None:
    async with csi_world(tmp_path, driver()) as world:
        await world.set_up(web(), claimed())
        grows = await growing(world, **status)
        world.driver.on_call = lambda call: (
            world.api.fails("PATCH", CLAIMS_PATH) if call.method == METHOD else None
        )
        world.volumes.expand(web(), grows)
        await world.clock.sleep(0.2)
        assert f"mountVolume.NodeExpandVolume {what}" in world.events.events[-1].message


async def test_what_is_mounted_waits_for_it_NODE_222(tmp_path: Path) -> None:
    async with csi_world(tmp_path, driver()) as world:
        grows = await growing(world)
        world.driver.fails(METHOD, "no", times=1)
        with pytest.raises(MountFailed, match="failed to expand the volume : rpc error") as caught:
            await world.set_up(web(), grows)
        assert caught.value.step == "Setup failed while expanding volume"
        await world.set_up(web(), grows)
        assert await size(world) == "2Gi"
        assert world.methods() == ["stage", "publish", "expand", "publish", "expand"]
        world.volumes.expand(web(), grows)
        await world.clock.sleep(10)
        assert len(world.driver.methods(METHOD)) == 2
