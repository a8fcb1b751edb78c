"""The page at /metrics, read from the parts of a kubelet (PLEG-013, PLEG-303, MIRR-036,
EVIC-096, CG-084, SRV-006, SRV-035)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from refkubelet.container_manager.devices.allocator import DeviceMetrics
from refkubelet.cri.records import SandboxState
from refkubelet.eviction.evictor import EvictionMetrics
from refkubelet.eviction.preemption import Preemptor
from refkubelet.kuberuntime.images.gc import ImageGC
from refkubelet.kuberuntime.images.plugins import PluginMetrics
from refkubelet.model.pod import is_mirror, is_static, uid
from refkubelet.node.shutdown_manager import NodeShutdownManager
from refkubelet.pleg.evented import EventedPLEG
from refkubelet.pleg.generic import GenericPLEG
from refkubelet.pod_workers.transitions import WorkState
from refkubelet.pod_workers.workers import PodWorkers
from refkubelet.pods.manager import PodManager
from refkubelet.stats.volumes import VolumeStats
from refkubelet.sync_loop.housekeeping import Housekeeping
from refkubelet.sync_loop.pod_handlers import PodHandlers
from refkubelet.telemetry.metrics import (
    Durations,
    Histograms,
    MetricsPage,
    Numbers,
    Values,
    counts,
    one,
)
from refkubelet.wiring.certificates import Certificates
from refkubelet.wiring.volume_numbers import volume_numbers


@dataclass(frozen=True, slots=True)
class MeasuredParts:
    """The parts that the page is about."""

    pods: PodManager  # how many there should be
    workers: PodWorkers  # what they do with their pods
    handlers: PodHandlers  # pods that count, refusals
    housekeeping: Housekeeping  # restarted and orphaned pods
    pleg: GenericPLEG  # relists, containers, sandboxes
    preemptor: Preemptor  # preempted pods
    evictions: EvictionMetrics  # evicted pods, age of measurements
    images: ImageGC  # collected images
    volumes: VolumeStats  # sizes of volumes of claims
    shutdown: NodeShutdownManager | None = None
    """None: shutdowns are not noticed."""
    evented: EventedPLEG | None = None
    """None: the gate EventedPLEG is off."""
    devices: DeviceMetrics | None = None
    """None: no plugin can register."""
    login_plugins: PluginMetrics | None = None
    """None: there are no credential provider plug-ins."""
    certificates: Certificates | None = None
    """None: they are not shown."""


def metrics_page(parts: MeasuredParts) -> MetricsPage:
    """The page; it is read anew at each scrape."""
    counted = parts.pleg.metrics
    durations = {
        "pleg_relist_duration_seconds": counted.relist_duration,
        "pleg_relist_interval_seconds": counted.relist_interval,
        "pleg_pod_relist_duration_seconds": counted.pod_relist_duration,
    }
    numbers = [*_of_the_runtime(parts.pleg), *_of_pods(parts), *volume_numbers(parts.volumes)]
    if parts.evented is not None:
        numbers += _of_events(parts.evented)
        durations["evented_pleg_connection_latency_seconds"] = counted.event_latency
    numbers += [
        counts("evictions", "Evicted pods.", "eviction_signal", parts.evictions.evictions),
        counts(
            "admission_rejections_total",
            "Pods that were refused.",
            "reason",
            parts.handlers.new_pods.rejections,
        ),
        counts(
            "image_garbage_collected_total",
            "Images that were removed.",
            "reason",
            parts.images.removed,
        ),
    ]
    if (certificates := parts.certificates) is not None:
        numbers += certificates.numbers()
        durations |= certificates.durations()
    numbers += _of_shutdowns(parts.shutdown) if parts.shutdown is not None else []
    histograms = [_ages(parts.evictions)]
    if parts.devices is not None:
        name, text = "device_plugin_registration_total", "Registrations of device plugins."
        numbers.append(counts(name, text, "resource_name", parts.devices.registrations))
        histograms.append(_of_allocations(parts.devices))
    if parts.login_plugins is not None:
        name, text = "credential_provider_plugin_errors", "Runs of plug-ins that failed."
        numbers.append(counts(name, text, "plugin_name", parts.login_plugins.errors))
        histograms.append(_of_login_plugins(parts.login_plugins))
    return MetricsPage(numbers, dict[str, Durations](durations), histograms)


def _of_allocations(counted: DeviceMetrics) -> Histograms:
    return Histograms(
        "device_plugin_alloc_duration_seconds",
        "How long device plugins took to allocate.",
        "resource_name",
        lambda: counted.allocations,
    )


def _of_login_plugins(counted: PluginMetrics) -> Histograms:
    return Histograms(
        "credential_provider_plugin_duration",
        "How long credential provider plug-ins ran.",
        "plugin_name",
        lambda: counted.durations,
    )


def _of_shutdowns(shutdown: NodeShutdownManager) -> list[Numbers]:
    def began_s() -> float:
        return (shutdown.times.began_ns or 0) // 1_000_000_000

    def ended_s() -> float:
        return (shutdown.times.ended_ns or 0) // 1_000_000_000

    name = "graceful_shutdown_{}_time_seconds"
    return [
        Numbers(name.format("start"), "When the last shutdown began.", one(began_s)),
        Numbers(name.format("end"), "When its pods had ended.", one(ended_s)),
    ]


def _ages(counted: EvictionMetrics) -> Histograms:
    return Histograms(
        "eviction_stats_age_seconds",
        "How old the measurements were that pods were evicted for.",
        "eviction_signal",
        lambda: counted.stats_age,
    )


def _of_the_runtime(pleg: GenericPLEG) -> list[Numbers]:
    def running_pods() -> float:
        ready = SandboxState.READY
        return sum(any(s.state is ready for s in pod.sandboxes) for pod in pleg.pods())

    def containers() -> Values:
        return Counter((c.state.value,) for pod in pleg.pods() for c in pod.containers)

    return [
        Numbers("running_pods", "Pods with a ready sandbox.", one(running_pods)),
        Numbers("running_containers", "Containers by state.", containers, ("container_state",)),
        Numbers("pleg_last_seen_seconds", "Last successful relist.", one(pleg.last_seen_s)),
        Numbers(
            "pleg_discard_events", "Events without room.", one(lambda: pleg.dropped), kind="unknown"
        ),
    ]


def _of_events(evented: EventedPLEG) -> list[Numbers]:
    broken, opened = one(lambda: evented.errors), one(lambda: evented.streams)
    return [
        Numbers("evented_pleg_connection_error_count", "Broken streams.", broken, kind="unknown"),
        Numbers("evented_pleg_connection_success_count", "Opened streams.", opened, kind="unknown"),
    ]


def _of_pods(parts: MeasuredParts) -> list[Numbers]:
    def desired() -> Values:
        return Counter((_true(is_static(pod)),) for pod in parts.pods.pods())

    def active() -> Values:
        return Counter((_true(is_static(pod)),) for pod in parts.handlers.new_pods.active_pods())

    def mirrors() -> float:
        return sum(is_mirror(pod) for pod in parts.pods.pods_and_mirrors())

    counted = parts.housekeeping.metrics
    return [
        Numbers("desired_pods", "Pods of all sources.", desired, ("static",)),
        Numbers("active_pods", "Pods that count at admission.", active, ("static",)),
        Numbers("mirror_pods", "Mirror pods.", one(mirrors)),
        Numbers(
            "working_pods",
            "Pod workers by state and by what is known of their pods.",
            lambda: _working(parts),
            ("lifecycle", "config", "static"),
        ),
        counts(
            "restarted_pods_total",
            "Pods that came back with the same UID.",
            "static",
            counted.restarted,
        ),
        counts(
            "preemptions",
            "Pods that ended for critical ones, by the resource that was short first.",
            "preemption_signal",
            parts.preemptor.preempted,
        ),
        Numbers(
            "orphaned_runtime_pods_total",
            "Pods that only the runtime knew.",
            one(lambda: counted.orphaned),
            kind="counter",
        ),
    ]


def _working(parts: MeasuredParts) -> Values:
    wanted = {uid(pod) for pod in parts.pods.pods()}
    found: Counter[tuple[str, ...]] = Counter()
    for record in parts.workers.records():
        state = WorkState.TERMINATED if record.finished else record.state
        orphan = record.uid not in wanted
        if record.has_config:
            config, static = "orphan" if orphan else "desired", _true(record.static)
        else:
            config, static = "runtime_only", "unknown"
        found[state.value, config, static] += 1
    return found


def _true(yes: bool) -> str:
    return "true" if yes else ""
