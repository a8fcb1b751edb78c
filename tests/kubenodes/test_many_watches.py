"""Connections of a pool in real time: each watch holds one."""

from __future__ import annotations

import asyncio
import resource

import pytest

from fakekubeapi import FakeApi
from kubenodes import ApiServer
from refkubelet.api.kinds import CONFIG_MAPS, NODES
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.api.paths import named
from simclock.loop_thread import LoopThread

WATCHES = 120
"""More than an HTTP client has connections unless it is told otherwise."""


async def all_watch(fake: FakeApi) -> None:
    while True:
        if len(fake.requests("GET", "configmaps")) == WATCHES:
            return
        await asyncio.sleep(0.02)


def may_open() -> int:
    """How many files this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


@pytest.mark.skipif(may_open() < 3 * WATCHES, reason="fewer open files than both ends would have")
def test_any_number_of_watches_leaves_room_for_requests(
    kube_api: ApiServer, kube_thread: LoopThread
) -> None:
    assert kube_api.fake is not None
    fake = kube_api.fake

    async def watch(client: LightkubeApiClient, number: int) -> None:
        fields = named(f"settings-{number}")
        async for _ in client.watch(CONFIG_MAPS, "1", "default", fields=fields):
            pass

    async def ask() -> None:
        client = LightkubeApiClient.from_kubeconfig(kube_api.kubeconfig)
        watching = [asyncio.create_task(watch(client, number)) for number in range(WATCHES)]
        try:
            async with asyncio.timeout(20):
                await all_watch(fake)
                await client.list(NODES)
        finally:
            for one in watching:
                one.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
            await client.aclose()

    kube_thread.run(ask)
