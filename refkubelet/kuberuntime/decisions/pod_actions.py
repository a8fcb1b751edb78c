"""The actions for a pod, as `compute_pod_actions` returns them. Pure."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from msgspec import Struct

from refkubelet.cri.records import ContainerRecord
from refkubelet.kuberuntime.decisions.resize_actions import ContainerUpdate
from refkubelet.model.hashes import container_hash
from refkubelet.model.objects import Container
from refkubelet.model.probe_results import ProbeResult


class ProbeView(Protocol):
    """The probe results that a sync uses, by container ID; None: no result yet."""

    def liveness(self, container_id: str) -> ProbeResult | None: ...

    def startup(self, container_id: str) -> ProbeResult | None: ...


class KillReason(Enum):
    """Why a single container is killed; a failed probe may have its own grace period (LIFE-143)."""

    DEFINITION_CHANGED = "definition changed"
    LIVENESS = "failed liveness probe"
    STARTUP = "failed startup probe"
    RESIZE = "resize requires restart"
    UNKNOWN_STATE = "unknown state"


class ContainerKill(Struct, frozen=True):
    """One container to stop; `message` is the text of its Killing event."""

    container_id: str
    name: str
    reason: KillReason
    message: str


class SandboxDecision(Struct, frozen=True):
    """Keep `sandbox_id`, or create a new one with `attempt`; `changed_event` asks for the event
    SandboxChanged."""

    create: bool
    attempt: int
    sandbox_id: str = ""
    changed_event: bool = False


class PodActions(Struct, frozen=True):
    """The actions that `sync.PodSync` carries out. Containers to start are in spec order."""

    kill_pod: bool = False  # first of all, stop all containers and sandboxes of the pod
    create_sandbox: bool = False  # then make a new sandbox, in which all containers start again
    sandbox_id: str = ""  # the sandbox to start in when none is created
    attempt: int = 0  # of the sandbox that is kept or created
    sandbox_changed_event: bool = False  # record the event SandboxChanged
    kills: tuple[ContainerKill, ...] = ()  # single containers, when the pod is not killed
    ephemeral_to_start: tuple[Container, ...] = ()  # those without a record
    init_to_start: tuple[Container, ...] = ()  # plain ones and sidecars
    containers_to_start: tuple[Container, ...] = ()  # regular ones
    updates: tuple[ContainerUpdate, ...] = ()  # in-place resizes, in their order (CG-065)
    resizes_by_restart: bool = False  # a container is restarted for a resize
    resizes_pod_level: bool = False  # the pod-level resources changed
    resets: tuple[ContainerRecord, ...] = ()  # kill and remove these, and nothing else (LIFE-125)


def definition_changed(container: Container, record: ContainerRecord) -> bool:
    """Whether the record was created with another name or image (LIFE-116, BACK-019)."""
    return record.hash != container_hash(container)
