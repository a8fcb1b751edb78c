"""The page at /metrics: what the parts have counted, and what is read from them (PLEG-013,
PLEG-303, MIRR-036, EVIC-096, CG-084, SRV-006, SRV-035 to SRV-039)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Final

from msgspec import Struct

from refkubelet.allocation.conditions import ResizeConditions
from refkubelet.container_manager.devices.allocator import DeviceMetrics
from refkubelet.cri.records import SandboxState
from refkubelet.eviction.evictor import EvictionMetrics
from refkubelet.eviction.preemption import Preemptor
from refkubelet.kuberuntime.images.gc import ImageGC
from refkubelet.kuberuntime.images.plugins import PluginMetrics
from refkubelet.model.pod import is_mirror, is_static, uid
from refkubelet.node.shutdown_manager import NodeShutdownManager
from refkubelet.pleg.generic import GenericPLEG
from refkubelet.pod_workers.transitions import WorkState
from refkubelet.pod_workers.workers import PodWorkers
from refkubelet.pods.manager import PodManager
from refkubelet.stats.volumes import VolumeStats
from refkubelet.sync_loop.housekeeping import Housekeeping
from refkubelet.sync_loop.pod_handlers import PodHandlers
from refkubelet.telemetry.kubelet_metrics import KubeletMetrics
from refkubelet.telemetry.metrics import (
    Metric,
    MetricsPage,
    Numbers,
    Values,
    counts,
    one,
    timings,
)
from refkubelet.wiring.certificates import Certificates
from refkubelet.wiring.measured.volume_numbers import volume_numbers

STATIC: Final = ("", "true")
OF_WORKERS: Final = (
    *product(("desired", "orphan"), STATIC),
    ("runtime_only", "unknown"),
)
"""`config` and `static` of kubelet_working_pods, as far as they go together."""


class MeasuredParts(Struct, frozen=True):
    """The parts that the page is about."""

    counted: KubeletMetrics  # what parts count
    pods: PodManager  # how many there should be
    workers: PodWorkers  # what they do with their pods
    handlers: PodHandlers  # pods that count, refusals
    housekeeping: Housekeeping  # restarted and orphaned pods
    pleg: GenericPLEG  # relists, containers, sandboxes
    preemptor: Preemptor  # preempted pods
    evictions: EvictionMetrics  # evicted pods, age of measurements
    images: ImageGC  # collected images
    volumes: VolumeStats  # sizes of volumes of claims
    resizes: ResizeConditions  # pending ones, and those under way
    shutdown: NodeShutdownManager | None = None
    """None: shutdowns are not noticed."""
    devices: DeviceMetrics | None = None
    """None: no plugin can register."""
    login_plugins: PluginMetrics | None = None
    """None: there are no credential provider plug-ins."""
    certificates: Certificates | None = None
    """None: they are not shown."""


def metrics_page(parts: MeasuredParts) -> MetricsPage:
    """The page; it is read anew at each scrape."""
    return MetricsPage(
        [
            *parts.counted.metrics(),
            *parts.pleg.metrics.metrics(),
            *parts.housekeeping.metrics.metrics(),
            *_of_the_runtime(parts.pleg),
            *_of_pods(parts),
            *_of_upkeep(parts),
            *volume_numbers(parts.volumes),
            *_of_resizes(parts.resizes),
            *_of_shutdowns(parts.shutdown),
            *_not_everywhere(parts),
        ]
    )


def _of_upkeep(parts: MeasuredParts) -> Iterator[Metric]:
    refused = parts.handlers.new_pods.rejections
    preempted = parts.preemptor.preempted
    evictions = parts.evictions
    yield counts("kubelet_evictions", "Evicted pods.", "eviction_signal", evictions.evictions)
    yield timings(
        "kubelet_eviction_stats_age_seconds",
        "How old the measurements were that pods were evicted for.",
        "eviction_signal",
        evictions.stats_age,
    )
    name = "kubelet_admission_rejections_total"
    yield counts(name, "Pods that were refused.", "reason", refused)
    yield counts(
        "kubelet_preemptions",
        "Pods that ended for critical ones, by the resource that was short first.",
        "preemption_signal",
        preempted,
    )
    name = "kubelet_image_garbage_collected_total"
    yield counts(name, "Images that were removed.", "reason", parts.images.removed)


def _not_everywhere(parts: MeasuredParts) -> Iterator[Metric]:
    """Those that the configuration or the machine may leave out."""
    if (certificates := parts.certificates) is not None:
        yield from certificates.metrics()
    if (devices := parts.devices) is not None:
        name, text = "kubelet_device_plugin_registration_total", "Registrations of device plugins."
        yield counts(name, text, "resource_name", devices.registrations)
        yield timings(
            "kubelet_device_plugin_alloc_duration_seconds",
            "How long device plugins took to allocate.",
            "resource_name",
            devices.allocations,
        )
    if (logins := parts.login_plugins) is not None:
        name, text = "kubelet_credential_provider_plugin_errors_total", "Runs that failed."
        yield counts(name, text, "plugin_name", logins.errors)
        yield timings(
            "kubelet_credential_provider_plugin_duration",
            "How long credential provider plug-ins ran.",
            "plugin_name",
            logins.durations,
        )
        yield Numbers(
            "kubelet_credential_provider_config_info",
            "The configuration of credential provider plug-ins, by its hash; always 1.",
            lambda: {(logins.config_hash,): 1.0},
            ("hash",),
        )


def _of_shutdowns(shutdown: NodeShutdownManager | None) -> Iterator[Metric]:
    """0: there was none."""

    def began_s() -> float:
        return (shutdown.times.began_ns or 0) // 1_000_000_000 if shutdown is not None else 0

    def ended_s() -> float:
        return (shutdown.times.ended_ns or 0) // 1_000_000_000 if shutdown is not None else 0

    name = "kubelet_graceful_shutdown_{}_time_seconds"
    yield Numbers(name.format("start"), "When the last shutdown began.", one(began_s))
    yield Numbers(name.format("end"), "When its pods had ended.", one(ended_s))


def _of_resizes(resizes: ResizeConditions) -> Iterator[Metric]:
    def pending() -> Values:
        return Counter((reason.lower(),) for reason in resizes.pending_reasons())

    name = "kubelet_pod_pending_resizes"
    yield Numbers(name, "Resizes that are pending.", pending, ("reason",))
    under_way = one(lambda: resizes.in_progress_count())
    name = "kubelet_pod_in_progress_resizes"
    yield Numbers(name, "Resizes that are under way.", under_way)


def _of_the_runtime(pleg: GenericPLEG) -> Iterator[Metric]:
    def running_pods() -> float:
        ready = SandboxState.READY
        return sum(any(s.state is ready for s in pod.sandboxes) for pod in pleg.pods())

    def containers() -> Values:
        return Counter((c.state.value,) for pod in pleg.pods() for c in pod.containers)

    yield Numbers("kubelet_running_pods", "Pods with a ready sandbox.", one(running_pods))
    name = "kubelet_running_containers"
    yield Numbers(name, "Containers by state.", containers, ("container_state",))
    yield Numbers(
        "kubelet_pleg_last_seen_seconds", "Last successful relist.", one(pleg.last_seen_s)
    )


def _of_pods(parts: MeasuredParts) -> Iterator[Metric]:
    def desired() -> Values:
        return _by_static(is_static(pod) for pod in parts.pods.pods())

    def active() -> Values:
        return _by_static(is_static(pod) for pod in parts.handlers.new_pods.active_pods())

    def mirrors() -> float:
        return sum(is_mirror(pod) for pod in parts.pods.pods_and_mirrors())

    def ephemeral() -> float:
        return sum(len(pod.spec.ephemeralContainers or ()) for pod in parts.pods.pods())

    yield Numbers("kubelet_desired_pods", "Pods of all sources.", desired, ("static",))
    yield Numbers("kubelet_active_pods", "Pods that count at admission.", active, ("static",))
    yield Numbers("kubelet_mirror_pods", "Mirror pods.", one(mirrors))
    name = "kubelet_managed_ephemeral_containers"
    yield Numbers(name, "Ephemeral containers of the pods of all sources.", one(ephemeral))
    yield Numbers(
        "kubelet_working_pods",
        "Pod workers by state and by what is known of their pods.",
        lambda: _working(parts),
        ("lifecycle", "config", "static"),
    )


def _by_static(static: Iterator[bool]) -> Values:
    counts = Counter("true" if each else "" for each in static)
    return {(word,): counts[word] for word in STATIC}


def _working(parts: MeasuredParts) -> Values:
    """How many workers there are of each kind, of kinds without any, too."""
    states = (WorkState.SYNCING, WorkState.TERMINATING, WorkState.TERMINATED)
    counts: dict[tuple[str, ...], float] = {
        (state.value, *kind): 0.0 for kind in OF_WORKERS for state in states
    }
    desired = {uid(pod) for pod in parts.pods.pods()}
    for record in parts.workers.records():
        state = WorkState.TERMINATED if record.finished else record.state
        config, static = "runtime_only", "unknown"
        if record.has_config:
            config = "desired" if record.uid in desired else "orphan"
            static = "true" if record.static else ""
        counts[state.value, config, static] += 1
    return counts
