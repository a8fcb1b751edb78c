"""What happens to pods: the handlers of operations, housekeeping, and the loop that calls both."""

from __future__ import annotations

from msgspec import Struct

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


class Loop(Struct, frozen=True):
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
    builder = _Given(base, sources, resources, runtime=runtime, work=work)
    handlers = builder.handlers(admission)
    housekeeping = builder.housekeeping(handlers)
    loop = LoopDeps(
        clock=base.deps.clock,
        awake=base.awake,
        rng=base.deps.rng,
        queues=builder.queues(),
        handlers=handlers,
        statuses=work.statuses,
        housekeeping=housekeeping.handle_pod_cleanups,
        runtime_errors=runtime.state.runtime_errors,
        sync_frequency_s=base.config.sync_frequency_s,
    )
    return Loop(handlers, housekeeping, SyncLoop(loop, sources.seen))


class _Given(Struct, frozen=True):
    """What the parts of the loop are made from."""

    base: Base
    sources: Sources
    resources: Resources
    runtime: RuntimeParts
    work: Work

    def handlers(self, admission: tuple[AdmitHandler, ...]) -> PodHandlers:
        sources, work, allocation = self.sources, self.work, self.resources.allocation
        new_pods = NewPods(
            handlers=admission,
            allocations=allocation.manager,
            pods=sources.pods,
            workers=work.workers,
            statuses=work.statuses,
            recorder=self.base.recorder,
        )
        return PodHandlers(
            HandlerDeps(
                clock=self.base.deps.clock,
                pods=sources.pods,
                workers=work.workers,
                statuses=work.statuses,
                cache=self.runtime.pleg.cache,
                deletor=self.runtime.deletions,
                new_pods=new_pods,
                sources_ready=sources.seen.ready,
                resizes=ResizeTriggers(
                    allocation.manager, allocation.conditions, self.base.metrics.resizes
                ),
                show_death=lambda pod, record: work.steps.show_death(
                    allocation.manager.allocated(pod), record
                ),
                restore_mirror=sources.mirrors.restore,
            )
        )

    def housekeeping(self, handlers: PodHandlers) -> Housekeeping:
        sources, work, deps = self.sources, self.work, self.base.deps
        return Housekeeping(
            CleanupDeps(
                clock=deps.clock,
                pods=sources.pods,
                workers=work.workers,
                handlers=handlers,
                statuses=work.statuses,
                probes=work.probes,
                runtime=self.runtime.manager,
                mirrors=sources.mirrors,
                root_dir=deps.directories.root,
                cgroups=work.cgroups,
                allocations=self.resources.allocation.manager,
                users=self.runtime.users,
                mounts=deps.mounts,
                volumes=work.volumes,
                volume_metrics=self.base.metrics.volumes,
            )
        )

    def queues(self) -> LoopQueues:
        probes = self.work.probes
        return LoopQueues(
            config=self.sources.config.updates,
            pleg=self.runtime.pleg.generic.events,
            liveness=probes.liveness.updates,
            readiness=probes.readiness.updates,
            startup=probes.startup.updates,
        )
