"""The parts of the kubelet that the steps of the pod workers use, as protocols; the steps
themselves are in `steps.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from refkubelet.cri.records import RuntimePod, RuntimePodStatus
from refkubelet.events.recorder import EventRecorder
from refkubelet.kuberuntime.decisions.pod_actions import ProbeView
from refkubelet.kuberuntime.reason_cache import ReasonCache
from refkubelet.kuberuntime.results import PodSyncResult
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.pod_workers.resize_reports import ResizeReports
from refkubelet.pods.mirror import MirrorClient
from refkubelet.status.manager import StatusManager
from refkubelet.status.readiness import ProbeFacts
from refkubelet.telemetry.kubelet_metrics import KubeletMetrics
from simclock import Clock


class StepRuntime(Protocol):
    """What the steps ask of the runtime manager."""

    reason_cache: ReasonCache

    async def get_pod_status(
        self, uid: str, name: str = "", namespace: str = ""
    ) -> RuntimePodStatus: ...

    async def sync_pod(
        self,
        pod: Pod,
        status: RuntimePodStatus,
        probes: ProbeView,
        on_sandbox_ready: Callable[[], Awaitable[None]] | None = None,
        *,
        restarting_all: bool = False,
    ) -> PodSyncResult: ...

    async def kill_pod(
        self, pod: Pod | None, running: RuntimePod, grace_override_s: int | None = None
    ) -> PodSyncResult: ...


class Probes(ProbeFacts, Protocol):
    """What the steps ask of the probe manager."""

    @property
    def view(self) -> ProbeView: ...

    def add_pod(self, pod: Pod) -> None: ...

    def stop_liveness_and_startup(self, pod: Pod) -> None: ...

    def remove_pod(self, pod: Pod) -> None: ...

    def trigger_readiness(self, pod: Pod, status: PodStatus) -> None: ...


class Volumes(Protocol):
    """What the steps ask of the volumes."""

    async def wait_for_attach_and_mount(self, pod: Pod, cancelled: asyncio.Event) -> None:
        """Make the pod's volumes. Raises `VolumesNotReady`, to be retried, `WaitCancelled`."""
        ...

    async def tear_down(self, pod: Pod) -> None:
        """Remove the pod's volumes. Raises OSError."""
        ...


class PodReferences(Protocol):
    """What the steps ask of the object manager."""

    def register_pod(self, pod: Pod) -> None:
        """The pod uses the objects that its spec names."""
        ...

    def unregister_pod(self, pod: Pod) -> None:
        """The pod is over."""
        ...


class PodCgroups(Protocol):
    """What the steps ask of the container manager."""

    def exists(self, pod: Pod) -> bool: ...

    def ensure(self, pod: Pod) -> None: ...

    async def destroy(self, pod: Pod) -> None: ...

    def update_qos(self) -> None: ...


@dataclass(frozen=True, slots=True)
class StepHooks:
    """Single functions of other parts of the kubelet; a `str` argument is a pod's UID."""

    network_error: Callable[[], str | None]
    """Why the pod network is not ready; None: it is."""
    resync: Callable[[str], None]
    """Syncs the pod again at once."""
    request_relist: Callable[[str], None]
    """Has the PLEG read the pod from the runtime now."""
    runtime_name: Callable[[], str]
    """The scheme of container IDs in statuses, e.g. "containerd"."""
    recursive_read_only: Callable[[Pod], bool]
    """Whether the pod's runtime handler can mount read-only all the way down."""
    is_terminating: Callable[[str], bool] = lambda pod_uid: False
    """Whether the pod was asked to terminate."""
    with_devices: Callable[[Pod, PodStatus], PodStatus] = lambda pod, status: status
    """The status with the health of the pod's devices (CG-084)."""
    release_users: Callable[[str], None] = lambda pod_uid: None
    """Takes back the user IDs of a pod that is over (LIFE-147)."""


@dataclass(frozen=True, slots=True)
class StepDeps:
    """What the steps work with."""

    clock: Clock  # for active deadlines and the times in statuses
    runtime: StepRuntime  # syncs and kills pods
    statuses: StatusManager  # keeps statuses
    probes: Probes  # starts and ends probers
    mirrors: MirrorClient  # makes and deletes mirror pods
    recorder: EventRecorder  # of events
    hooks: StepHooks  # questions to other parts
    root_dir: Path
    """Directories of pods are `root_dir/pods/<uid>`."""
    volumes: Volumes  # sets up and removes volumes
    metrics: KubeletMetrics = field(default_factory=KubeletMetrics)
    """Counts starts."""
    host_ips: tuple[str, ...] = ()
    """The node's addresses, primary first; empty standalone."""
    cgroups: PodCgroups | None = None
    """None: pods have no cgroups (cgroupsPerQOS false)."""
    resizes: ResizeReports | None = None
    """None: pods are never resized."""
    pod_level_resizes: bool = True
    """Whether spec.resources of pods can be resized, and statuses show them."""
    objects: PodReferences | None = None
    """None: standalone."""
