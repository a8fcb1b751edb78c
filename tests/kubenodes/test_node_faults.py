"""What can happen to a node, and what of it its API server and the other nodes see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pods_on_nodes import PODS, create, everything, is_phase

from fakecri.core.objects import State
from fakekubeapi import FakeApi
from kubenodes import KubeNode, NodeError, NodePool, NodeSettings
from kubenodes.shared_reads import SharedReads
from kubenodes.wire import client_of
from refkubelet.api.client import ApiError

pytestmark = pytest.mark.virtual_time


def running(node: KubeNode) -> list[str]:
    return [c.pod.name for c in node.runtime.containers() if c.state is State.RUNNING]


def writes(api: FakeApi) -> list[tuple[str, str]]:
    """What was asked of the server beside reads; those are the pool's, for all its nodes."""
    return [(one.method, one.path) for one in api.requests() if one.method != "GET"]


async def test_containers_go_on_without_their_kubelet(
    kube_node: KubeNode, kube_api: FakeApi
) -> None:
    await create(kube_api, "web", kube_node.name)
    await is_phase(kube_api, "web", "Running")
    for end in (kube_node.stop, kube_node.kill):
        await end()
        assert running(kube_node) == ["web"]
        await kube_node.start()
        await kube_node.ready()
    await asyncio.sleep(60)
    assert (len(kube_node.runtime.containers()), running(kube_node)) == (1, ["web"])


async def test_a_node_without_power_has_no_containers_and_tells_nobody(
    kube_node: KubeNode, kube_api: FakeApi
) -> None:
    await create(kube_api, "web", kube_node.name)
    await is_phase(kube_api, "web", "Running")
    await kube_node.power_off()
    written = writes(kube_api)
    await asyncio.sleep(300)
    assert (running(kube_node), writes(kube_api)) == ([], written)
    assert (await is_phase(kube_api, "web", "Running"))["metadata"]["name"] == "web"
    boot = (await kube_api.request("GET", f"/api/v1/nodes/{kube_node.name}")).body
    await kube_node.power_on()
    await asyncio.sleep(60)
    again = (await kube_api.request("GET", f"/api/v1/nodes/{kube_node.name}")).body
    assert running(kube_node) == ["web"]
    assert boot["status"]["nodeInfo"]["bootID"] != again["status"]["nodeInfo"]["bootID"]
    answer = await kube_api.request("GET", f"{PODS}/web")
    assert answer.body["status"]["containerStatuses"][0]["restartCount"] == 1


async def test_a_node_that_lost_the_network_keeps_its_pods_and_hears_nothing(
    kube_nodes: Callable[..., Any], kube_api: FakeApi
) -> None:
    lost, other = await kube_nodes(2)
    await create(kube_api, "web", lost.name)
    await is_phase(kube_api, "web", "Running")
    await asyncio.sleep(30)
    lost.lose_network()
    await create(kube_api, "late", lost.name)
    await create(kube_api, "beside", other.name)
    await kube_api.request("DELETE", f"{PODS}/web")
    await is_phase(kube_api, "beside", "Running")
    await asyncio.sleep(120)
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    before = (await kube_api.request("GET", f"{lease}/{lost.name}")).body["spec"]["renewTime"]
    await asyncio.sleep(60)
    after = (await kube_api.request("GET", f"{lease}/{lost.name}")).body["spec"]["renewTime"]
    assert (running(lost), before) == (["web"], after)
    lost.restore_network()
    await is_phase(kube_api, "late", "Running")
    await asyncio.sleep(60)
    assert running(lost) == ["late"]
    assert (await kube_api.request("GET", f"{PODS}/web")).status == 404


async def test_what_cannot_be_done_is_one_sentence(kube_node: KubeNode) -> None:
    with pytest.raises(NodeError, match="runs already"):
        await kube_node.start()
    await kube_node.stop()
    with pytest.raises(NodeError, match="does not run"):
        await kube_node.stop()
    with pytest.raises(NodeError, match="does not run"):
        await kube_node.ready()
    await kube_node.kill()


async def test_a_node_that_never_gets_ready_says_why(tmp_path: Any) -> None:
    api = FakeApi()
    node = KubeNode(NodeSettings(name="alone"), client_of(api), tmp_path)
    api.fails("POST", "nodes$", 403)
    await node.start()
    with pytest.raises(NodeError, match=r"node alone is not ready after 20 s: 404 NotFound"):
        await node.ready(within_s=20)
    await node.close()


async def test_somebody_elses_node_is_left_alone(tmp_path: Any) -> None:
    api = FakeApi()
    theirs = {"metadata": {"name": "worker-0", "labels": {"a": "b"}}}
    await api.request("POST", "/api/v1/nodes", body=theirs)
    await create(api, "theirs", "worker-0")
    settings = [NodeSettings(name="worker-0"), NodeSettings(name="worker-1")]
    with pytest.raises(NodeError, match="node worker-0 is there already, and somebody else's"):
        async with NodePool(settings, client_of(api), tmp_path):
            pass
    left = await everything(api)
    assert [path for path in left if "worker" in path] == ["/api/v1/nodes/worker-0"]
    assert "/api/v1/pods/theirs" in left


async def test_one_node_that_fails_does_not_touch_the_others(tmp_path: Any) -> None:
    api = FakeApi()
    settings = [NodeSettings(name=f"n-{number}") for number in range(3)]
    pool = NodePool(settings, client_of(api), tmp_path)
    api.fails("PATCH", "nodes/n-1/status$", 500)
    api.fails("POST", "nodes$", 500, times=1)
    with pytest.raises(NodeError, match="n-1"):
        await pool.start(within_s=30)
    await pool["n-0"].ready()
    await create(api, "web", "n-2")
    await is_phase(api, "web", "Running")
    await pool.close()


async def test_an_error_at_a_start_waits_for_the_other_nodes(tmp_path: Any) -> None:
    """So that none of them starts after the pool was given up."""
    api = FakeApi()
    others = await everything(api)
    (tmp_path / "n-0").write_text("no directory")
    settings = [NodeSettings(name=f"n-{number}") for number in range(2)]
    pool = NodePool(settings, client_of(api), tmp_path)
    with pytest.raises(FileExistsError):
        await pool.start()
    await pool["n-1"].ready(within_s=0.01)
    await pool.remove()
    await asyncio.sleep(60)
    assert await everything(api) == others


async def test_nothing_is_left_where_something_cannot_be_closed(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = FakeApi()
    others = await everything(api)

    async def broken(reads: SharedReads) -> None:
        raise OSError("cannot be closed")

    monkeypatch.setattr(SharedReads, "close", broken)
    with pytest.raises(OSError, match="cannot be closed"):
        async with NodePool([NodeSettings(name="n-0")], client_of(api), tmp_path):
            assert len(await everything(api)) > len(others)
    assert await everything(api) == others


async def test_nothing_is_left(tmp_path: Any) -> None:
    api = FakeApi()
    others = await everything(api)
    await api.request("POST", "/api/v1/nodes", body={"metadata": {"name": "theirs"}})
    await create(api, "theirs", "theirs")
    settings = [NodeSettings(name=f"n-{number}") for number in range(2)]
    async with NodePool(settings, client_of(api), tmp_path):
        await create(api, "web", "n-0")
        await is_phase(api, "web", "Running")
        held = {"metadata": {"name": "held", "finalizers": ["a/b"]}, "spec": {"nodeName": "n-1"}}
        held["spec"]["containers"] = [{"name": "main", "image": "a/b:1"}]
        await api.request("POST", PODS, body=held)
        await api.request("DELETE", f"{PODS}/held")
        await asyncio.sleep(20)
        assert len(await everything(api)) > 8
    left = await everything(api)
    assert sorted(left) == sorted(
        [*others, "/api/v1/nodes/theirs", "/api/v1/pods/theirs", "/api/v1/pods/held"]
    )


def test_two_nodes_of_one_name_are_refused(tmp_path: Any) -> None:
    settings = [NodeSettings(name="twin"), NodeSettings(name="twin")]
    with pytest.raises(ValueError, match="two nodes have the name 'twin'"):
        NodePool(settings, client_of(FakeApi()), tmp_path)


async def test_a_kubelet_that_has_ended_by_itself_can_be_started_again(kube_node: KubeNode) -> None:
    inner = kube_node.kubelet
    assert inner is not None
    await inner.stop()
    await asyncio.sleep(1)
    assert not kube_node.runs
    await kube_node.start()
    await kube_node.ready()


async def test_two_starts_at_once_make_one_kubelet(kube_node: KubeNode) -> None:
    await kube_node.stop()
    ends = await asyncio.gather(kube_node.start(), kube_node.start(), return_exceptions=True)
    assert [str(end) for end in ends if end is not None] == [
        f"the kubelet of node {kube_node.name} runs already; stop or kill it first"
    ]
    await kube_node.ready()


async def test_what_can_be_deleted_is_although_something_cannot(tmp_path: Any) -> None:
    api = FakeApi()
    settings = [NodeSettings(name=f"n-{number}") for number in range(2)]
    pool = NodePool(settings, client_of(api), tmp_path)
    await pool.start()
    await create(api, "web", "n-1")
    api.fails("DELETE", "v1/nodes/n-0$", 403)
    with pytest.raises(ApiError, match="403"):
        await pool.remove()
    assert [path for path in await everything(api) if "/n-" in path or "web" in path] == [
        "/api/v1/nodes/n-0"
    ]


async def test_a_kubelet_that_starts_without_the_network_has_none(
    kube_node: KubeNode, kube_api: FakeApi
) -> None:
    kube_node.lose_network()
    await kube_node.kill()
    await kube_node.start()
    with pytest.raises(NodeError, match="lost the network"):
        await kube_node.ready(within_s=20)
    kube_node.restore_network()
    await kube_node.ready()
    await create(kube_api, "web", kube_node.name)
    await is_phase(kube_api, "web", "Running")
