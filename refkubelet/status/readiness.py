"""`started` and `ready` of containers, from probe results and previous values. Pure.

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
)
from refkubelet.model.probe_results import ProbeResult
from refkubelet.status.conditions import READY, is_true


class ProbeFacts(Protocol):
    """What the probe manager answers; `container_id`: without its scheme."""

    def startup_result(self, container_id: str) -> ProbeResult | None: ...

    def readiness_result(self, container_id: str) -> ProbeResult | None: ...

    def predates_kubelet(self, started_at: datetime | None) -> bool:
        """Whether a container started so long before this kubelet that it stays ready until its
        first probe (PROBE-051)."""


class NoProbes:
    """For a kubelet without probes: every running container is started and ready."""

    def startup_result(self, container_id: str) -> ProbeResult | None:
        return None

    def readiness_result(self, container_id: str) -> ProbeResult | None:
        return None

    def predates_kubelet(self, started_at: datetime | None) -> bool:
        return False


def apply_probes(
    pod: Pod, status: PodStatus, facts: ProbeFacts, before: PodStatus | None = None
) -> PodStatus:
    """`status` with `started` and `ready` of every init and regular container. Their values in
    `status` are those from before, the status `before`, by name."""
    spec = pod.spec
    scope = _Scope(pod, facts, before)
    return msgspec.structs.replace(
        status,
        containerStatuses=scope.apply(status.containerStatuses, spec.containers, init=False),
        initContainerStatuses=scope.apply(
            status.initContainerStatuses, spec.initContainers or (), init=True
        ),
    )


class _Scope:
    """Applies the probe results to the containers of one pod."""

    def __init__(self, pod: Pod, facts: ProbeFacts, before: PodStatus | None) -> None:
        self._facts = facts
        last = before or PodStatus()
        rows = (*(last.containerStatuses or ()), *(last.initContainerStatuses or ()))
        self._ids_before = {each.name: each.containerID for each in rows}
        # From the object of the source: that of a static pod has no conditions, its status may.
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
        started = self._started(status, container)
        # A container that does not run keeps its `ready`, also after its record was pruned, and
        # while it waits to run again after a sandbox change (golden s13).
        ready = status.ready
        if init and not is_sidecar(container):
            exited = status.state.terminated if status.state else None
            ready = ready or (exited is not None and exited.exitCode == 0)
        elif started:
            ready = self._ready(status, container)
        return msgspec.structs.replace(status, started=started, ready=ready)

    def _started(self, status: ContainerStatus, container: Container) -> bool:
        """Whether the container has started: by its startup probe, else by the previous value of
        the same instance, else because it has no startup probe, or is of a static pod of which a
        kubelet that has just started knows nothing (PROBE-041, PROBE-044)."""
        running = status.state.running if status.state else None
        if running is None:
            return False
        result = self._facts.startup_result(bare_container_id(status.containerID))
        if result is not None:
            return result is ProbeResult.SUCCESS
        if status.started and not self._is_new(status):
            return True
        unknown = status.name not in self._ids_before
        old = unknown and self._facts.predates_kubelet(running.startedAt)
        return container.startupProbe is None or old

    def _is_new(self, status: ContainerStatus) -> bool:
        """Whether the status from before shows another instance."""
        before = self._ids_before.get(status.name)
        return bool(before) and before != status.containerID

    def _ready(self, status: ContainerStatus, container: Container) -> bool:
        """Whether a running and started container is ready: by its readiness probe, else because it
        has none, or has had a kubelet before this one (PROBE-042, PROBE-052)."""
        result = self._facts.readiness_result(bare_container_id(status.containerID))
        if result is ProbeResult.SUCCESS:
            return True
        ready = container.readinessProbe is None
        running = status.state.running if status.state else None
        if running is None or not self._facts.predates_kubelet(running.startedAt):
            return ready
        if container.readinessProbe is not None and not self._source_says_ready:
            return False
        return ready or result is None
