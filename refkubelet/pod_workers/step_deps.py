"""The parts of the kubelet that the steps of the pod workers use; the steps themselves are in
`steps.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct, field

from refkubelet.container_manager.cgroups.manager import ContainerManager
from refkubelet.events.recorder import EventRecorder
from refkubelet.kuberuntime.manager import RuntimeManager
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.object_manager.manager import PodObjects
from refkubelet.pod_workers.resize_reports import ResizeReports
from refkubelet.pods.mirror import MirrorClient
from refkubelet.probes.manager import ProbeManager
from refkubelet.status.manager import StatusManager
from refkubelet.telemetry.kubelet_metrics import KubeletMetrics
from refkubelet.volumes.manager import PodVolumes
from simclock import Clock


class StepHooks(Struct, frozen=True):
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


class StepDeps(Struct, frozen=True):
    """What the steps work with."""

    clock: Clock  # for active deadlines and the times in statuses
    runtime: RuntimeManager  # syncs and kills pods
    statuses: StatusManager  # keeps statuses
    probes: ProbeManager  # starts and ends probers
    mirrors: MirrorClient  # makes and deletes mirror pods
    recorder: EventRecorder  # of events
    hooks: StepHooks  # questions to other parts
    root_dir: Path
    """Directories of pods are `root_dir/pods/<uid>`."""
    volumes: PodVolumes  # sets up and removes volumes
    metrics: KubeletMetrics = field(default_factory=KubeletMetrics)
    """Counts starts."""
    host_ips: tuple[str, ...] = ()
    """The node's addresses, primary first; empty standalone."""
    cgroups: ContainerManager | None = None
    """None: pods have no cgroups (cgroupsPerQOS false)."""
    resizes: ResizeReports | None = None
    """None: pods are never resized."""
    pod_level_resizes: bool = True
    """Whether spec.resources of pods can be resized, and statuses show them."""
    objects: PodObjects | None = None
    """None: standalone."""
