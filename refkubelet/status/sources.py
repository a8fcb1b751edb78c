"""What the container statuses of one pod are made of: values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lightkube.models.core_v1 import ResourceRequirements

from refkubelet.cri.records import RuntimePodStatus
from refkubelet.model.objects import ContainerStatus, Pod
from refkubelet.status.resources import Actuated

ReasonLookup = Callable[[str], tuple[str, str] | None]
"""Container name -> (reason, message) of its last failed start, if any (LIFE-171)."""


def nothing_actuated(container_name: str) -> ResourceRequirements | None:
    """Nobody has noted what containers were given."""
    return None


@dataclass(frozen=True, slots=True)
class StatusSources:
    """`previous`: the last statuses by container name. `restarting_all`: every container is being
    removed to start anew (LIFE-125). `actuated`: what a container was given last.
    `recursive_read_only`: whether the pod's runtime handler can mount so."""

    pod: Pod
    runtime_status: RuntimePodStatus
    runtime_name: str
    reason_of: ReasonLookup
    previous: Mapping[str, ContainerStatus] = field(default_factory=lambda: MappingProxyType({}))
    restarting_all: bool = False
    actuated: Actuated = nothing_actuated
    recursive_read_only: bool = False
