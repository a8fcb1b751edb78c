"""A kubelet killed at a chosen CRI call and started again: the runs, and what is seen of them.

`before` a call the runtime does not know of it yet; `after` it the work is done, and the kubelet
does not know. The killed kubelet sends nothing more; the next one has the same runtime, root
directory and API server. What must never happen here: a run that is judged by what the killed
kubelet remembered.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from golden_forms import status_line
from kubecri.v1 import api_pb2 as cri
from node_world import PODS, Node, Tap, on_node

DOWN_S: Final = 0.7
READS: Final = ("List", "Status", "Version", "ImageFsInfo", "ImageStatus", "RuntimeConfig")
RELIST: Final = ("ListPodSandbox", "ListContainers")
READ_STATUSES: Final = ("PodSandboxStatus", "ContainerStatus")
LATENCIES_S: Final = {"RunPodSandbox": 0.15, "CreateContainer": 0.02, "StartContainer": 0.07}
Act = Callable[[Node], Any]


@dataclass(frozen=True, slots=True)
class Script:
    """What happens on a node. `steps`: seconds after the start, and what to do then. `lasts_s`:
    when the end is looked at. `runs_once`: containers that no crash may run twice. `compared`: what
    of the statuses must be the same at the end (a pattern; "": everything). `tells_exits` False:
    the API server does not hear of every exit, because a mirror is its successor's by then."""

    name: str
    program: Act
    steps: tuple[tuple[float, Act], ...]
    lasts_s: float
    runs_once: tuple[str, ...] = ()
    compared: str = ""
    tells_exits: bool = True
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Point:
    """The `number`-th CRI call (from 0), before it reached the runtime or after."""

    number: int
    method: str
    after: bool

    def __str__(self) -> str:
        return f"{'after' if self.after else 'before'} call {self.number} ({self.method})"


@dataclass
class Run:
    """What was seen of one run."""

    methods: list[str] = field(default_factory=list)
    pods: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    started: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class CrashTap(Tap):
    """Counts calls, watches what must always hold, and stops the kubelet at one point."""

    def __init__(self, node: Node, run: Run, point: Point | None) -> None:
        self._node = node
        self._run = run
        self._point = point
        self._seen: dict[asyncio.Task[Any] | None, int] = {}
        self.hit = asyncio.Event()

    async def before(self, method: str) -> None:
        number = len(self._run.methods)
        self._run.methods.append(method)
        self._seen[asyncio.current_task()] = number
        await self._stop_at(number, after=False)

    async def after(self, method: str) -> None:
        if method in ("RunPodSandbox", "StartContainer"):
            self._look_for_doubles()
        await self._stop_at(self._seen.pop(asyncio.current_task(), -1), after=True)

    async def _stop_at(self, number: int, *, after: bool) -> None:
        point = self._point
        if point is None or self.hit.is_set() or (number, after) != (point.number, point.after):
            return
        self._node.cut()
        self.hit.set()
        await asyncio.Event().wait()

    def _look_for_doubles(self) -> None:
        fake = self._node.cri
        running = Counter(f"{c.pod.uid} {c.name}" for c in fake.containers() if is_running(c))
        ready = Counter(f"{s.config.metadata.uid} sandbox" for s in fake.sandboxes() if s.ready)
        for name, count in (running + ready).items():
            if count > 1:
                self._run.wrong.append(f"{count} times at once: {name}")


def is_running(container: Any) -> bool:
    return bool(container.state.name == "RUNNING")


def run_script(script: Script, directory: Path, point: Point | None = None) -> Run:
    """One run of `script`, with a crash at `point`."""
    run = Run()
    on_node(
        lambda node: _Course(script, node, run, point).go(),
        directory,
        api=True,
        started=False,
        **script.settings,
    )
    return run


class _Course:
    def __init__(self, script: Script, node: Node, run: Run, point: Point | None) -> None:
        self.script = script
        self.node = node
        self.run = run
        self.tap = CrashTap(node, run, point)
        self.told: dict[str, set[int]] = {}
        self.exits: dict[str, tuple[str, int]] = {}

    async def go(self) -> None:
        node = self.node
        for method, seconds in LATENCIES_S.items():
            node.cri.on(method).delays(seconds)
        self.script.program(node)
        await node.start()
        node.tap = self.tap  # not before: who starts a kubelet asks for the version of its runtime
        tasks = (self._crash(), self._watch(), self._listen())
        helpers = [asyncio.create_task(task) for task in tasks]
        await asyncio.sleep(0)
        await self._do_steps()
        for helper in helpers:
            helper.cancel()
        for done in await asyncio.gather(*helpers, return_exceptions=True):
            if isinstance(done, Exception):
                raise done
        self._look_at_the_end()

    async def _crash(self) -> None:
        await self.tap.hit.wait()
        await self.node.kill()
        await asyncio.sleep(DOWN_S)
        await self.node.start()

    async def _do_steps(self) -> None:
        start_s = self.node.clock.monotonic_s()
        for at_s, act in (*self.script.steps, (self.script.lasts_s, lambda node: None)):
            await asyncio.sleep(start_s + at_s - self.node.clock.monotonic_s())
            done = act(self.node)
            if isinstance(done, Awaitable):
                await done

    async def _watch(self) -> None:
        assert self.node.api is not None
        async for event in self.node.api.watch(PODS):
            pod = event["object"]
            line = status_line(pod.get("status") or {})
            name = pod["metadata"]["name"]
            if event["type"] == "DELETED":
                self.run.pods.pop(name, None)
            else:
                self.run.pods[name] = line
            if "ContainerStatusUnknown" in line:
                self.run.wrong.append(f"an exit was lost: {line}")
            self._note_exits(pod.get("status") or {})

    def _note_exits(self, status: dict[str, Any]) -> None:
        for kind in ("initContainerStatuses", "containerStatuses"):
            for one in status.get(kind) or ():
                for state in (one.get("state") or {}, one.get("lastState") or {}):
                    ended = state.get("terminated")
                    if ended:
                        made = (ended.get("containerID") or "").rpartition("/")[2]
                        self.told.setdefault(made, set()).add(ended.get("exitCode", 0))

    async def _listen(self) -> None:
        request = cri.GetEventsRequest()
        async for event in self.node.cri.stream("GetContainerEvents", request):
            for one in event.containers_statuses:
                if one.id == event.container_id:
                    self._note(event.container_event_type, one)

    def _note(self, kind: int, container: Any) -> None:
        name = container.metadata.name
        if kind == cri.CONTAINER_STARTED_EVENT:
            self.run.started[name] += 1
        elif kind == cri.CONTAINER_STOPPED_EVENT:
            self.exits[container.id] = (name, container.exit_code)

    def _look_at_the_end(self) -> None:
        for made, (name, code) in self.exits.items():
            if self.script.tells_exits and code not in self.told.get(made, ()):
                self.run.wrong.append(f"the API server was not told that {name} ended with {code}")
        fake = self.node.cri
        self.run.left = sorted(
            [f"{c.name} runs" for c in fake.containers() if is_running(c)]
            + [f"sandbox of {s.config.metadata.name}" for s in fake.sandboxes() if s.ready]
        )


def points_of(methods: Sequence[str]) -> list[Point]:
    """Where to crash: at every call. One that changes something before the runtime got it, and
    after; one that only reads, when its answer was on the way: before it, nothing was different.
    So it is between the two lists of one relist, which follow each other at once."""
    return [
        Point(number, method, after)
        for number, (method, following) in enumerate(zip(methods, [*methods[1:], ""], strict=True))
        if (method, following) != RELIST
        for after in ((True,) if is_reading(method) else (False, True))
    ]


def is_reading(method: str) -> bool:
    return method.startswith(READS) or method in READ_STATUSES
