"""The four steps of a pod worker: sync a pod, terminate it, terminate one without a spec, clean up.

If a part of a step fails, the worker runs the whole step again later, so every part must be
repeatable. What must never happen here: a decision about containers (the runtime manager's work),
or a wait for the API server.
Rules: LIFE-070..073, LIFE-204. Upstream: pkg/kubelet/kubelet.go: SyncPod, SyncTerminatingPod,
SyncTerminatingRuntimePod, SyncTerminatedPod.
"""

from __future__ import annotations

import logging

from kubeobjects.structs import replace
from refkubelet.container_manager.cgroups.manager import ContainerManager
from refkubelet.container_manager.cgroups.removal import CgroupError
from refkubelet.cri.records import ContainerRecord, RuntimePod, RuntimePodStatus
from refkubelet.cri.target import CriCallError
from refkubelet.failures import Complaints
from refkubelet.host.directories import make_directory
from refkubelet.kuberuntime.decisions.restart_policy import pod_can_restart
from refkubelet.kuberuntime.reading.pod_reader import running_pod
from refkubelet.model.names import pod_dir
from refkubelet.model.objects import Pod, PodCondition, PodStatus
from refkubelet.model.pod import (
    first_seen_ns,
    generation_of,
    is_static,
    is_terminal,
    name_and_namespace,
    pod_ref,
    uid,
    uses_host_network,
)
from refkubelet.pod_workers.requeue import NETWORK_NOT_READY
from refkubelet.pod_workers.step_deps import StepDeps
from refkubelet.pod_workers.sync_status import (
    PodStatusFn,
    StepCancelled,
    StepContext,
    StepError,
    SyncPodType,
)
from refkubelet.status.conditions import (
    is_true,
    with_condition,
)
from refkubelet.status.deaths import with_death
from refkubelet.status.generate import (
    DEADLINE_EXCEEDED,
    StatusInputs,
    generate_pod_status,
    no_cgroup,
    past_active_deadline,
)
from refkubelet.status.merge import illegal_transition
from refkubelet.status.restart_all import ALL_RESTARTING
from refkubelet.status.sources import nothing_actuated
from refkubelet.telemetry.metrics import HistogramVec
from refkubelet.volumes.manager import VolumesNotReady, WaitCancelled
from simclock.clock import NANOSECONDS

log = logging.getLogger(__name__)

RUNTIME_POD_GRACE_S = 1


def _runs_now(before: PodStatus | None, now: PodStatus) -> bool:
    """Whether a pod was just found to run, or is new to this kubelet (as upstream counts them)."""
    return before is None or (before.phase == "Pending" and now.phase == "Running")


class PodSteps:
    """Implements `pod_workers.sync_status.PodSyncer`."""

    def __init__(self, deps: StepDeps) -> None:
        self._deps = deps
        self._complaints = Complaints(log, deps.clock)

    async def sync_pod(
        self, context: StepContext, pod: Pod, mirror: Pod | None, status: RuntimePodStatus
    ) -> bool:
        """Bring the pod nearer to its spec: status, cgroup, mirror, directories, volumes, probes,
        containers, in this order (LIFE-070). True: the phase is terminal, and only the status was
        updated. Raises `StepError` and `StepCancelled`."""
        deps = self._deps
        if context.update_type is SyncPodType.CREATE:
            self._observe_since_seen(deps.metrics.workers.start_duration, pod)
        if deps.resizes is not None:
            deps.resizes.before_sync(pod, status)
        before = deps.statuses.get(uid(pod))
        api_status = self._publish(pod, status, at_end=False)
        if is_terminal(api_status):
            return True
        if _runs_now(before, api_status):
            self._observe_since_seen(deps.metrics.starts.running, pod)
        self._check_network(pod)
        terminating = deps.hooks.is_terminating(uid(pod))
        if deps.objects is not None and not terminating:
            deps.objects.register_pod(pod)
        if deps.cgroups is not None and not terminating:
            await self._ensure_cgroup(deps.cgroups, pod, status, api_status)
        if is_static(pod):
            await self._mirror(pod, mirror)
        self._make_directories(pod)
        if context.cancelled.is_set():
            raise StepCancelled
        try:
            await deps.volumes.wait_for_attach_and_mount(pod, context.cancelled)
        except WaitCancelled:  # LIFE-032
            raise StepCancelled from None
        except VolumesNotReady as error:
            raise StepError(str(error)) from None
        deps.probes.add_pod(pod)
        ips = tuple(ip.ip for ip in api_status.podIPs or ())
        current_status = status if status.ips == ips else replace(status, ips=ips)
        restarting_all = is_true(api_status, ALL_RESTARTING)
        await self._sync_in_runtime(pod, current_status, restarting_all=restarting_all)
        return False

    def _observe_since_seen(self, histogram: HistogramVec, pod: Pod) -> None:
        """Add how long ago the kubelet first saw the pod, if that is known (SRC-065)."""
        seen_ns = first_seen_ns(pod)
        if seen_ns is not None:
            histogram.observe((self._deps.clock.wall_ns() - seen_ns) / NANOSECONDS)

    async def _mirror(self, pod: Pod, mirror: Pod | None) -> None:
        """Create or update the pod's mirror. An error is only logged: a static pod runs without
        its mirror, too (MIRR-021)."""
        with self._complaints.guarded(f"mirror of {pod_ref(pod)}", key=uid(pod)):
            await self._deps.mirrors.reconcile(pod, mirror)

    async def _ensure_cgroup(
        self, cgroups: ContainerManager, pod: Pod, status: RuntimePodStatus, api_status: PodStatus
    ) -> None:
        """Make the pod's cgroup if it is missing, and first stop containers that run without it; a
        pod that may not restart gets none (CG-040, CG-041)."""
        if cgroups.exists(pod):
            return
        deps = self._deps
        if any(c.state and c.state.running for c in api_status.containerStatuses or ()):
            killed = await deps.runtime.kill_pod(pod, running_pod(status))
            if not killed.ok:
                log.warning(
                    "%s has no cgroup and cannot be killed: %s", pod_ref(pod), killed.message
                )
            elif not pod_can_restart(pod):
                cgroups.update_qos()
                return
        cgroups.update_qos()
        try:
            cgroups.ensure(pod)
        except CgroupError as error:
            message = f"unable to ensure pod container exists: {error}"
            deps.recorder.pod_event(pod, "Warning", "FailedCreatePodContainer", message)
            raise StepError(
                f"failed to ensure that the pod: {uid(pod)} cgroups exist and are correctly "
                f"applied: {error}"
            ) from None
        if deps.resizes is not None:
            deps.resizes.cgroup_made(pod)

    async def _sync_in_runtime(
        self, pod: Pod, status: RuntimePodStatus, *, restarting_all: bool
    ) -> None:
        """Let the runtime manager start, stop and resize containers. Raises `StepError` if any of
        that fails, with the time of the earliest back-off."""
        deps = self._deps

        async def on_sandbox_ready() -> None:
            self._publish_sandbox_ready(pod)

        result = await deps.runtime.sync_pod(
            pod, status, deps.probes.view, on_sandbox_ready, restarting_all=restarting_all
        )
        if deps.resizes is not None:
            deps.resizes.after_sync(pod, result)
        if not result.ok:
            raise StepError(result.message, result.min_backoff_expiry_s())
        if result.containers_reset:
            deps.hooks.resync(uid(pod))
        if result.actions:
            deps.hooks.request_relist(uid(pod))

    async def sync_terminating_pod(
        self, pod: Pod, status: RuntimePodStatus, grace_s: int | None, status_fn: PodStatusFn | None
    ) -> None:
        """Stop all containers of the pod; done when the runtime reports none as running
        (LIFE-071). Raises `StepError`, and `StepCancelled` if the grace period was shortened."""
        deps = self._deps
        announce_error = self._announce_end(pod, status, status_fn)
        result = await deps.runtime.kill_pod(pod, running_pod(status), grace_s)
        if result.interrupted:
            raise StepCancelled
        if not result.ok:
            message = f"error killing pod: {result.message}"
            deps.recorder.pod_event(pod, "Warning", "FailedKillPod", message)
            raise StepError(result.message)
        if announce_error is not None:
            raise announce_error
        self._share_cpu()
        deps.probes.remove_pod(pod)
        try:
            stopped = await deps.runtime.get_pod_status(status.uid, *name_and_namespace(pod))
        except CriCallError as error:
            raise StepError(error.text) from None
        still_running = [c.name for c in stopped.running()]
        if still_running:
            raise StepError(
                "detected running containers after a successful KillPod, CRI violation: "
                f"{still_running}"
            )
        self._publish(pod, replace(stopped, ips=stopped.ips or status.ips), at_end=True)

    def _announce_end(
        self, pod: Pod, status: RuntimePodStatus, status_fn: PodStatusFn | None
    ) -> Exception | None:
        """Publish the status and stop the probes, before the containers are stopped. Returns an
        error instead of raising it, so that the containers are stopped all the same."""
        try:
            self._publish(pod, status, at_end=False, status_fn=status_fn)
            self._deps.probes.stop_liveness_and_startup(pod)
        except Exception as error:
            return error
        return None

    async def sync_terminating_runtime_pod(self, running: RuntimePod) -> None:
        """Kill a pod that only the runtime knows, with a grace period of 1 s. Without a spec it has
        neither preStop hooks nor a status (LIFE-072). Raises `StepError`."""
        result = await self._deps.runtime.kill_pod(None, running, RUNTIME_POD_GRACE_S)
        if not result.ok:
            raise StepError(result.message)
        self._share_cpu()

    def _share_cpu(self) -> None:
        """Set the CPU shares of the QoS classes anew after a kill (CG-036)."""
        if self._deps.cgroups is not None:
            self._deps.cgroups.update_qos()

    async def sync_terminated_pod(self, pod: Pod, status: RuntimePodStatus) -> None:
        """Clean up: publish the last status, remove volumes and the cgroup, take back user IDs;
        containers and sandboxes are left to garbage collection (LIFE-073, LIFE-147, CG-042). Raises
        `StepError`."""
        deps = self._deps
        self._publish(pod, status, at_end=True)
        try:
            await deps.volumes.tear_down(pod)
        except OSError as error:
            raise StepError(f"volumes of the pod are not removed: {error}") from None
        if deps.objects is not None:
            deps.objects.unregister_pod(pod)
        if deps.cgroups is not None:
            try:
                await deps.cgroups.destroy(pod)
            except CgroupError as error:
                raise StepError(str(error)) from None
        deps.hooks.release_users(uid(pod))
        deps.statuses.terminate_pod(pod)

    def show_death(self, pod: Pod, record: ContainerRecord) -> None:
        """Publish outside the pod's steps, while one of them is under way, that a container has
        ended; all else is shown as when the step began (STAT-012). Not when the container would be
        shown to have ended for good: the step may be about to start it again, with another image,
        say, and an end that was shown cannot be taken back (STAT-008)."""
        before = self._deps.statuses.get(uid(pod))
        if before is None:
            return
        changed = with_death(pod, before, record, self._deps.hooks.runtime_name())
        if changed is not None and illegal_transition(changed, before, pod) is None:
            self._deps.statuses.change_pod_status(pod, changed)

    def _publish(
        self,
        pod: Pod,
        status: RuntimePodStatus,
        *,
        at_end: bool,
        status_fn: PodStatusFn | None = None,
    ) -> PodStatus:
        """Generate the status, let `status_fn` change it, hand it to the status manager and return
        it. `at_end`: the pod starts no more containers."""
        return self._hand_over(pod, self._generate(pod, status, at_end=at_end), status_fn)

    def _hand_over(
        self, pod: Pod, api_status: PodStatus, status_fn: PodStatusFn | None = None
    ) -> PodStatus:
        """Let `status_fn` change the status, give it to the probes and the status manager, and
        return it."""
        self._deps.probes.trigger_readiness(pod, api_status)
        if status_fn is not None:
            api_status = status_fn(api_status)
        self._deps.statuses.set_pod_status(pod, api_status)
        return api_status

    def _generate(self, pod: Pod, status: RuntimePodStatus, *, at_end: bool) -> PodStatus:
        """The pod's status from the runtime's. A pod past its active deadline becomes Failed, with
        an event."""
        deps = self._deps
        cached = deps.statuses.get(uid(pod))
        overdue = past_active_deadline(pod, cached, deps.clock.now())
        if overdue:
            deps.recorder.pod_event(
                pod, "Normal", DEADLINE_EXCEEDED.reason, DEADLINE_EXCEEDED.message
            )
        resizes = deps.resizes
        if resizes is not None and at_end:
            resizes.at_end(pod)
        inputs = StatusInputs(
            now=deps.clock.now(),
            probes=deps.probes,
            pod_is_terminal=at_end,
            runtime_name=deps.hooks.runtime_name(),
            recursive_read_only=deps.hooks.recursive_read_only(pod),
            host_ips=deps.host_ips,
            reason_of=lambda name: deps.runtime.reason_cache.get(uid(pod), name),
            forced=DEADLINE_EXCEEDED if overdue else None,
            resize_conditions=resizes.of(pod) if resizes else (),
            actuated=resizes.actuated(pod) if resizes else nothing_actuated,
            cgroup_config=resizes.cgroup_config if resizes else no_cgroup,
            pod_level_resizes=deps.pod_level_resizes,
        )
        return deps.hooks.with_devices(pod, generate_pod_status(pod, status, cached, inputs))

    def _publish_sandbox_ready(self, pod: Pod) -> None:
        """Publish PodReadyToStartContainers as soon as the sandbox is ready (STAT-043)."""
        status = self._deps.statuses.get(uid(pod))
        if status is None:
            return
        ready = PodCondition(
            type="PodReadyToStartContainers",
            status="True",
            observedGeneration=generation_of(pod),
        )
        conditions = with_condition(status.conditions or (), ready)
        self._deps.statuses.set_pod_status(pod, replace(status, conditions=conditions))

    def _check_network(self, pod: Pod) -> None:
        error = self._deps.hooks.network_error()
        if error is None or uses_host_network(pod):
            return
        message = f"{NETWORK_NOT_READY}: {error}"
        self._deps.recorder.pod_event(pod, "Warning", "NetworkNotReady", message)
        raise StepError(message)

    def _make_directories(self, pod: Pod) -> None:
        try:
            directory = pod_dir(str(self._deps.root_dir), uid(pod))
            for path in (directory, f"{directory}/volumes", f"{directory}/plugins"):
                make_directory(path)
        except (OSError, ValueError) as error:
            message = f"error making pod data directories: {error}"
            self._deps.recorder.pod_event(pod, "Warning", "Failed", message)
            raise StepError(f"{message} ({pod_ref(pod)})") from error
