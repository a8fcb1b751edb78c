"""`reset()`: the next test finds the fake as it was made."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from kubecri.v1.api_pb2_grpc import RuntimeServiceStub

import fakecri as package
from fakecri import FakeCRI, FakeNode, exits
from simclock import Ids, Rng

POD = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="shop", uid="u1"))
POD.linux.cgroup_parent = "/kubepods/podu1"
WEB = cri.ContainerConfig(
    metadata=cri.ContainerMetadata(name="web"), image=cri.ImageSpec(image="localhost/busybox:1")
)


async def start_web(fake: FakeCRI) -> str:
    sandbox: Any = await fake.call("RunPodSandbox", cri.RunPodSandboxRequest(config=POD))
    create = cri.CreateContainerRequest(
        pod_sandbox_id=sandbox.pod_sandbox_id, config=WEB, sandbox_config=POD
    )
    made: Any = await fake.call("CreateContainer", create)
    await fake.call("StartContainer", cri.StartContainerRequest(container_id=made.container_id))
    return str(made.container_id)


@pytest.mark.virtual_time
async def test_nothing_of_the_last_test_is_left(tmp_path: Path) -> None:
    (script := tmp_path / "s.yaml").write_text(
        "images: [mine:1]\nbehaviors: [{container: web, exits: {code: 3}}]\n"
        "faults: [{on: Version, fails: {code: UNKNOWN, times: 1}}]\n"
    )
    node = FakeNode(memory_bytes=1 << 30)
    fake = FakeCRI(node=node, script=script)
    fake.images.add("localhost/busybox:1")
    first = await start_web(fake)
    fake.behaves(exits(1), container="web")
    fake.limit_list_batches(1)
    fake.lose_network()
    node.memory_bytes, node.filesystems["/"].base_used_bytes = 5, 7
    node.cgroups.path("/kubepods").mkdir(exist_ok=True)
    fake.kernel_says("so much")
    fake.crash()

    await fake.reset()

    assert (fake.containers(), fake.sandboxes(), fake.calls()) == ([], [], [])
    assert [image.tags[0] for image in fake.images.images.values()] == ["docker.io/library/mine:1"]
    assert len(fake.rules()) == len(FakeCRI(script=script).rules()) == 2
    assert node is fake.node
    assert (node.memory_bytes, node.log.texts) == (1 << 30, [])
    assert node.filesystems["/"].base_used_bytes == FakeNode().filesystems["/"].base_used_bytes
    assert not node.cgroups.path("/kubepods").exists()
    with pytest.raises(grpc.RpcError):  # the script's fault is there again
        await fake.call("Version", cri.VersionRequest())
    fake.images.add("localhost/busybox:1")
    assert await start_web(fake) == first  # ids begin anew
    await asyncio.sleep(1)
    assert fake.container("web").exit_code == 3
    status: Any = await fake.call("Status", cri.StatusRequest())
    assert all(condition.status for condition in status.status.conditions)


@pytest.mark.virtual_time
async def test_calls_under_way_end_and_given_ids_go_on() -> None:
    fake = FakeCRI(ids=Ids(Rng(5)))
    first = await start_web(fake)
    fake.on("Version").hangs()
    stub = RuntimeServiceStub(fake.channel())
    hangs, events = (
        stub.Version(cri.VersionRequest()),
        stub.GetContainerEvents(cri.GetEventsRequest()),
    )
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await fake.reset()
    with pytest.raises(grpc.aio.AioRpcError, match="is down"):
        await hangs
    with pytest.raises(grpc.aio.AioRpcError, match="is down"):
        await events.read()
    assert await start_web(fake) != first


def test_a_served_fake_is_reset_from_outside() -> None:
    with package.serve(clock="manual") as fake:
        fake.behaves(exits(1), container="web")
        fake.advance(5)
        with grpc.insecure_channel(fake.endpoint.replace("unix://", "unix:")) as channel:
            stub = RuntimeServiceStub(channel)
            stub.RunPodSandbox(cri.RunPodSandboxRequest(config=POD))
            fake.reset()
            assert (fake.sandboxes(), fake.rules(), fake.count()) == ([], [], 0)
            stub.Version(cri.VersionRequest())
        fake.assert_called("Version", times=1)
        assert fake.advance(1) == 6


@pytest.mark.virtual_time
async def test_names_given_by_an_iterator_are_there_again() -> None:
    fake = FakeCRI(images=iter(["mine:1", "mine:2"]), runtime_handlers=iter(["gvisor"]))
    await fake.reset()
    listed: Any = await fake.call("ListImages", cri.ListImagesRequest())
    assert len(listed.images) == 2
    status: Any = await fake.call("Status", cri.StatusRequest())
    assert [handler.name for handler in status.runtime_handlers] == ["", "gvisor"]
