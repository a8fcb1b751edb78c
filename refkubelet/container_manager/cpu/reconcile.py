"""Updates the cpusets of running containers in the runtime, every cpuManagerReconcilePeriod.

An allocation takes CPUs out of the shared pool, so the containers that run there must leave them.

Rules: CG-081. Upstream: pkg/kubelet/cm/cpumanager/cpu_manager.go: reconcileState.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Protocol

from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as cri
from msgspec import Struct

from refkubelet.container_manager.cpu.manager import CpuManager
from refkubelet.container_manager.providers.active import ActiveContainers
from refkubelet.cri.target import CriCallError
from refkubelet.failures import Complaints
from refkubelet.model.cpuset import CpuSet, format_cpuset
from refkubelet.model.objects import ContainerStatus, PodStatus
from refkubelet.model.pod import bare_container_id, containers, uid
from simclock import Clock

log = logging.getLogger(__name__)


class ContainerUpdater(Protocol):
    """The part of the runtime that updates containers."""

    async def update_container_resources(self, container_id: str, resources: Message) -> None:
        """Set the resources of a running container. Raises `CriCallError`."""


class ReconcileDeps(Struct, frozen=True):
    """What the reconciler works with. `status`: the cached status of the pod with that UID."""

    clock: Clock
    runtime: ContainerUpdater
    active: ActiveContainers
    status: Callable[[str], PodStatus | None]
    period_s: float


class CpuReconciler:
    """Keeps the last cpuset of every container, so that only changes are sent."""

    def __init__(self, manager: CpuManager, deps: ReconcileDeps) -> None:
        self._manager = manager
        self._deps = deps
        self._last: dict[tuple[str, str], CpuSet] = {}
        self._complaints = Complaints(log, deps.clock)

    def starting(self, pod_uid: str, container_name: str) -> None:
        """Note the exclusive CPUs with which a container was created; they need no update. (For
        shared CPUs the first round sends an update, as in upstream.)"""
        if own := self._manager.own_cpus(pod_uid, container_name):
            self._last[pod_uid, container_name] = own

    async def run(self) -> None:
        """Reconcile at once and then every period, until cancelled."""
        while True:
            await self.reconcile()
            await self._deps.clock.sleep(self._deps.period_s)

    async def reconcile(self) -> None:
        """Update all running containers of active pods whose CPUs have changed."""
        self._manager.drop_stale()
        self._forget()
        for pod_uid, name, container_id in self._running():
            cpus = self._manager.cpus_of(pod_uid, name)
            if not cpus or cpus == self._last.get((pod_uid, name)):
                continue
            resources = cri.LinuxContainerResources(cpuset_cpus=format_cpuset(cpus))
            try:
                await self._deps.runtime.update_container_resources(container_id, resources)
            except Exception as error:  # the other containers are updated all the same
                complaint = f"cannot set CPUs of container {container_id}"
                self._complaints.failed(complaint, error, CriCallError)
            else:
                self._last[pod_uid, name] = cpus

    def _forget(self) -> None:
        names = self._deps.active.names()
        if names is not None:
            self._last = {
                key: c for key, c in self._last.items() if key[1] in names.get(key[0], ())
            }

    def _running(self) -> Iterator[tuple[str, str, str]]:
        """Pod UID, name and id of every container that runs by its pod's status."""
        for pod in tuple(self._deps.active.pods()):
            statuses = {s.name: s for s in _statuses(self._deps.status(uid(pod)))}
            for container in containers(pod):
                status = statuses.get(container.name)
                if status and status.containerID and status.state and status.state.running:
                    yield uid(pod), container.name, bare_container_id(status.containerID)


def _statuses(status: PodStatus | None) -> Iterator[ContainerStatus]:
    if status is not None:
        yield from status.initContainerStatuses or ()
        yield from status.containerStatuses or ()
