"""Memory of the fake per container, together with that of its sandbox.

Measured as resident memory of a fresh process, because most of it is protobuf messages, which
tracemalloc does not see. The recorder keeps few calls here, as its memory does not grow with the
number of containers. Lists are asked for before each measurement, so that what the fake keeps to
answer them counts.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from pathlib import Path

from kubecri.v1 import api_pb2 as pb
from measure import Row, rss_bytes
from workload import populated, start_pod

MOST_KIB = 15
WARM_UP = 500
ADDED = 5000


async def bytes_per_container() -> float:
    """The bytes that one more container takes, the mean of `ADDED`."""
    cri, _ = await populated(WARM_UP, call_limit=100)

    async def listed() -> int:
        await cri.call("ListContainers", pb.ListContainersRequest())
        await cri.call("ListPodSandbox", pb.ListPodSandboxRequest())
        gc.collect()
        return rss_bytes()

    before = await listed()
    for number in range(WARM_UP, WARM_UP + ADDED):
        await start_pod(cri, number)
    return (await listed() - before) / ADDED


def rows(runs: int = 3) -> list[Row]:
    """One row: the smallest number of `runs` processes."""
    here = str(Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {here!r}); import memory; memory.main()"
    outputs = [subprocess.check_output([sys.executable, "-c", code]) for _ in range(runs)]
    best = min(float(output) for output in outputs)
    remark = f"resident memory, sandbox included; {ADDED:,} more containers"
    return [
        Row(
            what="memory per container",
            value=best / 1024,
            unit="KiB",
            limit=MOST_KIB,
            remark=remark,
        )
    ]


def main() -> None:
    print(asyncio.run(bytes_per_container()))


if __name__ == "__main__":
    main()
