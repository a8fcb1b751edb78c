"""The kubelet: its parts in the order in which they are made, run and stopped. No rule is here.

`Kubelet(config, deps)` builds the parts (`wiring` says which gets which), `run` runs their tasks
until `stop` (or cancellation). Stopping leaves every container running: the next kubelet finds them
by their labels (BACK-007, MIRR-008). What must never happen: a task that outlives `stop`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

from refkubelet.api.node_informer import NodeInformer
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.container_manager.cgroups.manager import ContainerManagerError
from refkubelet.failures import Part, keep_running
from refkubelet.kuberuntime.common.reasons import EVENT_CHECK_RESOLV_CONF
from refkubelet.model.objects import Pod
from refkubelet.pods.mirror import fast_static_pods_registration
from refkubelet.wiring.admission import build_admission
from refkubelet.wiring.base import (
    Directories,
    KubeletDeps,
    Later,
    NodePlugins,
    PluginSources,
    ThisNode,
    build_base,
)
from refkubelet.wiring.certificates import build_certificates
from refkubelet.wiring.csi import build_csi
from refkubelet.wiring.loop import build_loop
from refkubelet.wiring.metrics_page import MeasuredParts, metrics_page
from refkubelet.wiring.node import build_node
from refkubelet.wiring.objects import build_objects
from refkubelet.wiring.plugins import build_plugin_manager
from refkubelet.wiring.resources import build_resources
from refkubelet.wiring.runtime import build_runtime
from refkubelet.wiring.servers import ServedParts, Servers
from refkubelet.wiring.sources import build_sources
from refkubelet.wiring.stats import build_stats
from refkubelet.wiring.upkeep import build_upkeep
from refkubelet.wiring.work import build_work

__all__ = [
    "Directories",
    "Kubelet",
    "KubeletDeps",
    "NodePlugins",
    "PluginSources",
    "ThisNode",
]


class Kubelet:
    """One node agent. Make it inside the loop that runs it, once per run.

    Its parts lie in groups, one per module of `wiring`: `sources.pods`, `work.workers`, ...;
    `counted` is what they count, `metrics` the page at /metrics."""

    def __init__(self, config: KubeletConfiguration, deps: KubeletDeps) -> None:
        """Raises `ConfigError`, `ContainerManagerError`, `CertificateError`."""
        self.config = config
        self.deps = deps
        base = build_base(config, deps, self._later())
        self.counted = base.metrics
        self.recorder, self.awake = base.recorder, base.awake
        self.sources = sources = build_sources(base)
        self.resources = resources = build_resources(base, sources)
        self.objects = objects = build_objects(base, sources)
        self.csi = csi = build_csi(base, sources, objects)
        self.plugin_manager = build_plugin_manager(base, resources, csi)
        self.runtime = runtime = build_runtime(base, resources, objects)
        self.work = work = build_work(
            base, sources, resources, runtime=runtime, objects=objects, csi=csi
        )
        self.stats = build_stats(base, sources, runtime, work=work, csi=csi)
        self.upkeep = upkeep = build_upkeep(
            base=base, sources=sources, runtime=runtime, work=work, stats=self.stats
        )
        self.node = build_node(
            base=base,
            sources=sources,
            resources=resources,
            runtime=runtime,
            work=work,
            upkeep=upkeep,
            csi=csi,
        )
        admission = build_admission(
            base=base, resources=resources, work=work, upkeep=upkeep, node=self.node
        )
        self.loop = build_loop(
            base=base,
            sources=sources,
            resources=resources,
            runtime=runtime,
            work=work,
            admission=admission,
        )
        self.certificates = build_certificates(base)
        self.metrics = metrics_page(self._measured())
        self.servers = Servers(base, self._served())
        self._stop = asyncio.Event()
        self._stopped = asyncio.Event()

    def _later(self) -> Later:
        return Later(
            runtime=lambda: self.runtime.manager,
            statuses=lambda: self.work.statuses,
            cgroups=lambda: self.work.cgroups,
            workers=lambda: self.work.workers,
            volumes=lambda: self.work.volumes,
            handlers=lambda: self.loop.handlers,
            cache=lambda: self.runtime.pleg.cache,
        )

    def _served(self) -> ServedParts:
        return ServedParts(
            sources=self.sources,
            runtime=self.runtime,
            work=self.work,
            stats=self.stats,
            loop=self.loop.sync_loop,
            metrics=self.metrics,
        )

    def _measured(self) -> MeasuredParts:
        devices, logins = self.resources.devices, self.runtime.login_plugins
        return MeasuredParts(
            counted=self.counted,
            pods=self.sources.pods,
            workers=self.work.workers,
            handlers=self.loop.handlers,
            housekeeping=self.loop.housekeeping,
            pleg=self.runtime.pleg.generic,
            preemptor=self.work.preemptor,
            evictions=self.upkeep.eviction.metrics,
            images=self.upkeep.images,
            volumes=self.stats.volumes,
            shutdown=self.node.shutdown,
            resizes=self.resources.allocation.conditions,
            devices=devices.metrics if devices is not None else None,
            login_plugins=logins.metrics if logins is not None else None,
            certificates=self.certificates,
        )

    # Running

    async def run(self) -> None:
        """Run until `stop` is called or the task is cancelled; containers are left alone. A part
        that fails is started again; raises what is fatal to one."""
        clock = self.deps.clock
        self.recorder.node_event("Normal", "Starting", "Starting kubelet.")  # NODE-070
        if self.runtime.resolv_conf_problem is not None:
            text = self.runtime.resolv_conf_problem
            self.recorder.node_event("Warning", EVENT_CHECK_RESOLV_CONF, text)
        tasks = [asyncio.create_task(keep_running(p, clock), name=p.name) for p in self.parts()]
        waiting = asyncio.create_task(self._stop.wait(), name="kubelet stop")
        try:
            await asyncio.wait([*tasks, waiting], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()  # only what is fatal ends one
        finally:
            waiting.cancel()
            for task in reversed(tasks):
                task.cancel()
            await asyncio.gather(*tasks, waiting, return_exceptions=True)
            try:
                await self.work.workers.stop()
                await self.work.volumes.stop()
                await self.work.probes.stop()
                await self.runtime.manager.stop()
                await self.loop.housekeeping.stop()
                if self.work.cgroups is not None:
                    await self.work.cgroups.stop()
            finally:
                self.resources.allocation.save_at_end()
                self._stopped.set()

    def parts(self) -> list[Part]:
        """What runs, in the order of starting; ended in the opposite order."""
        sources, runtime, work, upkeep = self.sources, self.runtime, self.work, self.upkeep
        after = runtime.watch.after_ready
        return [
            Part("awake time", self.awake.run),
            # CG-035, NODE-050: without the cgroups above them no pod may start
            Part("runtime watch", runtime.watch.run, fatal=(ContainerManagerError,)),
            Part("pleg", (runtime.pleg.evented or runtime.pleg.generic).run),
            Part("status manager", work.statuses.writer.run),
            Part("events", self.recorder.run),
            Part("pod config", sources.config.run),
            Part("volume stats", after(self.stats.volumes.run)),
            Part("eviction", after(upkeep.eviction.run)),
            Part("garbage collection", after(upkeep.garbage.run)),
            Part("container deletor", runtime.deletions.run),
            Part("container logs", after(upkeep.logs.run)),
            Part("sync loop", self.loop.sync_loop.run),
            Part("pending resizes", self.resources.allocation.manager.run),
            *([Part("cgroups", after(work.cgroups.run))] if work.cgroups else []),
            Part("image garbage collection", after(upkeep.images.run)),  # least urgent
            *self._parts_not_everywhere(),
        ]

    def _parts_not_everywhere(self) -> Iterator[Part]:
        """Those that the configuration or the machine may leave out."""
        resources, node, informer = self.resources, self.node, self.sources.informer
        after_runtime = self.runtime.watch.after_ready
        if resources.devices is not None:
            yield Part("device plugins", resources.devices.run)
        if self.plugin_manager is not None:
            yield Part("plugin manager", after_runtime(self.plugin_manager.run))
        if resources.managers.reconciles:
            yield Part("cpu manager", after_runtime(resources.managers.run))
        if node.oom_watcher is not None:
            yield Part("oom watcher", node.oom_watcher.run)
        if informer is not None:
            yield Part("node informer", informer.run)
        if self.objects is not None:
            yield from self.objects.parts()
        if self.csi is not None:
            yield from self.csi.parts()
        if self.runtime.variables is not None:
            yield Part("services", self.runtime.variables.run)
        if informer is not None:
            yield Part("first mirrors", partial(self._first_mirrors, informer))
        if node.registrar is not None:
            yield Part("node", node.registrar.run)
            # asks the runtime, too: the first of both that sees it ready makes the cgroups
            yield Part("node soon ready", node.registrar.get_ready, (ContainerManagerError,))
            yield Part("node images", after_runtime(self.upkeep.node_images.run))
        if node.lease is not None:
            yield Part("node lease", node.lease.run)
        else:
            yield Part("pod CIDR", node.pod_cidrs.run)
        if node.shutdown is not None:
            yield Part("shutdowns", after_runtime(node.shutdown.run))
        yield from self.certificates.parts()

    async def _first_mirrors(self, informer: NodeInformer) -> None:
        sources = self.sources
        await fast_static_pods_registration(
            sources.mirrors, sources.pods, informer.node, self.deps.clock
        )
        await asyncio.Event().wait()  # a part that ends would be started again

    async def stop(self) -> None:
        """End `run` and wait for it; call it while `run` runs."""
        self._stop.set()
        await self._stopped.wait()

    # What the servers show

    def pods_with_status(self) -> list[Pod]:
        """The pods of this node as /pods shows them (MIRR-035)."""
        return [self.work.statuses.with_status(pod) for pod in self.sources.pods.pods()]

    def healthy(self) -> str | None:
        """None, or why this kubelet is not healthy (NODE-053)."""
        return self.loop.sync_loop.health_check()
