"""Decides what a probe worker does at each tick, and counts outcomes against thresholds. Pure.

At every tick a worker reads the kubelet's own status of the pod and asks `decide_probe_run`; only
the verdict `RUN` runs the probe, and `count_outcome` says whether its result is stored. What must
never happen: a run for a container that is on hold, not started, or still in its initial delay
(PROBE-013, PROBE-016, PROBE-017).
Upstream: pkg/kubelet/prober/worker.go: doProbe.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Final

from msgspec import Struct

from kubeobjects.structs import replace
from refkubelet.events.recorder import field_path
from refkubelet.kuberuntime.decisions.restart_policy import (
    matching_action,
    restarts_after_exit,
)
from refkubelet.model.gates import RESTART_ALL
from refkubelet.model.objects import Container, ContainerStatus, Pod, PodStatus, Probe
from refkubelet.model.pod import (
    bare_container_id,
    containers,
    is_being_deleted,
    is_terminal_phase,
    sidecars,
)
from refkubelet.model.probe_results import ProbeResult, ProbeType
from refkubelet.status.conditions import is_true

INITIAL: Final = {
    ProbeType.LIVENESS: ProbeResult.SUCCESS,
    ProbeType.READINESS: ProbeResult.FAILURE,
    ProbeType.STARTUP: ProbeResult.UNKNOWN,
}  # PROBE-012


class ProbeTarget(Struct, frozen=True):
    """One probe of one container, as it was when the worker was made (PROBE-002).

    Numbers fall back to the API's defaults (PROBE-003); seconds.
    """

    pod: Pod
    container: Container
    probe_type: ProbeType
    probe: Probe
    init: bool = False  # a sidecar

    @property
    def period_s(self) -> int:
        """At least 1: a negative period, which API servers refuse, would make a loop without a
        pause."""
        return max(1, self.probe.periodSeconds or 10)

    @property
    def timeout_s(self) -> int:
        """1 s where the probe says nothing."""
        return self.probe.timeoutSeconds or 1

    @property
    def threshold(self) -> dict[ProbeResult, int]:
        """So many results in a row count; by default 1 success, 3 failures."""
        return {
            ProbeResult.SUCCESS: self.probe.successThreshold or 1,
            ProbeResult.FAILURE: self.probe.failureThreshold or 3,
        }

    @property
    def field_path(self) -> str:
        return field_path(self.pod, self.container.name)


def probe_of(container: Container, probe_type: ProbeType) -> Probe | None:
    """The container's probe of that type, or None."""
    match probe_type:
        case ProbeType.LIVENESS:
            return container.livenessProbe
        case ProbeType.READINESS:
            return container.readinessProbe
        case ProbeType.STARTUP:
            return container.startupProbe


def probe_targets(pod: Pod) -> tuple[ProbeTarget, ...]:
    """All probes of a pod, in the order in which their workers start: those of regular containers,
    then of sidecars; of each startup, readiness, liveness. Plain init and ephemeral containers have
    none (PROBE-001)."""
    owners = [(c, False) for c in pod.spec.containers] + [(c, True) for c in sidecars(pod)]
    return tuple(
        ProbeTarget(pod=pod, container=container, probe_type=probe_type, probe=probe, init=init)
        for container, init in owners
        for probe_type in (ProbeType.STARTUP, ProbeType.READINESS, ProbeType.LIVENESS)
        if (probe := probe_of(container, probe_type)) is not None
    )


class WorkerState(Struct, frozen=True):
    """What a worker remembers between ticks. `run_length`: how often in a row `last` was the
    result; it survives a new container ID (PROBE-027)."""

    container_id: str = ""
    on_hold: bool = False
    last: ProbeResult | None = None
    run_length: int = 0


class ProbeVerdict(Enum):
    """What a worker does at a tick: wait for the next one, run the probe, or end."""

    WAIT = "wait"
    RUN = "run"
    END = "end"


class ProbeStep(Struct, frozen=True):
    """The decision of one tick. First the results of `forget`, an old container ID, are removed,
    then `stores` are stored for `state.container_id`, in order."""

    verdict: ProbeVerdict
    state: WorkerState
    stores: tuple[ProbeResult, ...] = ()
    forget: str = ""


def decide_probe_run(
    target: ProbeTarget,
    state: WorkerState,
    status: PodStatus | None,
    now: datetime,
    *,
    predates_kubelet: bool = False,
) -> ProbeStep:
    """Decide one tick by the checks of PROBE-011..017; the first that matches wins. `now`: aware,
    UTC. `predates_kubelet`: the container was running before the kubelet started, so it gets no
    initial result (PROBE-051)."""
    if status is None:
        return ProbeStep(ProbeVerdict.WAIT, state)
    if is_terminal_phase(status.phase):
        return ProbeStep(ProbeVerdict.END, state)
    container = find_status(status, target.container.name)
    container_id = bare_container_id(container.containerID) if container is not None else ""
    if container is None or not container_id:
        return ProbeStep(ProbeVerdict.WAIT, state)
    forget = ""
    stores: tuple[ProbeResult, ...] = ()
    if container_id != state.container_id:
        forget = state.container_id
        state = replace(state, container_id=container_id, on_hold=False)
        stores = _first_results(target, container, predates_kubelet=predates_kubelet)
    verdict, more = _verdict(
        target=target, container=container, status=status, state=state, now=now
    )
    return ProbeStep(verdict, state, stores + more, forget)


def _first_results(
    target: ProbeTarget, container: ContainerStatus, *, predates_kubelet: bool
) -> tuple[ProbeResult, ...]:
    """The results to store for a new container before its first probe (PROBE-012, PROBE-051). For a
    sidecar whose status says started, possibly from its last container, the startup probe first
    stores a success, and the initial result replaces it at once (PROBE-044)."""
    started = target.init and bool(container.started)
    seeded = (ProbeResult.SUCCESS,) if started and target.probe_type is ProbeType.STARTUP else ()
    return seeded if predates_kubelet else (*seeded, INITIAL[target.probe_type])


def _verdict(
    target: ProbeTarget,
    container: ContainerStatus,
    status: PodStatus,
    state: WorkerState,
    now: datetime,
) -> tuple[ProbeVerdict, tuple[ProbeResult, ...]]:
    """The verdict for a container with an ID, and the results to store."""
    if state.on_hold:
        return ProbeVerdict.WAIT, ()  # PROBE-013
    running = container.state.running if container.state else None
    if running is None:
        # Not a failure: its probe has not run, and a created container may be about to start.
        goes_on = _will_run_again(target, container, status)
        verdict = ProbeVerdict.WAIT if goes_on else ProbeVerdict.END
        return verdict, (INITIAL[target.probe_type],)  # PROBE-014
    if is_being_deleted(target.pod) and target.probe_type is not ProbeType.READINESS:
        return ProbeVerdict.END, (ProbeResult.SUCCESS,)  # PROBE-015
    delay_s = target.probe.initialDelaySeconds or 0
    started_at = running.startedAt
    if started_at is not None and int((now - started_at).total_seconds()) < delay_s:
        return ProbeVerdict.WAIT, ()  # PROBE-016
    if bool(container.started) == (target.probe_type is ProbeType.STARTUP):
        return ProbeVerdict.WAIT, ()  # PROBE-017
    return ProbeVerdict.RUN, ()


def _will_run_again(target: ProbeTarget, container: ContainerStatus, status: PodStatus) -> bool:
    """Whether a container that does not run will run again (PROBE-014); sidecars always will."""
    terminated = container.state.terminated if container.state else None
    if terminated is None or target.init:
        return True
    if restarts_after_exit(target.container, target.pod, terminated.exitCode):
        return True
    return all_containers_restart(target.pod, status)


def all_containers_restart(pod: Pod, status: PodStatus) -> bool:
    """Whether all containers of the pod are being restarted: its condition says so, or the exit of
    a container matches a rule with that action (LIFE-110, BACK-110)."""
    if is_true(status, "AllContainersRestarting"):
        return True
    for container in containers(pod):
        entry = find_status(status, container.name)
        ended = entry.state.terminated if entry is not None and entry.state else None
        if ended is not None and matching_action(container, ended.exitCode) == RESTART_ALL:
            return True
    return False


def find_status(status: PodStatus, name: str) -> ContainerStatus | None:
    """The container's status: regular ones first, then init ones (PROBE-011)."""
    both = (*(status.containerStatuses or ()), *(status.initContainerStatuses or ()))
    return next((s for s in both if s.name == name), None)


def count_outcome(
    target: ProbeTarget, state: WorkerState, result: ProbeResult
) -> tuple[WorkerState, ProbeResult | None]:
    """Count a result: the worker's next state, and the result to store; None while it is below its
    threshold (PROBE-019, PROBE-020, PROBE-025). Another result than the last one starts the count
    again (PROBE-026)."""
    length = state.run_length + 1 if result is state.last else 1
    state = replace(state, last=result, run_length=length)
    if length < target.threshold.get(result, 1):
        return state, None
    liveness_failed = target.probe_type is ProbeType.LIVENESS and result is ProbeResult.FAILURE
    if liveness_failed or target.probe_type is ProbeType.STARTUP:
        state = replace(state, on_hold=True, run_length=0)
    return state, result
