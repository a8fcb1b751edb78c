"""What the servers ask of the kubelet around them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from refkubelet.cri.client import CriClient
from refkubelet.cri.records import RuntimePod
from refkubelet.cri.streams import StreamClient
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.server.common.health import Checks
from refkubelet.telemetry.server_metrics import HttpMetrics
from refkubelet.telemetry.spans import NO_SPANS, Spans
from simclock import Clock

Json = dict[str, Any]


class Summary(Protocol):
    """Makes the answer of /stats/summary, complete or with CPU and memory only."""

    async def __call__(self, *, only_cpu_and_memory: bool = False) -> Json: ...


class ServedPods(Struct, frozen=True, kw_only=True):
    """The pods of the node, as servers see them."""

    all: Callable[[], Sequence[Pod]]
    """Those with their current statuses, without mirrors (MIRR-035)."""
    by_name: Callable[[str, str], Pod | None]
    """The pod of a namespace and name, never a mirror; None: there is none."""
    static_uid: Callable[[str], str]
    """The UID of the static pod for that of its mirror; any other UID as it is."""
    status: Callable[[Pod], PodStatus]
    """The status as last generated, else that of the API server."""
    running: Callable[[], Awaitable[Sequence[RuntimePod]]]
    """The pods of the runtime that have something that runs. May raise `CriCallError`."""


class ServedPages(Struct, frozen=True, kw_only=True):
    """What makes the pages about the node."""

    metrics: Callable[[], Awaitable[str]]
    """/metrics, in the Prometheus text format."""
    probe_metrics: Callable[[], str]
    """/metrics/probes, in the Prometheus text format."""
    cadvisor_metrics: Callable[[], Awaitable[str]]
    """/metrics/cadvisor, in the Prometheus text format."""
    summary: Summary
    """Statistics of the node and its pods."""
    configz: Callable[[], Json]
    """The configuration as v1beta1."""


class ServedFiles(Struct, frozen=True, kw_only=True):
    """Where servers read and write files."""

    checkpoints: str
    """Where checkpoints of containers are written."""
    log_roots: Sequence[str] = ()
    """Directories of the kubelet, whose own paths may have links."""
    system_logs: str = "/var/log"
    """What /logs/ shows."""


class ServerHost(Struct, frozen=True, kw_only=True):
    """The kubelet around its servers."""

    clock: Clock
    client: CriClient
    streams: StreamClient
    pods: ServedPods
    pages: ServedPages
    files: ServedFiles
    checks: Checks
    """What /healthz asks: name -> why that is not healthy, None if it is."""
    spans: Spans = NO_SPANS
    """Where spans of requests go."""
    counted: HttpMetrics = field(default_factory=HttpMetrics)
    """Counts requests."""
    gates: Callable[[str, bool], bool] = field(default=lambda name, default: default)
    """Whether a feature gate is on; the default is given."""
