"""What happens to pods: the handlers of operations, housekeeping, and the loop that calls both."""

from __future__ import annotations

from dataclasses import dataclass

from refkubelet.admission.admit_handler import AdmitHandler
from refkubelet.allocation.triggers import ResizeTriggers
from refkubelet.sync_loop.housekeeping import CleanupDeps, Housekeeping
from refkubelet.sync_loop.loop import LoopDeps, LoopQueues, SyncLoop
from refkubelet.sync_loop.new_pods import NewPods
from refkubelet.sync_loop.pod_handlers import HandlerDeps, PodHandlers
from refkubelet.wiring.base import Base
from refkubelet.wiring.resources import Resources
from refkubelet.wiring.runtime import RuntimeParts
from refkubelet.wiring.sources import Sources
from refkubelet.wiring.work import Work


@dataclass(frozen=True, slots=True)
class Loop:
    """`handlers`: one method per operation on pods."""

    handlers: PodHandlers
    housekeeping: Housekeeping
    sync_loop: SyncLoop


def build_loop(
    base: Base,
    sources: Sources,
    resources: Resources,
    runtime: RuntimeParts,
    work: Work,
    admission: tuple[AdmitHandler, ...],
) -> Loop:
    handlers = _handlers(
        base=base,
        sources=sources,
        resources=resources,
        runtime=runtime,
        work=work,
        admission=admission,
    )
    housekeeping = _housekeeping(
        base=base,
        sources=sources,
        resources=resources,
        runtime=runtime,
        work=work,
        handlers=handlers,
    )
    loop = LoopDeps(
        clock=base.deps.clock,
        rng=base.deps.rng,
        queues=_queues(sources, runtime, work),
        handlers=handlers,
        statuses=work.statuses,
        housekeeping=housekeeping.handle_pod_cleanups,
        runtime_errors=runtime.state.runtime_errors,
        sync_frequency_s=base.config.sync_frequency_s,
    )
    return Loop(handlers, housekeeping, SyncLoop(loop, sources.seen))


def _handlers(
    base: Base,
    sources: Sources,
    resources: Resources,
    runtime: RuntimeParts,
    work: Work,
    admission: tuple[AdmitHandler, ...],
) -> PodHandlers:
    allocation = resources.allocation
    return PodHandlers(
        HandlerDeps(
            clock=base.deps.clock,
            pods=sources.pods,
            workers=work.workers,
            statuses=work.statuses,
            cache=runtime.pleg.cache,
            deletor=runtime.deletions,
            sources_ready=sources.seen.ready,
            new_pods=NewPods(
                handlers=admission,
                allocations=allocation.manager,
                pods=sources.pods,
                workers=work.workers,
                statuses=work.statuses,
                recorder=base.recorder,
            ),
            resizes=ResizeTriggers(allocation.manager, allocation.conditions),
        )
    )


def _housekeeping(
    base: Base,
    sources: Sources,
    resources: Resources,
    runtime: RuntimeParts,
    work: Work,
    handlers: PodHandlers,
) -> Housekeeping:
    return Housekeeping(
        CleanupDeps(
            clock=base.deps.clock,
            pods=sources.pods,
            workers=work.workers,
            handlers=handlers,
            statuses=work.statuses,
            probes=work.probes,
            runtime=runtime.manager,
            mirrors=sources.mirrors,
            root_dir=base.deps.root_dir,
            cgroups=work.cgroups,
            allocations=resources.allocation.manager,
            mounts=base.deps.mounts,
        )
    )


def _queues(sources: Sources, runtime: RuntimeParts, work: Work) -> LoopQueues:
    probes = work.probes
    return LoopQueues(
        config=sources.config.updates,
        pleg=runtime.pleg.generic.events,
        liveness=probes.liveness.updates,
        readiness=probes.readiness.updates,
        startup=probes.startup.updates,
    )
