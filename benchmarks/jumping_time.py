"""What jumping time costs: one jump, and an hour of a real kubelet, if one is given.

python benchmarks/jumping_time.py                        a Go program alone (needs Go)
python benchmarks/jumping_time.py /usr/bin/kubelet       also a kubelet on the fakes
KUBELET=/usr/bin/kubelet python benchmarks/run.py --only jumping_time \\
    --results results/benchmarks.json
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

from measure import Row

from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.runs.case_run import Outcome
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.warped import run_warped_case
from kubelet_conformance.harness.workload import exits, runs
from kubelet_conformance.registry import Case, Level
from simclock import timewarp

SOURCE: Final = Path(__file__).parent.parent / "tests" / "simclock" / "timewarp" / "sleeper.go"
TICKS: Final = 3000
CRASHES_S: Final = 700.0
IDLE_S: Final = 300.0
IDLE_PODS: Final = 20


def rows(kubelet: str | None = None) -> Iterator[Row]:
    """The rows as they are measured; `kubelet`: its path, "": without those of a kubelet, None: the
    one that the variable KUBELET names."""
    kubelet = os.environ.get("KUBELET", "") if kubelet is None else kubelet
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
    yield _jump(load)
    if kubelet:
        yield _kubelet(kubelet, f"one crash loop, {CRASHES_S:g} s", CRASHES_S, _crash_loop, load)
        yield _kubelet(kubelet, f"{IDLE_PODS} idle pods, {IDLE_S:g} s", IDLE_S, _idle_pods, load)


def _jump(load: str) -> Row:
    """The real time of one jump, the program's own work in it included."""
    what = "a jump: a tick of a Go program"
    if shutil.which("go") is None:
        return Row(what, None, "ms", remark="no Go on this machine")
    with tempfile.TemporaryDirectory() as directory:
        program = f"{directory}/sleeper"
        environment = {**os.environ, "GO111MODULE": "off", "CGO_ENABLED": "0"}
        subprocess.run(["go", "build", "-o", program, str(SOURCE)], check=True, env=environment)
        took_s = timewarp.run(lambda: _ticks(program))
    return Row(what, took_s / TICKS * 1000, "ms", remark=load)


async def _ticks(program: str) -> float:
    """Real seconds for so many ticks, without those for the start."""
    prefix = asyncio.get_running_loop().page.prefix  # type: ignore[attr-defined]
    took = []
    for count in (1, TICKS):
        began_s = time.monotonic()
        ticking = await asyncio.create_subprocess_exec(
            *prefix, program, "ticks", str(count), stdout=asyncio.subprocess.DEVNULL
        )
        await ticking.wait()
        took.append(time.monotonic() - began_s)
    return took[1] - took[0]


async def _crash_loop(node: Node) -> None:
    await node.apply_static(pod("web", container("main", exits(1, after_s=1))))


async def _idle_pods(node: Node) -> None:
    for number in range(IDLE_PODS):
        await node.apply_static(pod(f"web-{number}", container("main", runs())))
    await node.run_until(
        lambda: node.count("StartContainer") == IDLE_PODS, within_s=60, what="all pods run"
    )


def _kubelet(
    kubelet: str, what: str, lasts_s: float, prepare: Callable[[Node], Awaitable[None]], load: str
) -> Row:
    """How many of its seconds a kubelet lives in a real one."""
    told: list[str] = []
    speed: list[float] = []

    async def body(node: Node) -> None:
        await prepare(node)
        began_s, cpu_s = time.monotonic(), time.process_time()
        await asyncio.sleep(lasts_s)
        took_s = time.monotonic() - began_s
        speed.append(lasts_s / took_s)
        jumper = asyncio.get_running_loop().jumper  # type: ignore[attr-defined]
        told.append(f"{took_s:.1f} s, CPU of Python {time.process_time() - cpu_s:.1f} s")
        told.append(f"{jumper.jumps} jumps, {node.count('StartContainer')} starts")

    case = Case(
        id="measured",
        area="harness",
        title="",
        rules=(),
        level=Level.MUST,
        needs=frozenset(),
        body=body,
    )
    before = _children_s()
    result = run_warped_case(case, Choice(kubelet=kubelet, runtime="fake", time="jump"))
    if result.outcome is not Outcome.PASSED:
        return Row(what, None, "kubelet s/s", remark=result.detail)
    told.append(f"CPU of the kubelet with its start {_children_s() - before:.1f} s")
    return Row(what, speed[0], "kubelet s/s", remark="; ".join([*told, load]))


def _children_s() -> float:
    """CPU seconds of child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    for row in rows(*sys.argv[1:2]):
        print(row, flush=True)
