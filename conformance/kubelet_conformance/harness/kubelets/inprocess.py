"""refkubelet in this process, on the running loop: the kubelet of virtual runs.

It reads the same configuration file as a process would, and the fake node is its machine. A restart
is a new `Kubelet` over the same runtime, directories and API server. Stopping and killing differ as
they do for a process: after a kill no task can finish anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fakecri.csi.in_process import InProcessCsi
from fakecri.deviceplugin import InProcessPlugins
from fakecri.deviceplugin.registered import InProcessRegistry
from fakekubeapi.in_process import InProcessWire
from kubelet_conformance.harness.kubelets.base import (
    HEALTHZ,
    MAIN,
    HttpAnswer,
    HttpRequest,
    KubeletDied,
    NodePaths,
)
from kubelet_conformance.harness.kubelets.fake_network import FakeNetwork
from kubelet_conformance.harness.kubelets.login_plugins import PlayedScripts
from kubelet_conformance.harness.kubelets.own_log import OwnLog
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.certificates.store import CertificateError
from refkubelet.config import ConfigError, load_config
from refkubelet.config.credentials.files import load_credential_providers
from refkubelet.config.credentials.providers import GATE as SERVICE_ACCOUNT_TOKENS
from refkubelet.config.eviction_grammar import ThresholdError
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.container_manager.cgroups.manager import ContainerManagerError
from refkubelet.kubelet import (
    Directories,
    Kubelet,
    KubeletDeps,
    NodePlugins,
    PluginSources,
    ThisNode,
)
from refkubelet.model.objects import to_dict
from refkubelet.node.facts import node_facts
from refkubelet.server.access.authentication import NotConfigured
from refkubelet.server.common.exchange import Answer, ClientCertificate, Request
from refkubelet.server.port import Port, healthz_port
from refkubelet.server.request_line import BadRequest, path_of, query_of
from refkubelet.volumes.mounting import SimulatedMounts
from refkubelet.wiring.base import CertificateDeps
from simclock import Clock, Ids, Rng

HOST_IP: Final = "192.0.2.1"
_REFUSALS: Final = (
    CertificateError,
    ConfigError,
    ContainerManagerError,
    NotConfigured,
    ThresholdError,
)


@dataclass(frozen=True, slots=True)
class World:
    """What surrounds the kubelet."""

    target: Any
    """The runtime: the recorded `CriTarget`."""
    machine: Any
    """The machine it runs on, fakecri's FakeNode: a `Machine` whose records are the fake's own."""
    clock: Clock
    """The clock of the virtual loop."""
    rng: Rng
    """Its random choices."""
    ids: Ids
    """Its UIDs."""
    node_name: str
    """The name of the node at the API."""
    network: FakeNetwork
    """What probes reach."""
    wire: InProcessWire | None = None
    """The way to the API server; None: there is none."""
    device_plugins: InProcessPlugins | None = None
    """The directory of device plugins; None: no plugin can register."""
    registry: InProcessRegistry | None = None
    """The sockets below plugins_registry; None: none is looked for."""


class InProcessKubelet:
    """`Kubelet` of the harness over refkubelet's own."""

    def __init__(self, paths: NodePaths, world: World) -> None:
        self._paths = paths
        self._world = world
        self._kubelet: Kubelet | None = None
        self._task: asyncio.Task[None] | None = None
        self._shown: dict[str, tuple[Any, Any, dict[str, Any]]] = {}
        self._log = OwnLog(world.clock)

    async def start(self, config: Mapping[str, Any]) -> None:
        """Load the configuration from its file and run. Raises KubeletDied."""
        if self._task is not None:
            raise RuntimeError("the kubelet runs already")
        self._log.begin()
        self._paths.config.write_text(json.dumps(config))
        try:
            loaded = load_config(self._paths.config)
            self._kubelet = Kubelet(loaded, self._deps(loaded))
            _ = self._kubelet.servers.main
        except _REFUSALS as refused:
            raise KubeletDied(f"the kubelet does not start: {refused}") from None
        self._task = asyncio.create_task(self._kubelet.run(), name="kubelet under test")

    def _deps(self, config: KubeletConfiguration) -> KubeletDeps:
        """What the kubelet works with. Raises ThresholdError."""
        world = self._world
        api = LightkubeApiClient.over(world.wire) if world.wire else None
        facts = node_facts(
            config,
            world.node_name,
            world.machine,
            root_dir=str(self._paths.root),
            node_ip=HOST_IP,
        )
        return KubeletDeps(
            target=world.target,
            machine=world.machine,
            clock=world.clock,
            rng=world.rng,
            ids=world.ids,
            node=ThisNode(world.node_name, (HOST_IP,), facts),
            directories=Directories(self._paths.root, self._paths.log_links),
            api=api,
            network=world.network,
            plugins=PluginSources(
                devices=world.device_plugins,
                registrations=world.registry,
                csi=world.registry.csi if world.registry else InProcessCsi(),
                logins=self._login_plugins(config),
            ),
            certificates=CertificateDeps(self._paths.pki),
            shutdown_source=world.machine.logind,
            mounts=SimulatedMounts(),
        )

    def _login_plugins(self, config: KubeletConfiguration) -> NodePlugins | None:
        """As the flags of a process name them. Raises ConfigError."""
        paths = self._paths
        if not paths.login_config.exists():
            return None
        on = config.feature_gates.get(SERVICE_ACCOUNT_TOKENS, True)
        file, programs = str(paths.login_config), str(paths.login_programs)
        providers = load_credential_providers(file, programs, tokens_on=on)
        return NodePlugins(providers, PlayedScripts(paths)) if providers else None

    async def stop(self) -> None:
        """As SIGTERM; returns when it has ended."""
        task = self._running()
        if self._kubelet is not None:
            await self._kubelet.stop()
        await asyncio.gather(task, return_exceptions=True)
        self._kubelet = None

    async def kill(self) -> None:
        """As SIGKILL; returns when it has ended."""
        task = self._running()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self._kubelet = None

    def _running(self) -> asyncio.Task[None]:
        task, self._task = self._task, None
        if task is None:
            raise RuntimeError("the kubelet does not run")
        return task

    async def close(self) -> None:
        """Kill it if it runs."""
        if self._task is not None:
            await self.kill()
        self._log.end()

    def log_lines(self) -> Sequence[str]:
        """What its modules logged."""
        return list(self._log.lines)

    async def pods(self) -> Sequence[dict[str, Any]]:
        """The pods as `/pods` shows them; nothing while the kubelet is stopped."""
        if self._task is None or self._kubelet is None:
            return []
        if self._task.done():
            raise KubeletDied(
                f"the kubelet ended by itself: {self._task.exception()!r}", ended=True
            )
        return [self._as_json(pod) for pod in self._kubelet.pods_with_status()]

    async def summary(self) -> dict[str, Any]:
        """As `/stats/summary` shows it."""
        if self._kubelet is None:
            raise RuntimeError("the kubelet does not run")
        return await self._kubelet.stats.summary.summary()

    async def http(self, request: HttpRequest) -> HttpAnswer:
        """As its ports answer; no socket is opened, a client certificate counts as verified."""
        certificate = None
        if request.certificate is not None and request.port == MAIN:
            certificate = ClientCertificate(*request.certificate)
        try:
            asked_request = Request(
                method=request.method,
                path=path_of(request.path),
                query=query_of(request.path),
                headers={name.lower(): value for name, value in request.headers.items()},
                certificate=certificate,
            )
        except BadRequest as problem:
            return HttpAnswer(400, str(problem), {})
        answer = await self._port(request.port).answer(asked_request)
        body = answer.body + await self._chunks(answer, request.for_s)
        headers = {"content-type": answer.content_type}
        headers.update((name.lower(), value) for name, value in answer.headers.items())
        if answer.chunks is None:
            headers["content-length"] = str(len(body))
        return HttpAnswer(answer.status, body.decode(errors="replace"), headers)

    def _port(self, name: str) -> Port:
        if self._kubelet is None:
            raise KubeletDied("the kubelet does not run")
        if name == HEALTHZ:
            return healthz_port(self._world.clock)
        servers = self._kubelet.servers
        return servers.main if name == MAIN else servers.read_only

    async def _chunks(self, answer: Answer, for_s: float | None) -> bytes:
        """What comes of the answer, for so many seconds."""
        chunks: list[bytes] = []
        if answer.chunks is None:
            return b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(for_s):
                async for chunk in answer.chunks:
                    chunks.append(chunk)
        return b"".join(chunks)

    async def pod_resources(self, method: str, **fields: str) -> Any:
        """As the socket of a daemon answers. Raises LookupError."""
        if self._kubelet is None:
            raise LookupError("the kubelet does not run")
        answers = self._kubelet.resources.pod_resources
        match method:
            case "List":
                return answers.list()
            case "GetAllocatableResources":
                return answers.allocatable()
        return answers.get(fields["pod_name"], fields["pod_namespace"])

    def _as_json(self, pod: Any) -> dict[str, Any]:
        # Converting is slow and pods seldom change. Values are never changed in place, so the same
        # metadata and status objects mean the same content.
        uid = pod.metadata.uid
        cached = self._shown.get(uid)
        if cached is None or cached[0] is not pod.metadata or cached[1] is not pod.status:
            cached = self._shown[uid] = (pod.metadata, pod.status, to_dict(pod))
        return cached[2]
