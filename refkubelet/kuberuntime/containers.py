"""Starts a container: back-off, image, create, start, postStart (LIFE-131, LIFE-132, LIFE-142).

A step that fails raises a `StartError`; its reason becomes the waiting reason of the container.
What must never happen: a start during the crash-loop back-off.
Upstream: kuberuntime_container.go: startContainer; kuberuntime_manager.go: doBackOff.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from lightkube.models.core_v1 import Secret
from msgspec import Struct, field

from kubeobjects.golang.duration import format_duration
from refkubelet.container_manager.devices.types import NO_SETTINGS
from refkubelet.container_manager.providers.hints import AllocationError
from refkubelet.cri.client import CriClient
from refkubelet.cri.records import (
    DEFAULT_RUNTIME,
    ContainerRecord,
    ContainerState,
    PodRuntime,
    RuntimePodStatus,
)
from refkubelet.cri.target import CriCallError
from refkubelet.events.recorder import ContainerEvents
from refkubelet.host.untrusted_files import listed
from refkubelet.kuberuntime.common import reasons
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.config.container import (
    ContainerConfigError,
    StartSpec,
    config_failures,
    container_config,
)
from refkubelet.kuberuntime.decisions.backoff import BackoffTable, restart_key
from refkubelet.kuberuntime.hooks import HookError, HookRunner
from refkubelet.kuberuntime.images.manager import ImageError, ImageManager, ImageRequest
from refkubelet.kuberuntime.images.volumes import VolumeImages, failures_of
from refkubelet.kuberuntime.kill import ContainerKiller, GraceShortenedError, Kill
from refkubelet.kuberuntime.run_options import RunFacts, run_container_options
from refkubelet.model.cpuset import ANYWHERE
from refkubelet.model.downward_api import VariableError
from refkubelet.model.names import container_log_path, log_link, pod_log_dir
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import (
    container_type,
    log_fields,
    log_name,
    name_and_namespace,
    pod_ref,
    uid,
)
from simclock import call_aside
from simclock.clock import NANOSECONDS

log = logging.getLogger(__name__)

_LOG_FILE: Final = re.compile(r"([0-9]+)\.log")
IMAGE_VOLUME_MOUNT_FAILED: Final = "ImageVolumeMountFailed"  # how a runtime's answer begins then


class StartError(Exception):
    """A container was not started. `backoff_expiry_s`: when its crash-loop back-off ends, in
    monotonic seconds; None: it failed for another reason."""

    def __init__(self, reason: str, message: str, backoff_expiry_s: float | None = None) -> None:
        self.reason = reason
        self.message = message
        self.backoff_expiry_s = backoff_expiry_s
        super().__init__(message)


class PodEndsError(Exception):
    """The pod is to end meanwhile; nothing more of it is started."""


class PodStart(Struct, frozen=True):
    """The pod, and the sandbox in which its containers start."""

    pod: Pod
    status: RuntimePodStatus
    """The status before this sync, which decides back-off and attempts (BACK-006, BACK-017)."""
    sandbox_id: str
    sandbox_config: Any  # PodSandboxConfig
    pod_ips: tuple[str, ...] = ()  # from the runtime
    pull_secrets: tuple[Secret, ...] = ()
    volume_images: VolumeImages = field(default_factory=dict)
    runtime: PodRuntime = DEFAULT_RUNTIME


class ContainerStarter:
    """Starts containers and keeps their crash-loop back-offs."""

    def __init__(
        self,
        client: CriClient,
        deps: RuntimeDeps,
        options: RuntimeOptions,
        killer: ContainerKiller,
    ) -> None:
        self._client = client
        self._deps = deps
        self._options = options
        self._killer = killer
        self._events = ContainerEvents(deps.events)
        self._hooks = HookRunner(client, deps)
        self.images = ImageManager(client, deps, options)
        self.backoff = BackoffTable(options.restart_delays)

    async def start(self, start: PodStart, container: Container) -> None:
        """Do all steps of a start, with their events. Raises `StartError`, and `PodEndsError` if
        the pod was to end while its image was pulled or its hook ran."""
        self._check_back_off(start.pod, container, start.status)
        self._deps.measures.metrics.started.containers.inc(container_type(start.pod, container))
        self._check_image_volumes(start, container)
        error: StartError | None = None
        try:
            await self._start_in_steps(start, container)
        except StartError as failed:
            error = failed
            raise
        finally:
            self._count_image_volumes(start, container, error)

    async def _start_in_steps(self, start: PodStart, container: Container) -> None:
        """The steps after the checks. Raises `StartError`, `PodEndsError`."""
        try:
            request = ImageRequest.of_container(
                start.pod, container, start.sandbox_config, start.pull_secrets
            )
            ref = await self.images.ensure_image(request)
        except ImageError as error:
            self._fail(start.pod, container, error.reason)
            raise StartError(error.reason, error.message) from None
        if self._deps.pods.terminating(uid(start.pod)):
            raise PodEndsError
        container_id, attempt = await self._create(start, container, ref)
        await self._start(start, container, container_id)
        self._link_log(start.pod, container, container_id, attempt)
        await self._post_start(start.pod, container, container_id)

    def _count_image_volumes(
        self, start: PodStart, container: Container, error: StartError | None
    ) -> None:
        """Count the image volumes of a start that was tried; `error`: it failed (CRI-009.6)."""
        counted = self._deps.measures.metrics.started
        mounts = [m.name for m in container.volumeMounts or () if m.name in start.volume_images]
        counted.image_volumes.inc(by=len(set(mounts)))
        not_created = error is not None and error.reason == reasons.CREATE_CONTAINER_ERROR
        failed = not_created and str(error).startswith(IMAGE_VOLUME_MOUNT_FAILED)
        (counted.image_volumes_failed if failed else counted.image_volumes_mounted).inc(
            by=len(mounts)
        )

    def _check_back_off(self, pod: Pod, container: Container, status: RuntimePodStatus) -> None:
        """Count this attempt, or raise `StartError` during the back-off, which begins with the exit
        of the newest exited instance (BACK-001, BACK-002)."""
        dead = newest_exited(status, container.name)
        if dead is None:
            return
        key, now_ns = restart_key(pod, container), self._deps.clock.wall_ns()
        end_ns = self.backoff.wait_until(key, dead.finished_at_ns, now_ns)
        if end_ns is None:
            self.backoff.next(key, dead.finished_at_ns, now_ns)
            return
        name = container.name
        text = reasons.back_off_event(name, pod_ref(pod))
        self._events.warning(pod, name, reasons.EVENT_BACK_OFF, text)
        entry = self.backoff.get(key)
        delay = format_duration((entry.delay_ns if entry else 0) / NANOSECONDS)
        left_s = (end_ns - now_ns) / NANOSECONDS
        log.info(
            "%s: container %s is backed off by %s, %.0f s of it are left (BACK-001)",
            *(log_name(pod), name, delay, left_s),
            extra=log_fields(pod),
        )
        raise StartError(
            reasons.CRASH_LOOP_BACK_OFF,
            reasons.back_off_message(delay, name, pod_ref(pod)),
            self._deps.clock.monotonic_s() + left_s,
        )

    def _check_image_volumes(self, start: PodStart, container: Container) -> None:
        """Raise `StartError` if image volumes lack their images, with the reason of the last one
        and an event for each."""
        failures = failures_of(container, start.volume_images)
        for failure in failures:
            self._fail(start.pod, container, failure.reason)
        if failures:
            raise StartError(failures[-1].reason, failures[-1].message)

    async def _create(self, start: PodStart, container: Container, ref: str) -> tuple[str, int]:
        """Create the container; returns its id and attempt. Raises `StartError`."""
        pod, attempt = start.pod, self.next_attempt(start.pod, container, start.status)
        try:
            spec = await self._spec(start, container, attempt, ref)
            config = container_config(spec, pod, self._options)
        except (CriCallError, ContainerConfigError, VariableError, AllocationError) as error:
            text = error.message if isinstance(error, CriCallError) else str(error)
            self._fail(pod, container, text)
            raise StartError(reasons.CREATE_CONTAINER_CONFIG_ERROR, text) from None
        try:
            container_id = await self._client.create_container(
                start.sandbox_id, config, start.sandbox_config
            )
        except CriCallError as error:
            self._fail(pod, container, error.message)
            raise StartError(reasons.CREATE_CONTAINER_ERROR, error.message) from None
        name = container.name
        self._events.normal(pod, name, reasons.EVENT_CREATED, reasons.CONTAINER_CREATED)
        return container_id, attempt

    async def _spec(
        self, start: PodStart, container: Container, attempt: int, ref: str
    ) -> StartSpec:
        """Collect the inputs of the configuration. `ref`: the reference that the image step
        returned."""
        pod, deps = start.pod, self._deps
        target_id = target_of(container, pod, start.status)
        image = await self.images.image_of(container)
        source, plugins = deps.api.objects, deps.node.devices
        objects = await source.of(pod, container) if source is not None else None
        devices = await plugins.settings(pod, container) if plugins is not None else NO_SETTINGS
        facts = RunFacts(
            pod_ips=start.pod_ips,
            objects=objects,
            volume_images=start.volume_images,
            devices=devices,
            runtime=start.runtime,
        )
        prepare = partial(
            run_container_options, container, pod, facts, deps=deps, options=self._options
        )
        with config_failures():
            work_name = f"volumes of {container.name} in {pod_ref(pod)} ({uid(pod)})"
            run = await call_aside(work_name, prepare)
        placements = deps.node.placements
        return StartSpec(
            container=container,
            attempt=attempt,
            image=image,
            image_ref=ref,
            target_id=target_id,
            run=run,
            placement=placements.placement(pod, container) if placements else ANYWHERE,
            runtime=start.runtime,
        )

    async def _start(self, start: PodStart, container: Container, container_id: str) -> None:
        if self._deps.node.placements is not None:
            self._deps.node.placements.starting(start.pod, container)
        try:
            await self._client.start_container(container_id)
        except CriCallError as error:
            self._fail(start.pod, container, error.message)
            raise StartError(reasons.RUN_CONTAINER_ERROR, error.message) from None
        name = container.name
        self._events.normal(start.pod, name, reasons.EVENT_STARTED, reasons.CONTAINER_STARTED)
        log.info(
            "%s: container %s has started as %s (LIFE-131)",
            *(log_name(start.pod), name, container_id),
            extra=log_fields(start.pod),
        )

    async def _post_start(self, pod: Pod, container: Container, container_id: str) -> None:
        """Run the postStart hook. If it fails, the container is killed, with its preStop hook and
        the pod's grace, and `StartError` is raised. A hook that still runs when the pod is to end
        is given up with `PodEndsError`: the pod's end stops the container (LIFE-142.1)."""
        lifecycle = container.lifecycle
        if lifecycle is None or lifecycle.postStart is None:
            return
        try:
            ended = await self._hooks.run_until(
                self._deps.pods.give_way(uid(pod)),
                container_id,
                pod=pod,
                container=container,
                handler=lifecycle.postStart,
            )
            if not ended:
                raise PodEndsError
        except HookError as error:
            reason, name = reasons.EVENT_FAILED_POST_START_HOOK, container.name
            log.warning("postStart of container %s in pod %s: %s", name, pod_ref(pod), error)
            self._events.warning(pod, name, reason, reasons.POST_START_HOOK_FAILED)
            try:
                await self._killer.kill(pod, Kill(container_id, name, message=reason))
            except GraceShortenedError:
                raise PodEndsError from None
            except CriCallError as failed:
                log.warning("cannot stop container %s after its hook: %s", name, failed)
            raise StartError(reasons.POST_START_HOOK_ERROR, str(error)) from None

    def next_attempt(self, pod: Pod, container: Container, status: RuntimePodStatus) -> int:
        """The restartCount of the newest record + 1; without a record, the next number of a log
        file (LIFE-132, BACK-020)."""
        record = status.newest(container.name)
        if record is not None:
            return record.restart_count + 1
        return next_attempt_by_logs(Path(self._log_dir(pod), container.name))

    def _log_dir(self, pod: Pod) -> str:
        name, namespace = name_and_namespace(pod)
        return pod_log_dir(str(self._options.pod_logs_dir), namespace, name, uid(pod))

    def _link_log(self, pod: Pod, container: Container, container_id: str, attempt: int) -> None:
        """Make the link under /var/log/containers, if the log exists (LIFE-136)."""
        directory = self._options.container_logs_dir
        path = os.path.join(self._log_dir(pod), container_log_path(container.name, attempt))
        if directory is None or not os.path.exists(path):
            return
        name, namespace = name_and_namespace(pod)
        link = log_link(str(directory), namespace, name, container.name, container_id)
        with suppress(OSError):  # the container runs without the link, too
            with suppress(FileNotFoundError):
                os.unlink(link)
            os.symlink(path, link)

    def _fail(self, pod: Pod, container: Container, text: str) -> None:
        self._events.warning(pod, container.name, reasons.EVENT_FAILED, f"Error: {text}")


def target_of(container: Container, pod: Pod, status: RuntimePodStatus) -> str:
    """The id of the container that an ephemeral container targets (LIFE-134); "" for other
    containers. Raises `ContainerConfigError` if the target does not exist."""
    for ephemeral in pod.spec.ephemeralContainers or ():
        name = ephemeral.targetContainerName
        if ephemeral.name == container.name and name:
            if (record := status.newest(name)) is None:
                raise ContainerConfigError(f"unable to find target container {name}")
            return record.id
    return ""


def newest_exited(status: RuntimePodStatus, name: str) -> ContainerRecord | None:
    """The newest instance of a container in state EXITED, or None (BACK-006)."""
    return next(
        (c for c in status.containers if c.name == name and c.state is ContainerState.EXITED), None
    )


def next_attempt_by_logs(log_dir: Path) -> int:
    """1 + the highest N of `N.log*` in a container's log directory; 0 without any."""
    try:
        names = listed(log_dir)
    except OSError:
        return 0
    counts = [int(match.group(1)) for name in names if (match := _LOG_FILE.match(name))]
    return max(counts, default=-1) + 1
