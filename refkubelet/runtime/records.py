"""What the runtime said, as frozen values: the only form in which CRI answers travel further.

Messages are converted once per relist (`convert.py`); decisions and status generation see these
records only. Units: instants in nanoseconds since 1970 (0 = never), as on the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

EMPTY: Mapping[str, str] = MappingProxyType({})


class ContainerState(Enum):
    """CRI container states (CRI-050), by their short names."""

    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


class SandboxState(Enum):
    READY = "ready"
    NOTREADY = "notready"


class NetworkMode(Enum):
    """The network namespace a sandbox was made with; POD is the wire's zero value."""

    POD = "pod"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class ContainerRecord:
    """One container as ContainerStatus describes it (kubelet: container.Status)."""

    id: str
    name: str
    state: ContainerState
    attempt: int = 0
    sandbox_id: str = ""
    created_at_ns: int = 0
    started_at_ns: int = 0
    finished_at_ns: int = 0
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    image: str = ""  # what the status shows: first tag of the image, else the spec's text (CRI-083)
    image_id: str = ""  # `image_id`, else `image_ref`
    hash: str = ""  # annotation io.kubernetes.container.hash; "" when the runtime has none
    restart_count: int = 0  # annotation io.kubernetes.container.restartCount, else the attempt
    termination_message_path: str = ""
    termination_message_policy: str = ""
    log_path: str = ""
    annotations: Mapping[str, str] = field(default=EMPTY)
    labels: Mapping[str, str] = field(default=EMPTY)


@dataclass(frozen=True, slots=True)
class SandboxRecord:
    """One pod sandbox as PodSandboxStatus describes it."""

    id: str
    state: SandboxState
    attempt: int = 0
    created_at_ns: int = 0
    has_network: bool = False  # whether the answer carried `network` at all (LIFE-103, LIFE-104)
    ips: tuple[str, ...] = ()
    network_mode: NetworkMode = NetworkMode.POD
    labels: Mapping[str, str] = field(default=EMPTY)
    annotations: Mapping[str, str] = field(default=EMPTY)


@dataclass(frozen=True, slots=True)
class RuntimePodStatus:
    """Everything the runtime knows about one pod (kubelet: container.PodStatus).

    `sandboxes` and `containers` are sorted newest first: by created_at descending, then id
    (CRI-081). `ips` follow LIFE-176. `taken_at_s` is the clock's monotonic time of the listing.
    """

    uid: str
    name: str = ""
    namespace: str = ""
    ips: tuple[str, ...] = ()
    sandboxes: tuple[SandboxRecord, ...] = ()
    containers: tuple[ContainerRecord, ...] = ()
    taken_at_s: float = 0.0

    def newest(self, container_name: str) -> ContainerRecord | None:
        """The newest record of that container name, or None."""
        return next((c for c in self.containers if c.name == container_name), None)

    def running(self) -> tuple[ContainerRecord, ...]:
        return tuple(c for c in self.containers if c.state is ContainerState.RUNNING)


@dataclass(frozen=True, slots=True)
class ListedContainer:
    """One row of ListContainers: enough for the PLEG and for killing, without a status call."""

    id: str
    name: str
    state: ContainerState
    attempt: int = 0
    sandbox_id: str = ""
    created_at_ns: int = 0
    image: str = ""
    image_id: str = ""
    hash: str = ""
    labels: Mapping[str, str] = field(default=EMPTY)
    annotations: Mapping[str, str] = field(default=EMPTY)


@dataclass(frozen=True, slots=True)
class ListedSandbox:
    """One row of ListPodSandbox."""

    id: str
    state: SandboxState
    attempt: int = 0
    created_at_ns: int = 0
    labels: Mapping[str, str] = field(default=EMPTY)
    annotations: Mapping[str, str] = field(default=EMPTY)


@dataclass(frozen=True, slots=True)
class RuntimePod:
    """A pod as the runtime's lists show it (kubelet: container.Pod), grouped by the UID label."""

    uid: str
    name: str
    namespace: str
    sandboxes: tuple[ListedSandbox, ...] = ()
    containers: tuple[ListedContainer, ...] = ()
