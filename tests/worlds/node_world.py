"""A whole node in virtual time: the suite's kubelet in this process, a fake runtime, optionally a
fake API server; and what tests of refkubelet look into, beside what every kubelet shows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import yaml
from loops import virtual_loop

from fakecri import FakeCRI
from fakekubeapi import FakeApi
from fakekubeapi.in_process import InProcessWire
from kubelet_conformance.harness.api_server import ApiServer
from kubelet_conformance.harness.kubelets.base import NodePaths
from kubelet_conformance.harness.kubelets.fake_network import RunNetwork
from kubelet_conformance.harness.kubelets.inprocess import InProcessKubelet, World
from kubelet_conformance.harness.node.parts import kubelet_config
from kubelet_conformance.harness.observing.words import call_line, is_write
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.kubelet import Kubelet
from refkubelet.model.objects import Pod, PodStatus, decode_pod
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


class Tapped:
    """A runtime whose calls pass the tap of a node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        return await self._pass(method, self._node.cri.call, request, timeout_s)

    async def call_bytes(
        self, method: str, request: Any, *, timeout_s: float | None = None
    ) -> bytes:
        data: bytes = await self._pass(method, self._node.cri.call_bytes, request, timeout_s)
        return data

    async def _pass(
        self, method: str, call: Callable[..., Any], request: Any, timeout_s: float | None
    ) -> Any:
        await self._node.tap.before(method)
        answer = await call(method, request, timeout_s=timeout_s)
        await self._node.tap.after(method)
        return answer

    def stream(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        return self._node.cri.stream(method, request, timeout_s=timeout_s)


class Node:
    """One node. `kubelet` is the one that was started last; what surrounds it is in `world`.
    `settings`: fields of KubeletConfiguration by their names in the API (`maxPods=1`)."""

    def __init__(
        self, directory: Path, *, with_api: bool, seed: int, settings: Mapping[str, Any]
    ) -> None:
        loop = virtual_loop()
        self.clock = loop.clock
        self.paths = NodePaths(directory)
        self.paths.make()
        self.settings = dict(settings)
        self.cri = FakeCRI(ids=Ids(Rng(seed)), write_logs=True)
        self.api = FakeApi(self.clock, Ids(Rng(seed + 1))) if with_api else None
        self.kubelet: Kubelet
        self.tap = Tap()
        rng = Rng(seed)  # one for all kubelets: a new process draws other numbers
        self.world = World(
            target=Tapped(self),
            machine=self.cri.node,
            clock=self.clock,
            rng=rng,
            ids=Ids(rng),
            node_name=NODE,
            network=RunNetwork(self.cri.ports),
            connect=self._client if with_api else None,
            keeps_log=False,  # tests have caplog
        )
        self._kubelet = InProcessKubelet(self.paths, self.world)

    def _client(self) -> LightkubeApiClient:
        """Without HTTP, as in the suite's virtual runs."""
        return LightkubeApiClient.over(InProcessWire(self._api))

    @property
    def _api(self) -> FakeApi:
        assert self.api is not None
        return self.api

    async def start(self) -> None:
        """Start a kubelet; the Node object is there already in API mode. Raises KubeletDied."""
        if self.api is not None:
            await self.make_node_object()
        changes = {"evictionHard": {}, "clusterDNS": ["10.98.0.10"], **self.settings}
        await self._kubelet.start(kubelet_config(self.paths, changes))
        self.kubelet = self._kubelet.inner

    async def make_node_object(self) -> None:
        """Make the Node, as another client does, if it is not there."""
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        with suppress(ConnectionError):  # the server is away; the kubelet makes it when it is back
            answer = await self._api.request("POST", "/api/v1/nodes", body=body)
            assert answer.status in (201, 409), answer.body

    async def stop(self) -> None:
        """Stop the kubelet, and nothing else. Raises KubeletDied."""
        if self.is_up:
            await self._kubelet.stop()

    async def kill(self) -> None:
        """End the kubelet as SIGKILL does: nothing it still wanted to send is sent."""
        if self.is_up:
            await self._kubelet.kill()

    async def close(self) -> None:
        """End what is left of the kubelet: its log is kept no more."""
        await self._kubelet.close()

    def cut(self) -> None:
        """Let nothing of the kubelet pass to the runtime any more."""
        self._kubelet.cut()

    async def ended(self) -> None:
        """Wait until the kubelet has ended by itself. Raises what ended it."""
        await self._kubelet.ended()

    @property
    def is_up(self) -> bool:
        """Whether a kubelet runs."""
        return self._kubelet.runs

    async def restart(self, *, down_s: float = 0.0) -> None:
        await self.stop()
        await self.clock.sleep(down_s)
        await self.start()

    def apply(self, pod: dict[str, Any], file: str = "pod.yaml") -> None:
        """Write a manifest."""
        (self.paths.manifests / file).write_text(yaml.safe_dump(pod))

    def remove(self, file: str = "pod.yaml") -> None:
        (self.paths.manifests / file).unlink()

    async def create(self, pod: dict[str, Any]) -> Pod:
        """Post a pod that is bound to this node."""
        body = pod | {"spec": pod["spec"] | {"nodeName": NODE}}
        made = await ApiServer(self._api).request("POST", PODS, body=body)
        return decode_pod(made)

    async def live(self, name: str) -> Pod:
        """The pod at the API server."""
        found = await self.find(name)
        assert found is not None, f"{name} is not at the API server"
        return found

    async def find(self, name: str) -> Pod | None:
        answer = await self._api.request("GET", f"{PODS}/{name}")
        return decode_pod(answer.body) if answer.status == 200 else None

    async def delete(self, name: str, grace_s: int | None = None) -> None:
        body = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        await ApiServer(self._api).request("DELETE", f"{PODS}/{name}", body=body)

    def shown(self) -> list[Pod]:
        """What `/pods` shows; nothing while no kubelet runs."""
        return self.kubelet.pods_with_status() if self.is_up else []

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
            assert self.clock.monotonic_s() < end_s, self.story()
            await self.clock.sleep(step_s)

    async def live_phase(self, name: str) -> str | None:
        """What the API server shows; None: there is no such pod, or it has no status."""
        found = await self.find(name)
        return found.status.phase if found is not None and found.status is not None else None

    async def until_live(self, name: str, phase: str, limit_s: float = 60.0) -> None:
        """Wait until the API server shows the pod in that phase; fails after `limit_s`."""

        async def is_shown() -> bool:
            return await self.live_phase(name) == phase

        await self.until(is_shown, limit_s)

    async def until_gone(self, name: str, limit_s: float = 60.0) -> None:
        """Wait until the API server has no such pod; fails after `limit_s`."""

        async def is_gone() -> bool:
            return await self.find(name) is None

        await self.until(is_gone, limit_s)

    def story(self) -> str:
        """The last calls and events, for failures."""
        calls = [call_line(call, 0.0) for call in self.writes()]
        return "\n".join(["calls:", *calls[-25:], "events:", *self.events()[-15:]])

    def writes(self) -> list[Any]:
        """The calls that are neither lists nor other readings."""
        return [call for call in self.cri.calls() if is_write(call)]

    def write_names(self) -> list[str]:
        return [call.method for call in self.writes()]


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
        try:
            await node.stop()
        finally:
            await node.close()


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
