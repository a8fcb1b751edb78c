"""The node itself: its object in the API, its shutdown, what its kernel kills."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from refkubelet.admission.features import declared_features
from refkubelet.node.cached_node import CachedNode
from refkubelet.node.lease import LeaseSettings, NodeLease
from refkubelet.node.oom_watcher import GATE, OomWatcher, follow_kernel_log
from refkubelet.node.pod_cidrs import PodCidrs
from refkubelet.node.register import NodeRegistrar
from refkubelet.node.settings import NodeHealth, NodeRuntime, NodeSettings
from refkubelet.node.shutdown import shutdown_groups
from refkubelet.node.shutdown_manager import NodeShutdownManager, ShutdownDeps
from refkubelet.node.shutdown_state import FILE_NAME
from refkubelet.node.startup import NodeStartup
from refkubelet.node.status import runtime_fields
from refkubelet.wiring.base import Base
from refkubelet.wiring.csi import Csi
from refkubelet.wiring.resources import Resources
from refkubelet.wiring.runtime import RuntimeParts
from refkubelet.wiring.sources import Sources
from refkubelet.wiring.upkeep import Upkeep
from refkubelet.wiring.work import Work

log = logging.getLogger(__name__)


class Node(Struct, frozen=True):
    """`cached`: the node as admission sees it; `shutdown` None: shutdowns are not noticed;
    `registrar` None: this kubelet does not keep the Node object, or there is none; `oom_watcher`
    None: the kernel's log cannot be read; `lease` None: standalone."""

    cached: CachedNode
    lease: NodeLease | None
    pod_cidrs: PodCidrs
    shutdown: NodeShutdownManager | None
    registrar: NodeRegistrar | None
    oom_watcher: OomWatcher | None


def build_node(
    base: Base,
    sources: Sources,
    resources: Resources,
    runtime: RuntimeParts,
    work: Work,
    upkeep: Upkeep,
    csi: Csi | None,
) -> Node:
    shutdown = _shutdown(base, work, hurry=lambda: registrar.hurry() if registrar else None)
    config, deps = base.config, base.deps
    ranges = PodCidrs(base.client, deps.clock, config.pod_cidr)
    registrar: NodeRegistrar | None = None
    if deps.api is not None and deps.node.facts is not None:
        settings = NodeSettings(
            facts=deps.node.facts,
            register=config.register_node,
            update_s=config.node_status_update_frequency_s,
            report_s=config.node_status_report_frequency_s,
            health=NodeHealth(
                pressures=upkeep.eviction.node_conditions,
                runtime_errors=runtime.state.not_ready,
                storage_errors=csi.node_info.not_ready if csi is not None else tuple,
                shutdown_errors=shutdown.not_ready if shutdown else tuple,
            ),
            devices=resources.devices,
            volumes=csi.volumes if csi is not None else None,
            runtime=NodeRuntime(
                fields=lambda: {**_runtime_fields(base, runtime), **upkeep.node_images.fields()},
                pod_cidrs=ranges.follow,
                look=runtime.watch.update_runtime_up,
            ),
            random=deps.rng.stream("node status").random,
            startup=_startup(base),
            seen=sources.informer.node if sources.informer is not None else lambda: None,
        )
        registrar = NodeRegistrar(deps.api, settings, base.recorder, deps.clock)
    messages = follow_kernel_log(deps.machine, may_fail=base.gate(GATE, default=False))
    oom_watcher = OomWatcher(messages, base.recorder) if messages else None
    return Node(
        cached=_cached(base, sources, resources, runtime),
        lease=_lease(base),
        pod_cidrs=ranges,
        shutdown=shutdown,
        registrar=registrar,
        oom_watcher=oom_watcher,
    )


def _startup(base: Base) -> NodeStartup:
    booted_ns = base.deps.machine.boot_time_ns()
    counted, clock = base.metrics.node, base.deps.clock
    return NodeStartup(counted, clock, started_ns=base.started_ns, booted_ns=booted_ns)


def _lease(base: Base) -> NodeLease | None:
    deps, config = base.deps, base.config
    if deps.api is None:
        return None
    settings = LeaseSettings(
        node_name=deps.node.name,
        duration_s=config.node_lease_duration_seconds,
        update_s=config.node_status_update_frequency_s,
        random=deps.rng.stream("node lease").random,
    )
    return NodeLease(deps.api, settings, deps.clock)


def _cached(
    base: Base, sources: Sources, resources: Resources, runtime: RuntimeParts
) -> CachedNode:
    deps, devices = base.deps, resources.devices
    return CachedNode(
        name=deps.node.name,
        max_pods=base.config.max_pods,
        facts=deps.node.facts,
        api=deps.api,
        informed=sources.node,
        strict_groups=lambda: runtime.state.strict_groups,
        devices=devices.allocatable if devices is not None else dict,
    )


def _shutdown(base: Base, work: Work, hurry: Callable[[], None]) -> NodeShutdownManager | None:
    deps, groups = base.deps, shutdown_groups(base.config)
    if not groups:
        return None
    if deps.shutdown_source is None:
        log.error(
            "shutdownGracePeriod: this kubelet has no source that tells of shutdowns of the node"
        )
        return None
    return NodeShutdownManager(
        groups,
        deps.shutdown_source,
        ShutdownDeps(
            clock=deps.clock,
            events=base.recorder,
            active_pods=base.later.active_pods,
            kill_pod=work.killer.end_for_shutdown,
            tell_node_status=hurry,
            state_file=deps.directories.root / FILE_NAME,
        ),
    )


def _runtime_fields(base: Base, runtime: RuntimeParts) -> Mapping[str, Any]:
    state, declared = runtime.state, declared_features(base.config.feature_gates)
    return runtime_fields(state.handlers, strict_groups=state.strict_groups, declared=declared)
