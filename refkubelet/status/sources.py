"""The inputs for the container statuses of one pod. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from lightkube.models.core_v1 import ResourceRequirements
from msgspec import Struct, field

from refkubelet.cri.records import RuntimePodStatus
from refkubelet.model.objects import ContainerStatus, Pod
from refkubelet.status.resources import Actuated

ReasonLookup = Callable[[str], tuple[str, str] | None]
"""Container name -> (reason, message) of its last failed start, if any (LIFE-171)."""


def nothing_actuated(container_name: str) -> ResourceRequirements | None:
    """For a kubelet that records no actuated resources."""
    return None


class StatusSources(Struct, frozen=True):
    """The inputs for all containers of one kind: regular, init or ephemeral."""

    pod: Pod
    runtime_status: RuntimePodStatus
    runtime_name: str
    """The scheme of container IDs: `containerd` of `containerd://<id>`."""
    reason_of: ReasonLookup
    previous: Mapping[str, ContainerStatus] = field(default_factory=lambda: MappingProxyType({}))
    """The previous statuses by container name."""
    restarting_all: bool = False
    """Every container is being removed to start again (LIFE-125)."""
    actuated: Actuated = nothing_actuated
    """The actuated resources of a container, by its name: those last sent to the runtime."""
    recursive_read_only: bool = False
    """The pod's runtime handler supports recursive read-only mounts."""
