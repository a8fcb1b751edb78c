"""Admission of a pod by the managers of exclusive resources (LIFE-223, CG-080).

What must never happen here: a refusal with a reason of this module's own.
Upstream: pkg/kubelet/cm/topologymanager/topology_manager.go: Admit.
"""

from __future__ import annotations

from refkubelet.admission.admit_handler import AdmitHandler, PodAdmitAttributes, Refusal
from refkubelet.container_manager.topology.manager import TopologyManager


def allocated(manager: TopologyManager) -> AdmitHandler:
    """A handler that lets every provider allocate what the containers ask for. What is allocated
    already stays as it is, so resizes are asked about, too."""

    async def handler(asked: PodAdmitAttributes) -> Refusal | None:
        return await manager.admit(asked.pod)

    return lambda asked: handler(asked) if manager.providers else None
