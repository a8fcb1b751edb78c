"""One node in this process: a machine, a runtime and a kubelet, on the running loop.

`KubeNode` is the node as a test holds it: `start` and it is at the API server, `kill` and it is as
a node whose power is gone. What must never happen: something of a node that was killed still
reaches the API server, or the end of one leaves a task behind.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri

from fakecri import FakeCRI, FakeNode
from fakecri.csi.in_process import InProcessCsi
from fakecri.deviceplugin import InProcessPlugins
from kubenodes.network import FakeNetwork
from kubenodes.running import RunningKubelet
from kubenodes.settings import NodeSettings
from kubenodes.shared_reads import PoolClient, SharedReads
from kubenodes.wire import NodeWire, RuntimeWire
from refkubelet.api.client import ApiError
from refkubelet.api.kinds import NODES
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.kubelet import Directories, Kubelet, KubeletDeps, PluginSources, ThisNode
from refkubelet.model.objects import Node
from refkubelet.node.facts import node_facts
from refkubelet.node.versions import runtime_version
from refkubelet.volumes.mounting import SimulatedMounts
from simclock import Clock, Ids, Rng, clock_of

READY_WITHIN_S: Final = 60.0
_LOOK_S: Final = 0.05
"""How often a node that shall be ready is looked at."""


class NodeError(Exception):
    """A node does not do what it was asked to: it does not get ready, or runs already."""


class KubeNode:
    """A node of an API server, from `start` to `close`, on the running loop: in virtual time or in
    real time. `api` is a client of the API server, whose connections it uses, `reads` what is read
    there for several nodes, `gate` lets so many of their requests through at a time, `directory`
    where its kubelet has its files, `seed` that of its random choices.

    `runtime` is its fake runtime (`fakecri.FakeCRI`: `behaves`, `on`, `exit`, `calls`, ...),
    `runtime.node` its machine. Raises ConfigErrors, NodeLabelError, ValueError for settings that
    cannot be.
    """

    def __init__(
        self,
        settings: NodeSettings,
        api: LightkubeApiClient,
        directory: Path,
        *,
        reads: SharedReads | None = None,
        gate: asyncio.Semaphore | None = None,
        clock: Clock | None = None,
        seed: int = 0,
    ) -> None:
        self.settings = settings
        self._labels = settings.node_labels()
        self._config = settings.configuration(directory)
        self._directory = directory
        self._clock = clock or clock_of(asyncio.get_running_loop())
        self._rng = Rng(Rng(seed).stream(settings.name).getrandbits(63))
        self._ids = Ids(self._rng)
        self._api, self._gate, self._reads = api, gate, reads
        self._has_network = True
        self._line = NodeWire(api.wire, gate)
        self._running: RunningKubelet | None = None
        self._starts = False
        machine = FakeNode(
            cpus=settings.cpus, memory_bytes=settings.memory_bytes, address=settings.address
        )
        self.runtime = FakeCRI(self._clock, self._ids, machine, **settings.runtime)

    @property
    def name(self) -> str:
        """The name of its Node object."""
        return self.settings.name

    @property
    def runs(self) -> bool:
        """Whether its kubelet runs."""
        return self._running is not None and not self._running.ended

    @property
    def kubelet(self) -> Kubelet | None:
        """refkubelet's own, for who wants to look inside; None: none runs."""
        return self._running.inner if self._running is not None and self.runs else None

    async def start(self) -> None:
        """Start the kubelet, again after `stop` or `kill`, or when it has ended by itself. Raises
        NodeError when it runs."""
        if self._starts or self.runs:
            raise NodeError(f"the kubelet of node {self.name} runs already; stop or kill it first")
        self._starts = True
        try:
            await self._start()
        finally:
            self._starts = False

    async def _start(self) -> None:
        await self.kill()  # of one that has ended by itself the client is open
        self._directory.mkdir(parents=True, exist_ok=True)
        self._line = NodeWire(self._api.wire, self._gate)  # the one before is closed for ever
        if not self._has_network:
            self._line.lose()
        wire, api = RuntimeWire(self.runtime), self._client()
        version = await self.runtime.call("Version", cri.VersionRequest())
        product = runtime_version(version.runtime_name, version.runtime_version)
        kubelet = Kubelet(self._config, self._deps(wire, api, product))
        self._running = RunningKubelet(kubelet, wire, api, f"kubelet of {self.name}")

    def _client(self) -> LightkubeApiClient:
        if self._reads is None:
            return LightkubeApiClient.over(self._line, self._api.server)
        return PoolClient(self._line, self._api.server, self._reads)

    def _deps(self, wire: RuntimeWire, api: LightkubeApiClient, product: str) -> KubeletDeps:
        machine: Any = self.runtime.node  # its records are the fake's own
        root, ips = self._directory / "kubelet", (self.settings.address,)
        facts = node_facts(
            self._config,
            self.name,
            machine,
            root_dir=str(root),
            node_ips=ips,
            runtime_version=product,
            labels=self._labels,
        )
        return KubeletDeps(
            target=wire,
            machine=machine,
            clock=self._clock,
            rng=self._rng,
            ids=self._ids,
            node=ThisNode(self.name, ips, facts),
            directories=Directories(root),
            api=api,
            network=FakeNetwork(self.runtime.ports),
            plugins=PluginSources(devices=InProcessPlugins(), csi=InProcessCsi()),
            shutdown_source=machine.logind,
            mounts=SimulatedMounts(),
        )

    async def ready(self, within_s: float = READY_WITHIN_S) -> None:
        """Wait until the API server shows the node as ready. Raises NodeError after `within_s`, or
        when its kubelet has ended."""
        reader = LightkubeApiClient.over(self._line, self._api.server)
        until_s = self._clock.monotonic_s() + within_s
        last = "there is no Node object"
        while self._clock.monotonic_s() < until_s:
            self._check_runs()
            try:
                last = not_ready(await reader.get(NODES, self.name))
            except ApiError as error:
                last = str(error)
            if not last:
                return
            await self._clock.sleep(_LOOK_S)
        raise NodeError(f"node {self.name} is not ready after {within_s:g} s: {last}")

    def _check_runs(self) -> None:
        if self._running is None:
            raise NodeError(f"the kubelet of node {self.name} does not run")
        if self._running.ended:
            raise NodeError(
                f"the kubelet of node {self.name} has ended: {self._running.problem!r}"
            ) from self._running.problem

    async def stop(self) -> None:
        """End the kubelet as SIGTERM does: containers go on, and the next one finds them. Raises
        NodeError when none runs."""
        self._check_runs()
        running, self._running = self._running, None
        assert running is not None
        await running.stop()

    async def kill(self) -> None:
        """End the kubelet as SIGKILL does, at whatever it was about; containers go on."""
        running, self._running = self._running, None
        if running is not None:
            await running.kill()

    async def power_off(self) -> None:
        """As if the machine lost its power: the kubelet is gone and so are all containers, and
        nobody tells the API server."""
        await self.kill()
        self.runtime.reboot()

    async def power_on(self, within_s: float = READY_WITHIN_S) -> None:
        """Boot the machine after `power_off`, with the containers' records and its kubelet's files
        as they were, and wait until the node is ready. Raises NodeError."""
        await self.start()
        await self.ready(within_s)

    async def reboot(self, within_s: float = READY_WITHIN_S) -> None:
        """Boot the machine and wait until the node is ready. Raises NodeError."""
        await self.power_off()
        await self.power_on(within_s)

    def lose_network(self) -> None:
        """Let nothing pass between the kubelet and the API server until `restore_network`; its pods
        go on."""
        self._has_network = False
        self._line.lose()

    def restore_network(self) -> None:
        """End what `lose_network` began."""
        self._has_network = True
        self._line.restore()

    async def close(self) -> None:
        """Kill the kubelet if it runs, and end what its runtime has open; nothing is deleted at the
        API server (`leftovers.remove`)."""
        await self.kill()
        await self.runtime.stop_streaming()


def not_ready(node: Node) -> str:
    """Why a Node is not ready; "": it is."""
    conditions = (node.status.conditions or ()) if node.status is not None else ()
    for condition in conditions:
        if condition.type == "Ready":
            return "" if condition.status == "True" else f"{condition.reason}: {condition.message}"
    return "it has no condition Ready yet"
