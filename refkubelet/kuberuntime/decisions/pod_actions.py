"""The values of the decision about a pod: what `compute_pod_actions` answers with. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from refkubelet.cri.records import ContainerRecord
from refkubelet.kuberuntime.decisions.resize_actions import ContainerUpdate
from refkubelet.model.hashes import container_hash
from refkubelet.model.objects import Container
from refkubelet.model.probe_results import ProbeResult


class ProbeView(Protocol):
    """The probe results a sync looks at, by container ID; None: nothing stored."""

    def liveness(self, container_id: str) -> ProbeResult | None: ...

    def startup(self, container_id: str) -> ProbeResult | None: ...


class KillReason(Enum):
    """Why a single container is killed; a failed probe may bring its own grace (LIFE-143)."""

    DEFINITION_CHANGED = "definition changed"
    LIVENESS = "failed liveness probe"
    STARTUP = "failed startup probe"
    RESIZE = "resize requires restart"
    UNKNOWN_STATE = "unknown state"


@dataclass(frozen=True, slots=True)
class ContainerKill:
    """One container to stop; `message` is the text of its Killing event."""

    container_id: str
    name: str
    reason: KillReason
    message: str


@dataclass(frozen=True, slots=True)
class SandboxDecision:
    """Keep `sandbox_id`, or create a new one with `attempt`; `changed_event` asks for the event
    SandboxChanged."""

    create: bool
    attempt: int
    sandbox_id: str = ""
    changed_event: bool = False


@dataclass(frozen=True, slots=True)
class PodActions:
    """The decision. `kill_pod` comes first; with `create_sandbox` everything starts anew.

    Containers are in spec order. `sandbox_id` is the sandbox to use when none is created.
    """

    kill_pod: bool = False
    create_sandbox: bool = False
    sandbox_id: str = ""
    attempt: int = 0
    sandbox_changed_event: bool = False
    kills: tuple[ContainerKill, ...] = ()
    ephemeral_to_start: tuple[Container, ...] = ()
    init_to_start: tuple[Container, ...] = ()
    containers_to_start: tuple[Container, ...] = ()
    updates: tuple[ContainerUpdate, ...] = ()  # in-place resizes, in their order (CG-065)
    resizes_by_restart: bool = False  # a container is restarted for a resize: the pod's group, too
    resizes_pod_level: bool = False  # the pod's own resources changed
    resets: tuple[ContainerRecord, ...] = ()  # kill and remove these, and nothing else (LIFE-125)


def definition_changed(container: Container, record: ContainerRecord) -> bool:
    """The record was made from another name or image (LIFE-116, BACK-019)."""
    return record.hash != container_hash(container)
