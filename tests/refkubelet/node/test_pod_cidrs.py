"""The pod CIDRs that the runtime is told."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from loops import virtual_loop

from refkubelet.api.kinds import NODES
from refkubelet.cri.client import CriClient
from refkubelet.cri.target import CriCallError
from refkubelet.node.pod_cidrs import PodCidrs, pod_cidrs

pytestmark = pytest.mark.virtual_time


class Runtime:
    """Takes UpdateRuntimeConfig, or refuses it while `refuses`."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.refuses = False

    async def call(self, method: str, request: Any, timeout_s: float | None = None) -> Any:
        assert method == "UpdateRuntimeConfig"
        if self.refuses:
            raise CriCallError(method, "UNKNOWN", "not now")
        self.told.append(request.runtime_config.network_config.pod_cidr)
        return cri.UpdateRuntimeConfigResponse()


def followed(own: str = "") -> tuple[Runtime, PodCidrs]:
    runtime = Runtime()
    return runtime, PodCidrs(CriClient(runtime), virtual_loop().clock, own)


def test_a_node_may_have_no_ranges_yet_NODE_014() -> None:
    assert pod_cidrs(NODES.decode({"metadata": {"name": "n"}})) == ()
    assert pod_cidrs(NODES.decode({"spec": {"podCIDRs": ["a", "b"]}})) == ("a", "b")


async def test_ranges_are_told_once_with_commas_NODE_014_1() -> None:
    runtime, ranges = followed()
    assert not await ranges.follow([])
    assert await ranges.follow(["10.0.0.0/24", "fd00::/64"])
    assert not await ranges.follow(["10.0.0.0/24", "fd00::/64"])
    assert await ranges.follow(["10.1.0.0/24"])
    assert not await ranges.follow([])
    assert runtime.told == ["10.0.0.0/24,fd00::/64", "10.1.0.0/24"]


async def test_what_the_runtime_refuses_is_told_again_NODE_014_1() -> None:
    runtime, ranges = followed()
    runtime.refuses = True
    assert await ranges.follow(["10.0.0.0/24"])
    runtime.refuses = False
    assert await ranges.follow(["10.0.0.0/24"])
    assert runtime.told == ["10.0.0.0/24"]


@pytest.mark.parametrize("own", ["", "10.9.0.0/16"])
async def test_without_a_node_the_configuration_counts_NODE_014_2(own: str) -> None:
    runtime, ranges = followed(own)
    task = asyncio.create_task(ranges.run())
    await asyncio.sleep(1)
    assert runtime.told == ([own] if own else [])
    assert not task.done()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
