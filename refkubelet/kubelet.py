"""The kubelet, put together: which part gets which, what runs, what stops. No rule is here.

`Kubelet(config, deps)` builds the parts, `run` runs their tasks until `stop` (or cancellation).
Stopping leaves every container running: the next kubelet finds them by their labels (BACK-007,
MIRR-008). What must never happen: a task that outlives `stop`; a part that is made twice. This
module is longer than others because a reader should find all wires in one place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msgspec.structs import replace as with_fields

from refkubelet.admission.apparmor import apparmor_enforceable
from refkubelet.admission.features import declared_features, features_supported
from refkubelet.admission.handlers import AdmitHandler
from refkubelet.admission.node_fit import NodeView, node_view
from refkubelet.admission.predicates import PredicateDeps, predicates
from refkubelet.admission.resources import extended_resources
from refkubelet.admission.sysctls import sysctls_allowed
from refkubelet.allocation.conditions import ResizeConditions
from refkubelet.allocation.handlers import feasible_resizes
from refkubelet.allocation.manager import AllocationDeps, AllocationManager
from refkubelet.allocation.reports import ResizeReports
from refkubelet.allocation.state import ACTUATED_FILE, ALLOCATED_FILE, ResourceState
from refkubelet.allocation.triggers import ResizeTriggers
from refkubelet.apiclient import ApiClient, ApiError
from refkubelet.cgroups.build import (
    CGROUP_V1_WARNING,
    ManagerDeps,
    check_reservations,
    container_manager,
)
from refkubelet.cgroups.manager import ContainerManager
from refkubelet.config.kubelet_config import KubeletConfiguration
from refkubelet.event_recorder import QueuedEventRecorder
from refkubelet.eviction.deps import EvictionDeps
from refkubelet.eviction.evictor import KillRequest
from refkubelet.eviction.layout import CONTAINERS, IMAGES
from refkubelet.eviction.manager import EvictionManager
from refkubelet.eviction.observer import Observer
from refkubelet.handlers import HandlerDeps, PodHandlers
from refkubelet.housekeeping import CleanupDeps, Housekeeping
from refkubelet.kubelet_metrics import MeasuredParts, metrics_page
from refkubelet.kubelet_parts import (
    GarbageCollection,
    RuntimeWatch,
    eviction_config,
    ids_per_pod,
    image_gc_policy,
    is_crio,
    pod_cgroup_of,
    pod_group_config,
    pods_cgroup,
    resize_limits,
    running_containers,
    runtime_options,
)
from refkubelet.model.objects import Pod, PodStatus, is_static, uid
from refkubelet.model.quantity import NANO
from refkubelet.network import Network
from refkubelet.node.capacity import machine_capacity
from refkubelet.node.informer import NodeInformer
from refkubelet.node.machine import Machine
from refkubelet.node.register import NodeRegistrar, NodeSettings
from refkubelet.node.shutdown import shutdown_groups
from refkubelet.node.shutdown_manager import NodeShutdownManager, ShutdownDeps, ShutdownSource
from refkubelet.node.shutdown_state import FILE_NAME
from refkubelet.node.status import NodeFacts, runtime_fields
from refkubelet.oom.watcher import GATE, OomWatcher, follow_kernel_log
from refkubelet.pleg.cache import PodCache
from refkubelet.pleg.evented import RARELY, EventedPLEG
from refkubelet.pleg.generic import GenericPLEG, PlegOptions
from refkubelet.pod_objects import PodObjects
from refkubelet.pod_workers.killing import kill_pod_now
from refkubelet.pod_workers.records import PodStatusFn
from refkubelet.pod_workers.workers import PodWorkers, WorkerSettings
from refkubelet.pods.factory import ApiAccess, build_pod_config
from refkubelet.pods.manager import PodManager
from refkubelet.pods.mirror import MirrorClient
from refkubelet.preemption.preemptor import PreemptionDeps, Preemptor
from refkubelet.probes.manager import ProbeDeps, ProbeManager
from refkubelet.resources.active import ActiveContainers
from refkubelet.resources.admission import allocated
from refkubelet.resources.devices.health import GATE as DEVICE_HEALTH
from refkubelet.resources.devices.manager import DeviceDeps, DeviceManager
from refkubelet.resources.devices.plugins import PluginDirectory
from refkubelet.resources.managers import ResourceDeps, ResourceManagers
from refkubelet.resources.pod_resources import PodResources
from refkubelet.runtime.client import CriClient, CriTarget
from refkubelet.runtime.gc import ContainerDeletor, ContainerGC
from refkubelet.runtime.images.gc import ImageGC
from refkubelet.runtime.images.node_credentials import LoginDirs
from refkubelet.runtime.log_rotation import ContainerLogManager, LogPolicy
from refkubelet.runtime.manager import RuntimeManager
from refkubelet.runtime.options import RuntimeDeps
from refkubelet.runtime.pod_events import PodEventReader
from refkubelet.runtime.pod_runtime import PodRuntimes
from refkubelet.runtime.user_namespaces import UserNamespaces
from refkubelet.runtime_state import RuntimeState
from refkubelet.stats.files import PodFilesReader
from refkubelet.stats.provider import PodStats
from refkubelet.stats.summary import SummaryDeps, SummaryProvider
from refkubelet.stats.volumes import VolumeStats
from refkubelet.status.manager import StatusDeps, StatusManager
from refkubelet.sync_loop import LoopDeps, LoopQueues, SeenSources, SyncLoop
from refkubelet.worker_steps import PodSteps, StepDeps, StepHooks
from simtime import Clock, Ids, Rng

log = logging.getLogger(__name__)

LOOP_MAX_AGE_S = 300.0


@dataclass(frozen=True, slots=True)
class KubeletDeps:
    """What a kubelet is given from outside.

    `target`: the container runtime. `machine`: memory and filesystems. `node_name`: this node's
    name, lower case. `root_dir`: the kubelet's own directory (/var/lib/kubelet). `api` None:
    standalone. `network` None: only exec probes run. `host_ips`: the node's addresses, primary
    first; none standalone. `container_logs_dir` None: no links to container logs are made.
    `node_facts` None: somebody else keeps the Node object. `login_dirs` None: the node's registry
    credentials are looked for in `root_dir` alone (BACK-209). `shutdown_source` None: shutdowns of
    the node are not noticed (NODE-060). `device_plugins` None: no plugin can
    register (CG-084).
    """

    target: CriTarget
    machine: Machine
    clock: Clock
    rng: Rng
    ids: Ids
    node_name: str
    root_dir: Path
    api: ApiClient | None = None
    network: Network | None = None
    host_ips: tuple[str, ...] = ()
    container_logs_dir: Path | None = Path("/var/log/containers")
    node_facts: NodeFacts | None = None
    login_dirs: LoginDirs | None = None
    device_plugins: PluginDirectory | None = None
    shutdown_source: ShutdownSource | None = None


class Kubelet:
    """One node agent. Make it inside the loop that runs it, once per run."""

    def __init__(self, config: KubeletConfiguration, deps: KubeletDeps) -> None:
        self.config = config
        self.deps = deps
        clock, api = deps.clock, deps.api
        self.recorder = QueuedEventRecorder(
            api,
            clock,
            deps.ids,
            deps.node_name,
            qps=config.event_record_qps,
            burst=config.event_burst,
            random=deps.rng.stream("events").random,
        )
        self.pods = PodManager()
        self.informer = NodeInformer(api, deps.node_name, clock, deps.rng) if api else None
        access = ApiAccess(api, self.informer) if api and self.informer else None
        self.pod_config = build_pod_config(
            config, deps.node_name, access, self.recorder, clock, deps.rng
        )
        self.seen_sources = SeenSources(self.pod_config.seen_all_sources)
        self.mirrors = MirrorClient(
            api, deps.node_name, lambda: self.informer.node() if self.informer else None
        )
        self._build_devices()
        self.client = CriClient(deps.target, config.runtime_request_timeout_s)
        self._build_resources()
        self._build_allocation()
        self._build_runtime()
        self._build_workers()
        self._build_cleaners()
        self._build_loop()
        self.registrar = (
            self._registrar(deps.api, deps.node_facts) if deps.api and deps.node_facts else None
        )
        messages = follow_kernel_log(deps.machine, may_fail=config.feature_gates.get(GATE, False))
        self.oom_watcher = OomWatcher(messages, self.recorder) if messages else None
        self._stop = asyncio.Event()
        self._stopped = asyncio.Event()

    def _build_devices(self) -> None:
        deps = self.deps
        self.devices: DeviceManager | None = None
        if deps.device_plugins is None:
            return
        self.devices = DeviceManager(
            DeviceDeps(
                deps.clock,
                deps.device_plugins,
                deps.root_dir,
                active_pods=lambda: self.handlers.active_pods(),
                sources_ready=self.seen_sources.ready,
                running=lambda: running_containers(self.runtime),
                affinities=lambda: self.resources.topology,
                health_changed=lambda pod_uid: self.handlers.sync_by_uid(pod_uid),
                numa_nodes=lambda: tuple(node.id for node in deps.machine.topology().nodes),
            )
        )

    def _build_resources(self) -> None:
        """Raises `ConfigError`: policies that cannot be, or state files of others."""
        deps = self.deps
        active = ActiveContainers(
            lambda: self.handlers.admission.allocated_pods(), self.seen_sources.ready
        )
        self.resources = ResourceManagers(
            self.config,
            ResourceDeps(
                deps.clock,
                deps.machine,
                deps.root_dir,
                self.client,
                active,
                lambda pod_uid: self.statuses.get(pod_uid),
            ),
            self.devices,
        )
        self.pod_resources = PodResources(
            active_pods=lambda: self.handlers.active_pods(),
            pods=self.pods.pods,
            devices=self.devices,
            cpus=self.resources.cpus,
            memory=self.resources.memory,
        )

    def _build_allocation(self) -> None:
        """Raises `StateFileError`."""
        deps = self.deps
        self.resize_conditions = ResizeConditions(deps.clock)
        self._actuated = ResourceState(deps.root_dir / ACTUATED_FILE)
        self.allocations = AllocationManager(
            ResourceState(deps.root_dir / ALLOCATED_FILE),
            AllocationDeps(
                deps.clock,
                self.recorder,
                self.resize_conditions,
                self.pods.get,
                lambda pod: self.handlers.admission.resize(pod),
                lambda pod: self.handlers.syncs([pod]),
                self.seen_sources.ready,
            ),
        )

    def _build_runtime(self) -> None:
        deps = self.deps
        self.pod_objects = PodObjects(deps.api, deps.clock, deps.rng) if deps.api else None
        self.pod_runtimes = PodRuntimes(
            deps.api,
            lambda: self.runtime_state.handlers,
            UserNamespaces(deps.root_dir, ids_per_pod(self.config)),
        )
        self._runtime_deps = RuntimeDeps(
            deps.clock,
            deps.ids,
            self.recorder,
            self.pod_objects,
            deps.network,
            lambda pod_uid: self.workers.is_pod_termination_requested(pod_uid),
            secrets=deps.api,
            devices=self.devices,
            placements=self.resources,
            actuated=self._actuated,
            pod_cgroups=lambda: self.cgroups,
            runtimes=self.pod_runtimes,
        )
        self._runtime_options = runtime_options(
            self.config,
            deps.machine,
            node_name=deps.node_name,
            node_ips=deps.host_ips,
            root_dir=deps.root_dir,
            container_logs_dir=deps.container_logs_dir,
            allocatable=deps.node_facts.allocatable if deps.node_facts else {},
            login_dirs=deps.login_dirs,
        )
        self.runtime = RuntimeManager(self.client, self._runtime_deps, self._runtime_options)
        by_events = self.config.feature_gates.get("EventedPLEG", False)
        self.cache = PodCache(deps.clock, refuse_older=by_events)
        self.pleg = GenericPLEG(
            self.runtime, self.cache, deps.clock, RARELY if by_events else PlegOptions()
        )
        reader = PodEventReader(self.client, deps.clock)
        evented = EventedPLEG(self.pleg, reader.events, self.cache, deps.clock)
        self.evented = evented if by_events else None
        self.runtime_state = RuntimeState(
            deps.clock, self.pleg.healthy, evented.healthy if by_events else lambda: None
        )
        self.runtime_watch = RuntimeWatch(
            self.runtime, self.runtime_state, deps.clock, self._start_cgroups
        )

    def _build_workers(self) -> None:
        deps, clock = self.deps, self.deps.clock
        self.statuses = StatusManager(
            StatusDeps(
                clock,
                self.pods,
                lambda pod_uid: self.workers.could_have_running_containers(pod_uid),
                deps.api,
            )
        )
        self.probes = ProbeManager(
            ProbeDeps(
                clock,
                deps.rng,
                self.client,
                self.recorder,
                self.statuses.get,
                deps.network,
            )
        )
        facts = deps.node_facts
        check_reservations(self.config, facts.capacity if facts else machine_capacity(deps.machine))
        self.cgroups = self._container_manager() if self.config.cgroups_per_qos else None
        hooks = StepHooks(
            network_error=self.runtime_state.network_error,
            resync=lambda pod_uid: self.handlers.sync_by_uid(pod_uid),
            request_relist=self.pleg.request_relist,
            runtime_name=self.runtime_watch.runtime_name,
            is_terminating=lambda pod_uid: self.workers.is_pod_termination_requested(pod_uid),
            with_devices=self._with_devices,
            recursive_read_only=self.pod_runtimes.read_only_is_recursive,
        )
        steps = PodSteps(
            StepDeps(
                clock,
                self.runtime,
                self.statuses,
                self.probes,
                self.mirrors,
                self.recorder,
                hooks,
                deps.root_dir,
                deps.host_ips,
                self.cgroups,
                ResizeReports(
                    self.resize_conditions,
                    self.recorder,
                    self.runtime,
                    lambda pod: pod_group_config(self.cgroups, pod),
                    self.pleg.request_reinspection,
                ),
            )
        )
        self.workers = PodWorkers(
            steps,
            self.cache,
            self.recorder,
            WorkerSettings(
                clock, deps.rng, self.config.sync_frequency_s, self.allocations.allocated
            ),
        )

    def _container_manager(self) -> ContainerManager:
        """Raises `ContainerManagerError`."""
        deps = self.deps
        return container_manager(
            self.config,
            deps.machine,
            ManagerDeps(
                deps.clock,
                self.recorder,
                active_pods=lambda: self.handlers.admission.allocated_pods(),
                has_exclusive_cpus=self.resources.has_exclusive_cpus,
            ),
        )

    def _start_cgroups(self) -> None:
        """CG-014, CG-035: before the first pod."""
        if self.deps.machine.cgroup_version() == 1:
            self.recorder.node_event("Warning", "CgroupV1", CGROUP_V1_WARNING)
        if self.cgroups is not None:
            self.cgroups.start()

    def _build_loop(self) -> None:
        deps = self.deps
        self._build_shutdown()
        self.deletions = ContainerDeletor(self.client, self._runtime_options)
        self.preemptor = Preemptor(
            PreemptionDeps(
                lambda: self.handlers.admission.allocated_pods(), self._preempt, self.recorder
            )
        )
        self.handlers = PodHandlers(
            HandlerDeps(
                deps.clock,
                self.pods,
                self.workers,
                self.statuses,
                self.recorder,
                self.cache,
                self.deletions,
                self.seen_sources.ready,
                self._admission(),
                self.allocations,
                ResizeTriggers(self.allocations, self.resize_conditions),
            )
        )
        self.housekeeping = Housekeeping(
            CleanupDeps(
                deps.clock,
                self.pods,
                self.workers,
                self.handlers,
                self.statuses,
                self.probes,
                self.runtime,
                self.mirrors,
                deps.root_dir,
                self.cgroups,
                self.allocations,
            )
        )
        self.metrics = metrics_page(
            MeasuredParts(
                self.pods,
                self.workers,
                self.handlers,
                self.housekeeping,
                self.pleg,
                self.preemptor,
                self.eviction.metrics,
                self.images,
                self.shutdown,
                self.evented,
                self.devices.metrics if self.devices else None,
            )
        )
        queues = LoopQueues(
            self.pod_config.updates,
            self.pleg.events,
            self.probes.liveness.updates,
            self.probes.readiness.updates,
            self.probes.startup.updates,
        )
        self.sync_loop = SyncLoop(
            LoopDeps(
                deps.clock,
                deps.rng,
                queues,
                self.handlers,
                self.statuses,
                self.housekeeping.run,
                self.runtime_state.runtime_errors,
            ),
            self.seen_sources,
        )

    def _build_cleaners(self) -> None:
        deps = self.deps
        collector = ContainerGC(
            self.client, self._runtime_deps, self._runtime_options, self.workers
        )
        self.garbage = GarbageCollection(
            collector,
            self.seen_sources.ready,
            self.recorder,
            deps.clock,
            lambda: self.runtime.forget_resources(self._keeps_content),
        )
        self.logs = ContainerLogManager(
            self.client, self.cache.running_containers, LogPolicy.of(self.config), deps.clock
        )
        self.images = ImageGC(
            self.client,
            deps.machine,
            self._runtime_deps,
            image_gc_policy(self.config),
            self.runtime.prune_pull_records,
        )
        self._build_stats()
        self.eviction = EvictionManager(
            eviction_config(self.config),
            EvictionDeps(
                clock=deps.clock,
                observer=Observer(
                    deps.machine,
                    str(deps.root_dir),
                    pods_cgroup(self.config),
                    may_split=is_crio(self.config),
                ),
                image_fs_info=self.runtime.image_fs_info,
                stats=self.pod_stats,
                pods=self.pods.pods,
                active_pods=lambda: self.handlers.admission.allocated_pods(),
                pod_is_finished=lambda pod: self.workers.should_pod_be_finished(uid(pod)),
                kill_pod=self._evict,
                events=self.recorder,
                reclaim={
                    CONTAINERS: self.garbage.reclaim,
                    IMAGES: self.images.delete_unused_images,
                },
            ),
        )

    def _build_shutdown(self) -> None:
        deps, groups = self.deps, shutdown_groups(self.config)
        self.shutdown = None
        if groups and deps.shutdown_source is None:
            log.error("shutdownGracePeriod: nobody tells this kubelet of shutdowns of the node")
        elif groups and deps.shutdown_source is not None:
            self.shutdown = NodeShutdownManager(
                groups,
                deps.shutdown_source,
                ShutdownDeps(
                    deps.clock,
                    self.recorder,
                    lambda: self.handlers.active_pods(),
                    self._end_for_shutdown,
                    lambda: self.registrar.hurry() if self.registrar else None,
                    deps.root_dir / FILE_NAME,
                ),
            )

    async def _end_for_shutdown(self, pod: Pod, status_fn: PodStatusFn, grace_s: int) -> None:
        await kill_pod_now(
            self.workers, self.recorder, pod, status_fn, evict=False, grace_override_s=grace_s
        )

    def _with_devices(self, pod: Pod, status: PodStatus) -> PodStatus:
        shown = self.config.feature_gates.get(DEVICE_HEALTH, True)
        return self.devices.with_health(pod, status) if self.devices and shown else status

    async def _preempt(self, pod: Pod, status_fn: PodStatusFn) -> None:
        await kill_pod_now(self.workers, self.recorder, pod, status_fn, evict=True)

    def _build_stats(self) -> None:
        deps = self.deps
        files = PodFilesReader(str(deps.root_dir), self.config.pod_logs_dir)
        self.volume_stats = VolumeStats(
            files,
            self.pods.pods,
            deps.clock,
            deps.rng.stream("volume stats").random,
            self.config.volume_stats_agg_period_s,
        )
        self.pod_stats = PodStats(
            self.runtime,
            deps.machine,
            pod_cgroup_of(self.config),
            files,
            self.volume_stats.of,
            by_sandbox=self.config.feature_gates.get("PodAndContainerStatsFromCRI", False),
        )
        self.summary = SummaryProvider(
            SummaryDeps(
                deps.clock,
                deps.machine,
                deps.node_name,
                str(deps.root_dir),
                self.pod_stats,
                self.pods.pods,
                self.runtime.image_fs_info,
                pods_cgroup(self.config),
                container_disk=is_crio(self.config),
            )
        )

    def _keeps_content(self, pod_uid: str) -> bool:
        return not self.workers.should_pod_content_be_removed(pod_uid)

    async def _evict(self, request: KillRequest) -> None:
        await kill_pod_now(
            self.workers,
            self.recorder,
            request.pod,
            request.status_fn,
            evict=True,
            grace_override_s=request.grace_s,
        )

    def _admission(self) -> tuple[AdmitHandler, ...]:
        """In the order of LIFE-221..229."""
        facts = self.deps.node_facts
        limits = resize_limits(self.config, self.deps.machine)
        return (
            feasible_resizes(limits, self.allocations.allocated),
            lambda asked: self.eviction.admit(asked.pod),
            sysctls_allowed(self.config.allowed_unsafe_sysctls),
            allocated(self.resources.topology),
            predicates(
                PredicateDeps(
                    self._node_view,
                    self._allocatable,
                    self._fresh_node_view if self.deps.api else None,
                    self.preemptor.make_room,
                )
            ),
            apparmor_enforceable(facts.apparmor if facts else True),
            features_supported(self.config.feature_gates),
            *([self.shutdown.admit] if self.shutdown is not None else []),
        )

    def _allocatable(self) -> Mapping[str, int]:
        """A node without facts knows its number of pods only. Extended resources are those that
        the Node shows, whoever wrote them there, and those of device plugins."""
        facts = self.deps.node_facts
        known = facts.allocatable if facts else {"pods": self.config.max_pods * NANO}
        node = self.informer.node() if self.informer else None
        devices = self.devices.allocatable() if self.devices else {}
        return {
            **known,
            **(extended_resources(node) if node is not None else {}),
            **{name: number * NANO for name, number in devices.items()},
        }

    async def _fresh_node_view(self) -> NodeView | None:
        """The node as the API server shows it now; None: it does not answer (LIFE-226)."""
        api = self.deps.api
        try:
            return node_view(await api.get_node(self.deps.node_name)) if api else None
        except ApiError as error:
            log.warning("cannot ask for the node: %s", error)
            return None

    def _node_view(self) -> NodeView:
        """The node as the API server shows it; before that, as it will be registered."""
        node = self.informer.node() if self.informer else None
        facts = self.deps.node_facts
        strict_groups = self.runtime_state.strict_groups
        if node is not None:
            return replace(node_view(node), strict_groups=strict_groups)
        if facts is None:
            return NodeView(self.deps.node_name, strict_groups=strict_groups)
        taints = tuple((t["key"], t.get("value") or "", t["effect"]) for t in facts.taints)
        return NodeView(facts.name, facts.labels, taints, strict_groups)

    # Running

    async def run(self) -> None:
        """Run until `stop` is called or the task is cancelled; containers are left alone."""
        tasks = [asyncio.create_task(part, name=name) for name, part in self._parts()]
        waiting = asyncio.create_task(self._stop.wait(), name="kubelet stop")
        try:
            await asyncio.wait([*tasks, waiting], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.cancelled():
                    raise RuntimeError(f"{task.get_name()} was cancelled from inside")
                if task.done():
                    task.result()  # a part never ends by itself: its error ends the kubelet
        finally:
            waiting.cancel()
            for task in reversed(tasks):
                task.cancel()
            await asyncio.gather(*tasks, waiting, return_exceptions=True)
            try:
                await self.workers.stop()
                await self.probes.stop()
                if self.cgroups is not None:
                    await self.cgroups.stop()
            finally:
                self._stopped.set()

    def _parts(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        parts = [
            ("runtime watch", self.runtime_watch.run()),
            ("pleg", (self.evented or self.pleg).run()),
            ("status manager", self.statuses.run()),
            ("events", self.recorder.run()),
            ("pod config", self.pod_config.run()),
            ("volume stats", self._after_runtime(self.volume_stats.run)),
            ("eviction", self._after_runtime(self.eviction.run)),
            ("garbage collection", self._after_runtime(self.garbage.run)),
            ("container deletor", self.deletions.run()),
            ("container logs", self._after_runtime(self.logs.run)),
            ("sync loop", self.sync_loop.run()),
            ("pending resizes", self.allocations.run()),
            *([("cgroups", self._after_runtime(self.cgroups.run))] if self.cgroups else []),
            ("image garbage collection", self._after_runtime(self.images.run)),  # least urgent
        ]
        if self.devices is not None:
            parts.append(("device plugins", self.devices.run()))
        if self.resources.reconciles:
            parts.append(("cpu manager", self._after_runtime(self.resources.run)))
        if self.oom_watcher is not None:
            parts.append(("oom watcher", self.oom_watcher.run()))
        if self.informer is not None:
            parts.append(("node informer", self.informer.run()))
        if self.pod_objects is not None:
            parts.append(("services", self.pod_objects.run()))
        if self.informer is not None:
            parts.append(("first mirrors", self._register_static_pods(self.informer)))
        if self.registrar is not None:
            parts.append(("node", self.registrar.run()))
        if self.shutdown is not None:
            parts.append(("shutdowns", self._after_runtime(self.shutdown.run)))
        return parts

    def _registrar(self, api: ApiClient, facts: NodeFacts) -> NodeRegistrar:
        settings = NodeSettings(
            facts=facts,
            register=self.config.register_node,
            update_s=self.config.node_status_update_frequency_s,
            report_s=self.config.node_status_report_frequency_s,
            pressures=self.eviction.node_conditions,
            not_ready=self._not_ready,
            devices=self.devices,
            runtime=self._runtime_fields,
        )
        return NodeRegistrar(api, settings, self.recorder, self.deps.clock)

    def _runtime_fields(self) -> Mapping[str, Any]:
        state = self.runtime_state
        declared = declared_features(self.config.feature_gates)
        return runtime_fields(state.handlers, strict_groups=state.strict_groups, declared=declared)

    def _not_ready(self) -> list[str]:
        """NODE-022: the runtime, then shutdown."""
        shutdown = self.shutdown.not_ready() if self.shutdown else []
        return [*self.runtime_state.not_ready(), *shutdown]

    async def _after_runtime(self, part: Callable[[], Awaitable[None]]) -> None:
        """NODE-050: what needs the runtime starts when it is ready for the first time."""
        await self.runtime_watch.ready.wait()
        await part()

    async def _register_static_pods(self, informer: NodeInformer) -> None:
        """MIRR-028: once the node is visible, all static pods known now get their mirror."""
        while informer.node() is None:
            await self.deps.clock.sleep(0.1)
        for pod in self.pods.pods():
            if is_static(pod):
                await self.mirrors.reconcile(pod, self.pods.mirror_of(pod))
        await asyncio.Event().wait()

    async def stop(self) -> None:
        """End `run` and wait for it; call it while `run` runs."""
        self._stop.set()
        await self._stopped.wait()

    # What the servers show

    def pods_with_status(self) -> list[Pod]:
        """The pods of this node with the status as last generated (MIRR-035)."""
        return [
            with_fields(pod, status=self.statuses.get(uid(pod)) or pod.status)
            for pod in self.pods.pods()
        ]

    def healthy(self) -> str | None:
        """None, or why not: the sync loop has not come round in time (NODE-053)."""
        entered_s = self.sync_loop.entered_s
        if entered_s is None:
            return None
        limit_s = max(2 * self.config.sync_frequency_s, LOOP_MAX_AGE_S)
        age_s = self.deps.clock.monotonic_s() - entered_s
        return f"sync loop took longer than expected: {age_s:.0f} s" if age_s > limit_s else None
