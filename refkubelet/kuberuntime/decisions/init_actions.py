"""Computes the actions for the init containers of a pod (LIFE-120, LIFE-121). No I/O.

Plain init containers run to their end one by one, in spec order; sidecars (restartPolicy Always)
start in the same order and are kept running for the pod's whole life. What must never happen: an
init container starts before the previous one has succeeded or, if that is a sidecar, has started.

Upstream: pkg/kubelet/kuberuntime/kuberuntime_container.go: computeInitContainerActions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kubeobjects.structs import replace
from refkubelet.cri.records import ContainerRecord, ContainerState, RuntimePodStatus
from refkubelet.kuberuntime.decisions.pod_actions import (
    ContainerKill,
    KillReason,
    ProbeView,
    definition_changed,
)
from refkubelet.kuberuntime.decisions.resize_actions import (
    ComputeAmounts,
    ContainerUpdate,
    resize_decision,
)
from refkubelet.kuberuntime.decisions.restart_policy import (
    restarts_after_probe_failure,
    starts_at_next_sync,
)
from refkubelet.model.objects import Container, Pod, PodSpec
from refkubelet.model.pod import is_sidecar
from refkubelet.model.probe_results import ProbeResult

OOM_KILLED = "OOMKilled"


@dataclass(slots=True)
class InitPlan:
    """One pass over the init containers, from the last to the first (LIFE-120). The fields from
    `initialized` on are its results."""

    pod: Pod  # with its allocated resources
    status: RuntimePodStatus  # the runtime's
    probes: ProbeView  # results of the probes
    actuated: Mapping[str, ComputeAmounts]  # as in `compute_pod_actions`
    resizes_plain: bool = True  # also init containers that are no sidecars are resized (CG-064)
    initialized: bool = False  # the regular containers may start
    kill_pod: bool = False  # an init container has failed for good
    past: bool = False
    """The pass has handled the init container in progress, so only sidecars still matter. True
    after the first container with a record, and from the start if a regular container runs."""
    starts: list[Container] = field(default_factory=list)  # containers to start
    kills: list[ContainerKill] = field(default_factory=list)  # containers to kill
    updates: list[ContainerUpdate] = field(default_factory=list)  # sidecars to resize in place
    resizes_by_restart: bool = False  # a container is killed for a resize

    def decide(self) -> InitPlan:
        """Make the pass and return the plan itself (LIFE-120, LIFE-121)."""
        inits = self.pod.spec.initContainers or []
        self.status = without_leftovers(self.status, inits)
        self.past = self.initialized = not inits or has_regular_alive(self.pod.spec, self.status)
        for index in range(len(inits) - 1, -1, -1):
            self._look_at(inits, index)
            if self.kill_pod:
                return self
        if not self.past and inits:
            self.starts.append(inits[0])  # LIFE-121: none has a record
        self.starts.reverse()
        return self

    def _look_at(self, inits: list[Container], index: int) -> None:
        container = inits[index]
        record = self.status.newest(container.name)
        if record is None:
            if self.past and is_sidecar(container):
                self.starts.append(container)
            return
        following = inits[index + 1] if index + 1 < len(inits) else None
        if is_sidecar(container):
            self._sidecar(container, record, following)
        elif not self.past:
            self._plain(container, record, following)
        self.past = True

    def _plain(
        self, container: Container, record: ContainerRecord, following: Container | None
    ) -> None:
        """Decide about the plain init container in progress; `following` starts once it has
        succeeded (LIFE-120)."""
        match record.state:
            case ContainerState.CREATED:
                self.starts.append(container)
            case ContainerState.RUNNING:
                if self.resizes_plain:
                    self._resize(container, record)
            case ContainerState.UNKNOWN:
                restarts = restarts_after_probe_failure(container, self.pod)
                if restarts:
                    self._kill(container, record, KillReason.UNKNOWN_STATE)
                self._restart_or_kill_pod(container, restarts)
            case ContainerState.EXITED:
                if record.exit_code == 0 and record.reason != OOM_KILLED:
                    self._go_on(following)
                    return
                again = starts_at_next_sync(container, self.pod, record)
                self._restart_or_kill_pod(container, again)

    def _restart_or_kill_pod(self, container: Container, restart: bool) -> None:
        if restart:
            self.starts.append(container)
        else:
            self.kill_pod = True

    def _sidecar(
        self, container: Container, record: ContainerRecord, following: Container | None
    ) -> None:
        match record.state:
            case ContainerState.CREATED | ContainerState.EXITED:
                self.starts.append(container)
            case ContainerState.UNKNOWN:
                self._kill(container, record, KillReason.UNKNOWN_STATE)
                self.starts.append(container)
            case ContainerState.RUNNING:
                self._running_sidecar(container, record, following)

    def _running_sidecar(
        self, container: Container, record: ContainerRecord, following: Container | None
    ) -> None:
        """Kill, resize or keep a running sidecar. The containers after it wait for the success of
        its startup probe, if it has one (PROBE-035)."""
        if container.startupProbe is not None:
            started = self.probes.startup(record.id)
            if started is ProbeResult.FAILURE:
                self._kill(container, record, KillReason.STARTUP)
                self.starts.append(container)
            if started is not ProbeResult.SUCCESS:
                return
        if not self.past:
            self._go_on(following)
        if definition_changed(container, record):
            self._kill(container, record, KillReason.DEFINITION_CHANGED)
            self.starts.append(container)
            return
        liveness = self.probes.liveness(record.id)
        if container.livenessProbe is not None and liveness is None:
            return  # not resized before its first probe result
        if container.livenessProbe is not None and liveness is ProbeResult.FAILURE:
            self._kill(container, record, KillReason.LIVENESS)
            self.starts.append(container)
        else:
            self._resize(container, record)

    def _resize(self, container: Container, record: ContainerRecord) -> None:
        actuated = self.actuated.get(container.name)
        resize = resize_decision(container, record.id, self.pod, actuated)
        if resize.restart:
            message = f"Container {container.name} {KillReason.RESIZE.value}"
            kill = ContainerKill(record.id, container.name, KillReason.RESIZE, message)
            self.kills.append(kill)
            self.starts.append(container)
            self.resizes_by_restart = True
        self.updates += resize.updates

    def _go_on(self, following: Container | None) -> None:
        if following is None:
            self.initialized = True
        else:
            self.starts.append(following)

    def _kill(self, container: Container, record: ContainerRecord, reason: KillReason) -> None:
        if reason is KillReason.UNKNOWN_STATE:
            message = 'Init container is in "unknown" state, try killing it before restart'
        else:
            message = f"Init container {container.name} {reason.value}"
        self.kills.append(ContainerKill(record.id, container.name, reason, message))


def has_regular_alive(spec: PodSpec, status: RuntimePodStatus) -> bool:
    """Whether a regular container is Created or Running, which proves that the pod was initialized
    (INIT of LIFE-120)."""
    alive = (ContainerState.CREATED, ContainerState.RUNNING)
    records = (status.newest(c.name) for c in spec.containers)
    return any(r is not None and r.state in alive for r in records)


def without_leftovers(status: RuntimePodStatus, inits: Collection[Container]) -> RuntimePodStatus:
    """`status` without what earlier sandboxes have left and proves nothing of the new one:
    containers that were created and never started, by a node that went down between the two, and
    init containers that have ended, whose removal before the new sandbox has failed (LIFE-130)."""
    newest = status.sandboxes[0].id if status.sandboxes else ""
    names = {container.name for container in inits}

    def is_left(record: ContainerRecord) -> bool:
        ended = record.state is ContainerState.EXITED and record.name in names
        over = ended or record.state is ContainerState.CREATED
        return over and record.sandbox_id not in ("", newest)

    fit = tuple(record for record in status.containers if not is_left(record))
    return status if len(fit) == len(status.containers) else replace(status, containers=fit)
