"""Generates the whole status of a pod, at every sync. Pure.

How it works, in this order, because each part reads the ones before it: the container statuses
(`container_statuses.py`), the phase (`phase.py`), `started` and `ready` from the probes
(`readiness.py`), the conditions (`conditions.py`), and the times of the previous status
(`normalize.py`). So the phase uses the `started` of the previous status.
What must never happen: a terminal phase is left, a restart count goes down, a start time moves.
Upstream: pkg/kubelet/kubelet_pods.go: generateAPIPodStatus; active_deadline.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

import msgspec
from lightkube.models.core_v1 import HostIP
from msgspec import Struct, field

from refkubelet.cri.records import RuntimePodStatus, SandboxState
from refkubelet.kuberuntime.decisions.actions import ephemeral_containers
from refkubelet.model.addresses import by_family
from refkubelet.model.cgroups.limits import ResourceConfig
from refkubelet.model.objects import (
    Container,
    ContainerStatus,
    Pod,
    PodCondition,
    PodIP,
    PodStatus,
)
from refkubelet.model.pod import (
    is_terminal_phase,
    uses_host_network,
)
from refkubelet.model.qos import qos_class
from refkubelet.model.resources import request_quantities
from refkubelet.status.conditions import generate_conditions
from refkubelet.status.container_statuses import container_statuses
from refkubelet.status.normalize import stamp_times
from refkubelet.status.phase import (
    pod_phase,
    settled_phase,
)
from refkubelet.status.readiness import NoProbes, ProbeFacts, apply_probes
from refkubelet.status.resources import Actuated, own_resources, pod_resources_shown
from refkubelet.status.restart_all import is_restarting_all
from refkubelet.status.sources import ReasonLookup, StatusSources, nothing_actuated


def no_cgroup(pod: Pod) -> ResourceConfig | None:
    """For a kubelet without cgroups: no limits."""
    return None


def no_reason(container_name: str) -> tuple[str, str] | None:
    """An empty reason cache."""
    return None


class ForcedFailure(Struct, frozen=True):
    """The reason and message of a pod that the kubelet itself makes Failed (LIFE-204)."""

    reason: str
    message: str


DEADLINE_EXCEEDED: Final = ForcedFailure(
    "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
)


def past_active_deadline(pod: Pod, status: PodStatus | None, now: datetime) -> bool:
    """Whether activeDeadlineSeconds have passed since startTime (LIFE-204). `status`: the cached
    status; None: the object's own is used. A pod without a start time has no deadline yet."""
    seconds = pod.spec.activeDeadlineSeconds
    last = status or pod.status
    if seconds is None or last is None or last.startTime is None:
        return False
    return (now - last.startTime).total_seconds() >= seconds


class StatusInputs(Struct, frozen=True):
    """Everything that a status depends on besides the pod and the runtime's status."""

    now: datetime
    """Aware, UTC."""
    probes: ProbeFacts = field(default_factory=NoProbes)  # results of the probes
    pod_is_terminal: bool = False
    """The pod starts no more containers (LIFE-163)."""
    runtime_name: str = "containerd"
    """The scheme of container IDs, from the runtime's Version answer."""
    recursive_read_only: bool = False
    """The pod's runtime handler supports recursive read-only mounts."""
    host_ips: tuple[str, ...] = ()
    """The node's addresses, primary first; empty standalone."""
    reason_of: ReasonLookup = no_reason
    """Why the last start of a container failed, by its name (LIFE-171)."""
    forced: ForcedFailure | None = None
    """The kubelet makes the pod Failed, whatever its containers do."""
    resize_conditions: tuple[PodCondition, ...] = ()
    """The conditions of the pod's resize (LIFE-186)."""
    actuated: Actuated = nothing_actuated
    """The actuated resources of a container, by its name: those last sent to the runtime."""
    cgroup_config: Callable[[Pod], ResourceConfig | None] = no_cgroup
    """The limits of the pod's cgroup; called for running pods only."""
    pod_level_resizes: bool = True
    """The pod's own resources are shown (InPlacePodLevelResourcesVerticalScaling)."""


def generate_pod_status(
    pod: Pod,
    runtime_status: RuntimePodStatus,
    previous: PodStatus | None,
    inputs: StatusInputs,
) -> PodStatus:
    """The status to publish. `previous`: the last status, by default the object's (STAT-002)."""
    last = previous if previous is not None else pod.status
    has_resources = inputs.pod_level_resizes
    status = _with_containers(pod, runtime_status, last, inputs)
    status = _with_phase(
        pod=pod, status=status, runtime_status=runtime_status, known=last, inputs=inputs
    )
    status = apply_probes(pod, status, inputs.probes, last)
    status = _with_addresses(pod, status, runtime_status, inputs)
    status = msgspec.structs.replace(
        status,
        conditions=generate_conditions(
            pod=pod,
            status=status,
            runtime_status=runtime_status,
            previous=last,
            resizes=inputs.resize_conditions,
        ),
        resources=pod_resources_shown(pod, last, _cgroup(pod, inputs)) if has_resources else None,
        allocatedResources=own_resources(request_quantities(pod)) if has_resources else None,
        qosClass=(pod.status.qosClass if pod.status else None) or qos_class(pod),
    )
    return stamp_times(status, last, inputs.now)


def _with_containers(
    pod: Pod, runtime_status: RuntimePodStatus, known: PodStatus | None, inputs: StatusInputs
) -> PodStatus:
    """A status with the statuses of all containers, and nothing else."""
    spec = pod.spec

    restarting_all = is_restarting_all(pod, runtime_status, known)

    def statuses(
        containers: Sequence[Container],
        old: Sequence[ContainerStatus] | None,
        *,
        init: bool = False,
    ) -> list[ContainerStatus]:
        sources = StatusSources(
            pod=pod,
            runtime_status=runtime_status,
            runtime_name=inputs.runtime_name,
            reason_of=inputs.reason_of,
            previous={status.name: status for status in old or ()},
            restarting_all=restarting_all,
            actuated=inputs.actuated,
            recursive_read_only=inputs.recursive_read_only,
        )
        return container_statuses(sources, containers, init=init)

    old = known if known is not None else PodStatus()
    init = statuses(spec.initContainers or (), old.initContainerStatuses, init=True)
    ephemeral = statuses(ephemeral_containers(spec), old.ephemeralContainerStatuses)
    return PodStatus(
        containerStatuses=statuses(spec.containers, old.containerStatuses),
        initContainerStatuses=init or None,
        ephemeralContainerStatuses=ephemeral or None,
    )


def _with_phase(
    pod: Pod,
    status: PodStatus,
    runtime_status: RuntimePodStatus,
    known: PodStatus | None,
    inputs: StatusInputs,
) -> PodStatus:
    """`status` with phase, reason and message: computed from the containers and the previous phase
    (LIFE-160..166), overridden by `inputs.forced` (LIFE-204). The API's terminal phase stays."""
    computed = pod_phase(
        pod,
        (*(status.initContainerStatuses or ()), *(status.containerStatuses or ())),
        pod_is_terminal=inputs.pod_is_terminal,
        has_regular_record=_has_regular_record(pod, runtime_status),
    )
    from_api = pod.status or PodStatus()
    known = known or PodStatus()
    phase = settled_phase(computed, known.phase, from_api.phase)
    reason = message = None
    if phase == known.phase:
        reason, message = known.reason or from_api.reason, known.message or from_api.message
    if inputs.forced is not None:
        phase, reason, message = "Failed", inputs.forced.reason, inputs.forced.message
    if from_api.phase is not None and is_terminal_phase(from_api.phase):
        phase = from_api.phase
    return msgspec.structs.replace(status, phase=phase, reason=reason, message=message)


def _has_regular_record(pod: Pod, runtime_status: RuntimePodStatus) -> bool:
    """Whether the newest sandbox is READY and has a record of a regular container."""
    newest = next(iter(runtime_status.sandboxes), None)
    if newest is None or newest.state is not SandboxState.READY:
        return False
    regular = {container.name for container in pod.spec.containers}
    return any(
        record.name in regular and record.sandbox_id == newest.id
        for record in runtime_status.containers
    )


def _with_addresses(
    pod: Pod,
    status: PodStatus,
    runtime_status: RuntimePodStatus,
    inputs: StatusInputs,
) -> PodStatus:
    """`status` with the IPs of the pod and the node (LIFE-176). The pod cache keeps the addresses
    of a stopped sandbox until the kubelet restarts (golden s15)."""
    ips = by_family(runtime_status.ips, inputs.host_ips)
    if uses_host_network(pod):
        ips = _with_node_addresses(ips, inputs.host_ips)
    return msgspec.structs.replace(
        status,
        hostIP=inputs.host_ips[0] if inputs.host_ips else None,
        hostIPs=[HostIP(ip=ip) for ip in inputs.host_ips] or None,
        podIP=ips[0] if ips else None,
        podIPs=[PodIP(ip=ip) for ip in ips] or None,
    )


def _with_node_addresses(ips: tuple[str, ...], host_ips: tuple[str, ...]) -> tuple[str, ...]:
    """The addresses of a pod in the host network: the runtime's, or else the node's first one; and
    the node's second one, if its IP family is still missing."""
    ips = ips or host_ips[:1]
    if len(ips) == 1 and len(host_ips) == 2 and (":" in ips[0]) != (":" in host_ips[1]):
        return (*ips, host_ips[1])
    return ips


def _cgroup(pod: Pod, inputs: StatusInputs) -> ResourceConfig | None:
    running = pod.status is not None and pod.status.phase == "Running"
    return inputs.cgroup_config(pod) if running else None
