"""The runtime manager, through which the rest of the kubelet reads, syncs and kills pods.

`compute_pod_actions` decides what to do with a pod, and `PodSync` does it in the order of LIFE-130.
Upstream: pkg/kubelet/kuberuntime/kuberuntime_manager.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from lightkube.models.core_v1 import ResourceRequirements

from kubeobjects.structs import replace
from refkubelet.allocation.state import ACTUATED_FILE, ResourceState
from refkubelet.cri.client import CriClient
from refkubelet.cri.records import RuntimePod, RuntimePodStatus
from refkubelet.cri.usage import ContainerUsage, SandboxUsage
from refkubelet.failures import Complaints
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.containers import ContainerStarter
from refkubelet.kuberuntime.decisions.actions import compute_pod_actions
from refkubelet.kuberuntime.decisions.pod_actions import ProbeView
from refkubelet.kuberuntime.decisions.resize_actions import resize_in_progress
from refkubelet.kuberuntime.decisions.restart_policy import ended_for_good
from refkubelet.kuberuntime.images.pull_secrets import PullSecrets
from refkubelet.kuberuntime.kill import ContainerKiller, GraceShortenedError
from refkubelet.kuberuntime.reading.pod_reader import PodReader
from refkubelet.kuberuntime.reason_cache import ReasonCache
from refkubelet.kuberuntime.resizing.actuated import ActuatedResources
from refkubelet.kuberuntime.results import PodSyncResult
from refkubelet.kuberuntime.sync import OnSandboxReady, PodSync, SyncTools
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid

log = logging.getLogger(__name__)


class RuntimeManager:
    """Reads, syncs and kills the pods of the runtime. The constructor raises `StateFileError`."""

    def __init__(self, client: CriClient, deps: RuntimeDeps, options: RuntimeOptions) -> None:
        self.client = client
        self.reason_cache = ReasonCache()
        killer = ContainerKiller(client, deps)
        self._clock = deps.clock
        self._reader = PodReader(client, options.own_directories)
        self._starter = ContainerStarter(client, deps, options, killer)
        self._pull_secrets = PullSecrets(deps.api.secrets, deps.events)
        self._resources = options.resources
        state = deps.node.actuated
        self._actuated = ActuatedResources(
            state if state is not None else ResourceState(options.root_dir / ACTUATED_FILE),
            resizes_pods=options.resources.resizes_pods,
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

    def get_pods(self, *, all_states: bool) -> Coroutine[Any, Any, tuple[RuntimePod, ...]]:
        """The pods in the runtime's lists, grouped by the UID label, oldest first; `all_states`
        False: only READY sandboxes and RUNNING containers. Raises `CriCallError`."""
        return self._reader.pods(all_states=all_states)

    async def get_pod(self, uid: str) -> RuntimePod | None:
        """One pod, from lists filtered by its UID; None: the runtime has nothing of it. Raises
        `CriCallError`."""
        return await self._reader.pod(uid)

    async def status_of(self, pod: RuntimePod) -> RuntimePodStatus:
        """The status of a listed pod. Objects that vanished since are skipped (CRI-086); any
        other failure raises `CriCallError`."""
        return await self._reader.status_of(pod)

    async def get_pod_status(
        self, uid: str, name: str = "", namespace: str = ""
    ) -> RuntimePodStatus:
        """The status of one pod, listed anew; empty if the runtime has nothing of it. Raises
        `CriCallError`."""
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
        """Bring the pod in the runtime closer to its spec (LIFE-130). Errors of the runtime are in
        the result, and fill the reason cache (LIFE-070 step 12). `on_sandbox_ready` is awaited when
        a new sandbox is ready (step 5). `restarting_all`: the new status has the condition
        AllContainersRestarting (LIFE-125)."""
        secrets = await self._pull_secrets.of(pod)
        actuated = self._actuated.of(pod, status)
        if self._tools.deps.node.pod_cgroups() is None:
            self.note_pod_level(pod)  # nothing else is to be done for them
        actions = compute_pod_actions(
            self._resizable(pod),
            status,
            probes,
            actuated=actuated,
            pod_level=self._actuated.pod_level(uid(pod)),
            resizes_init_containers=self._resources.resizes_init_containers,
            ended=ended_for_good(pod, self._tools.deps.pods.last_status(uid(pod))),
            restarting_all=restarting_all,
        )
        sync = PodSync(self._tools, pod, status, actions, pull_secrets=secrets)
        return await sync.run(on_sandbox_ready)

    def note_pod_level(self, pod: Pod) -> None:
        """The pod's cgroup was just made, with the pod-level resources of the spec (CG-060)."""
        self._actuated.set_pod_level(pod)
        self._actuated.save_soon()

    async def kill_pod(
        self, pod: Pod | None, running: RuntimePod, grace_override_s: int | None = None
    ) -> PodSyncResult:
        """Stop all running containers, then all sandboxes (LIFE-143, LIFE-144). `pod` None: only
        the runtime knows the pod (LIFE-072). `running`: from `get_pods`, or made of a status by
        `pod_reader.running_pod`."""
        try:
            errors = await self._tools.killer.kill_pod(pod, running, grace_override_s)
        except GraceShortenedError:
            return PodSyncResult(actions=1, interrupted=True)
        return PodSyncResult(tuple(errors), actions=1)

    async def stop(self) -> None:
        """Cancel the preStop hooks that outlasted their containers."""
        await self._tools.killer.stop()

    def resize_in_progress(self, pod: Pod, status: RuntimePodStatus) -> bool:
        """Whether containers or the cgroup of the pod do not have its allocated resources yet
        (CG-063)."""
        actuated, pod_level = self._actuated.of(pod, status), self._actuated.pod_level(uid(pod))
        return resize_in_progress(self._resizable(pod), status, actuated, pod_level)

    def _resizable(self, pod: Pod) -> Pod:
        """The pod with what can be resized of it: without the gate for pods as a whole it has no
        resources of its own (CG-061.7)."""
        if self._resources.resizes_pods or pod.spec.resources is None:
            return pod
        return replace(pod, spec=replace(pod.spec, resources=None))

    def actuated(self, pod_uid: str, container: str) -> ResourceRequirements | None:
        """The actuated resources of a container; None: not recorded (CG-060)."""
        return self._actuated.container(pod_uid, container)

    def forget_resources(self, kept: Callable[[str], bool]) -> None:
        """Forget the actuated resources of all pods whose UID is not `kept`."""
        self._actuated.forget_unless(kept)

    def forget_old_backoffs(self) -> None:
        """Forget back-off entries that were not used for 600 s (BACK-004)."""
        self._starter.backoff.collect(self._clock.wall_ns())
        self._starter.images.forget_old_backoffs()

    def prune_pull_records(self, kept_images: Sequence[str], began_ns: int) -> None:
        """Forget the pull records of images that a collection, which began at `began_ns` (wall
        clock), did not keep."""
        self._starter.images.access.prune(kept_images, began_ns)

    async def sandbox_stats(self) -> tuple[SandboxUsage, ...]:
        """The resource usage of all sandboxes. Raises `CriCallError`; some runtimes do not have
        this call (CRI-124)."""
        return await self.client.list_sandbox_stats()

    async def container_stats(self) -> tuple[ContainerUsage, ...]:
        """The resource usage of all containers. Raises `CriCallError`."""
        return await self.client.list_container_stats()
