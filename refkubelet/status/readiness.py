"""`started` and `ready` of containers, from probe results and what was known before. Pure.

Rules: LIFE-175, PROBE-041, PROBE-042, PROBE-044, PROBE-051, PROBE-052.
Upstream: pkg/kubelet/prober/prober_manager.go: UpdatePodStatus.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from refkubelet.model.objects import Container, ContainerStatus, Pod, PodStatus
from refkubelet.model.pod import (
    bare_container_id,
    is_sidecar,
    uid,
)
from refkubelet.model.probe_results import ProbeResult, ProbeType
from refkubelet.status.conditions import READY, is_true


class ProbeFacts(Protocol):
    """What the probe manager knows; `container_id` is the runtime's bare ID."""

    def startup_result(self, container_id: str) -> ProbeResult | None: ...

    def readiness_result(self, container_id: str) -> ProbeResult | None: ...

    def has_worker(self, pod_uid: str, container_name: str, probe_type: ProbeType) -> bool: ...

    def predates_kubelet(self, started_at: datetime | None) -> bool:
        """Whether a container started long enough before this kubelet that its readiness is kept
        until it is probed (PROBE-051)."""
        ...


class NoProbes:
    """The facts of a kubelet without probes: what runs is started and ready."""

    def startup_result(self, container_id: str) -> ProbeResult | None:
        return None

    def readiness_result(self, container_id: str) -> ProbeResult | None:
        return None

    def has_worker(self, pod_uid: str, container_name: str, probe_type: ProbeType) -> bool:
        return False

    def predates_kubelet(self, started_at: datetime | None) -> bool:
        return False


def apply_probes(pod: Pod, status: PodStatus, facts: ProbeFacts) -> PodStatus:
    """`status` with `started` and `ready` of every init and regular container. What it says of
    them already is what was known before."""
    spec = pod.spec
    scope = _Scope(pod, facts)
    return msgspec.structs.replace(
        status,
        containerStatuses=scope.apply(status.containerStatuses, spec.containers, init=False),
        initContainerStatuses=scope.apply(
            status.initContainerStatuses, spec.initContainers or (), init=True
        ),
    )


class _Scope:
    """One pod's view of the facts."""

    def __init__(self, pod: Pod, facts: ProbeFacts) -> None:
        self._uid = uid(pod)
        self._facts = facts
        # The object as its source gave it, not the last status: a static pod's has no conditions.
        self._source_says_ready = is_true(pod.status, READY)

    def apply(
        self,
        statuses: Sequence[ContainerStatus] | None,
        containers: Sequence[Container],
        *,
        init: bool,
    ) -> list[ContainerStatus] | None:
        if statuses is None:
            return None
        specs = {container.name: container for container in containers}
        return [self._with_probes(s, specs[s.name], init=init) for s in statuses]

    def _with_probes(
        self, status: ContainerStatus, container: Container, *, init: bool
    ) -> ContainerStatus:
        started = self._started(status)
        # What does not run stays as ready as it was shown. A pruned record leaves that standing,
        # also while the container waits to run again after a sandbox change (golden s13).
        ready = status.ready
        if init and not is_sidecar(container):
            exited = status.state.terminated if status.state else None
            ready = ready or (exited is not None and exited.exitCode == 0)
        elif started:
            ready = self._ready(status, container)
        return msgspec.structs.replace(status, started=started, ready=ready)

    def _started(self, status: ContainerStatus) -> bool:
        """PROBE-041. The earlier value counts by name, whatever the ID (PROBE-044)."""
        if status.state is None or status.state.running is None:
            return False
        result = self._facts.startup_result(bare_container_id(status.containerID))
        if result is not None:
            return result is ProbeResult.SUCCESS
        if status.started:
            return True
        return not self._facts.has_worker(self._uid, status.name, ProbeType.STARTUP)

    def _ready(self, status: ContainerStatus, container: Container) -> bool:
        """PROBE-042, PROBE-052, of a running and started container: a stored success decides; a
        stored failure keeps a container from readiness only while its worker is there."""
        result = self._facts.readiness_result(bare_container_id(status.containerID))
        if result is ProbeResult.SUCCESS:
            return True
        ready = not self._facts.has_worker(self._uid, status.name, ProbeType.READINESS)
        running = status.state.running if status.state else None
        if running is None or not self._facts.predates_kubelet(running.startedAt):
            return ready
        if container.readinessProbe is not None and not self._source_says_ready:
            return False
        return ready or result is None
