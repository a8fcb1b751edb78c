"""How much faster the life of a pod is on the fake than on a real containerd, with the same client.

Both are processes of their own behind a unix socket. The real one needs Docker; without it the row
says that they were not compared.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from measure import Row
from workload import (
    Target,
    blocking_client,
    end_container,
    end_sandbox,
    fake_process,
    start_pod,
)

WANTED_TIMES: Final = 50
WHAT: Final = "RunPodSandbox, Create-, Start-, Stop-, RemoveContainer: fake vs. containerd"


async def best_life_s(target: Target, rounds: int) -> float:
    """Seconds of the five calls of `WHAT`, the best of `rounds`. The removal of the sandbox is not
    measured."""
    times = []
    for number in range(rounds):
        began = time.perf_counter()
        sandbox, container = await start_pod(target, number)
        await end_container(target, container)
        times.append(time.perf_counter() - began)
        await end_sandbox(target, sandbox)
    return min(times)


async def compared(rounds: int, report: Callable[[str], None]) -> Row:
    """The row: how many times faster the fake is. `report` is called with lines about the start of
    containerd."""
    # Here, not above: what it imports is installed for tests on a real containerd only.
    from kubelet_conformance.harness.containerd.start import start_containerd

    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        async with start_containerd(Path(directory), report=report) as node:
            with blocking_client(node.endpoint) as client:
                real_s = await best_life_s(client, rounds)
            version = node.version
    async with fake_process() as fake:
        with blocking_client(fake.endpoint) as client:
            fake_s = await best_life_s(client, 20 * rounds)
    remark = f"{fake_s * 1e3:.2f} ms; containerd {version}: {real_s * 1e3:.0f} ms"
    return Row(
        what=WHAT, value=real_s / fake_s, unit="x", limit=WANTED_TIMES, remark=remark, at_least=True
    )


def rows(rounds: int = 10) -> list[Row]:
    """One row, without a value if there is no Docker."""
    # Here, not above: as in `compared`.
    from kubelet_conformance.harness.containerd.docker_host import NodeError, docker_problem

    problem = docker_problem()
    if problem is None:
        try:
            return [asyncio.run(compared(rounds, lambda line: print(line, file=sys.stderr)))]
        except NodeError as error:
            problem = str(error)
    return [
        Row(
            what=WHAT,
            value=None,
            unit="x",
            limit=WANTED_TIMES,
            remark=f"not compared: {problem}",
            at_least=True,
        )
    ]


if __name__ == "__main__":
    for row in rows():
        print(row)
