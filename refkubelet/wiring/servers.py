"""What the kubelet's servers show, and who may see it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property

from refkubelet.config.encode import as_v1beta1
from refkubelet.container_manager.cgroups.node_config import pod_cgroup_of
from refkubelet.cri.records import RuntimePod
from refkubelet.cri.streams import StreamClient
from refkubelet.failures import Complaints
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import uid
from refkubelet.server.access.authentication import RequestAuthenticator
from refkubelet.server.access.authorization import authorizer_of
from refkubelet.server.access.gate import Gate
from refkubelet.server.access.reviews import Reviews
from refkubelet.server.common.host import ServedFiles, ServedPages, ServedPods, ServerHost
from refkubelet.server.pages import cadvisor_metrics, cgroup_metrics
from refkubelet.server.port import Port, main_port, read_only_port
from refkubelet.sync_loop.loop import SyncLoop
from refkubelet.telemetry.metrics import MetricsPage
from refkubelet.wiring.base import Base
from refkubelet.wiring.measured.log_numbers import container_log_sizes
from refkubelet.wiring.runtime import RuntimeParts
from refkubelet.wiring.sources import Sources
from refkubelet.wiring.stats import Stats
from refkubelet.wiring.work import Work
from simclock import Clock

log = logging.getLogger(__name__)

FINE_GRAINED = "KubeletFineGrainedAuthz"


@dataclass(frozen=True)
class ServedParts:
    """The parts that the servers show."""

    sources: Sources
    runtime: RuntimeParts
    work: Work
    stats: Stats
    loop: SyncLoop
    metrics: MetricsPage


class Servers:
    """The ports, each made when it is first asked for."""

    def __init__(self, base: Base, parts: ServedParts) -> None:
        self._base = base
        self._parts = parts
        self.host = _host(base, parts)

    @cached_property
    def main(self) -> Port:
        """The main port. Raises `NotConfigured`."""
        base = self._base
        config, deps = base.config, base.deps
        reviews = Reviews(deps.api, deps.clock) if deps.api is not None else None
        authenticator = RequestAuthenticator(config.authentication, reviews, deps.clock)
        authorizer = authorizer_of(config.authorization, reviews, deps.clock)
        fine_grained = base.gate(FINE_GRAINED, default=True)
        return main_port(
            config,
            self.host,
            Gate(authenticator, authorizer, deps.node.name, fine_grained=fine_grained),
        )

    @cached_property
    def read_only(self) -> Port:
        return read_only_port(self.host)


def _host(base: Base, parts: ServedParts) -> ServerHost:
    config, deps = base.config, base.deps

    def gate(name: str, default: bool) -> bool:
        return base.gate(name, default=default)

    return ServerHost(
        clock=deps.clock,
        client=base.client,
        streams=StreamClient(deps.target, config.runtime_request_timeout_s, base.client.operations),
        pods=_pods(parts),
        pages=ServedPages(
            metrics=_MetricsPage(parts, deps.clock).text,
            probe_metrics=parts.work.probes.metrics.text,
            cadvisor_metrics=_CadvisorPage(base, parts).text,
            summary=parts.stats.summary.summary,
            configz=lambda: as_v1beta1(config),
        ),
        files=ServedFiles(
            checkpoints=str(deps.directories.root / "checkpoints"),
            log_roots=(str(deps.directories.root), config.pod_logs_dir),
        ),
        checks={
            "ping": lambda: None,
            "log": lambda: None,
            "syncloop": parts.loop.health_check,
        },
        spans=deps.spans,
        counted=base.metrics.http,
        gates=gate,
    )


def _pods(parts: ServedParts) -> ServedPods:
    pods, statuses, manager = parts.sources.pods, parts.work.statuses, parts.runtime.manager

    def status(pod: Pod) -> PodStatus:
        return statuses.get(uid(pod)) or pod.status or PodStatus()

    async def running() -> tuple[RuntimePod, ...]:
        return await manager.get_pods(all_states=False)

    return ServedPods(
        all=lambda: [statuses.with_status(pod) for pod in pods.pods()],
        by_name=pods.by_name,
        static_uid=pods.translate_uid,
        status=status,
        running=running,
    )


class _MetricsPage:
    """The page at /metrics, with what has to be asked for at each scrape."""

    def __init__(self, parts: ServedParts, clock: Clock) -> None:
        self._parts = parts
        self._complaints = Complaints(log, clock)

    async def text(self) -> str:
        """In the Prometheus text format."""
        parts = self._parts
        pods = parts.sources.pods.pods()
        logs = await container_log_sizes(parts.stats.pods, pods, self._complaints)
        return parts.metrics.text([logs])


class _CadvisorPage:
    """Collects what /metrics/cadvisor shows."""

    def __init__(self, base: Base, parts: ServedParts) -> None:
        self._base = base
        self._parts = parts

    async def text(self) -> str:
        """May raise `CriCallError`."""
        machine, parts = self._base.deps.machine, self._parts
        pods = parts.sources.pods.pods()
        of = pod_cgroup_of(self._base.config)
        size = cadvisor_metrics.MachineSize(machine.cpu_count(), machine.memory().total_bytes)
        cgroups = {} if of is None else {uid(pod): of(pod) for pod in pods}
        running = await parts.runtime.manager.get_pods(all_states=False)
        page = cadvisor_metrics.page(
            size,
            running,
            await parts.runtime.manager.container_stats(),
            cgroups,
            sandboxes=await parts.stats.pods.sandboxes_if_told(),
        )
        seen_ns = self._base.deps.clock.wall_ns()
        return page + cgroup_metrics.page(machine, running, cgroups, seen_ns)
