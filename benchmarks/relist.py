"""What a relist of the generic PLEG costs: 110 pods with two containers, in this process.

It is measured as CPU time of the kubelet and the fake runtime together, in three situations. Idle:
nothing has changed. One change: a container has changed its state, so the status of its pod is
read. All new: the first relist of a kubelet.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from kubecri.v1 import api_pb2 as pb
from measure import Row
from workload import create_request, sandbox_config, start_pod

from fakecri import FakeCRI
from refkubelet.cri.client import CriClient
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.manager import RuntimeManager
from refkubelet.pleg import GenericPLEG, PodCache
from simclock import Ids, Rng, VirtualLoop, run_virtual

PODS = 110  # the default of maxPods
LIMIT_MS = 5.0


class NoEvents:
    """An event recorder that drops all events."""

    def pod_event(self, *_: object, **__: object) -> None: ...

    def node_event(self, *_: object, **__: object) -> None: ...


class Kubelet:
    """The parts of a kubelet that a relist needs."""

    def __init__(self, cri: FakeCRI, loop: VirtualLoop) -> None:
        deps = RuntimeDeps(loop.clock, Ids(Rng(1)), NoEvents())
        runtime = RuntimeManager(CriClient(cri), deps, RuntimeOptions(Path("/r"), Path("/l")))
        self.pleg = GenericPLEG(runtime, PodCache(loop.clock), loop.clock)

    async def relist_ms(self) -> float:
        """CPU milliseconds of one relist."""
        began = time.process_time()
        await self.pleg.relist()
        elapsed = time.process_time() - began
        while not self.pleg.events.empty():
            self.pleg.events.get_nowait()
        return elapsed * 1000


async def add_container(cri: FakeCRI, number: int, sandbox_id: str, *, start: bool) -> str:
    """Create a second container in the pod of that number, and start it if `start`; returns its
    id."""
    request = create_request(sandbox_id, sandbox_config(number))
    request.config.metadata.name = request.config.labels["io.kubernetes.container.name"] = "second"
    made = await cri.call("CreateContainer", request)
    if start:
        await cri.call("StartContainer", pb.StartContainerRequest(container_id=made.container_id))
    return str(made.container_id)


async def measured(rounds: int) -> tuple[float, float, float]:
    """Milliseconds, the best of `rounds`: idle, one change, all new."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    cri = FakeCRI()
    last = ""
    for number in range(PODS):
        sandbox, _ = await start_pod(cri, number)
        last = await add_container(cri, number, sandbox, start=number < PODS - 1)
    new = [await Kubelet(cri, loop).relist_ms() for _ in range(max(2, rounds // 10))]
    kubelet = Kubelet(cri, loop)
    await kubelet.relist_ms()
    idle = [await kubelet.relist_ms() for _ in range(rounds)]
    changed = []
    for step in range(rounds):
        if step % 2 == 0:
            await cri.call("StartContainer", pb.StartContainerRequest(container_id=last))
        else:
            await cri.call("StopContainer", pb.StopContainerRequest(container_id=last))
            await cri.call("RemoveContainer", pb.RemoveContainerRequest(container_id=last))
        changed.append(await kubelet.relist_ms())
        if step % 2 == 1:
            last = await add_container(cri, PODS - 1, sandbox, start=False)
            await kubelet.relist_ms()
    return min(idle), min(changed), min(new)


def rows(rounds: int) -> list[Row]:
    """A row for each situation, the best of `rounds` (of a tenth as many for "all new")."""
    idle_ms, changed_ms, new_ms = run_virtual(lambda: measured(rounds))
    what = f"relist of {PODS} pods x 2 containers"
    return [
        Row(
            what=f"{what}: nothing changed",
            value=idle_ms,
            unit="ms",
            limit=LIMIT_MS,
            remark="CPU, with the fake runtime",
        ),
        Row(
            what=f"{what}: one container changed",
            value=changed_ms,
            unit="ms",
            limit=LIMIT_MS,
            remark="the same",
        ),
        Row(
            what=f"{what}: all new",
            value=new_ms,
            unit="ms",
            limit=None,
            remark="the first relist: every status is read",
        ),
    ]


if __name__ == "__main__":
    for row in rows(100):
        print(row)
