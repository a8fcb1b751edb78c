"""One run of chaos on a node in virtual time: the steps of a plan, then quiet, then the laws."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from chaos_laws import TERMINAL, Tracebacks, Watcher, full_name, problems
from chaos_plan import Plan, PodPlan, Step, plan_of
from node_world import NODE, PODS, Node, running_node

from simclock import run_virtual

QUIET_S: Final = 600.0  # so long after the last fault everything must be as it should be
LOOK_S: Final = 2.0
CHANGING: Final = ("RunPodSandbox", "CreateContainer", "StartContainer", "StopPodSandbox")


def run_seed(seed: int) -> list[str]:
    """Run the plan of that seed, and return what was wrong."""
    plan = plan_of(seed)
    with TemporaryDirectory(dir=fast_directory()) as directory:
        return run_virtual(lambda: _run(plan, Path(directory), seed))


async def _run(plan: Plan, directory: Path, seed: int) -> list[str]:
    gates = {"EventedPLEG": True} if plan.evented else {}
    async with running_node(
        directory, api=plan.api, seed=seed, started=False, featureGates=gates
    ) as node:
        return await Course(node, plan).go()


def fast_directory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


class Course:
    """One run of a plan on a node."""

    def __init__(self, node: Node, plan: Plan) -> None:
        self.node = node
        self.plan = plan
        self.watcher = Watcher(node, plan.pods)
        self.wanted = {pod.name: pod for pod in plan.pods}
        self._rules: list[Any] = []
        self._later: set[asyncio.Task[object]] = set()
        self._phases: dict[str, list[str]] = {}

    async def go(self) -> list[str]:
        """Run the pods, do the steps, end all faults, and return what was wrong."""
        node = self.node
        node.tap = self.watcher
        if self.plan.takes_s:
            for method in CHANGING:
                node.cri.on(method).delays(self.plan.takes_s)
        handler = Tracebacks(self.watcher)
        logging.getLogger("refkubelet").addHandler(handler)
        watch = asyncio.create_task(self._note_phases()) if node.api else None
        try:
            await node.start()
            for pod in self.plan.pods:
                for pattern, behavior in pod.behaviors():
                    node.cri.behaves(behavior, pod=full_name(pod), container=pattern)
                await self._make(pod)
            for step in self.plan.steps:
                await asyncio.sleep(step.wait_s)
                await self._do(step)
            await self._calm_down()
            return await self._judge()
        finally:
            logging.getLogger("refkubelet").removeHandler(handler)
            for task in (*self._later, *([watch] if watch else [])):
                task.cancel()

    # -- steps

    async def _do(self, step: Step) -> None:
        name = step.kind.replace(" ", "_")
        pod = self.plan.pods[step.pod]
        try:
            done = getattr(self, f"_{name}")(step, pod)
            if isinstance(done, Awaitable):
                await done
        except LookupError:
            return  # nothing there to do it to

    def _fault(self, step: Step, pod: PodPlan) -> None:
        """Disturb calls of the runtime in the way of that step."""
        on = self.node.cri.on("GetContainerEvents" if step.fault == "cut" else step.call)
        match step.fault:
            case "fails":
                rule = on.fails("UNKNOWN", "no", times=step.times)
            case "loses":
                rule = on.loses_answer(times=step.times)
            case "delays":
                rule = on.delays(step.for_s, times=step.times)
            case "late":
                rule = on.answers_late(step.for_s, times=step.times)
            case "half":
                rule = on.fails_halfway(times=step.times)
            case "cut":
                rule = on.cuts_stream(0, times=1)
            case _:
                rule = on.hangs(times=1)
                asyncio.get_running_loop().call_later(step.for_s, rule.release)
        self._rules.append(rule)

    def _crash(self, step: Step, pod: PodPlan) -> None:
        if not self.node.cri.is_down:
            self.node.cri.crash()
            self._after(step.for_s, self.node.cri.restart)

    async def _kill_kubelet(self, step: Step, pod: PodPlan) -> None:
        await self.node.kill()
        await asyncio.sleep(step.for_s)
        await self.node.start()

    async def _restart_kubelet(self, step: Step, pod: PodPlan) -> None:
        await self.node.restart(down_s=step.for_s)

    def _stop_sandbox(self, step: Step, pod: PodPlan) -> None:
        self.node.cri.stop_sandbox(pod=full_name(pod))

    def _kill_sandbox(self, step: Step, pod: PodPlan) -> None:
        self.node.cri.kill_sandbox(pod=full_name(pod))

    def _kill_container(self, step: Step, pod: PodPlan) -> None:
        self.node.cri.kill(pod=full_name(pod))

    async def _again(self, step: Step, pod: PodPlan) -> None:
        """The pod goes and comes back: as a manifest with the same bytes, or as a new pod of the
        same name."""
        if pod.name in self.wanted:
            await self._end(step, pod)
            await asyncio.sleep(min(step.for_s, 4.0))
        await self._make(pod)

    async def _end(self, step: Step, pod: PodPlan) -> None:
        if self.wanted.pop(pod.name, None) is None:
            return
        if pod.static:
            self.node.remove(f"{pod.name}.yaml")
            self._excuse(pod)
        elif self.node.api is not None:
            await self._ask("DELETE", f"{PODS}/{pod.name}")

    def _api_down(self, step: Step, pod: PodPlan) -> None:
        assert self.node.api is not None
        self._after(step.for_s, self.node.api.down().remove)

    def _api_loses(self, step: Step, pod: PodPlan) -> None:
        """The API server loses its data, as after a new etcd, and what the manifests say is still
        wanted. The Node is made again from outside, since a kubelet does not do that (NODE-006)."""
        assert self.node.api is not None
        outage = self.node.api.down()
        objects = self.node.api.store._objects
        for key in [key for key in objects if key.resource != "namespaces"]:
            del objects[key]
        self.node.api.store.compact()
        self._after(step.for_s, outage.remove)
        self._soon(self._make_node(step.for_s))
        self.wanted = {name: plan for name, plan in self.wanted.items() if plan.static}

    # -- help

    def _after(self, seconds: float, what: Callable[[], object]) -> None:
        self._soon(_later(seconds, what))

    def _soon(self, doing: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(doing)
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _make_node(self, after_s: float) -> None:
        await asyncio.sleep(after_s)
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        await self._ask("POST", "/api/v1/nodes", body)

    def _excuse(self, pod: PodPlan) -> None:
        """Allow the containers of a static pod to work again: it comes back under its old UID."""
        for container in self.node.cri.containers(pod=full_name(pod)):
            self.watcher.excused.add(container.pod.uid)

    async def _make(self, pod: PodPlan) -> None:
        """Write the manifest of the pod, or create it at the API server."""
        if pod.static:
            self.node.apply(pod.manifest(), f"{pod.name}.yaml")
            self.wanted[pod.name] = pod
            return
        body = pod.manifest()
        body["spec"]["nodeName"] = NODE
        end_s = self.node.clock.monotonic_s() + 60.0
        while (await self._ask("POST", PODS, body)) == 409:  # its predecessor is still ending
            if self.node.clock.monotonic_s() > end_s:
                return
            await asyncio.sleep(0.5)
        self.wanted[pod.name] = pod

    async def _ask(self, method: str, path: str, body: Any = None) -> int:
        """The status of the answer; while the server cannot be reached the request is repeated."""
        assert self.node.api is not None
        while True:
            try:
                return (await self.node.api.request(method, path, body=body)).status
            except ConnectionError:
                await asyncio.sleep(0.5)

    async def _note_phases(self) -> None:
        """Follow the pods at the API server: a phase never leaves Succeeded or Failed, except that
        of a static pod that comes back."""
        assert self.node.api is not None
        while True:
            try:
                async for event in self.node.api.watch(PODS):
                    self._note(event["object"])
            except ConnectionError:
                await asyncio.sleep(0.1)

    def _note(self, pod: dict[str, Any]) -> None:
        phase = (pod.get("status") or {}).get("phase", "Pending")
        seen = self._phases.setdefault(pod["metadata"]["uid"], [])
        name = pod["metadata"]["name"]
        if seen and seen[-1] in TERMINAL and phase != seen[-1] and not name.endswith(NODE):
            self.watcher.tell(f"{name} was {seen[-1]} and is {phase}")
        seen.append(phase)

    # -- the end

    async def _calm_down(self) -> None:
        for rule in self._rules:
            rule.remove()
        while self._later:
            await asyncio.gather(*self._later)

    async def _judge(self) -> list[str]:
        """What is wrong when all is as it should be, or QUIET_S seconds after the last fault."""
        node = self.node
        end_s = node.clock.monotonic_s() + QUIET_S
        while True:
            await asyncio.sleep(LOOK_S)
            at_api = []
            if node.api is not None:
                at_api = (await node.api.request("GET", PODS)).body["items"]
            found = problems(node, self.wanted.values(), at_api)
            if not found or node.clock.monotonic_s() > end_s:
                return [*self.watcher.wrong, *found]


async def _later(seconds: float, what: Callable[[], object]) -> None:
    await asyncio.sleep(seconds)
    what()
