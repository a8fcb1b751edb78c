"""A server that lost its Node object, which another client makes again (NODE-006)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from node_world import NODE, Node, running_node
from pods import manifest

pytestmark = pytest.mark.virtual_time

NODES = "/api/v1/nodes"


async def node_object(node: Node) -> dict[str, Any] | None:
    assert node.api is not None
    answer = await node.api.request("GET", f"{NODES}/{NODE}")
    return dict(answer.body) if answer.status == 200 else None


async def lose(node: Node) -> None:
    assert node.api is not None
    assert (await node.api.request("DELETE", f"{NODES}/{NODE}")).status == 200


async def test_a_lost_node_is_not_made_again_and_pods_run_on_NODE_006(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    async with running_node(tmp_path, api=True) as node:
        node.apply(manifest(name="before"), "before.yaml")
        await node.until(lambda: node.phase("before-golden") == "Running", 10)
        await node.clock.sleep(10)
        await lose(node)
        node.apply(manifest(name="after"), "after.yaml")
        await node.until(lambda: node.phase("after-golden") == "Running", 10)
        caplog.clear()
        await node.clock.sleep(700)  # more than two report periods
        assert await node_object(node) is None
        assert await node.find("after-golden") is None
        assert node.phase("before-golden") == "Running"
    told = [r for r in caplog.records if r.name.endswith("register")]
    assert 1 <= len(told) <= 15  # once a minute, not every 10 s


async def test_a_node_made_by_somebody_else_is_written_to_at_once_NODE_006(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        await node.clock.sleep(20)
        await lose(node)
        node.apply(manifest())
        await node.clock.sleep(20)
        assert node.api is not None
        await node.make_node_object()
        await node.clock.sleep(11)
        found = await node_object(node)
        assert found is not None
        assert found["status"]["nodeInfo"]["kubeletVersion"]
        assert {c["type"] for c in found["status"]["conditions"]} >= {"Ready", "DiskPressure"}
        assert found["metadata"]["labels"].keys() == {"kubernetes.io/os", "kubernetes.io/arch"}
        await node.until(lambda: node.find("web-golden"), 100)  # with the next sync of the pod
