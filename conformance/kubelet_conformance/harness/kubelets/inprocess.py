"""refkubelet in this process, on the running loop: the kubelet of virtual runs.

It reads the same configuration file as a process would, and the fake node is its machine. A restart
is a new `Kubelet` over the same runtime, directories and API server. Stopping and killing differ as
they do for a process: after a kill no task can finish anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri
from msgspec import Struct

from fakecri.csi.in_process import InProcessCsi
from fakecri.deviceplugin import InProcessPlugins
from fakecri.deviceplugin.registered import InProcessRegistry
from kubelet_conformance.harness.kubelets.base import (
    HEALTHZ,
    MAIN,
    HttpAnswer,
    HttpRequest,
    KubeletDied,
    NodePaths,
)
from kubelet_conformance.harness.kubelets.fake_network import RunNetwork
from kubelet_conformance.harness.kubelets.login_plugins import PlayedScripts
from kubelet_conformance.harness.kubelets.own_log import OwnLog
from kubenodes.running import RunningKubelet
from kubenodes.wire import RuntimeWire
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
from refkubelet.node.facts import NO_LABELS, NodeNameError, node_facts, node_name
from refkubelet.node.labels import NodeLabelError, node_labels
from refkubelet.node.versions import UNKNOWN, runtime_version
from refkubelet.server.access.authentication import NotConfigured
from refkubelet.server.common.exchange import Answer, ClientCertificate, Request
from refkubelet.server.port import Port, healthz_port
from refkubelet.server.request_line import BadRequest, path_of, query_of
from refkubelet.telemetry.spans import NO_SPANS, Spans
from refkubelet.volumes.mounting import Mounts, SimulatedMounts
from refkubelet.wiring.base import CertificateDeps
from simclock import Clock, Ids, Rng

HOST_IP: Final = "192.0.2.1"
_REFUSALS: Final = (
    CertificateError,
    ConfigError,
    ContainerManagerError,
    NodeLabelError,
    NodeNameError,
    NotConfigured,
    ThresholdError,
)


@dataclass(slots=True, kw_only=True)
class World:
    """What surrounds the kubelet; what is changed holds for those that are started from then on."""

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
    network: RunNetwork
    """What probes reach."""
    connect: Callable[[], LightkubeApiClient] | None = None
    """Makes a kubelet's client of the API server; None: there is none."""
    device_plugins: InProcessPlugins | None = None
    """The directory of device plugins; None: no plugin can register."""
    registry: InProcessRegistry | None = None
    """The sockets below plugins_registry; None: none is looked for."""
    mounts: Mounts = field(default_factory=SimulatedMounts)
    """The mount table of the machine."""
    spans: Spans = NO_SPANS
    """Where spans go."""
    apparmor: bool = True
    """Whether the machine's kernel has AppArmor."""
    keeps_log: bool = True
    """Whether all that the kubelet logs is kept, for the failure of its case; errors are."""


class _Given(Struct, frozen=True):
    """What configuration and flags say of the kubelet and its node."""

    config: KubeletConfiguration
    name: str
    ips: tuple[str, ...]
    labels: Mapping[str, str] = NO_LABELS


class InProcessKubelet:
    """`Kubelet` of the harness over refkubelet's own."""

    def __init__(self, paths: NodePaths, world: World) -> None:
        self._paths = paths
        self._world = world
        self._run: RunningKubelet | None = None
        self._inner: Kubelet | None = None
        self._api: LightkubeApiClient | None = None
        self._shown: dict[str, tuple[Any, Any, dict[str, Any]]] = {}
        self._log = OwnLog(world.clock)

    async def start(self, config: Mapping[str, Any], flags: Sequence[str] = ()) -> None:
        """Load the configuration from its file and the flags, and run. Raises KubeletDied."""
        if self._run is not None:
            raise RuntimeError("the kubelet runs already")
        self._log.begin(logging.INFO if self._world.keeps_log else logging.ERROR)
        self._paths.config.write_text(json.dumps(config))
        wire = RuntimeWire(self._world.target)
        try:
            given = self._given(flags)
            kubelet = Kubelet(given.config, self._deps(given, await self._runtime_version(), wire))
            _ = kubelet.servers.main
        except _REFUSALS as refused:
            raise KubeletDied(f"the kubelet does not start: {refused}") from refused
        self._inner = kubelet
        self._run = RunningKubelet(kubelet, wire, self._api, "kubelet under test")

    def _given(self, flags: Sequence[str]) -> _Given:
        """What the file and the flags say, read as a process reads them. Raises one of
        `_REFUSALS`."""
        if not flags:
            config = load_config(self._paths.config)
            return _Given(config, self._world.node_name, (HOST_IP,))
        # Here, not above: few cases have flags, and what a process needs takes long to import.
        from refkubelet.cli import options_of
        from refkubelet.daemon import configuration, host_ips

        options = options_of(["run", f"--config={self._paths.config}", *flags])
        return _Given(
            configuration(options),
            node_name(options.hostname_override or self._world.node_name),
            host_ips(options.node_ip, standalone=False) if options.node_ip else (HOST_IP,),
            node_labels(options.node_labels),
        )

    async def _runtime_version(self) -> str:
        """What a process shakes hands with its runtime for; `Unknown` where it does not answer."""
        try:
            told = await self._world.target.call("Version", cri.VersionRequest())
        except Exception:
            return UNKNOWN
        return runtime_version(told.runtime_name, told.runtime_version)

    def _deps(self, given: _Given, runtime: str, wire: RuntimeWire) -> KubeletDeps:
        """What the kubelet works with. Raises ThresholdError."""
        world, config = self._world, given.config
        self._api = world.connect() if world.connect else None
        facts = node_facts(
            config,
            given.name,
            world.machine,
            root_dir=str(self._paths.root),
            node_ips=given.ips,
            runtime_version=runtime,
            apparmor=world.apparmor,
            labels=given.labels,
        )
        return KubeletDeps(
            target=wire,
            machine=world.machine,
            clock=world.clock,
            rng=world.rng,
            ids=world.ids,
            node=ThisNode(given.name, given.ips, facts),
            directories=Directories(self._paths.root, self._paths.log_links),
            api=self._api,
            network=world.network,
            plugins=PluginSources(
                devices=world.device_plugins,
                registrations=world.registry,
                csi=world.registry.csi if world.registry else InProcessCsi(),
                logins=self._login_plugins(config),
            ),
            certificates=CertificateDeps(self._paths.pki),
            shutdown_source=world.machine.logind,
            mounts=world.mounts,
            spans=world.spans,
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

    @property
    def runs(self) -> bool:
        """Whether it was started, and neither stopped nor killed since."""
        return self._run is not None

    @property
    def inner(self) -> Kubelet:
        """refkubelet's own, for tests of refkubelet. Raises KubeletDied when none runs."""
        if self._inner is None:
            raise KubeletDied("the kubelet does not run")
        return self._inner

    async def stop(self) -> None:
        """As SIGTERM; returns when it has ended. Raises KubeletDied for one that ended in another
        way."""
        run, self._inner = self._taken(), None
        try:
            await run.stop()
        except Exception as problem:
            raise _died(problem) from problem

    async def kill(self) -> None:
        """As SIGKILL; returns when it has ended: nothing that it still wanted to send is sent."""
        run, self._inner = self._taken(), None
        await run.kill()

    def cut(self) -> None:
        """Let nothing of it pass to the runtime any more."""
        if self._run is not None:
            self._run.cut()

    async def ended(self) -> None:
        """Wait until it has ended by itself. Raises what ended it."""
        await self._taken().wait()

    def _taken(self) -> RunningKubelet:
        run, self._run = self._run, None
        if run is None:
            raise RuntimeError("the kubelet does not run")
        return run

    async def close(self) -> None:
        """Kill it if it runs."""
        if self._run is not None:
            await self.kill()
        self._log.end()

    def log_lines(self) -> Sequence[str]:
        """What its modules logged."""
        return list(self._log.lines)

    async def pods(self) -> Sequence[dict[str, Any]]:
        """The pods as `/pods` shows them; nothing while the kubelet is stopped."""
        if self._run is None or self._inner is None:
            return []
        if self._run.ended:
            raise _died(self._run.problem)
        return [self._as_json(pod) for pod in self._inner.pods_with_status()]

    async def summary(self) -> dict[str, Any]:
        """As `/stats/summary` shows it."""
        return await self.inner.stats.summary.summary()

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
        servers = self.inner.servers
        if name == HEALTHZ:
            return healthz_port(self._world.clock)
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
        if self._inner is None:
            raise LookupError("the kubelet does not run")
        answers = self._inner.resources.pod_resources
        match method:
            case "List":
                return answers.list()
            case "GetAllocatableResources":
                return answers.allocatable()
            case "v1alpha1.List":
                return answers.list_alpha()
        return answers.get(fields["pod_name"], fields["pod_namespace"])

    def _as_json(self, pod: Any) -> dict[str, Any]:
        # Converting is slow and pods seldom change. Values are never changed in place, so the same
        # metadata and status objects mean the same content.
        uid = pod.metadata.uid
        cached = self._shown.get(uid)
        if cached is None or cached[0] is not pod.metadata or cached[1] is not pod.status:
            cached = self._shown[uid] = (pod.metadata, pod.status, to_dict(pod))
        return cached[2]


def _died(problem: BaseException | None) -> KubeletDied:
    return KubeletDied(f"the kubelet ended by itself: {problem!r}", ended=True)
