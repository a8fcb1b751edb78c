"""The parts of the kubelet that the runtime manager works with, as protocols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from lightkube.models.core_v1 import Service
from msgspec import Struct, field

from refkubelet.allocation.state import ResourceState
from refkubelet.api.client import ObjectReader
from refkubelet.container_manager.cgroups.manager import ContainerManager
from refkubelet.container_manager.devices.manager import DeviceManager
from refkubelet.container_manager.resource_managers import ResourceManagers
from refkubelet.cri.records import PodRuntime
from refkubelet.events.recorder import EventRecorder
from refkubelet.host.network import Network
from refkubelet.model.objects import Container, Pod, PodStatus
from refkubelet.telemetry.kubelet_metrics import KubeletMetrics
from refkubelet.telemetry.pod_startup_latency import PodStartupLatency
from refkubelet.telemetry.spans import NO_SPANS, Spans
from refkubelet.volumes.claims import VolumeOnNode
from refkubelet.volumes.mounting import Mounts, NoMounts
from simclock import Clock, Ids

CONFIG_MAP: Final = "configmap"
SECRET: Final = "secret"

ObjectKey = tuple[str, str]
"""Kind (`configmap`, `secret`) and name, in the pod's namespace."""


class ApiObjects(Struct, frozen=True):
    """Objects of the API server for one container: the data of the ConfigMaps and Secrets that it
    refers to (None: the object does not exist), and all services (None: not listed yet)."""

    data: Mapping[ObjectKey, Mapping[str, str] | None] = field(default_factory=dict)
    services: tuple[Service, ...] | None = ()


class ObjectSource(Protocol):
    """Reads the objects for the variables of a container (LIFE-137)."""

    async def of(self, pod: Pod, container: Container) -> ApiObjects:
        """The objects of that container. Raises `VariableError` if the server does not answer."""


class LoginPlugins(Protocol):
    """The credential provider plug-ins (BACK-214)."""

    async def lookup(self, pod: Pod, repository: str) -> tuple[Any, ...]:
        """Their `keyring.Credential`s for an image (a full name without tag) of that pod; none of
        those that fail. Never raises."""


class PodRuntimeSource(Protocol):
    """Settings of the runtime for single pods (`pod_runtime.PodRuntimes`)."""

    async def of(self, pod: Pod) -> PodRuntime:
        """Called at every sync of a pod. Raises `PodRuntimeError`."""


class Signal(Protocol):
    """Something that is set once (an `asyncio.Event`)."""

    def is_set(self) -> bool: ...

    async def wait(self) -> Any: ...


class ApiReaders(Struct, frozen=True):
    """What is read from the API server; by default of a standalone kubelet, which has none."""

    objects: ObjectSource | None = None
    """None: every ConfigMap and Secret is missing."""
    secrets: ObjectReader | None = None
    """For pull secrets; None: all of them are missing."""
    claims: ObjectReader | None = None
    """For resource claims; None: none can be read."""


class PodFacts(Struct, frozen=True):
    """What others know of the pod with a UID; by default nothing."""

    terminating: Callable[[str], bool] = lambda pod_uid: False
    """Whether it is terminating."""
    give_way: Callable[[str], Signal | None] = lambda pod_uid: None
    """Set when its running step should give way, because the pod is to end or has a shorter grace
    period since the step began; None: nothing tells."""
    last_status: Callable[[str], PodStatus | None] = lambda pod_uid: None
    """Its status as last generated."""
    claimed: Callable[[str], Mapping[str, VolumeOnNode]] = lambda pod_uid: {}
    """Where the volumes of its claims are, by its names of them."""


class NodeShares(Struct, frozen=True):
    """What containers get of the node."""

    devices: DeviceManager | None = None
    """None: there are no device plugins."""
    placements: ResourceManagers | None = None
    """None: containers run anywhere."""
    runtimes: PodRuntimeSource | None = None
    """None: every pod has the default runtime handler."""
    actuated: ResourceState | None = None
    """The checkpoint of actuated resources (CG-060); None: it is made below the root directory."""
    pod_cgroups: Callable[[], ContainerManager | None] = lambda: None
    """Returns None if pods have no cgroups (cgroupsPerQOS false)."""
    mounts: Mounts = field(default_factory=NoMounts)  # holds subPaths


class Measures(Struct, frozen=True):
    """What is counted and timed."""

    metrics: KubeletMetrics = field(default_factory=KubeletMetrics)
    """Counts starts, pulls, hooks and resizes."""
    latency: PodStartupLatency | None = None
    """Told of pulls and init containers; None: nobody asks how long starts take."""
    spans: Spans = NO_SPANS  # of garbage collection


class RuntimeDeps(Struct, frozen=True):
    """What the runtime manager works with."""

    clock: Clock  # for back-offs and times of records
    ids: Ids
    """Makes the names of termination log files."""
    events: EventRecorder  # of pods and their containers
    network: Network | None = None
    """For httpGet hooks; None: they fail."""
    login_plugins: LoginPlugins | None = None
    """None: there are none."""
    api: ApiReaders = field(default_factory=ApiReaders)
    pods: PodFacts = field(default_factory=PodFacts)
    node: NodeShares = field(default_factory=NodeShares)
    measures: Measures = field(default_factory=Measures)
