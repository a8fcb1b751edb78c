"""How much real time 310 virtual seconds of a crash loop take: refkubelet on fakecri, in one
process."""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from measure import Row
from msgspec import structs

from fakecri import FakeCRI, FakeNode, exits
from refkubelet.config import KubeletConfiguration, parse_config
from refkubelet.kubelet import Directories, Kubelet, KubeletDeps, ThisNode
from simclock import Clock, Ids, Rng, VirtualLoop, run_virtual

MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: crash}
spec:
  containers:
  - {name: main, image: localhost/busybox:1}
"""
CONFIG = b"""
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupsPerQOS: false
enforceNodeAllocatable: []
"""
WITH_CGROUPS = {"cgroups_per_qos": True, "enforce_node_allocatable": ("pods",)}
IN_MEMORY = "/dev/shm"
CRASH_LOOP_S = 310.0
"""Virtual seconds of one run. Starts are at 0, 0, 10, 30, 70 and 150 s or a little later; the next
one would be at this time (BACK-001, BACK-011)."""


@dataclass(frozen=True, slots=True)
class Result:
    """One run in virtual time."""

    took_s: float
    """Real seconds."""
    cpu_s: float
    """CPU seconds; on a busy machine less than `took_s`."""
    virtual_s: float
    """Virtual seconds."""
    seen: str
    """What happened, for the remark of the row."""


def configuration(directory: Path, **more: Any) -> KubeletConfiguration:
    """The configuration of a kubelet that reads and writes below `directory` only and leaves
    cgroups to the runtime. `more`: fields with other values than the defaults."""
    return structs.replace(
        parse_config(CONFIG, "kubelet.yaml"),
        static_pod_path=str(directory / "manifests"),
        pod_logs_dir=str(directory / "logs"),
        **more,
    )


def virtual_clock() -> Clock:
    """The clock of the running virtual loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.clock


async def measured(
    directory: Path,
    cri: FakeCRI,
    node: FakeNode,
    until: Callable[[Kubelet], Awaitable[str]],
    **config: Any,
) -> Result:
    """Run a kubelet on the manifests below `directory` until `until` returns `Result.seen`.
    `config` as `more` of `configuration`."""
    clock = virtual_clock()
    rng = Rng(1)
    deps = KubeletDeps(
        target=cri,
        machine=node,
        clock=clock,
        rng=rng,
        ids=Ids(rng),
        node=ThisNode("bench"),
        directories=Directories(directory / "root", directory / "links"),
    )
    kubelet = Kubelet(configuration(directory, **config), deps)
    gc.collect()
    gc.disable()  # as timeit does: a collection's time depends on garbage from before
    began, cpu_began = time.perf_counter(), time.process_time()
    task = asyncio.create_task(kubelet.run())
    seen = await until(kubelet)
    cpu_s = time.process_time() - cpu_began
    result = Result(time.perf_counter() - began, cpu_s, clock.monotonic_s(), seen)
    gc.enable()
    await kubelet.stop()
    await task
    return result


async def crash_loop(directory: Path, **config: Any) -> Result:
    """Run a pod whose container exits at once: five restarts, and the wait for the sixth."""
    node = FakeNode()
    cri = FakeCRI(virtual_clock(), node=node)
    cri.behaves(exits(1), container="main")

    async def the_end(_: Kubelet) -> str:
        await asyncio.sleep(CRASH_LOOP_S)
        times = ", ".join(f"{at:.0f}" for at in cri.times_s("StartContainer"))
        return f"{cri.count()} calls; starts at {times} s"

    return await measured(directory, cri, node, the_end, **config)


def in_fresh_directory(
    manifests: dict[str, str], run: Callable[[Path], Awaitable[Result]]
) -> Result:
    """Write these manifest files (name to text) into a new directory and call `run` with it, in
    virtual time. The directory is in memory where possible, as the disk is not to be measured."""
    parent = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent) as name:
        directory = Path(name)
        (directory / "manifests").mkdir()
        for file, text in manifests.items():
            (directory / "manifests" / file).write_text(text)
        return run_virtual(lambda: run(directory), limit_s=7200)


def once(**config: Any) -> Result:
    """One crash loop."""
    return in_fresh_directory({"crash.yaml": MANIFEST}, partial(crash_loop, **config))


def rows(runs: int = 10) -> list[Row]:
    """Two rows, without and with cgroups of the node and its pods; each is the best of `runs` runs.

    The best counts, since other work of the machine can only make a run longer. Such work may last
    seconds, so there are enough runs to last longer.
    """
    pairs = [(once(), once(**WITH_CGROUPS)) for _ in range(runs)]
    plain = min((one for one, _ in pairs), key=lambda result: result.took_s)
    groups = min((other for _, other in pairs), key=lambda result: result.took_s)
    what = f"{plain.virtual_s:.0f} s of a crash loop"
    return [
        Row(what=what, value=plain.took_s * 1000, unit="ms", limit=50, remark=_remark(plain)),
        Row(
            what=f"{what}, with cgroups",
            value=groups.took_s * 1000,
            unit="ms",
            limit=None,
            remark=_remark(groups),
        ),
    ]


def _remark(result: Result) -> str:
    return f"CPU {result.cpu_s * 1000:.1f} ms; {result.seen}"


if __name__ == "__main__":
    for row in rows():
        print(row)
