"""The topology manager: admits a pod if its resources can be allocated, aligned as the policy says.

With policy none it only lets every provider allocate for every container. Otherwise it first merges
the providers' hints, for each container or once for the pod, and allocates only if the policy
accepts the merged hint.

Rules: CG-080, CG-083, LIFE-223. Upstream: pkg/kubelet/cm/topologymanager: topology_manager.go,
scope.go, scope_container.go, scope_pod.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from refkubelet.admission.admit_handler import AdmitHandler, PodAdmitAttributes, Refusal
from refkubelet.container_manager.providers.hints import AllocationError, HintProvider, TopologyHint
from refkubelet.container_manager.topology.policies import (
    AFFINITY_ERROR,
    AFFINITY_TEXT,
    SINGLE_NUMA_NODE,
    TopologyPolicy,
)
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import containers, uid
from refkubelet.telemetry.node_metrics import CONTAINER, NUMA_NODE, POD, ExclusiveMetrics
from simclock import Clock


class TopologyManager:
    """Asks `providers` in order (CG-080). `policy` None: policy none; `scope`: container or pod."""

    def __init__(
        self,
        policy: TopologyPolicy | None,
        scope: str = "container",
        *,
        clock: Clock | None = None,
        metrics: ExclusiveMetrics | None = None,
    ) -> None:
        self._policy = policy
        self._scope = scope
        self._clock = clock
        self._metrics = metrics or ExclusiveMetrics()
        if policy is not None:
            self._metrics.with_alignment()
        self._hints: dict[tuple[str, str], TopologyHint] = {}
        self.providers: Sequence[HintProvider] = ()

    def affinity(self, pod_uid: str, container_name: str) -> TopologyHint:
        """The merged hint of a container of the pod in admission (implements `Affinities`)."""
        return self._hints.get((pod_uid, container_name), TopologyHint())

    async def admit(self, pod: Pod) -> AllocationError | None:
        """Allocate all resources of the pod; returns an error, or None: it is admitted."""
        began_s = self._clock.monotonic_s() if self._clock is not None else 0.0
        self._metrics.admissions.inc()
        error = await self._allocate(pod)
        if error is not None:
            self._metrics.refusals.inc()
        elif self._is_guaranteed and self._scope == POD:
            self._metrics.aligned.inc(POD, NUMA_NODE)
        ended_s = self._clock.monotonic_s() if self._clock is not None else 0.0
        self._metrics.admission_ms.observe(float(int((ended_s - began_s) * 1000)))
        return error

    def admit_without_providers(self) -> None:
        """There is nothing to allocate; the pod counts all the same."""
        self._metrics.admissions.inc()
        self._metrics.admission_ms.observe(0.0)

    @property
    def _is_guaranteed(self) -> bool:
        """Whether an admitted container is aligned for sure."""
        return self._policy is not None and self._policy.name == SINGLE_NUMA_NODE

    async def _allocate(self, pod: Pod) -> AllocationError | None:
        try:
            for container in containers(pod):
                self._align(pod, container)
                for provider in self.providers:
                    await provider.allocate(pod, container)
                if self._is_guaranteed and self._scope == CONTAINER:
                    self._metrics.aligned.inc(CONTAINER, NUMA_NODE)
        except AllocationError as error:
            return error
        finally:
            self._hints.clear()
        return None

    def _align(self, pod: Pod, container: Container) -> None:
        """Merge the hints for the container, or at its first container for the whole pod. Raises
        `AllocationError`."""
        if self._policy is None or (uid(pod), container.name) in self._hints:
            return
        if self._scope == "pod":
            hints = [provider.pod_topology_hints(pod) for provider in self.providers]
        else:
            hints = [provider.topology_hints(pod, container) for provider in self.providers]
        best, admitted = self._policy.merge(hints)
        if not admitted:
            if self._is_guaranteed:
                self._metrics.not_aligned.inc(self._scope, NUMA_NODE)
            raise AllocationError(AFFINITY_TEXT, AFFINITY_ERROR)
        for aligned in containers(pod) if self._scope == "pod" else (container,):
            self._hints[uid(pod), aligned.name] = best


def allocated(manager: TopologyManager) -> AdmitHandler:
    """The admission handler that allocates the resources of containers (LIFE-223, CG-080). Existing
    allocations stay as they are, so it is asked about resizes, too."""

    async def handler(asked: PodAdmitAttributes) -> Refusal | None:
        return await manager.admit(asked.pod)

    return lambda attrs: handler(attrs) if manager.providers else manager.admit_without_providers()
