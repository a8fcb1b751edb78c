"""The topology manager: admits a pod if its resources can be allocated, near each other if wanted.

With policy none it only lets every provider allocate for every container. Otherwise the providers'
hints are merged first: container by container, or once for the pod. What must never happen here:
an allocation for a pod whose merged hint the policy refuses.

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
    TopologyPolicy,
)
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import containers, uid


class TopologyManager:
    """Asks `providers` in their order (CG-080). `policy` None: policy none."""

    def __init__(self, policy: TopologyPolicy | None, scope: str = "container") -> None:
        self._policy = policy
        self._scope = scope
        self._hints: dict[tuple[str, str], TopologyHint] = {}
        self.providers: Sequence[HintProvider] = ()

    def affinity(self, pod_uid: str, container_name: str) -> TopologyHint:
        """The merged hint of a container of the pod that is being admitted (`Affinities`)."""
        return self._hints.get((pod_uid, container_name), TopologyHint())

    async def admit(self, pod: Pod) -> AllocationError | None:
        """Allocate everything for the pod. None: it is admitted."""
        try:
            for container in containers(pod):
                self._align(pod, container)
                for provider in self.providers:
                    await provider.allocate(pod, container)
        except AllocationError as error:
            return error
        finally:
            self._hints.clear()
        return None

    def _align(self, pod: Pod, container: Container) -> None:
        """Merge the hints for the container, or with the first one for the pod. Raises
        `AllocationError`."""
        if self._policy is None or (uid(pod), container.name) in self._hints:
            return
        if self._scope == "pod":
            hints = [provider.pod_topology_hints(pod) for provider in self.providers]
        else:
            hints = [provider.topology_hints(pod, container) for provider in self.providers]
        best, admitted = self._policy.merge(hints)
        if not admitted:
            raise AllocationError(AFFINITY_TEXT, AFFINITY_ERROR)
        for aligned in containers(pod) if self._scope == "pod" else (container,):
            self._hints[uid(pod), aligned.name] = best


def allocated(manager: TopologyManager) -> AdmitHandler:
    """A handler that lets every provider allocate what the containers ask for (LIFE-223, CG-080).
    What is allocated already stays as it is, so resizes are asked about, too."""

    async def handler(asked: PodAdmitAttributes) -> Refusal | None:
        return await manager.admit(asked.pod)

    return lambda asked: handler(asked) if manager.providers else None
