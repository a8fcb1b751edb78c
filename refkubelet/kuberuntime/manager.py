"""The runtime manager: reads pods from the runtime and carries decisions about them out.

`compute_pod_actions` decides (pure), `PodSync` acts in the order of LIFE-130; this is the face both
share. What must never happen: an error of one container stops the others; a decision is made here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from lightkube.models.core_v1 import ResourceRequirements

from refkubelet.cri.client import CriClient
from refkubelet.cri.records import (
    ContainerUsage,
    ImageFilesystems,
    RuntimeConditions,
    RuntimePod,
    RuntimePodStatus,
    RuntimeVersion,
    SandboxUsage,
)
from refkubelet.failures import Complaints
from refkubelet.kuberuntime.actuated import ActuatedResources
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.containers import ContainerStarter
from refkubelet.kuberuntime.decisions.actions import compute_pod_actions
from refkubelet.kuberuntime.decisions.pod_actions import ProbeView
from refkubelet.kuberuntime.decisions.resize_actions import resize_in_progress
from refkubelet.kuberuntime.images.pull_secrets import PullSecrets
from refkubelet.kuberuntime.kill import ContainerKiller
from refkubelet.kuberuntime.pod_reader import PodReader
from refkubelet.kuberuntime.reason_cache import ReasonCache
from refkubelet.kuberuntime.results import PodSyncResult
from refkubelet.kuberuntime.sync import OnSandboxReady, PodSync, SyncTools
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid

log = logging.getLogger(__name__)

CRI_VERSION = "0.1.0"


class RuntimeManager:
    """One per kubelet. Upstream: pkg/kubelet/kuberuntime/kuberuntime_manager.go."""

    def __init__(self, client: CriClient, deps: RuntimeDeps, options: RuntimeOptions) -> None:
        self.client = client
        self.reason_cache = ReasonCache()
        killer = ContainerKiller(client, deps)
        self._clock = deps.clock
        self._reader = PodReader(client, deps.clock, options.own_directories)
        self._starter = ContainerStarter(client, deps, options, killer)
        self._pull_secrets = PullSecrets(deps.secrets, deps.events)
        self._actuated = (
            ActuatedResources(deps.actuated)
            if deps.actuated is not None
            else ActuatedResources.below(options.root_dir)
        )
        self._tools = SyncTools(
            client=client,
            deps=deps,
            options=options,
            killer=killer,
            starter=self._starter,
            reason_cache=self.reason_cache,
            actuated=self._actuated,
            complaints=Complaints(log, deps.clock),
        )

    async def get_pods(self, *, all_states: bool) -> tuple[RuntimePod, ...]:
        """Pods as the lists show them, grouped by the UID label, oldest first; `all_states` False:
        only READY sandboxes and RUNNING containers. Raises `CriCallError`."""
        return await self._reader.pods(all_states=all_states)

    async def get_pod(self, uid: str) -> RuntimePod | None:
        """One pod from lists filtered by its UID; None when it has nothing in the runtime.
        Raises `CriCallError`."""
        return await self._reader.pod(uid)

    async def status_of(self, pod: RuntimePod) -> RuntimePodStatus:
        """The status of a listed pod. Objects that vanished since are skipped (CRI-086); any
        other failure raises `CriCallError`."""
        return await self._reader.status_of(pod)

    async def get_pod_status(
        self, uid: str, name: str = "", namespace: str = ""
    ) -> RuntimePodStatus:
        """List and describe one pod; an empty status when it has nothing in the runtime.
        Raises `CriCallError`."""
        pod = await self.get_pod(uid)
        return await self.status_of(pod or RuntimePod(uid, name, namespace))

    async def sync_pod(
        self,
        pod: Pod,
        status: RuntimePodStatus,
        probes: ProbeView,
        on_sandbox_ready: OnSandboxReady | None = None,
        *,
        restarting_all: bool = False,
    ) -> PodSyncResult:
        """Bring the pod in the runtime closer to its spec (LIFE-130). Never raises for a failing
        runtime: errors are in the result. Fills the reason cache (LIFE-070 step 12).
        `on_sandbox_ready` is awaited after a new sandbox is ready (step 5). `restarting_all`: the
        status that was just made says AllContainersRestarting (LIFE-125)."""
        secrets = await self._pull_secrets.of(pod)
        own = self._actuated.pod_level(uid(pod))
        if own is None:
            self._actuated.set_pod_level(pod)  # the pod's group was made with these
            self._actuated.save_soon()
        given = self._actuated.of(pod, status)
        actions = compute_pod_actions(
            pod, status, probes, given, own, restarting_all=restarting_all
        )
        return await PodSync(self._tools, pod, status, actions, secrets).run(on_sandbox_ready)

    async def kill_pod(
        self, pod: Pod | None, running: RuntimePod, grace_override_s: int | None = None
    ) -> PodSyncResult:
        """Stop all running containers, then all sandboxes (LIFE-143, LIFE-144). `pod` None: a pod
        known from the runtime only (LIFE-072). `running` comes from `get_pods`, or from a status
        through `pod_reader.running_pod`."""
        errors = await self._tools.killer.kill_pod(pod, running, grace_override_s)
        return PodSyncResult(tuple(errors), actions=1)

    async def stop(self) -> None:
        """Give up what goes on by itself: hooks whose containers were stopped meanwhile."""
        await self._tools.killer.stop()

    def resize_in_progress(self, pod: Pod, status: RuntimePodStatus) -> bool:
        """What the (allocated) pod's containers have is not what they should (CG-063)."""
        given, own = self._actuated.of(pod, status), self._actuated.pod_level(uid(pod))
        return resize_in_progress(pod, status, given, own)

    def actuated(self, pod_uid: str, container: str) -> ResourceRequirements | None:
        """What the container was given last; None: nobody has noted it."""
        return self._actuated.container(pod_uid, container)

    def forget_resources(self, kept: Callable[[str], bool]) -> None:
        """Forget what the pods that are not `kept` had."""
        self._actuated.forget_unless(kept)

    def forget_old_backoffs(self) -> None:
        """Housekeeping: forget back-off entries that were not used for 600 s (BACK-004)."""
        self._starter.backoff.collect(self._clock.wall_ns())
        self._starter.images.forget_old_backoffs()

    def prune_pull_records(self, kept_images: Sequence[str], began_ns: int) -> None:
        """After a collection of images that began then: forget who pulled the others."""
        self._starter.images.access.prune(kept_images, began_ns)

    async def runtime_status(self) -> RuntimeConditions:
        """RuntimeReady and NetworkReady (CRI-130). Raises `CriCallError`."""
        return await self.client.status()

    async def version(self) -> RuntimeVersion:
        """Raises `CriCallError`."""
        return await self.client.version(CRI_VERSION)

    async def image_fs_info(self) -> ImageFilesystems:
        """Of the image filesystems the first is the one that counts. Raises `CriCallError`."""
        return await self.client.image_fs_info()

    async def sandbox_stats(self) -> tuple[SandboxUsage, ...]:
        """Raises `CriCallError`: not every runtime can tell (CRI-124)."""
        return await self.client.list_sandbox_stats()

    async def container_stats(self) -> tuple[ContainerUsage, ...]:
        """Raises `CriCallError`."""
        return await self.client.list_container_stats()
