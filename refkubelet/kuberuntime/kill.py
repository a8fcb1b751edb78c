"""Stops containers: with preStop hooks, grace periods, and in order (LIFE-143, LIFE-144).

All containers of a pod are stopped in parallel; only sidecars wait for the regular containers and
for the next sidecar. What must never happen: StopContainer with less than 2 s (CRI-065); a sidecar
waits longer than its grace period; a failed kill stops the others; an error before the stop (of the
event, the hook, the order) leaves the container running; a hook outlives the kubelet.
Upstream: kuberuntime_container.go: killContainer; kuberuntime_termination_order.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from msgspec import Struct

from refkubelet.cri.client import CriClient
from refkubelet.cri.labels import POD_DELETION_GRACE, POD_TERMINATION_GRACE
from refkubelet.cri.records import ContainerState, ListedContainer, RuntimePod
from refkubelet.cri.target import CriCallError
from refkubelet.events.recorder import ContainerEvents
from refkubelet.failures import Complaints, end_tasks
from refkubelet.kuberuntime.common import reasons
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps, Signal
from refkubelet.kuberuntime.decisions.actions import ephemeral_containers
from refkubelet.kuberuntime.decisions.grace import (
    MINIMUM_GRACE_S,
    container_grace_s,
    rest_after,
    stop_timeout_s,
)
from refkubelet.kuberuntime.decisions.pod_actions import KillReason
from refkubelet.kuberuntime.hooks import HookError, HookRunner, first_of
from refkubelet.kuberuntime.results import SyncAction, SyncError
from refkubelet.model.by_identity import by_identity
from refkubelet.model.objects import Container, LifecycleHandler, Pod
from refkubelet.model.pod import containers, log_fields, log_name, pod_ref, sidecars, uid

log = logging.getLogger(__name__)


class Kill(Struct, frozen=True):
    """A container to stop. `message`: the text of the Killing event; "": the usual text."""

    container_id: str
    name: str
    message: str = ""
    reason: KillReason | None = None
    default_grace_s: int = MINIMUM_GRACE_S  # for a pod that only the runtime knows


class GraceShortenedError(Exception):
    """The pod is to end, or its grace period was shortened, while a preStop hook ran; nothing was
    stopped for it. The next step goes on with what is left of the new grace period."""


class TerminationOrder:
    """Which containers have stopped, and which ones each sidecar waits for (LIFE-144)."""

    def __init__(self, pod: Pod, running_names: Sequence[str]) -> None:
        self._stopped = {name: asyncio.Event() for name in running_names}
        self._waits_for = termination_prerequisites(pod, running_names)

    def stopped(self, name: str) -> None:
        """Wake those whose turn comes after that container."""
        if name in self._stopped:
            self._stopped[name].set()

    async def wait(self, name: str, limit_s: int) -> None:
        """Wait until all containers that must stop before this one have stopped, at most `limit_s`
        seconds."""
        try:
            async with asyncio.timeout(limit_s):
                for other in self._waits_for.get(name, ()):
                    await self._stopped[other].wait()
        except TimeoutError:
            return


def termination_prerequisites(pod: Pod, running_names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """For each running sidecar the running containers that must stop before it: all regular ones
    and the next sidecar in spec order, if that runs. Pure."""
    regular = [c.name for c in pod.spec.containers if c.name in running_names]
    sidecar_names = [c.name for c in sidecars(pod)]
    result = {}
    for index, name in enumerate(sidecar_names):
        following = [n for n in sidecar_names[index + 1 : index + 2] if n in running_names]
        if name in running_names:
            result[name] = (*regular, *following)
    return result


class ContainerKiller:
    """Stops containers and pods."""

    def __init__(self, client: CriClient, deps: RuntimeDeps) -> None:
        self._client = client
        self._clock = deps.clock
        self._events = ContainerEvents(deps.events)
        self._hooks = HookRunner(client, deps)
        self._complaints = Complaints(log, deps.clock)
        self._give_way = deps.pods.give_way
        self._running_hooks: dict[str, asyncio.Task[None]] = {}  # by container

    async def kill_pod(
        self, pod: Pod | None, running: RuntimePod, grace_override_s: int | None = None
    ) -> list[SyncError]:
        """Stop all running containers in parallel, then all sandboxes, NOTREADY ones included;
        returns all errors. `pod` None: only the runtime knows the pod (LIFE-072). Raises
        `GraceShortenedError` if hooks gave way to a shorter grace period; no sandbox is stopped
        then."""
        errors = await self._kill_containers(pod, running, grace_override_s)
        for sandbox in running.sandboxes:
            error = await self._stop_sandbox(sandbox.id, running.name)
            if error is not None:
                errors.append(error)
        return errors

    async def _kill_containers(
        self, pod: Pod | None, running: RuntimePod, grace_override_s: int | None
    ) -> list[SyncError]:
        containers = running.in_state(ContainerState.RUNNING)
        order = TerminationOrder(pod, [c.name for c in containers]) if pod is not None else None
        kills = [Kill(c.id, c.name, default_grace_s=noted_grace_s(c)) for c in containers]
        results = await asyncio.gather(
            *(self._kill_or_error(pod, kill, grace_override_s, order) for kill in kills)
        )
        if any(isinstance(error, GraceShortenedError) for error in results):
            raise GraceShortenedError
        return [error for error in results if isinstance(error, SyncError)]

    async def _stop_sandbox(self, sandbox_id: str, pod_name: str) -> SyncError | None:
        """Stop a sandbox; returns its error, so that the other sandboxes are stopped, too."""
        try:
            await self._client.stop_pod_sandbox(sandbox_id)
        except Exception as error:
            if not isinstance(error, CriCallError):
                complaint = f"sandbox {sandbox_id} of {pod_name} is not stopped"
                self._complaints.failed(complaint, error, key=sandbox_id)
            reason, text = reasons.KILL_POD_SANDBOX_ERROR, str(error) or repr(error)
            return SyncError(SyncAction.STOP_SANDBOX, pod_name, reason, text)
        self._complaints.over(sandbox_id)
        return None

    async def stop(self) -> None:
        """Cancel the hooks that outlasted their containers."""
        await end_tasks(self._running_hooks.values())

    async def kill(
        self,
        pod: Pod | None,
        kill: Kill,
        grace_override_s: int | None = None,
        order: TerminationOrder | None = None,
    ) -> None:
        """Stop one container, after its event, its hook and its `order` (LIFE-143). Raises
        `CriCallError`, `GraceShortenedError`."""
        container = container_spec(pod, kill.name) if pod is not None else None
        grace_s = kill.default_grace_s
        if pod is not None:
            grace_s = container_grace_s(pod, container, kill.reason)
        if grace_override_s is not None:
            grace_s = grace_override_s
        try:
            grace_s = await self._before_stop(pod, kill, grace_s, order)
        except GraceShortenedError:
            raise
        except Exception as error:
            complaint = f"before the stop of container {kill.name} ({kill.container_id})"
            self._complaints.failed(complaint, error, key=kill.container_id)
        log.info(
            "%s: container %s is stopped with a grace period of %d s (LIFE-143)",
            log_name(pod) if pod is not None else "a pod that only the runtime knows",
            *(kill.name, stop_timeout_s(grace_s)),
            extra=log_fields(pod) if pod is not None else None,
        )
        await self._client.stop_container(kill.container_id, stop_timeout_s(grace_s))
        self._complaints.over(kill.container_id)
        if order is not None:
            order.stopped(kill.name)

    async def _before_stop(
        self, pod: Pod | None, kill: Kill, grace_s: int, order: TerminationOrder | None
    ) -> int:
        """Record the event, run the hook and wait for other containers; returns the rest of the
        grace period."""
        message = kill.message or reasons.stopping(kill.name)
        self._events.normal(pod, kill.name, reasons.EVENT_KILLING, message)
        if grace_s > 0:
            container = container_spec(pod, kill.name) if pod is not None else None
            grace_s = await self._pre_stop(pod, container, kill.container_id, grace_s)
        if order is not None and grace_s > 0:
            began_s = self._clock.monotonic_s()
            await order.wait(kill.name, grace_s)
            grace_s = rest_after(grace_s, self._clock.monotonic_s() - began_s)
        return grace_s

    async def _kill_or_error(
        self, pod: Pod | None, kill: Kill, override_s: int | None, order: TerminationOrder | None
    ) -> SyncError | GraceShortenedError | None:
        try:
            await self.kill(pod, kill, override_s, order)
        except GraceShortenedError as shortened:  # the others are stopped in their time
            return shortened
        except Exception as error:  # the other containers and the sandboxes are stopped, too
            if not isinstance(error, CriCallError):
                complaint = f"container {kill.name} ({kill.container_id}) is not stopped"
                self._complaints.failed(complaint, error, key=kill.container_id)
            return kill_error(kill.name, error)
        return None

    async def _pre_stop(
        self, pod: Pod | None, container: Container | None, container_id: str, grace_s: int
    ) -> int:
        """Run the preStop hook, wait for the grace period at most, and return the rest of it. A
        hook that takes longer goes on while the container is stopped (LIFE-143), and one that still
        runs is not run again. Raises `GraceShortenedError`."""
        lifecycle = container.lifecycle if container is not None else None
        if pod is None or container is None or lifecycle is None or lifecycle.preStop is None:
            return grace_s
        began_s = self._clock.monotonic_s()
        hook = self._running_hooks.get(container_id)
        if hook is None:
            call = self._run_pre_stop(pod, container, container_id, lifecycle.preStop)
            hook = asyncio.create_task(call, name=f"preStop of {container_id}")
            self._running_hooks[container_id] = hook
            hook.add_done_callback(lambda _: self._running_hooks.pop(container_id, None))
        try:
            await self._wait_for(hook, grace_s, self._give_way(uid(pod)))
        except asyncio.CancelledError:
            hook.cancel()
            raise
        return rest_after(grace_s, self._clock.monotonic_s() - began_s)

    async def _wait_for(
        self, hook: asyncio.Task[None], grace_s: int, give_way: Signal | None
    ) -> None:
        """Wait for the end of a hook, for the grace period at most. Raises
        `GraceShortenedError`."""
        await first_of(hook, give_way, grace_s)
        if give_way is not None and give_way.is_set() and not hook.done():
            raise GraceShortenedError

    async def _run_pre_stop(
        self, pod: Pod, container: Container, container_id: str, hook: LifecycleHandler
    ) -> None:
        try:
            await self._hooks.run(container_id, pod, container, hook)
        except HookError as error:
            log.warning("preStop of %s in %s: %s", container.name, pod_ref(pod), error)
            self._events.warning(
                pod,
                container.name,
                reasons.EVENT_FAILED_PRE_STOP_HOOK,
                reasons.PRE_STOP_HOOK_FAILED,
            )


def kill_error(container_name: str, error: Exception) -> SyncError:
    text = str(error) or repr(error)
    return SyncError(SyncAction.KILL_CONTAINER, container_name, reasons.KILL_CONTAINER_ERROR, text)


def container_spec(pod: Pod, name: str) -> Container | None:
    """The container of that name in the spec: regular, init or ephemeral."""
    return _specs(pod).get(name)


@by_identity
def _specs(pod: Pod) -> dict[str, Container]:
    """All containers of the spec by name; of several the first one."""
    every = (*containers(pod), *ephemeral_containers(pod.spec))
    return {container.name: container for container in reversed(every)}


def noted_grace_s(container: ListedContainer) -> int:
    """The grace period in the container's annotations, for a pod without a spec."""
    for key in (POD_DELETION_GRACE, POD_TERMINATION_GRACE):
        text = container.annotations.get(key, "")
        if text.isdecimal():
            return int(text)
    return MINIMUM_GRACE_S
