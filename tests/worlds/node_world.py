"""A whole node in virtual time: the kubelet, a fake runtime, optionally a fake API server."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import yaml
from loops import virtual_loop

from fakecri import FakeCRI
from fakecri.deviceplugin import InProcessPlugins
from fakekubeapi import FakeApi
from fakekubeapi.httpx_transport import InProcessTransport
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.kubelet import Directories, Kubelet, KubeletDeps, PluginSources, ThisNode
from refkubelet.model.objects import Pod, PodStatus, decode_pod
from refkubelet.node.facts import node_facts
from refkubelet.node.status import NodeFacts
from refkubelet.telemetry.spans import NO_SPANS, Spans
from refkubelet.volumes.mounting import Mounts, SimulatedMounts
from simclock import Ids, Rng, run_virtual

T = TypeVar("T")

NODE = "golden"
PODS = "/api/v1/namespaces/default/pods"


class Tap:
    """Sees every call of the kubelet on its way. `before`: the runtime does not know of it yet;
    `after`: it has done its work, and the kubelet does not know of that."""

    async def before(self, method: str) -> None:
        """Do nothing."""

    async def after(self, method: str) -> None:
        """Do nothing."""


class Wire:
    """What a kubelet reaches its runtime through. Cut, nothing passes any more: a killed process
    sends nothing, however its tasks end here."""

    def __init__(self, cri: FakeCRI, tap: Tap) -> None:
        self._cri = cri
        self._tap = tap
        self.is_cut = False

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        self._refuse_after_cut(method)
        await self._tap.before(method)
        answer = await self._cri.call(method, request, timeout_s=timeout_s)
        await self._tap.after(method)
        return answer

    def stream(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        self._refuse_after_cut(method)
        return self._cri.stream(method, request, timeout_s=timeout_s)

    def _refuse_after_cut(self, method: str) -> None:
        if self.is_cut:
            raise asyncio.CancelledError(f"{method} of a killed kubelet")


class Node:
    """One node. `kubelet` is the one that runs now; restarting makes another."""

    def __init__(self, directory: Path, *, with_api: bool, seed: int, settings: Any) -> None:
        loop = virtual_loop()
        self.clock = loop.clock
        self._rng = Rng(seed)  # one for all kubelets: a new process draws other numbers
        self.directory = directory
        self.manifests = directory / "manifests"
        self.manifests.mkdir(exist_ok=True)
        self.settings = settings
        self.cri = FakeCRI(ids=Ids(Rng(seed)), write_logs=True)
        self.api = FakeApi(self.clock, Ids(Rng(seed + 1))) if with_api else None
        self.kubelet: Kubelet
        self.mounts: Mounts = SimulatedMounts()
        self.spans: Spans = NO_SPANS
        self.tap = Tap()
        self.plugins: InProcessPlugins | None = None
        self.wire = Wire(self.cri, self.tap)
        self._task: asyncio.Task[None] | None = None
        self._client: LightkubeApiClient | None = None

    async def start(self) -> None:
        """Start a kubelet; the Node object is there already in API mode."""
        if self.api is not None:
            await self._make_node_object(self.api)
            self._client = LightkubeApiClient.in_process(InProcessTransport(self.api))
        config = KubeletConfiguration(
            static_pod_path=str(self.manifests),
            pod_logs_dir=str(self.directory / "logs"),
            **({"eviction_hard": {}, "resolv_conf": ""} | self.settings),
        )
        self.wire = Wire(self.cri, self.tap)
        self.kubelet = Kubelet(
            config,
            KubeletDeps(
                target=self.wire,
                machine=self.cri.node,
                clock=self.clock,
                rng=self._rng,
                ids=Ids(self._rng),
                node=ThisNode(NODE, ("192.0.2.1",) if self.api else (), self._facts(config)),
                directories=Directories(self.directory / "root"),
                api=self._client,
                plugins=PluginSources(self.plugins),
                mounts=self.mounts,
                spans=self.spans,
            ),
        )
        self._task = asyncio.create_task(self.kubelet.run(), name="kubelet")

    def _facts(self, config: KubeletConfiguration) -> NodeFacts:
        root = str(self.directory)
        return node_facts(config, NODE, self.cri.node, root_dir=root, node_ip="192.0.2.1")

    async def _make_node_object(self, api: FakeApi) -> None:
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        try:
            answer = await api.request("POST", "/api/v1/nodes", body=body)
        except ConnectionError:
            return  # the server is away; the kubelet makes it when it is back
        assert answer.status in (201, 409), answer.body

    async def stop(self) -> None:
        """Stop the kubelet, and nothing else."""
        if self._task is None:
            return
        await self.kubelet.stop()
        # One whose wire was cut ends in one way or another; it no longer matters how.
        await asyncio.gather(self._task, return_exceptions=self.wire.is_cut)
        self._task = None
        if self._client is not None:
            await self._client.aclose()

    async def kill(self) -> None:
        """End the kubelet as SIGKILL does: nothing it still wanted to send is sent."""
        task, self._task = self._task, None
        if task is None:
            return
        self.wire.is_cut = True
        if self._client is not None:
            await self._client.aclose()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    @property
    def is_up(self) -> bool:
        """Whether a kubelet runs."""
        return self._task is not None

    async def restart(self, *, down_s: float = 0.0) -> None:
        await self.stop()
        await self.clock.sleep(down_s)
        await self.start()

    def apply(self, pod: dict[str, Any], file: str = "pod.yaml") -> None:
        """Write a manifest."""
        (self.manifests / file).write_text(yaml.safe_dump(pod))

    def remove(self, file: str = "pod.yaml") -> None:
        (self.manifests / file).unlink()

    def copy(self, source: Path, file: str) -> None:
        shutil.copyfile(source, self.manifests / file)

    async def create(self, pod: dict[str, Any]) -> Pod:
        """Post a pod that is bound to this node."""
        assert self.api is not None
        body = pod | {"spec": pod["spec"] | {"nodeName": NODE}}
        answer = await self.api.request("POST", PODS, body=body)
        assert answer.status == 201, answer.body
        return await self.live(pod["metadata"]["name"])

    async def live(self, name: str) -> Pod:
        """The pod at the API server."""
        found = await self.find(name)
        assert found is not None, f"{name} is not at the API server"
        return found

    async def find(self, name: str) -> Pod | None:
        assert self.api is not None
        answer = await self.api.request("GET", f"{PODS}/{name}")
        return decode_pod(answer.body) if answer.status == 200 else None

    async def delete(self, name: str, grace_s: int | None = None) -> None:
        assert self.api is not None
        body = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        answer = await self.api.request("DELETE", f"{PODS}/{name}", body=body)
        assert answer.status in (200, 202), answer.body

    def shown(self) -> list[Pod]:
        """What `/pods` shows; nothing while no kubelet runs."""
        return self.kubelet.pods_with_status() if self.is_up else []

    async def stop_sandbox_outside(self) -> None:
        """Another client of the runtime stops the newest sandbox."""
        self.cri.stop_sandbox()

    def status(self, name: str) -> PodStatus | None:
        """The status the kubelet itself shows, by the pod's full name on the node."""
        for pod in self.kubelet.pods_with_status():
            if pod.metadata is not None and pod.metadata.name == name:
                return pod.status
        return None

    def phase(self, name: str) -> str | None:
        status = self.status(name)
        return status.phase if status is not None else None

    def waiting(self, name: str) -> tuple[str | None, str | None] | None:
        """Reason and message of the first container's waiting state; None: it does not wait."""
        status = self.status(name)
        first = (status.containerStatuses or [None])[0] if status is not None else None
        state = first.state.waiting if first is not None and first.state is not None else None
        return (state.reason, state.message) if state is not None else None

    def events(self, reason: str | None = None) -> list[str]:
        """Messages of recorded events (all: `Reason: message`)."""
        recorded = self.kubelet.recorder.events
        if reason is None:
            return [f"{e.reason}: {e.message}" for e in recorded]
        return [e.message for e in recorded if e.reason == reason]

    async def until(
        self, condition: Callable[[], Any], limit_s: float = 60.0, step_s: float = 0.01
    ) -> None:
        """Wait until `condition()` (which may be a coroutine) is true; fails after `limit_s`."""
        end_s = self.clock.monotonic_s() + limit_s
        while True:
            value = condition()
            if isinstance(value, Awaitable):
                value = await value
            if value:
                return
            await self._pause(end_s, step_s)

    async def live_phase(self, name: str) -> str | None:
        """What the API server shows; None: there is no such pod, or it has no status."""
        found = await self.find(name)
        return found.status.phase if found is not None and found.status is not None else None

    async def until_live(self, name: str, phase: str, limit_s: float = 60.0) -> None:
        """Wait until the API server shows the pod in that phase; fails after `limit_s`."""
        end_s = self.clock.monotonic_s() + limit_s
        while await self.live_phase(name) != phase:
            await self._pause(end_s)

    async def until_gone(self, name: str, limit_s: float = 60.0) -> None:
        """Wait until the API server has no such pod; fails after `limit_s`."""
        end_s = self.clock.monotonic_s() + limit_s
        while await self.find(name) is not None:
            await self._pause(end_s)

    async def _pause(self, end_s: float, step_s: float = 0.01) -> None:
        assert self.clock.monotonic_s() < end_s, self.story()
        await self.clock.sleep(step_s)

    def story(self) -> str:
        """The last calls and events, for failures."""
        calls = [f"{c.started_s:.3f} {c.method} {c.subject} {c.error}" for c in self.writes()]
        return "\n".join(["calls:", *calls[-25:], "events:", *self.events()[-15:]])

    def writes(self) -> list[Any]:
        """The calls that are neither lists nor other readings."""
        reads = ("List", "Status", "Version", "ImageFsInfo", "PodSandboxStatus", "ContainerStatus")
        reads += ("ImageStatus", "RuntimeConfig")
        return [c for c in self.cri.calls() if not c.method.startswith(reads)]

    def write_names(self) -> list[str]:
        return [c.method for c in self.writes()]


@asynccontextmanager
async def running_node(
    directory: Path, *, api: bool = False, seed: int = 1, started: bool = True, **settings: Any
) -> AsyncIterator[Node]:
    """A fresh node in virtual time, with a kubelet `started` already."""
    node = Node(directory, with_api=api, seed=seed, settings=settings)
    if started:
        await node.start()
    try:
        yield node
    finally:
        await node.stop()


def on_node(
    body: Callable[[Node], Coroutine[Any, Any, T]],
    directory: Path,
    *,
    api: bool = False,
    seed: int = 1,
    loop_seed: int | None = None,
    started: bool = True,
    **settings: Any,
) -> T:
    """For runs with many nodes, each on a loop of its own: what `body` returns for a fresh node,
    with a kubelet `started` already. `loop_seed` permutes what runs at the same instant."""

    async def main() -> T:
        async with running_node(directory, api=api, seed=seed, started=started, **settings) as node:
            return await body(node)

    return run_virtual(main, seed=loop_seed)
