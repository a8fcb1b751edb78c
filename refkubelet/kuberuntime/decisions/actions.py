"""Computes the actions for a pod: the kubelet's central decision. Pure.

`compute_pod_actions` compares the spec with the runtime's status and returns a `PodActions`:
whether to kill the pod, which containers to kill, start and resize, and whether to make a sandbox.
`RuntimeManager.sync_pod` carries it out (LIFE-130). The order of the decisions: the sandbox
(LIFE-100..104); a pod that needs a new one (LIFE-111); in a pod that keeps its sandbox the
ephemeral containers (LIFE-112), init containers (LIFE-120, LIFE-121), regular ones (LIFE-114,
LIFE-115), and resizes of both (CG-064). A container's record is the newest container of that name.
Upstream: pkg/kubelet/kuberuntime/kuberuntime_manager.go: computePodActions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import msgspec
from lightkube.models.core_v1 import ResourceRequirements

from kubeobjects.structs import replace
from refkubelet.cri.records import (
    ContainerRecord,
    ContainerState,
    NetworkMode,
    RuntimePodStatus,
    SandboxRecord,
    SandboxState,
)
from refkubelet.kuberuntime.decisions.init_actions import InitPlan
from refkubelet.kuberuntime.decisions.pod_actions import (
    ContainerKill,
    KillReason,
    PodActions,
    ProbeView,
    SandboxDecision,
    definition_changed,
)
from refkubelet.kuberuntime.decisions.resize_actions import (
    ComputeAmounts,
    ContainerUpdate,
    in_order,
    resize_decision,
    resizes_pod_level,
)
from refkubelet.kuberuntime.decisions.restart_policy import (
    NEVER,
    ON_FAILURE,
    containers_to_reset,
    effective_policy,
    pod_policy,
    restarts_after_probe_failure,
    starts_at_next_sync,
)
from refkubelet.model.objects import Container, Pod, PodSpec
from refkubelet.model.probe_results import ProbeResult

NOTHING_ACTUATED: Final[Mapping[str, ComputeAmounts]] = MappingProxyType({})


def compute_pod_actions(
    pod: Pod,
    status: RuntimePodStatus,
    probes: ProbeView,
    actuated: Mapping[str, ComputeAmounts] = NOTHING_ACTUATED,
    pod_level: ResourceRequirements | None = None,
    *,
    ended: Collection[str] = (),
    restarting_all: bool = False,
    resizes_init_containers: bool = True,
) -> PodActions:
    """The actions for `pod`, from the runtime's `status` and the results of `probes`.

    `actuated`: the present resources of containers, by name; a container that is not in it is not
    resized. `pod_level`: the pod-level resources that the pod's cgroup has; None: unknown.
    `ended`: regular containers that are known to have ended for good.
    `restarting_all`: the pod's condition AllContainersRestarting is True.
    `resizes_init_containers` False: plain init containers are not resized while they run.
    Rules: LIFE-100..104, LIFE-110..117, LIFE-120..125, CG-064.
    """
    spec = pod.spec
    sandbox = sandbox_decision(spec, status.sandboxes)
    if restarting_all:  # LIFE-110
        return replace(_for_sandbox(sandbox), resets=containers_to_reset(pod, status))
    if sandbox.create:
        return _actions_for_new_sandbox(pod, spec, status, sandbox)
    ephemeral = tuple(c for c in ephemeral_containers(spec) if status.newest(c.name) is None)
    keep = replace(_for_sandbox(sandbox), ephemeral_to_start=ephemeral)
    init = InitPlan(pod, status, probes, actuated, resizes_plain=resizes_init_containers).decide()
    keep = replace(
        keep,
        kills=tuple(init.kills),
        init_to_start=tuple(init.starts),
        updates=in_order(init.updates),
        resizes_by_restart=init.resizes_by_restart,
    )
    if init.kill_pod:
        return replace(keep, kill_pod=True, init_to_start=())
    if not init.initialized:
        return keep
    keep = replace(keep, resizes_pod_level=resizes_pod_level(pod, pod_level))
    return _with_regular(keep, init, _Regular(pod, status, probes, actuated, ended))


def _with_regular(keep: PodActions, init: InitPlan, regular: _Regular) -> PodActions:
    """With the actions for regular containers, of a pod that is initialized."""
    for container in regular.pod.spec.containers:
        regular.look_at(container)
    ends = not regular.starts and not regular.kept  # LIFE-117: only sidecars would still run
    return replace(
        keep,
        kill_pod=ends,
        kills=(*init.kills, *regular.kills),
        init_to_start=() if ends else keep.init_to_start,
        containers_to_start=tuple(regular.starts),
        updates=in_order((*init.updates, *regular.updates)),
        resizes_by_restart=init.resizes_by_restart or regular.resizes_by_restart,
    )


def _for_sandbox(sandbox: SandboxDecision) -> PodActions:
    """The actions for the sandbox: keep it, or kill the rest of the pod and make a new one."""
    return PodActions(
        kill_pod=sandbox.create,
        create_sandbox=sandbox.create,
        sandbox_id=sandbox.sandbox_id,
        attempt=sandbox.attempt,
        sandbox_changed_event=sandbox.changed_event,
    )


# -- the sandbox ---------------------------------------------------------------------------------


def sandbox_decision(spec: PodSpec, sandboxes: Iterable[SandboxRecord]) -> SandboxDecision:
    """Whether the pod needs a new sandbox, and which attempt it is. Upstream: PodSandboxChanged."""
    newest_first = sorted(sandboxes, key=lambda s: (s.attempt, s.created_at_ns), reverse=True)
    if not newest_first:
        return SandboxDecision(create=True, attempt=0)  # LIFE-100
    last = newest_first[0]
    ready = sum(1 for s in newest_first if s.state is SandboxState.READY)
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
    """The actions for a pod without a usable sandbox: kill the rest, and start again unless the pod
    is finished (LIFE-111)."""
    new = _for_sandbox(sandbox)
    kill_only = replace(new, create_sandbox=False, sandbox_changed_event=False)
    if pod_policy(pod) == NEVER and sandbox.attempt != 0 and status.containers:
        return kill_only  # LIFE-111 (a)
    starts = tuple(
        c for c in spec.containers if not _succeeded_on_failure(c, pod, status.newest(c.name))
    )
    regular_record = any(status.newest(c.name) for c in spec.containers)
    if not starts and regular_record:
        return kill_only  # LIFE-111 (b)
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


@dataclass(slots=True)
class _Regular:
    """One pass over the regular containers; the last five fields are its results."""

    pod: Pod  # with its allocated resources
    status: RuntimePodStatus  # the runtime's
    probes: ProbeView  # results of the probes
    actuated: Mapping[str, ComputeAmounts]  # as in `compute_pod_actions`
    ended: Collection[str]  # as in `compute_pod_actions`
    starts: list[Container] = field(default_factory=list)  # containers to start
    kills: list[ContainerKill] = field(default_factory=list)  # containers to kill
    updates: list[ContainerUpdate] = field(default_factory=list)  # containers to resize in place
    resizes_by_restart: bool = False  # a container is killed for a resize
    kept: int = 0  # the number of containers that keep running

    def look_at(self, container: Container) -> None:
        record = self.status.newest(container.name)
        if record is not None and record.state is ContainerState.RUNNING:
            self._running(container, record)
        elif record is None and container.name in self.ended:
            return  # the runtime lost its record, but not how it ended
        elif starts_at_next_sync(container, self.pod, record):
            self.starts.append(container)
            self.kills += _kill_of_unknown(container, record)

    def _running(self, container: Container, record: ContainerRecord) -> None:
        """Kill a running container if there is a reason, else resize it if needed (LIFE-115). As in
        upstream the message of a kill for a resize does not mention the restart."""
        reason = kill_reason(container, record, self.probes)
        if reason is not None:
            always = reason is KillReason.DEFINITION_CHANGED
            restart = always or restarts_after_probe_failure(container, self.pod)
            then = ", will be restarted" if restart else ""
            self._kill(container, record, reason, then, restart=restart)
            return
        resize = resize_decision(container, record.id, self.pod, self.actuated.get(container.name))
        if resize.restart:
            self._kill(container, record, KillReason.RESIZE, "", restart=True)
            self.resizes_by_restart = True
            return
        self.updates += resize.updates
        self.kept += 1

    def _kill(
        self,
        container: Container,
        record: ContainerRecord,
        reason: KillReason,
        then: str,
        *,
        restart: bool,
    ) -> None:
        message = f"Container {container.name} {reason.value}{then}"
        self.kills.append(ContainerKill(record.id, container.name, reason, message))
        if restart:
            self.starts.append(container)


def kill_reason(
    container: Container, record: ContainerRecord, probes: ProbeView
) -> KillReason | None:
    """The first reason to kill a running container, or None (LIFE-115, PROBE-034)."""
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
    """The ephemeral containers, converted to `Container`."""
    field_names = Container.__struct_fields__
    return tuple(
        Container(**{k: v for k, v in msgspec.structs.asdict(c).items() if k in field_names})
        for c in spec.ephemeralContainers or []
    )
