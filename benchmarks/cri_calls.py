"""What CRI calls to the fake runtime cost: all calls of a pod's life, Version, and a long list."""

from __future__ import annotations

import asyncio

from kubecri.v1 import api_pb2 as pb
from measure import Row
from workload import best_s, blocking_client, cycle, fake_process, populated

from fakecri import FakeCRI
from simclock import run_virtual

VERSION_MS = 0.8
LISTED = 1500
LIST_MS = 15


async def in_process(number: int) -> float:
    """Seconds of one pod's life, without a socket."""
    cri = FakeCRI()
    return await best_s(number, lambda i: cycle(cri, i))


async def over_socket(number: int) -> float:
    """Seconds of one pod's life, from process to process, with gRPC's blocking client."""
    async with fake_process() as fake:
        with blocking_client(fake.endpoint) as client:
            return await best_s(number, lambda i: cycle(client, i))


async def version_s(number: int) -> float:
    """Seconds of one Version call of a series, from process to process."""
    async with fake_process() as fake:
        with blocking_client(fake.endpoint) as client:
            request = pb.VersionRequest()
            await client.call("Version", request)
            return await best_s(number // 10, lambda _: client.call("Version", request), rounds=20)


async def list_s(number: int) -> float:
    """Seconds that the server needs for a list, from the request message to the bytes of the
    answer."""
    cri, _ = await populated(LISTED)
    request = pb.ListContainersRequest()

    async def answered(_: int) -> bytes:
        answer = await cri.call("ListContainers", request)
        return answer.SerializeToString()

    return await best_s(1, answered, rounds=number)


def rows(number: int = 200) -> list[Row]:
    """The rows; `number` pods a round."""
    what = "pod from start to end (7 calls)"
    listed_ms = run_virtual(lambda: list_s(number)) * 1e3
    version_ms = asyncio.run(version_s(number)) * 1e3
    return [
        Row(f"{what}, in-process", run_virtual(lambda: in_process(number)) * 1e6, "us"),
        Row(f"{what}, unix socket", asyncio.run(over_socket(number)) * 1e6, "us"),
        Row("Version, serial, unix socket", version_ms, "ms", VERSION_MS),
        Row(f"ListContainers of {LISTED:,}, server time", listed_ms, "ms", LIST_MS),
    ]


if __name__ == "__main__":
    for row in rows():
        print(row)
