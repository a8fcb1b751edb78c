"""Admission of a pod by the managers of exclusive resources (LIFE-223, CG-080).

Each container in the order of its start, each manager in the given order: devices, CPUs, memory.
What must never happen here: a container that is asked about after another one of the pod was
refused.
Upstream: pkg/kubelet/cm/topologymanager/scope_none.go.
"""

from __future__ import annotations

from refkubelet.admission.handlers import AdmitHandler, Operation, PodAdmitAttributes, Rejection
from refkubelet.resources.topology.hints import AllocationError, HintProvider


def allocated(providers: tuple[HintProvider, ...]) -> AdmitHandler:
    """A handler that lets every manager allocate what the containers ask for."""

    async def handler(asked: PodAdmitAttributes) -> Rejection | None:
        spec = asked.pod.spec
        if asked.operation is not Operation.ADD or spec is None:
            return None
        try:
            for container in (*(spec.initContainers or ()), *spec.containers):
                for provider in providers:
                    await provider.allocate(asked.pod, container)
        except AllocationError as error:
            return Rejection(error.reason, error.message)
        return None

    return handler
