"""What to do about a pod: the kubelet's central decision, a pure function.

`compute_pod_actions` compares the spec with what the runtime has and answers with a `PodActions`:
kill the pod or single containers, make a sandbox, start which containers. `RuntimeManager.sync_pod`
carries it out (LIFE-130). The parts in order: the sandbox (LIFE-100..104), a pod that needs a new
one (LIFE-111), a pod that keeps its own: ephemeral containers (LIFE-112), init containers
(LIFE-120, LIFE-121), regular ones (LIFE-114, LIFE-115). "Record" means the newest container of a
name. What must never happen here: I/O, time, a look at anything but the arguments.

Upstream: pkg/kubelet/kuberuntime/kuberuntime_manager.go: computePodActions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from refkubelet.model.objects import Container, Pod, PodSpec
from refkubelet.probes.results import ProbeResult
from refkubelet.runtime.init_actions import InitPlan
from refkubelet.runtime.pod_actions import (
    ContainerKill,
    KillReason,
    PodActions,
    ProbeView,
    SandboxDecision,
    definition_changed,
)
from refkubelet.runtime.records import (
    ContainerRecord,
    ContainerState,
    NetworkMode,
    RuntimePodStatus,
    SandboxRecord,
    SandboxState,
)
from refkubelet.runtime.reset_actions import containers_to_reset
from refkubelet.runtime.restart_policy import (
    NEVER,
    ON_FAILURE,
    container_should_restart,
    effective_policy,
    pod_policy,
    restart_allowed,
)

__all__ = [
    "ContainerKill",
    "KillReason",
    "PodActions",
    "ProbeView",
    "SandboxDecision",
    "compute_pod_actions",
    "ephemeral_containers",
    "sandbox_decision",
]


def compute_pod_actions(pod: Pod, status: RuntimePodStatus, probes: ProbeView) -> PodActions:
    """What to do next about `pod`, given what the runtime has and what the probes say.

    Rules: LIFE-100..104, LIFE-110..117, LIFE-120..125.
    """
    spec = _spec(pod)
    if resets := containers_to_reset(pod, status):  # LIFE-110
        return PodActions(resets=resets)
    sandbox = sandbox_decision(spec, status.sandboxes)
    if sandbox.create:
        return _actions_for_new_sandbox(pod, spec, status, sandbox)
    keep = PodActions(sandbox_id=sandbox.sandbox_id, attempt=sandbox.attempt)
    ephemeral = tuple(c for c in ephemeral_containers(spec) if status.newest(c.name) is None)
    init = InitPlan(pod, spec, status, probes).decide()
    if init.kill_pod:
        return replace(keep, kill_pod=True)
    if not init.initialized:
        return replace(
            keep,
            kills=tuple(init.kills),
            init_to_start=tuple(init.starts),
            ephemeral_to_start=ephemeral,
        )
    starts, kills, kept = _regular_containers(pod, spec, status, probes)
    if not starts and not kept:  # LIFE-117
        return replace(keep, kill_pod=True)
    return replace(
        keep,
        kills=(*init.kills, *kills),
        ephemeral_to_start=ephemeral,
        init_to_start=tuple(init.starts),
        containers_to_start=tuple(starts),
    )


# -- the sandbox ---------------------------------------------------------------------------------


def sandbox_decision(spec: PodSpec, sandboxes: Iterable[SandboxRecord]) -> SandboxDecision:
    """Whether the pod needs a new sandbox. Upstream: PodSandboxChanged."""
    known = sorted(sandboxes, key=lambda s: (s.attempt, s.created_at_ns), reverse=True)
    if not known:
        return SandboxDecision(create=True, attempt=0)  # LIFE-100
    last = known[0]
    ready = sum(1 for s in known if s.state is SandboxState.READY)
    host_network = bool(spec.hostNetwork)
    new = SandboxDecision(create=True, attempt=last.attempt + 1)
    if ready > 1 or last.state is not SandboxState.READY:
        return replace(new, sandbox_id=last.id, changed_event=True)  # LIFE-101
    if (last.network_mode is NetworkMode.NODE) is not host_network:
        return new  # LIFE-102
    if not host_network and last.has_network and not last.ips:
        return replace(new, sandbox_id=last.id, changed_event=True)  # LIFE-103
    return SandboxDecision(create=False, attempt=last.attempt, sandbox_id=last.id)  # LIFE-104


def _actions_for_new_sandbox(
    pod: Pod, spec: PodSpec, status: RuntimePodStatus, sandbox: SandboxDecision
) -> PodActions:
    """LIFE-111: kill what is left, and start over unless the pod has done its work."""
    kill_only = PodActions(kill_pod=True, attempt=sandbox.attempt)
    if pod_policy(pod) == NEVER and sandbox.attempt != 0 and status.containers:
        return kill_only  # LIFE-111 (a)
    starts = tuple(
        c for c in spec.containers if not _succeeded_on_failure(c, pod, status.newest(c.name))
    )
    regular_record = any(status.newest(c.name) for c in spec.containers)
    if not starts and regular_record:
        return kill_only  # LIFE-111 (b)
    new = replace(kill_only, create_sandbox=True, sandbox_changed_event=sandbox.changed_event)
    if spec.initContainers:
        return replace(new, init_to_start=(spec.initContainers[0],))
    return replace(new, containers_to_start=starts)


def _succeeded_on_failure(container: Container, pod: Pod, record: ContainerRecord | None) -> bool:
    return (
        record is not None
        and record.state is ContainerState.EXITED
        and record.exit_code == 0
        and effective_policy(container, pod) == ON_FAILURE
    )


# -- regular and ephemeral containers ------------------------------------------------------------


def _regular_containers(
    pod: Pod, spec: PodSpec, status: RuntimePodStatus, probes: ProbeView
) -> tuple[list[Container], list[ContainerKill], int]:
    """What to start, what to kill, and how many containers stay as they are."""
    starts: list[Container] = []
    kills: list[ContainerKill] = []
    kept = 0
    for container in spec.containers:
        record = status.newest(container.name)
        if record is None or record.state is not ContainerState.RUNNING:
            if should_start(container, pod, record):
                starts.append(container)
                kills += _kill_of_unknown(container, record)
            continue
        reason = kill_reason(container, record, probes)
        if reason is None:
            kept += 1
            continue
        restart = reason is KillReason.DEFINITION_CHANGED or restart_allowed(container, pod)
        suffix = ", will be restarted" if restart else ""
        message = f"Container {container.name} {reason.value}{suffix}"
        kills.append(ContainerKill(record.id, container.name, reason, message))
        if restart:
            starts.append(container)
    return starts, kills, kept


def should_start(container: Container, pod: Pod, record: ContainerRecord | None) -> bool:
    """Whether a regular container that does not run is started (LIFE-114, BACK-101)."""
    if pod.metadata is not None and pod.metadata.deletionTimestamp is not None:
        return False
    if record is None or record.state is not ContainerState.EXITED:
        return True
    return container_should_restart(container, pod, record.exit_code)


def kill_reason(
    container: Container, record: ContainerRecord, probes: ProbeView
) -> KillReason | None:
    """Why a running container must be killed; the first match counts (LIFE-115,
    PROBE-034)."""
    if definition_changed(container, record):
        return KillReason.DEFINITION_CHANGED
    if probes.liveness(record.id) is ProbeResult.FAILURE:
        return KillReason.LIVENESS
    if probes.startup(record.id) is ProbeResult.FAILURE:
        return KillReason.STARTUP
    return None


def _kill_of_unknown(
    container: Container, record: ContainerRecord | None
) -> tuple[ContainerKill, ...]:
    if record is None or record.state is not ContainerState.UNKNOWN:
        return ()
    message = 'Container is in "unknown" state, try killing it before restart'
    return (ContainerKill(record.id, container.name, KillReason.UNKNOWN_STATE, message),)


def ephemeral_containers(spec: PodSpec) -> tuple[Container, ...]:
    """The ephemeral containers in the form of the others."""
    known = Container.__struct_fields__
    return tuple(
        Container(**{k: v for k, v in msgspec.structs.asdict(c).items() if k in known})
        for c in spec.ephemeralContainers or []
    )


def _spec(pod: Pod) -> PodSpec:
    if pod.spec is None:
        raise ValueError("a pod without spec has no actions")
    return pod.spec
