"""Whether the cost of a call is independent of the number of containers, and that of a list
proportional to it.

Every method of both services is called on fakes with 100, 1,000 and 10,000 containers, one pod
each, in turn, so that other work of the machine slows down all three alike. Times are CPU time, so
that interruptions do not count: for lists the best of few rounds, for other calls the median of
many. Calls are made in-process and include the recorder.

python benchmarks/scaling.py    prints the table of all methods
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kubecri.v1 import api_pb2 as pb
from measure import Row
from workload import create_request, populated, sandbox_config

from fakecri import FakeCRI
from fakecri.cri.services import METHODS

SIZES: Final = (100, 1_000, 10_000)
MOST_GROWTH: Final = 3.0
"""How many times longer a call may take with the most containers than with the fewest. The
processor's caches and other work of the machine may explain so much; a call that looks at all
containers takes more than ten times as long."""
PULLED: Final = pb.ImageSpec(image="localhost/pulled:1")
LISTS: Final = tuple(
    name
    for name in METHODS
    if name.startswith(("List", "Stream"))
    and name not in ("ListMetricDescriptors", "ListImages", "StreamImages")
)
"""The methods whose answers have an entry for every container or sandbox."""


@dataclass(slots=True)
class Subject:
    """A fake with some number of containers, and how long calls to it took: `times_s`, seconds by
    kind of call. `number` is that of the next pod."""

    cri: FakeCRI
    archive: str
    times_s: dict[str, list[float]] = field(default_factory=dict)
    number: int = 1_000_000

    async def call(self, what: str, **fields: Any) -> Any:
        """Make a call, measure it, and return its answer (None for a stream). `what`, the kind of
        call: the method and, after a space, what is special about it."""
        method = METHODS[what.partition(" ")[0]]
        request = method.request_type(**fields)
        answer = None
        began = time.thread_time()
        if method.streams:
            stream: Any = self.cri.stream(method.name, request)
            async with aclosing(stream) as answers:
                async for _ in answers:
                    pass
        else:
            answer = await self.cri.call(method.name, request)
        self.note(what, time.thread_time() - began)
        return answer

    def note(self, what: str, took_s: float) -> None:
        """Add the time of a call."""
        self.times_s.setdefault(what, []).append(took_s)

    def typical_us(self, what: str) -> float:
        """Microseconds of a call: the best for lists, the median for others."""
        times_s = self.times_s[what]
        return (min(times_s) if what in LISTS else statistics.median(times_s)) * 1e6


async def life_of_a_pod(subject: Subject) -> None:
    """Make every call about one pod, with a pod that is created and removed."""
    call = subject.call
    subject.number += 1
    pod = sandbox_config(subject.number)
    sandbox = (await call("RunPodSandbox", config=pod)).pod_sandbox_id
    create = create_request(sandbox, pod)
    made = await call(
        "CreateContainer", pod_sandbox_id=sandbox, config=create.config, sandbox_config=pod
    )
    container = made.container_id
    await call("StartContainer", container_id=container)
    for method in ("ContainerStatus", "ContainerStats", "ReopenContainerLog"):
        await call(method, container_id=container)
    for method in ("PodSandboxStatus", "PodSandboxStats", "UpdatePodSandboxResources"):
        await call(method, pod_sandbox_id=sandbox)
    await call("UpdateContainerResources", container_id=container, linux={"cpu_shares": 100})
    await call("ContainerStatus by prefix", container_id=container[:13])
    await call("ExecSync", container_id=container, cmd=["true"])
    for method in ("Exec", "Attach"):
        await call(method, container_id=container, stdout=True)
    await call("PortForward", pod_sandbox_id=sandbox, port=[80])
    await call("CheckpointContainer", container_id=container, location=subject.archive)
    await call("StopContainer", container_id=container)
    await call("RemoveContainer", container_id=container)
    await call("RemoveContainer unknown id", container_id="f" * 64)
    await call("StopPodSandbox", pod_sandbox_id=sandbox)
    await call("RemovePodSandbox", pod_sandbox_id=sandbox)


async def the_node(subject: Subject) -> None:
    """Make the calls that are about images or the runtime itself."""
    for method in (
        "Version",
        "Status",
        "RuntimeConfig",
        "UpdateRuntimeConfig",
        "ListMetricDescriptors",
        "ImageFsInfo",
        "ListImages",
        "StreamImages",
    ):
        await subject.call(method)
    for method in ("PullImage", "ImageStatus", "RemoveImage"):
        await subject.call(method, image=PULLED)


async def an_event(subject: Subject) -> None:
    """Measure GetContainerEvents: subscribe, run a sandbox, receive its event."""
    subject.number += 1
    run = pb.RunPodSandboxRequest(config=sandbox_config(subject.number))
    began = time.thread_time()
    stream: Any = subject.cri.stream("GetContainerEvents", pb.GetEventsRequest())
    async with aclosing(stream) as events:
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        made: Any = await subject.cri.call("RunPodSandbox", run)
        await waiting
    subject.note("GetContainerEvents", time.thread_time() - began)
    remove = pb.RemovePodSandboxRequest(pod_sandbox_id=made.pod_sandbox_id)
    await subject.cri.call("RemovePodSandbox", remove)


async def measured(rounds: int) -> list[Subject]:
    """The fakes, the smallest first, with the times of every method. Raises: AssertionError if a
    method was not called."""
    with tempfile.TemporaryDirectory() as directory:
        archive = str(Path(directory) / "checkpoint.tar")
        subjects = [Subject((await populated(size))[0], archive) for size in SIZES]
        for _ in range(rounds):
            for subject in subjects:
                await life_of_a_pod(subject)
                await the_node(subject)
                await an_event(subject)
        for _ in range(max(3, rounds // 20)):
            for subject in subjects:
                for method in LISTS:
                    await subject.call(method)
        for subject in subjects:
            await subject.cri.stop_streaming()
    missing = METHODS.keys() - {what.partition(" ")[0] for what in subjects[0].times_s}
    assert not missing, f"not measured: {sorted(missing)}"
    return subjects


def growth(subjects: list[Subject], what: str) -> float:
    """How many times longer a call takes with the most containers than with the fewest.

    For a list: how many times longer it takes per container, with the most containers compared to
    the middle number; with the fewest, most of the time is that of any call.
    """
    if what in LISTS:
        *_, middle, most = subjects
        return most.typical_us(what) / middle.typical_us(what) * SIZES[-2] / SIZES[-1]
    return subjects[-1].typical_us(what) / subjects[0].typical_us(what)


def summary(subjects: list[Subject]) -> list[Row]:
    """Two rows: the growth of the worst list and of the worst other call."""
    rows = []
    others = [what for what in subjects[0].times_s if what not in LISTS]
    lists = [what for what in subjects[0].times_s if what in LISTS]
    for title, methods, steps in (
        (f"cost of {len(others)} other calls", others, SIZES),
        (f"cost per container of {len(lists)} lists", lists, SIZES[-2:]),
    ):
        worst = max(methods, key=lambda what: growth(subjects, what))
        sizes = " -> ".join(f"{size:,}" for size in (steps[0], steps[-1]))
        remark = f"the most: {worst}; {', '.join(_times(subjects, worst))}"
        value = growth(subjects, worst)
        rows.append(
            Row(
                what=f"{title}, {sizes} containers",
                value=value,
                unit="x",
                limit=MOST_GROWTH,
                remark=remark,
            )
        )
    return rows


def _times(subjects: list[Subject], what: str) -> list[str]:
    return [f"{subject.typical_us(what):,.0f} us" for subject in subjects]


def rows(rounds: int = 100) -> list[Row]:
    """The rows of `summary`. `rounds` at most 300, as each round leaves open streams, whose number
    the fake limits."""
    return summary(asyncio.run(measured(rounds)))


def main() -> None:
    subjects = asyncio.run(measured(100))
    print("method".ljust(28), *(f"{size:>10,}" for size in SIZES), "    growth", sep="  ")
    for what in sorted(subjects[0].times_s):
        kind = " per container" if what in LISTS else ""
        texts = (f"{text:>10}" for text in _times(subjects, what))
        print(what.ljust(28), *texts, f"{growth(subjects, what):9.2f}{kind}", sep="  ")
    print(*summary(subjects), sep="\n")


if __name__ == "__main__":
    main()
