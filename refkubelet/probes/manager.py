"""Starts and stops the probe workers, and holds their results.

The sync loop and `compute_pod_actions` decide what a result means for a pod. What must never
happen: a worker outlives its pod, or a liveness probe kills a terminating pod (PROBE-091).
Upstream: pkg/kubelet/prober/prober_manager.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from refkubelet.events.recorder import EventRecorder
from refkubelet.failures import end_tasks
from refkubelet.host.network import Network
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import uid
from refkubelet.model.probe_results import ProbeResult, ProbeType, ResultManager
from refkubelet.probes.decide import ProbeTarget, probe_targets
from refkubelet.probes.metrics import ProbeMetrics
from refkubelet.probes.prober import ExecRunner, Prober
from refkubelet.probes.worker import ProbeWorker, WorkerDeps
from simclock import Clock, Rng

Key = tuple[str, str, ProbeType]  # pod UID, container name, probe type
OLD_AFTER: Final = timedelta(seconds=10)  # PROBE-051


class ProbeDeps(Struct, frozen=True):
    """What the probe manager works with. `pod_status`: the status manager's cache by pod UID.
    `network` None: only exec probes work."""

    clock: Clock
    rng: Rng
    exec_runner: ExecRunner
    events: EventRecorder
    pod_status: Callable[[str], PodStatus | None]
    network: Network | None = None


class ProbeResults:
    """The results that a pod's sync uses, by container ID without scheme (implements `ProbeView`).
    Not the readiness, which never kills or restarts a container (PROBE-036)."""

    def __init__(self, liveness: ResultManager, startup: ResultManager) -> None:
        self._liveness = liveness
        self._startup = startup

    def liveness(self, container_id: str) -> ProbeResult | None:
        return self._liveness.get(container_id)

    def startup(self, container_id: str) -> ProbeResult | None:
        return self._startup.get(container_id)


class ProbeManager:
    """Implements `status.readiness.ProbeFacts`. Create it when the kubelet starts: its age decides
    about jitter (PROBE-004) and which containers predate the kubelet (PROBE-051)."""

    def __init__(self, deps: ProbeDeps) -> None:
        self.liveness = ResultManager()
        self.readiness = ResultManager()
        self.startup = ResultManager()
        self.view = ProbeResults(self.liveness, self.startup)
        self.metrics = ProbeMetrics()
        self._deps = deps
        self._prober = Prober(deps.exec_runner, deps.events, deps.network)
        self._created = deps.clock.now()
        self._created_s = deps.clock.monotonic_s()
        self._workers: dict[Key, ProbeWorker] = {}
        self._tasks: dict[ProbeWorker, asyncio.Task[None]] = {}

    def add_pod(self, pod: Pod) -> None:
        """Start the pod's workers, if they do not run yet (PROBE-002)."""
        for target in probe_targets(pod):
            key = (uid(pod), target.container.name, target.probe_type)
            if key in self._workers:
                return
            self._start(key, target)

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        """Stop these probes of the regular containers of a terminating pod; their readiness probes
        and all probes of sidecars go on (PROBE-091..093)."""
        regular = {c.name for c in pod.spec.containers}
        for (pod_uid, name, probe_type), worker in self._workers.items():
            ends = pod_uid == uid(pod) and name in regular
            if ends and probe_type is not ProbeType.READINESS:
                worker.stop()

    def remove_pod(self, pod: Pod) -> None:
        """End all workers of a pod whose containers have stopped (PROBE-094)."""
        for (pod_uid, _, _), worker in self._workers.items():
            if pod_uid == uid(pod):
                worker.stop()

    def cleanup_pods(self, desired_uids: Collection[str]) -> None:
        """End the workers of all pods but `desired_uids` (PROBE-094)."""
        for (pod_uid, _, _), worker in self._workers.items():
            if pod_uid not in desired_uids:
                worker.stop()

    def trigger_readiness(self, pod: Pod, status: PodStatus) -> None:
        """Run the readiness probes of started containers that are not ready at once. Call it with
        every generated status (PROBE-007)."""
        for each in (*(status.containerStatuses or ()), *(status.initContainerStatuses or ())):
            running = each.state is not None and each.state.running is not None
            worker = self._workers.get((uid(pod), each.name, ProbeType.READINESS))
            if running and each.started and not each.ready and worker is not None:
                worker.trigger()

    async def stop(self) -> None:
        """Cancel all workers and wait for their end."""
        await end_tasks(self._tasks.values())

    # -- ProbeFacts ---------------------------------------------------------------------------

    def startup_result(self, container_id: str) -> ProbeResult | None:
        return self.startup.get(container_id)

    def readiness_result(self, container_id: str) -> ProbeResult | None:
        return self.readiness.get(container_id)

    def has_worker(self, pod_uid: str, container_name: str, probe_type: ProbeType) -> bool:
        return (pod_uid, container_name, probe_type) in self._workers

    def predates_kubelet(self, started_at: datetime | None) -> bool:
        """Whether `started_at` is more than 10 s before this manager was made (PROBE-051)."""
        return started_at is not None and started_at + OLD_AFTER < self._created

    # -- workers ------------------------------------------------------------------------------

    def _start(self, key: Key, target: ProbeTarget) -> None:
        worker = ProbeWorker(target, self._worker_deps(target.probe_type), self._jitter_s(target))
        name = (
            f"probe {target.probe_type.value.lower()} {target.container.name} of {uid(target.pod)}"
        )
        self._workers[key] = worker
        self._tasks[worker] = asyncio.get_running_loop().create_task(
            self._run(key, worker), name=name
        )

    async def _run(self, key: Key, worker: ProbeWorker) -> None:
        try:
            await worker.run()
        finally:
            self._workers.pop(key, None)
            self._tasks.pop(worker, None)

    def _worker_deps(self, probe_type: ProbeType) -> WorkerDeps:
        results = {
            ProbeType.LIVENESS: self.liveness,
            ProbeType.READINESS: self.readiness,
            ProbeType.STARTUP: self.startup,
        }[probe_type]
        deps = self._deps
        return WorkerDeps(
            clock=deps.clock,
            prober=self._prober,
            results=results,
            pod_status=deps.pod_status,
            predates_kubelet=self.predates_kubelet,
            metrics=self.metrics,
        )

    def _jitter_s(self, target: ProbeTarget) -> float:
        """Seconds before a worker's first run: random while the kubelet is younger than the period,
        so that the probes of all its pods do not run together; else 0 (PROBE-004)."""
        if self._deps.clock.monotonic_s() - self._created_s >= target.period_s:
            return 0.0
        return self._deps.rng.stream("probe-jitter").uniform(0, target.period_s)
