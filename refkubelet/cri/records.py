"""What the runtime said, as frozen values: the only form in which CRI answers travel further.

Messages are converted once per relist (`convert.py`); decisions and status generation see these
records only. Units: instants in nanoseconds since 1970 (0 = never), as on the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from kubeobjects.structs import replace
from refkubelet.model.by_identity import by_identity

EMPTY: Mapping[str, str] = MappingProxyType({})


def _empty() -> Mapping[str, str]:
    return EMPTY


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


class RuntimeResources(Struct, frozen=True):
    """What the runtime says a container has; None: nothing, or no limit."""

    cpu_request_millicores: int | None = None
    cpu_limit_millicores: int | None = None
    memory_limit_bytes: int | None = None
    memory_request_bytes: int | None = None  # no runtime tells it

    def with_memory_request(self, amount: int | None) -> RuntimeResources:
        return replace(self, memory_request_bytes=amount)


class RuntimeUser(Struct, frozen=True):
    """Whose the first process of a container is (CRI-084)."""

    uid: int
    gid: int
    supplemental_groups: tuple[int, ...] = ()


class ContainerRecord(Struct, frozen=True):
    """One container as ContainerStatus describes it (kubelet: container.Status)."""

    id: str  # the runtime's
    name: str  # in the pod
    state: ContainerState  # created, running, exited, unknown
    attempt: int = 0  # of the metadata: how many containers of that name were before
    sandbox_id: str = ""  # where it runs; "" when the runtime does not tell
    created_at_ns: int = 0  # since 1970, as the next two; 0: never
    started_at_ns: int = 0  # 0: it was not started
    finished_at_ns: int = 0  # 0: it has not ended
    exit_code: int = 0  # of an exited one
    reason: str = ""  # why it is in that state, in the runtime's word
    message: str = ""  # the same, for people
    image: str = ""  # what the status shows: first tag of the image, else the spec's text (CRI-083)
    image_id: str = ""  # what the status shows: `image_ref`, with its digest (CRI-083)
    hash: str = ""  # annotation io.kubernetes.container.hash; "" when the runtime has none
    restart_count: int = 0  # annotation io.kubernetes.container.restartCount, else the attempt
    termination_message_policy: str = ""  # File or FallbackToLogsOnError (annotation)
    termination_log_host_path: str = ""  # where its path is mounted from; "" when it is not
    log_path: str = ""  # on the node; "" for none
    mounted_images: tuple[str, ...] = ()  # images mounted as volumes (GC-102)
    annotations: Mapping[str, str] = field(default_factory=_empty)  # as the kubelet gave them
    labels: Mapping[str, str] = field(default_factory=_empty)  # as the kubelet gave them
    resources: RuntimeResources | None = None  # None: the runtime does not tell
    user: RuntimeUser | None = None  # None: the runtime does not tell


class SandboxRecord(Struct, frozen=True):
    """One pod sandbox as PodSandboxStatus describes it."""

    id: str  # the runtime's
    state: SandboxState  # ready or not
    attempt: int = 0  # of the metadata: how many sandboxes of the pod were before
    created_at_ns: int = 0  # since 1970
    has_network: bool = False  # it tells its addresses, or that it has none (LIFE-103, LIFE-104)
    ips: tuple[str, ...] = ()  # the first is the primary one; none with the network of the node
    network_mode: NetworkMode = NetworkMode.POD  # the pod's own network or the node's
    labels: Mapping[str, str] = field(default_factory=_empty)  # as the kubelet gave them
    annotations: Mapping[str, str] = field(default_factory=_empty)  # as the kubelet gave them


class RuntimePodStatus(Struct, frozen=True):
    """Everything the runtime knows about one pod (kubelet: container.PodStatus).

    `sandboxes` and `containers` are sorted newest first: by created_at descending, then id
    (CRI-081). `ips` follow LIFE-176.
    """

    uid: str
    name: str = ""
    namespace: str = ""
    ips: tuple[str, ...] = ()
    sandboxes: tuple[SandboxRecord, ...] = ()
    containers: tuple[ContainerRecord, ...] = ()

    def newest(self, container_name: str) -> ContainerRecord | None:
        """The newest record of that container name, or None."""
        return next(iter(self.of(container_name)), None)

    def of(self, container_name: str) -> tuple[ContainerRecord, ...]:
        """All records of that container name, the newest first."""
        return _by_name(self).get(container_name, ())

    def running(self) -> tuple[ContainerRecord, ...]:
        return tuple(c for c in self.containers if c.state is ContainerState.RUNNING)


@by_identity
def _by_name(status: RuntimePodStatus) -> dict[str, tuple[ContainerRecord, ...]]:
    names: dict[str, list[ContainerRecord]] = {}
    for record in status.containers:
        names.setdefault(record.name, []).append(record)
    return {name: tuple(records) for name, records in names.items()}


class ListedContainer(Struct, frozen=True):
    """One row of ListContainers: enough for the PLEG and for killing, without a status call."""

    id: str  # the runtime's
    name: str  # in the pod
    state: ContainerState  # created, running, exited, unknown
    attempt: int = 0  # of the metadata
    sandbox_id: str = ""  # where it runs
    created_at_ns: int = 0  # since 1970
    image: str = ""  # the spec's text, as it was given to the runtime
    image_id: str = ""  # that of the row; where the runtime gives none, `image_ref`
    hash: str = ""  # annotation io.kubernetes.container.hash; "" when the runtime has none
    labels: Mapping[str, str] = field(default_factory=_empty)  # as the kubelet gave them
    annotations: Mapping[str, str] = field(default_factory=_empty)  # as the kubelet gave them


class ListedSandbox(Struct, frozen=True):
    """One row of ListPodSandbox."""

    id: str
    state: SandboxState
    attempt: int = 0
    created_at_ns: int = 0
    labels: Mapping[str, str] = field(default_factory=_empty)
    annotations: Mapping[str, str] = field(default_factory=_empty)


class RuntimePod(Struct, frozen=True):
    """A pod as the runtime's lists show it (kubelet: container.Pod), grouped by the UID label."""

    uid: str
    name: str
    namespace: str
    sandboxes: tuple[ListedSandbox, ...] = ()
    containers: tuple[ListedContainer, ...] = ()

    def in_state(self, state: ContainerState) -> tuple[ListedContainer, ...]:
        return tuple(c for c in self.containers if c.state is state)


class RuntimeVersion(Struct, frozen=True):
    """The answer of Version (CRI-002)."""

    version: str
    runtime_name: str
    runtime_version: str
    runtime_api_version: str


class HandlerFeatures(Struct, frozen=True):
    """What one of the runtime's handlers can do (CRI-132)."""

    recursive_read_only_mounts: bool = False
    user_namespaces: bool = False


IDS_PER_POD: Final = 65_536


class UserNamespace(Struct, frozen=True):
    """User and group ids of one pod: id 0 inside is `first` outside, and so on."""

    first: int
    length: int = IDS_PER_POD


class PodRuntime(Struct, frozen=True):
    """`handler`: of RunPodSandbox, "" is the runtime's default. `users`: the pod's own user and
    group ids, None for the node's. `recursive_read_only`: whether the handler can do that."""

    handler: str = ""
    users: UserNamespace | None = None
    recursive_read_only: bool = False


DEFAULT_RUNTIME: Final = PodRuntime()


class PodRuntimeError(Exception):
    """The pod cannot have the runtime that it asks for; the text says why."""


class RuntimeConditions(Struct, frozen=True):
    """The answer of Status: the two conditions that matter (CRI-130), False when absent; the
    handlers by name, none where the runtime does not tell (CRI-132). `strict_groups`: the runtime
    knows supplementalGroupsPolicy (LIFE-224). `untold`: which of the two are absent."""

    runtime_ready: bool
    network_ready: bool
    runtime_reason: str = ""
    runtime_message: str = ""
    network_reason: str = ""
    network_message: str = ""
    untold: frozenset[str] = frozenset()
    strict_groups: bool = False
    handlers: Mapping[str, HandlerFeatures] = field(default_factory=dict)

    def runtime_error(self) -> str | None:
        """The text for node conditions and logs, or None when the runtime is ready."""
        if self.runtime_ready:
            return None
        return f"container runtime not ready: {_condition('Runtime', self)}"

    def network_error(self) -> str | None:
        """The text after `network is not ready: ` (LIFE-070), or None when it is ready."""
        if self.network_ready:
            return None
        return f"container runtime network not ready: {_condition('Network', self)}"


def _condition(kind: str, status: RuntimeConditions) -> str:
    if f"{kind}Ready" in status.untold:
        return "<nil>"
    ready, reason, message = (
        (status.runtime_ready, status.runtime_reason, status.runtime_message)
        if kind == "Runtime"
        else (status.network_ready, status.network_reason, status.network_message)
    )
    return f"{kind}Ready={str(ready).lower()} reason:{reason} message:{message}"


class ImageRecord(Struct, frozen=True):
    """An image as ImageStatus or ListImages shows it (CRI-093). `uid` is the image's user, if
    numeric; `username` its name otherwise; both absent means root."""

    id: str
    size_bytes: int
    repo_tags: tuple[str, ...] = ()
    repo_digests: tuple[str, ...] = ()
    uid: int | None = None
    username: str = ""
    pinned: bool = False


class ExecResult(Struct, frozen=True):
    """What ExecSync answered (CRI-111)."""

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
