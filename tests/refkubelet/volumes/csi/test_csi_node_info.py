"""CSINode: made with the Node, kept while drivers come and go (NODE-216)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from csi_world import DRIVER, NODE, CsiWorld, csi_world

from fakecri.csi import FakeCsiDriver
from refkubelet.api.kinds import NODES
from refkubelet.volumes.csi.drivers import DriverRefused
from refkubelet.volumes.csi.node_objects import NODE_IDS

pytestmark = pytest.mark.virtual_time

CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"


async def csi_node(world: CsiWorld) -> dict[str, Any]:
    answer = await world.api.request("GET", f"{CSI_NODES}/{NODE}")
    return answer.body if answer.ok else {}


async def names(world: CsiWorld) -> list[str]:
    return [d["name"] for d in (await csi_node(world))["spec"]["drivers"] or []]


async def test_it_is_made_when_there_is_the_node_NODE_216(tmp_path: Path) -> None:
    world = CsiWorld(tmp_path)
    task = asyncio.create_task(world.info.run())
    with world.api.down():
        await world.clock.sleep(30)
        assert world.info.not_ready() == ["CSINode is not yet initialized"]
    await world.clock.sleep(1.4)
    (told,) = world.info.not_ready()
    assert told.startswith("failed to initialize CSINode: error updating CSINode annotation: ")
    node = await world.add_node()
    await world.clock.sleep(2.5)
    assert world.info.not_ready() == []
    owner = {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": node["metadata"]["uid"]}
    assert (await csi_node(world))["metadata"]["ownerReferences"] == [owner]
    task.cancel()


async def test_one_of_an_earlier_node_is_made_anew_NODE_216(tmp_path: Path) -> None:
    world = CsiWorld(tmp_path)
    await world.add_node()
    owner = {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": "earlier"}
    drivers = [{"name": "old", "nodeID": "x"}]
    body = {"metadata": {"name": NODE, "ownerReferences": [owner]}, "spec": {"drivers": drivers}}
    await world.request("POST", CSI_NODES, body)
    task = asyncio.create_task(world.info.run())
    await world.clock.sleep(1)
    assert await names(world) == []
    assert (await csi_node(world))["metadata"]["ownerReferences"][0]["uid"] != "earlier"
    task.cancel()


async def test_one_that_comes_back_does_not_end_the_look_NODE_216(tmp_path: Path) -> None:
    world = CsiWorld(tmp_path)
    await world.add_node()
    owner = {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": "earlier"}
    body = {"metadata": {"name": NODE, "ownerReferences": [owner]}, "spec": {"drivers": []}}
    await world.request("POST", CSI_NODES, body)
    with world.api.fails("DELETE", CSI_NODES, status=403, times=3):
        task = asyncio.create_task(world.info.run())
        await world.clock.sleep(0.315)  # the last of the four tries is the first that deletes it
        assert not task.done()
        await world.clock.sleep(5)
    assert world.info.not_ready() == []
    task.cancel()


async def test_drivers_that_register_at_once_are_all_there_NODE_216(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world:
        path = str(world.socket)
        await asyncio.gather(*(world.drivers.register(n, path, ("1.0.0",)) for n in "abc"))
        assert sorted(await names(world)) == ["a", "b", "c", DRIVER]
        found = await world.client.get(NODES, NODE)
        assert found.metadata is not None
        assert found.metadata.annotations is not None
        assert json.loads(found.metadata.annotations[NODE_IDS]).keys() == {"a", "b", "c", DRIVER}
        await asyncio.gather(*map(world.drivers.let_go, "abc"))
        assert await names(world) == [DRIVER]


async def test_another_client_may_change_it_meanwhile_NODE_216(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world:
        conflict = world.api.fails("PUT", CSI_NODES, status=409, times=2)
        await world.drivers.register("other", str(world.socket), ("1.0.0",))
        assert conflict.hits == 2
        assert await names(world) == [DRIVER, "other"]


async def test_what_cannot_be_told_is_the_registrations_error_NODE_216(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world:
        wanted = "error updating CSINode object with CSI driver node info: error updating CSINode: "
        with world.api.fails("PUT", CSI_NODES, status=403):
            with pytest.raises(DriverRefused, match=wanted):
                await world.drivers.register("other", str(world.socket), ("1.0.0",))
            await world.drivers.let_go("other")  # only logged
        with pytest.raises(Exception, match="driver name other not found"):
            world.drivers.client("other")


@pytest.mark.parametrize(
    ("driver", "wanted"),
    [
        (FakeCsiDriver(DRIVER, node_id=""), "driverNodeID must not be empty"),
        (FakeCsiDriver(DRIVER, topology={"kubernetes.io/os": "x"}), "topology value collision"),
    ],
)
async def test_a_driver_that_does_not_fit_is_not_used_NODE_216(
    tmp_path: Path, driver: FakeCsiDriver, wanted: str
) -> None:
    async with csi_world(tmp_path, driver, registered=False) as world:
        labels = {"metadata": {"labels": {"kubernetes.io/os": "linux"}}}
        await world.client.patch(NODES, NODE, labels, subresource="status")
        with pytest.raises(DriverRefused, match=wanted):
            await world.register()
        assert await names(world) == []
        with pytest.raises(Exception, match="not found in the list of registered"):
            world.drivers.client(DRIVER)
