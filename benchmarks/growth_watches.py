"""The dimensions of a fake API server with many nodes: what one of them does shall cost the same,
however many others there are; see `growth`."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any, Final

from growth import Dimension, Meter
from growth_api import MERGE, must, open_watch, with_api

from fakekubeapi import FakeApi, ServerOptions, api_latency
from simclock import Rng

PODS: Final = "/api/v1/namespaces/default/pods"
EVERY: Final = "/api/v1/pods"
TIMES: Final = 200
OWN: Final = {"fieldSelector": "spec.nodeName=own"}


async def bound(api: FakeApi, name: str, node: str) -> None:
    """Create a pod of a node."""
    spec = {
        "nodeName": node,
        "automountServiceAccountToken": False,
        "containers": [{"name": "c", "image": "i"}],
    }
    await must(api, "POST", PODS, body={"metadata": {"name": name}, "spec": spec})


async def of_others(api: FakeApi, size: int) -> None:
    """Create the pods of so many other nodes, one each."""
    for number in range(size):
        await bound(api, f"p{number}", f"n{number}")


async def beside_watches(api: FakeApi, size: int, meter: Meter) -> None:
    """A pod changes while so many other nodes watch their own."""
    await bound(api, "own", "own")
    async with AsyncExitStack() as stack:
        others = [
            await open_watch(stack, api, EVERY, {"fieldSelector": f"spec.nodeName=n{number}"})
            for number in range(size)
        ]
        seen = await open_watch(stack, api, EVERY, OWN)
        with meter:
            for number in range(TIMES):
                body = {"metadata": {"labels": {"x": str(number)}}}
                await must(api, "PATCH", f"{PODS}/own", body=body, content_type=MERGE)
                await asyncio.sleep(1.0)
        assert len(seen) == TIMES + 1
        assert not any(others)


async def beside_waiting_watches(_: FakeApi, size: int, meter: Meter) -> None:
    """The same, where requests and events take their time."""
    options = ServerOptions(request_limit=100, waits_apart=True)
    await beside_watches(FakeApi(options=options, latency=api_latency(Rng(1))), size, meter)


async def listed(api: FakeApi, size: int, meter: Meter) -> None:
    """The pods of a node are listed while there are those of so many others."""
    await bound(api, "own", "own")
    await of_others(api, size)
    with meter:
        for _ in range(TIMES):
            body: Any = await must(api, "GET", EVERY, params=OWN)
            assert len(body["items"]) == 1


async def resumed(api: FakeApi, size: int, meter: Meter) -> None:
    """A node watches on from before the pods of so many others."""
    await bound(api, "own", "own")
    first = str(api.store.revision - 1)
    await of_others(api, size)
    with meter:
        for _ in range(TIMES):
            async with AsyncExitStack() as stack:
                seen = await open_watch(stack, api, EVERY, {**OWN, "resourceVersion": first})
                await asyncio.sleep(0.01)
                assert len(seen) == 1


DIMENSIONS: Final = {
    "watches": Dimension("watches of other nodes", 10, with_api(beside_watches), power=0),
    "waiting-watches": Dimension(
        "watches of other nodes, with latency", 10, with_api(beside_waiting_watches), power=0
    ),
    "node-lists": Dimension("pods beside a list of one", 10, with_api(listed), power=0),
    "node-resumes": Dimension("changes beside a late watch of one", 10, with_api(resumed), power=0),
}
