"""The runtime manager: reads pods from the runtime and carries decisions about them out.

`compute_pod_actions` decides (pure), this module acts in the order of LIFE-130. What must never
happen: an error of one container stops the others; a decision is made here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from refkubelet.model.objects import Pod
from refkubelet.probes.results import ProbeResult
from refkubelet.runtime.client import CriClient
from refkubelet.runtime.options import RuntimeDeps, RuntimeOptions
from refkubelet.runtime.reason_cache import ReasonCache
from refkubelet.runtime.records import (
    ContainerUsage,
    FilesystemUsage,
    RuntimeConditions,
    RuntimePod,
    RuntimePodStatus,
    RuntimeVersion,
)
from refkubelet.runtime.results import PodSyncResult


class ProbeView(Protocol):
    """The probe results a sync looks at, by container ID; None: nothing stored."""

    def liveness(self, container_id: str) -> ProbeResult | None: ...

    def startup(self, container_id: str) -> ProbeResult | None: ...


class RuntimeManager:
    """One per kubelet. Upstream: pkg/kubelet/kuberuntime/kuberuntime_manager.go."""

    def __init__(self, client: CriClient, deps: RuntimeDeps, options: RuntimeOptions) -> None:
        self.client = client
        self.reason_cache = ReasonCache()

    async def get_pods(self, *, all_states: bool) -> tuple[RuntimePod, ...]:
        """Pods as the lists show them, grouped by the UID label; `all_states` False: only READY
        sandboxes and RUNNING containers. Raises `CriCallError`."""
        raise NotImplementedError

    async def get_pod(self, uid: str) -> RuntimePod | None:
        """One pod from lists filtered by its UID; None when it has nothing in the runtime."""
        raise NotImplementedError

    async def status_of(self, pod: RuntimePod) -> RuntimePodStatus:
        """The status of a listed pod. Objects that vanished since are skipped (CRI-086); any
        other failure raises `CriCallError`."""
        raise NotImplementedError

    async def get_pod_status(
        self, uid: str, name: str = "", namespace: str = ""
    ) -> RuntimePodStatus:
        """List and describe one pod; an empty status when it has nothing in the runtime."""
        raise NotImplementedError

    async def sync_pod(
        self,
        pod: Pod,
        status: RuntimePodStatus,
        probes: ProbeView,
        on_sandbox_ready: Callable[[], Awaitable[None]] | None = None,
    ) -> PodSyncResult:
        """Bring the pod in the runtime closer to its spec (LIFE-130). Never raises for a failing
        runtime: errors are in the result. Fills the reason cache (LIFE-070 step 12).
        `on_sandbox_ready` is awaited after a new sandbox is ready (step 5)."""
        raise NotImplementedError

    async def kill_pod(
        self, pod: Pod | None, running: RuntimePod, grace_override_s: int | None = None
    ) -> PodSyncResult:
        """Stop all running containers, then all sandboxes (LIFE-143, LIFE-144). `pod` None: a pod
        known from the runtime only (LIFE-072)."""
        raise NotImplementedError

    async def runtime_status(self) -> RuntimeConditions:
        raise NotImplementedError

    async def version(self) -> RuntimeVersion:
        raise NotImplementedError

    async def image_fs_info(self) -> tuple[FilesystemUsage, ...]:
        raise NotImplementedError

    async def container_stats(self) -> tuple[ContainerUsage, ...]:
        raise NotImplementedError
