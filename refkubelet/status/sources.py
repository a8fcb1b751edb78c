"""What the container statuses of one pod are made of. Pure."""

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
    """No record says what resources containers were given."""
    return None


@dataclass(frozen=True, slots=True)
class StatusSources:
    """For all containers of one kind: regular, init or ephemeral."""

    pod: Pod
    runtime_status: RuntimePodStatus
    runtime_name: str
    """The scheme of container IDs: `containerd` of `containerd://<id>`."""
    reason_of: ReasonLookup
    previous: Mapping[str, ContainerStatus] = field(default_factory=lambda: MappingProxyType({}))
    """The last statuses by container name."""
    restarting_all: bool = False
    """Every container is being removed to start anew (LIFE-125)."""
    actuated: Actuated = nothing_actuated
    """The resources that a container was given last, by its name."""
    recursive_read_only: bool = False
    """The pod's runtime handler can mount read-only all the way down."""
