"""What works on pods: the pod workers with all that their steps need, and the ways to end a pod."""

from __future__ import annotations

from msgspec import Struct

from kubeobjects.quantity import NANO
from refkubelet.admission.features import POD_LEVEL_RESIZES
from refkubelet.admission.node_fit import NodeView, matches_terms, node_view
from refkubelet.container_manager.cgroups.build import (
    check_reservations,
    container_manager,
)
from refkubelet.container_manager.cgroups.manager import ContainerManager, ContainerManagerDeps
from refkubelet.eviction.preemption import PreemptionDeps, Preemptor
from refkubelet.host.machine import machine_capacity
from refkubelet.pod_workers.killing import PodKiller
from refkubelet.pod_workers.resize_reports import ResizeReports
from refkubelet.pod_workers.step_deps import StepDeps, StepHooks
from refkubelet.pod_workers.steps import PodSteps
from refkubelet.pod_workers.traced_steps import traced_steps
from refkubelet.pod_workers.workers import PodWorkers, WorkerSettings
from refkubelet.probes.manager import ProbeDeps, ProbeManager
from refkubelet.status.manager import StatusManager
from refkubelet.status.writer import StatusDeps
from refkubelet.volumes.atomic_writer import AtomicWriter
from refkubelet.volumes.content import ContentSources, ContentVolumes
from refkubelet.volumes.empty_dirs import EmptyDirs
from refkubelet.volumes.manager import PodVolumes
from refkubelet.volumes.persistent import PersistentVolumes
from refkubelet.wiring.base import Base
from refkubelet.wiring.csi import Csi
from refkubelet.wiring.objects import Objects
from refkubelet.wiring.resources import Resources, device_health
from refkubelet.wiring.runtime import RuntimeParts
from refkubelet.wiring.sources import Sources


class Work(Struct, frozen=True):
    """`cgroups` None: pods have none (cgroupsPerQOS false)."""

    statuses: StatusManager
    probes: ProbeManager
    cgroups: ContainerManager | None
    steps: PodSteps
    workers: PodWorkers
    volumes: PodVolumes
    killer: PodKiller
    preemptor: Preemptor


def build_work(
    base: Base,
    sources: Sources,
    resources: Resources,
    *,
    runtime: RuntimeParts,
    objects: Objects | None,
    csi: Csi | None,
) -> Work:
    """Raises `ContainerManagerError`."""
    deps = base.deps
    statuses = _statuses(base, sources)
    probes = _probes(base, statuses)
    cgroups = _container_manager(base, resources)
    volumes = _volumes(base, sources, objects, csi)
    needs = StepDeps(
        clock=deps.clock,
        runtime=runtime.manager,
        statuses=statuses,
        probes=probes,
        mirrors=sources.mirrors,
        recorder=base.recorder,
        hooks=_hooks(base, resources, runtime),
        root_dir=deps.directories.root,
        host_ips=deps.node.ips if deps.api is not None else (),  # STAT-044
        cgroups=cgroups,
        resizes=_resize_reports(base, resources, runtime, cgroups),
        volumes=volumes,
        metrics=base.metrics,
        objects=objects.of_pods if objects is not None else None,
        pod_level_resizes=base.gate(POD_LEVEL_RESIZES, default=True),
    )
    steps = PodSteps(needs)
    workers = PodWorkers(
        traced_steps(steps, deps.spans),
        runtime.pleg.cache,
        base.recorder,
        _settings(base, resources, runtime),
    )
    killer = PodKiller(workers, base.recorder)
    return Work(
        statuses=statuses,
        probes=probes,
        cgroups=cgroups,
        steps=steps,
        workers=workers,
        volumes=volumes,
        killer=killer,
        preemptor=_preemptor(base, killer),
    )


def _preemptor(base: Base, killer: PodKiller) -> Preemptor:
    return Preemptor(PreemptionDeps(base.later.allocated_pods, killer.preempt, base.recorder))


def _statuses(base: Base, sources: Sources) -> StatusManager:
    deps, later = base.deps, base.later
    return StatusManager(
        StatusDeps(
            deps.clock,
            sources.pods,
            lambda pod_uid: later.workers().could_have_running_containers(pod_uid),
            deps.api,
            metrics=base.metrics.statuses,
            latency=base.latency,
        )
    )


def _probes(base: Base, statuses: StatusManager) -> ProbeManager:
    deps = base.deps
    return ProbeManager(
        ProbeDeps(
            clock=deps.clock,
            rng=deps.rng,
            exec_runner=base.client,
            events=base.recorder,
            pod_status=statuses.get,
            network=deps.network,
        )
    )


def _settings(base: Base, resources: Resources, runtime: RuntimeParts) -> WorkerSettings:
    return WorkerSettings(
        clock=base.deps.clock,
        rng=base.deps.rng,
        sync_frequency_s=base.config.sync_frequency_s,
        allocated=resources.allocation.manager.allocated,
        metrics=base.metrics.workers,
        after_failure=runtime.pleg.generic.after_failure,
    )


def _volumes(base: Base, sources: Sources, objects: Objects | None, csi: Csi | None) -> PodVolumes:
    deps = base.deps
    allocatable = deps.node.facts.allocatable if deps.node.facts else {}
    empty_dirs = EmptyDirs(str(deps.directories.root), deps.mounts)
    content = ContentSources(allocatable=allocatable)
    if objects is not None:
        content = ContentSources(
            objects.of_pods, objects.tokens, objects.trust_bundles, allocatable
        )
    return PodVolumes(
        empty_dirs,
        ContentVolumes(empty_dirs, AtomicWriter(deps.clock, deps.ids), content),
        _persistent(base, sources, csi),
        drivers=csi.volumes if csi is not None else None,
        claims=deps.api,
        recorder=base.recorder,
        clock=deps.clock,
        allocatable_bytes=allocatable.get("memory", 0) // NANO,
    )


def _persistent(base: Base, sources: Sources, csi: Csi | None) -> PersistentVolumes:
    """The node's labels are those of its Node object, or what this kubelet registers."""
    deps = base.deps

    def view() -> NodeView:
        node, facts = sources.node(), deps.node.facts
        if node is not None:
            return node_view(node)
        return NodeView(deps.node.name, facts.labels if facts is not None else {})

    return PersistentVolumes(
        str(deps.directories.root),
        deps.mounts,
        recorder=base.recorder,
        fits=lambda terms: matches_terms(terms, view()),
        drivers=csi.volumes if csi is not None else None,
    )


def _container_manager(base: Base, resources: Resources) -> ContainerManager | None:
    """Raises `ContainerManagerError`, also where pods have no cgroups."""
    config, deps = base.config, base.deps
    facts = deps.node.facts
    check_reservations(config, facts.capacity if facts else machine_capacity(deps.machine))
    if not config.cgroups_per_qos:
        return None
    return container_manager(
        config,
        deps.machine,
        ContainerManagerDeps(
            deps.clock,
            base.recorder,
            active_pods=base.later.allocated_pods,
            has_exclusive_cpus=resources.managers.has_exclusive_cpus,
        ),
        base.metrics.cgroups,
    )


def _hooks(base: Base, resources: Resources, runtime: RuntimeParts) -> StepHooks:
    return StepHooks(
        network_error=runtime.state.network_error,
        resync=base.later.sync_by_uid,
        request_relist=runtime.pleg.generic.request_relist,
        runtime_name=runtime.watch.runtime_name,
        recursive_read_only=runtime.pod_runtimes.read_only_is_recursive,
        is_terminating=base.later.is_terminating,
        with_devices=device_health(base, resources),
        release_users=runtime.users.release,
    )


def _resize_reports(
    base: Base, resources: Resources, runtime: RuntimeParts, cgroups: ContainerManager | None
) -> ResizeReports:
    return ResizeReports(
        resources.allocation.conditions,
        base.recorder,
        runtime.manager,
        cgroups=cgroups,
        reinspect=runtime.pleg.generic.request_reinspection,
    )
