"""One sync of a pod: carries out its `PodActions` in the order of LIFE-130.

The steps: kill the pod or single containers; remove init records; make the sandbox; start
ephemeral, init and regular containers. What must never happen: the failed start of a regular
container stops the start of another (LIFE-122); a container starts after the kill of its pod
failed.
Upstream: kuberuntime_manager.go: SyncPod.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from lightkube.models.core_v1 import Secret
from msgspec import Struct

from refkubelet.cri.client import CriClient
from refkubelet.cri.records import (
    ContainerRecord,
    ContainerState,
    RuntimePodStatus,
)
from refkubelet.cri.target import CriCallError
from refkubelet.failures import Complaints
from refkubelet.kuberuntime.common import reasons
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.containers import ContainerStarter, PodEndsError, PodStart, StartError
from refkubelet.kuberuntime.decisions.pod_actions import PodActions
from refkubelet.kuberuntime.decisions.told import told
from refkubelet.kuberuntime.images.volumes import has_image_volumes, volume_images
from refkubelet.kuberuntime.kill import (
    ContainerKiller,
    GraceShortenedError,
    Kill,
    kill_error,
)
from refkubelet.kuberuntime.reading.pod_reader import running_pod
from refkubelet.kuberuntime.reason_cache import ReasonCache
from refkubelet.kuberuntime.removal import LogRemovalError, remove_container
from refkubelet.kuberuntime.resizing.actuated import ActuatedResources
from refkubelet.kuberuntime.resizing.resize import PodResize, ResizeError, ResizeTools
from refkubelet.kuberuntime.results import PodSyncResult, SyncAction, SyncError
from refkubelet.kuberuntime.sandboxes import NoSandboxError, PodSandboxes
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import (
    container_type,
    has_user_namespace,
    is_sidecar,
    log_fields,
    log_name,
    pod_ref,
    uid,
)

log = logging.getLogger(__name__)

OnSandboxReady = Callable[[], Awaitable[None]]


class _Stop(Exception):
    """Ends the sync; the errors are recorded already."""


class SyncTools(Struct, frozen=True):
    """What every sync works with; the fields are the parts of the `RuntimeManager`."""

    client: CriClient
    deps: RuntimeDeps
    options: RuntimeOptions
    killer: ContainerKiller
    starter: ContainerStarter
    reason_cache: ReasonCache
    actuated: ActuatedResources
    complaints: Complaints


@dataclass(slots=True)
class PodSync:
    """One sync; use it once. The last four fields become its result."""

    tools: SyncTools
    pod: Pod
    status: RuntimePodStatus
    actions: PodActions
    pull_secrets: tuple[Secret, ...] = ()
    errors: list[SyncError] = field(default_factory=list)
    count: int = 0
    resized: bool = False
    was_reset: bool = False

    async def run(self, on_sandbox_ready: OnSandboxReady | None) -> PodSyncResult:
        """Carry out the actions. What fails is told in the result; `on_sandbox_ready` is awaited
        once a new sandbox is up."""
        if changes := told(self.actions):
            log.info("sync of %s: %s", log_name(self.pod), changes, extra=log_fields(self.pod))
        with suppress(_Stop):
            await self._steps(on_sandbox_ready)
        if self.actions.create_sandbox and self.errors and has_user_namespace(self.pod):
            self.tools.deps.measures.metrics.started.user_namespaced_errors.inc()
        return PodSyncResult(
            tuple(self.errors),
            self.count,
            containers_reset=self.was_reset and not self.errors,
            resized=self.resized,
        )

    async def _steps(self, on_sandbox_ready: OnSandboxReady | None) -> None:
        """The steps of LIFE-130, in order. Raises `_Stop` if the sync cannot go on."""
        actions = self.actions
        if actions.sandbox_changed_event:
            self._event("Normal", reasons.EVENT_SANDBOX_CHANGED, reasons.SANDBOX_CHANGED)
        if actions.kill_pod:
            await self._kill_pod()
        elif self._resets():
            await self._reset_containers()
        else:
            await self._kill_containers()
            await self._remove_init_records(keep_newest=True)
        if actions.kill_pod and not actions.create_sandbox:
            return  # nothing can be started or resized in a pod that was just stopped
        starts = actions.ephemeral_to_start or actions.init_to_start or actions.containers_to_start
        if not starts and not actions.create_sandbox and not has_image_volumes(self.pod):
            await self._resize()
            return
        start = await self._in_sandbox(on_sandbox_ready)
        for container in (*actions.ephemeral_to_start, *actions.init_to_start):
            started = await self._start(start, container)
            if not started and self._ends_sync(container):
                return
        self._note_inits()
        await self._resize()
        for container in actions.containers_to_start:
            await self._start(start, container)

    def _resets(self) -> bool:
        """Whether this sync removes all containers so that they start again (LIFE-125). If it kills
        the pod, the next sync removes them."""
        return bool(self.actions.resets) and not self.actions.kill_pod

    async def _resize(self) -> None:
        """Resize the pod, if needed. An error ends only the resize; the next sync continues it
        (CG-065)."""
        actions, tools = self.actions, self.tools
        if not (actions.updates or actions.resizes_by_restart or actions.resizes_pod_level):
            return
        self.count += 1
        self.resized = True
        shared = ResizeTools(tools.client, tools.deps, tools.options, tools.actuated)
        clock, success = tools.deps.clock, False
        began_s = clock.monotonic_s()
        try:
            await PodResize(shared, self.pod, self.status, actions).run()
            success = True
        except ResizeError as error:
            reason = reasons.RESIZE_POD_ERROR
            target = pod_ref(self.pod)
            self.errors.append(SyncError(SyncAction.RESIZE_POD, target, reason, str(error)))
        finally:
            took_ms = float(int((clock.monotonic_s() - began_s) * 1000))
            word = "true" if success else "false"
            tools.deps.measures.metrics.resizes.duration_ms.observe(took_ms, word)

    def _note_inits(self) -> None:
        """Tell who asks how long starts take of the init containers that have ended."""
        latency = self.tools.deps.measures.latency
        if latency is None:
            return
        inits = {c.name for c in self.pod.spec.initContainers or () if not is_sidecar(c)}
        for record in self.status.containers:
            ended = record.state is ContainerState.EXITED and record.finished_at_ns
            if ended and record.name in inits:
                latency.init_ended(uid(self.pod), record.finished_at_ns)

    def _ends_sync(self, container: Container) -> bool:
        """Whether the failed start of this container ends the sync, as that of a plain init
        container does (LIFE-122)."""
        return container in self.actions.init_to_start and not is_sidecar(container)

    # -- killing -----------------------------------------------------------------------------

    async def _kill_pod(self) -> None:
        running = running_pod(self.status)
        if running.sandboxes or running.containers:
            self.count += 1
        try:
            self.errors += await self.tools.killer.kill_pod(self.pod, running)
        except GraceShortenedError:
            raise _Stop from None
        if self.errors:
            raise _Stop
        if self.actions.create_sandbox:
            await self._remove_init_records(keep_newest=False)

    async def _kill_containers(self) -> None:
        for dying in self.actions.kills:
            self.count += 1
            kill = Kill(dying.container_id, dying.name, dying.message, dying.reason)
            try:
                await self.tools.killer.kill(self.pod, kill)
            except GraceShortenedError:  # the pod is to end; its last step stops the container
                raise _Stop from None
            except CriCallError as error:
                self.errors.append(kill_error(dying.name, error))
                raise _Stop from None

    async def _reset_containers(self) -> None:
        """Kill all containers without grace and hooks, and remove them; the logs stay, because the
        restarts are counted by them (LIFE-125, BACK-110)."""
        for record in self.actions.resets:
            self.count += 1
            reason = reasons.KILL_CONTAINER_ERROR
            try:
                if record.state is not ContainerState.EXITED:
                    kill = Kill(record.id, record.name, message=reasons.KILLING_FOR_RESET)
                    await self.tools.killer.kill(self.pod, kill, grace_override_s=0)
                reason = reasons.REMOVE_CONTAINER_ERROR
                links = self.tools.options.container_logs_dir
                await remove_container(self.tools.client, record.id, links, keep_logs=True)
            except CriCallError as error:
                action = SyncAction.REMOVE_CONTAINER
                self.errors.append(SyncError(action, record.name, reason, error.text))
                raise _Stop from None
        self.was_reset = True

    async def _remove_init_records(self, *, keep_newest: bool) -> None:
        """Remove the old instances of init containers before a start (BACK-106), and all of them
        before a new sandbox (LIFE-130)."""
        inits = self.pod.spec.initContainers or []
        for container in inits:
            records = [c for c in self.status.containers if c.name == container.name]
            for record in _removable(records, keep_newest=keep_newest):
                try:
                    await remove_container(
                        self.tools.client, record.id, self.tools.options.container_logs_dir
                    )
                except (CriCallError, LogRemovalError) as error:
                    log.warning("cannot remove init container %s: %s", container.name, error)

    # -- starting ----------------------------------------------------------------------------

    async def _in_sandbox(self, on_sandbox_ready: OnSandboxReady | None) -> PodStart:
        """The existing or a new sandbox for the containers, with the images of image volumes, which
        are pulled if needed at every sync, even if no container starts. Raises `_Stop`."""
        tools, actions = self.tools, self.actions
        sandboxes = PodSandboxes(tools.client, tools.deps, tools.options)
        sandbox_id, ips = actions.sandbox_id, self.status.ips
        try:
            plan = await sandboxes.plan(self.pod, actions)
            if actions.create_sandbox:
                self.count += 1
                sandbox_id, ips = await sandboxes.create(self.pod, plan)
        except NoSandboxError as failed:
            if failed.error is not None:
                self.errors.append(failed.error)
            raise _Stop from None
        if actions.create_sandbox and on_sandbox_ready is not None:
            await on_sandbox_ready()
        images, secrets = tools.starter.images, self.pull_secrets
        return PodStart(
            pod=self.pod,
            status=self.status,
            sandbox_id=sandbox_id,
            sandbox_config=plan.config,
            pod_ips=ips,
            pull_secrets=secrets,
            volume_images=await volume_images(images, self.pod, plan.config, secrets),
            runtime=plan.runtime,
        )

    async def _start(self, start: PodStart, container: Container) -> bool:
        """Start a container; False: it failed, and its error is in the reason cache and the
        result. Raises `_Stop` if the pod is to end."""
        self.count += 1
        try:
            await self._note_resources(container)
            await self.tools.starter.start(start, container)
        except PodEndsError:
            raise _Stop from None
        except StartError as error:
            self._count_failure(container, error)
            self.tools.reason_cache.set(uid(self.pod), container.name, error.reason, error.message)
            self.errors.append(
                SyncError(
                    action=SyncAction.START_CONTAINER,
                    target=container.name,
                    reason=error.reason,
                    message=error.message,
                    backoff_expiry_s=error.backoff_expiry_s,
                )
            )
            return False
        except Exception as error:
            self._failed_to_start(container, error)
            return False
        self.tools.reason_cache.clear(uid(self.pod), container.name)
        latency = self.tools.deps.measures.latency
        if latency is not None and self._ends_sync(container):
            latency.init_began(uid(self.pod))
        return True

    def _count_failure(self, container: Container, error: StartError) -> None:
        """Count a start that was tried; one that is backed off was not."""
        if error.reason != reasons.CRASH_LOOP_BACK_OFF:
            kind = container_type(self.pod, container)
            self.tools.deps.measures.metrics.started.container_errors.inc(kind, error.reason)

    def _failed_to_start(self, container: Container, error: Exception) -> None:
        """Record an unexpected exception like a failed start; the next container follows
        (LIFE-122)."""
        complaint = f"start of container {container.name} in {pod_ref(self.pod)}"
        self.tools.complaints.failed(complaint, error)
        reason, text = reasons.RUN_CONTAINER_ERROR, f"unexpected error: {error!r}"
        self.tools.reason_cache.set(uid(self.pod), container.name, reason, text)
        self.errors.append(SyncError(SyncAction.START_CONTAINER, container.name, reason, text))

    async def _note_resources(self, container: Container) -> None:
        """Record the container's resources before it exists (CG-060). Raises `StartError`."""
        try:
            self.tools.actuated.set(self.pod, container)
            await self.tools.actuated.saved()
        except OSError as error:
            text = f"cannot record its resources: {error.strerror or error}"
            self._event("Warning", reasons.EVENT_FAILED, f"Error: {text}")
            raise StartError(reasons.CREATE_CONTAINER_CONFIG_ERROR, text) from None

    def _event(self, kind: Any, reason: str, message: str) -> None:
        self.tools.deps.events.pod_event(self.pod, kind, reason, message)


def _removable(
    records: Iterable[ContainerRecord], *, keep_newest: bool
) -> Iterable[ContainerRecord]:
    records = list(records)  # newest first
    if not keep_newest:
        return records
    dead = (ContainerState.EXITED, ContainerState.UNKNOWN)
    return [record for record in records if record.state in dead][1:]
