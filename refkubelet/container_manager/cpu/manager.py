"""The CPU manager with policy static: assigns exclusive CPUs to containers and takes them back.

The state is an immutable value; every allocation and release replaces it and writes its file.
Before each decision the CPUs of pods that are no longer active are taken back. What must never
happen here: an allocation changes while its pod is active; CPUs are taken back before all pods are
known.

Rules: CG-081. Upstream: pkg/kubelet/cm/cpumanager: cpu_manager.go, policy_static.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from refkubelet.container_manager.cpu.state import CpuState
from refkubelet.container_manager.cpu.static import StaticPolicy, exclusive_cpus, pod_exclusive_cpus
from refkubelet.container_manager.providers.active import ActiveContainers
from refkubelet.container_manager.providers.hints import (
    NO_PREFERENCE,
    Affinities,
    AllocationError,
    Hints,
)
from refkubelet.model.cpuset import EMPTY, CpuSet, format_cpuset
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import (
    containers,
    is_plain_init,
    log_name,
    uid,
)
from refkubelet.telemetry.node_metrics import (
    CONTAINER,
    PHYSICAL_CPU,
    UNCORE_CACHE,
    ExclusiveMetrics,
)

log = logging.getLogger(__name__)

CPU: Final = "cpu"


class CpuManager:
    """A hint provider. `state`: restored and checked; `store`: called with every new state."""

    def __init__(
        self,
        policy: StaticPolicy,
        state: CpuState,
        store: Callable[[CpuState], None],
        affinities: Affinities,
        active: ActiveContainers,
        metrics: ExclusiveMetrics | None = None,
    ) -> None:
        self._metrics = metrics or ExclusiveMetrics()
        self._policy = policy
        self._store = store
        self._affinities = affinities
        self._active = active
        self._reusable: tuple[str, CpuSet] = ("", EMPTY)
        self.state = state
        self._metrics.with_exclusive_cpus()
        self._show()

    def own_cpus(self, pod_uid: str, container_name: str) -> CpuSet:
        """The container's exclusive CPUs; empty: none."""
        return self.state.of(pod_uid, container_name) or EMPTY

    def cpus_of(self, pod_uid: str, container_name: str) -> CpuSet:
        """The CPUs that the container may run on."""
        return self.own_cpus(pod_uid, container_name) or self.state.shared

    def allocatable(self) -> CpuSet:
        """All CPUs that can be exclusive, assigned ones included."""
        return self._policy.topology.cpus - self._policy.reserved

    def topology_hints(self, pod: Pod, container: Container) -> Hints:
        """The NUMA nodes that the CPUs of its own can come from. CPUs of containers that are gone
        are freed first."""
        self.drop_stale(pod)
        count = exclusive_cpus(pod, container)
        if not count:
            return NO_PREFERENCE
        own = self.state.of(uid(pod), container.name)
        if own is None:
            free = self._policy.assignable(self.state)
            return {CPU: self._policy.hints(free, count, self._reusable_by(pod))}
        # Assigned before a restart of the kubelet. With another count than requested: no hint.
        return {CPU: self._policy.hints(own, count) if len(own) == count else ()}

    def pod_topology_hints(self, pod: Pod) -> Hints:
        """As `topology_hints`, for the CPUs of all containers of the pod together."""
        self.drop_stale(pod)
        count = pod_exclusive_cpus(pod)
        if not count:
            return NO_PREFERENCE
        assigned: CpuSet = EMPTY
        for container in containers(pod):
            own = self.state.of(uid(pod), container.name)
            if own is not None and len(own) != exclusive_cpus(pod, container):
                return {CPU: ()}
            assigned |= own or EMPTY
        if len(assigned) == count:
            return {CPU: self._policy.hints(assigned, count)}
        free = self._policy.assignable(self.state)
        return {CPU: self._policy.hints(free, count, self._reusable_by(pod) | assigned)}

    async def allocate(self, pod: Pod, container: Container) -> None:
        """Assign the container's exclusive CPUs, if it requests any and has none yet. Raises
        `AllocationError`."""
        self.drop_stale(pod)
        count = exclusive_cpus(pod, container)
        if not count:
            return
        self._metrics.cpu_requests.inc()
        whole_cores = self._policy.options.full_pcpus_only
        try:
            self._assign(pod, container, count)
        except AllocationError:
            self._metrics.cpu_errors.inc()
            if whole_cores:
                self._metrics.not_aligned.inc(CONTAINER, PHYSICAL_CPU)
            raise
        if whole_cores:
            self._metrics.aligned.inc(CONTAINER, PHYSICAL_CPU)

    def _assign(self, pod: Pod, container: Container, count: int) -> None:
        """Assign so many CPUs, unless it has them already. Raises `AllocationError`."""
        self._policy.check_alignment(self.state, count)
        cpus = self.state.of(uid(pod), container.name)
        if cpus is None:
            near = self._affinities.affinity(uid(pod), container.name).affinity
            cpus = self._policy.choose(self.state, count, near, self._reusable_by(pod))
            self._replace(self.state.given(uid(pod), container.name, cpus))
            if self._policy.is_in_one_cache(cpus):
                self._metrics.aligned.inc(CONTAINER, UNCORE_CACHE)
            log.info(
                "container %s of pod %s has CPUs %s",
                container.name,
                log_name(pod),
                format_cpuset(cpus),
            )
        self._note_reuse(pod, container, cpus)

    def drop_stale(self, admitted: Pod | None = None) -> None:
        """Take back the CPUs of containers of pods that are not active; `admitted` counts as
        active."""
        state = self._active.without_stale(self.state, admitted)
        if state is not self.state:
            self._replace(state)

    def _reusable_by(self, pod: Pod) -> CpuSet:
        owner, cpus = self._reusable
        return cpus if owner == uid(pod) else EMPTY

    def _note_reuse(self, pod: Pod, container: Container, cpus: CpuSet) -> None:
        """Make the CPUs of a plain init container reusable for the pod's next containers; those
        that a sidecar or regular container took are no longer reusable."""
        before = self._reusable_by(pod)
        after = before | cpus if is_plain_init(pod, container.name) else before - cpus
        self._reusable = (uid(pod), after)

    def _replace(self, state: CpuState) -> None:
        self.state = state
        self._store(state)
        self._show()

    def _show(self) -> None:
        """Tell the metrics what is assigned."""
        own, metrics = self.state.own_cpus(), self._metrics
        metrics.shared_millicores.set(1000.0 * len(self._policy.assignable(self.state)))
        metrics.exclusive_cpus.set(float(len(own)))
        for node, cpus in self._policy.topology.units["node"].items():
            count = len(cpus & own)
            if count or (str(node),) in metrics.cpus_of_node.values:
                metrics.cpus_of_node.set(float(count), str(node))
