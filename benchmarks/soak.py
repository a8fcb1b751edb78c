"""Eight clients at full rate: whether the memory of the fake grows or its recorder loses calls.

The clients start pods, ask for their state and remove them over the socket, as fast as they are
answered. The server is a process of its own; its recorder keeps few calls, so that it has to drop
old ones soon. After the first third of the time, in which allocators and caches reach their size,
memory must not grow any more, and at the end the recorder must have counted exactly the calls that
the clients made, by method. A kubelet with a relist every second makes two calls a second; the
table says how many days of relists the number of calls corresponds to.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

from kubecri.v1 import api_pb2 as pb
from measure import Row, rss_bytes
from workload import FakeProcess, end_container, end_sandbox, fake_process, start_pod

from fakecri.control.client import ControlClient
from fakecri.server import GrpcUpstream

CLIENTS: Final = 8
KEPT_CALLS: Final = 2000
RELIST_CALLS_A_DAY: Final = 2 * 24 * 3600
PARENT: Final = "/kubepods/soak"
"""The cgroup parent of every second pod; the others have none."""
MOST_GROWTH_KIB: Final = 1024
"""Smaller growth is noise: allocators take memory from the system in large pieces."""


class Counted:
    """A call target that counts the calls made to it, by method."""

    def __init__(self, target: GrpcUpstream, made: Counter[str]) -> None:
        self._target = target
        self._made = made

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        self._made[method] += 1
        return await self._target.call(method, request, timeout_s=timeout_s)


@dataclass(slots=True)
class Soak:
    """What one run measured."""

    made: Counter[str] = field(default_factory=Counter)
    """The calls that the clients made, by method."""
    counted: Counter[str] = field(default_factory=Counter)
    """The calls that the recorder counted, by method."""
    kept: int = 0
    """How many calls the recorder holds at the end."""
    took_s: float = 0.0
    memory_bytes: list[int] = field(default_factory=list)
    """The resident memory of the server, at even intervals."""

    @property
    def lost(self) -> int:
        """By how many calls the recorder's counts differ from the clients', over all methods."""
        methods = self.made.keys() | self.counted.keys()
        return sum(abs(self.made[method] - self.counted[method]) for method in sorted(methods))

    @property
    def growth_bytes(self) -> float:
        """The median memory of the last sixth of the time, less that of the first sixth after the
        warm-up."""
        sixth = max(1, len(self.memory_bytes) // 6)
        warm = self.memory_bytes[2 * sixth : 3 * sixth]
        return statistics.median(self.memory_bytes[-sixth:]) - statistics.median(warm)


async def client(target: Counted, number: int, pods: int | None, until_s: float) -> None:
    """Create and remove one pod after the other, `pods` of them (None: no limit), but no longer
    than until `until_s` (of `time.perf_counter`)."""
    life = 0
    while time.perf_counter() < until_s and (pods is None or life < pods):
        pod = life * CLIENTS + number
        parent = PARENT if pod % 2 else ""
        sandbox, container = await start_pod(target, pod, parent)
        of_pod = pb.ContainerFilter(pod_sandbox_id=sandbox)
        for method, request in (
            ("Version", pb.VersionRequest()),
            ("ListContainers", pb.ListContainersRequest(filter=of_pod)),
            ("ListPodSandbox", pb.ListPodSandboxRequest()),
            ("ContainerStatus", pb.ContainerStatusRequest(container_id=container)),
            ("ContainerStats", pb.ContainerStatsRequest(container_id=container)),
            ("ExecSync", pb.ExecSyncRequest(container_id=container, cmd=["true"])),
        ):
            await target.call(method, request, timeout_s=60.0)
        await end_container(target, container)
        await end_sandbox(target, sandbox)
        life += 1


async def sampled(pid: int, into: list[int], every_s: float) -> None:
    """Append the memory of the process every `every_s` seconds, until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        into.append(rss_bytes(pid))


async def soak(fake: FakeProcess, duration_s: float, pods: int | None = None) -> Soak:
    """Run the clients for `duration_s` seconds, or until each has had `pods` pods."""
    seen = Soak()
    async with AsyncExitStack() as stack:
        targets = [
            Counted(await stack.enter_async_context(GrpcUpstream(fake.endpoint)), seen.made)
            for _ in range(CLIENTS)
        ]
        sampling = asyncio.create_task(sampled(fake.pid, seen.memory_bytes, duration_s / 60))
        began = time.perf_counter()
        try:
            async with asyncio.TaskGroup() as group:
                for number, target in enumerate(targets):
                    group.create_task(client(target, number, pods, began + duration_s))
        finally:
            sampling.cancel()
        seen.took_s = time.perf_counter() - began
    calls = ControlClient(fake.control).request("GET", "/v1/state")["calls"]
    seen.counted, seen.kept = Counter(calls["by_method"]), calls["kept"]
    return seen


async def soaked(duration_s: float) -> Soak:
    """As `soak`, on a fake of its own."""
    async with fake_process("--keep-calls", str(KEPT_CALLS)) as fake:
        return await soak(fake, duration_s)


def rows(duration_s: float = 60.0) -> list[Row]:
    """Two rows: growth of memory, and lost calls."""
    seen = asyncio.run(soaked(duration_s))
    total = sum(seen.made.values())
    title = f"{CLIENTS} clients at full rate for {seen.took_s:.0f} s"
    growth = seen.growth_bytes / 1024
    now = f"{seen.memory_bytes[-1] / 2**20:.0f} MiB at the end"
    days = total / RELIST_CALLS_A_DAY
    rate = f"{total:,} calls, {total / seen.took_s:,.0f}/s, {days:.1f} days of relists; "
    rate += f"the last {seen.kept:,} kept"
    return [
        Row(
            what=f"{title}: memory growth after warm-up",
            value=growth,
            unit="KiB",
            limit=MOST_GROWTH_KIB,
            remark=now,
        ),
        Row(
            what=f"{title}: calls the recorder lost",
            value=seen.lost,
            unit="calls",
            limit=1,
            remark=rate,
        ),
    ]


if __name__ == "__main__":
    for row in rows():
        print(row)
