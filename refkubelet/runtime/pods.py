"""Reading pods from the runtime: lists grouped by the UID label, statuses of what was listed.

Objects may vanish between the list and the status call: those are skipped; every other failure
fails the whole pod's status (CRI-086).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from refkubelet.runtime.client import CriCallError, CriClient
from refkubelet.runtime.labels import POD_NAME, POD_NAMESPACE, POD_UID
from refkubelet.runtime.records import (
    ContainerRecord,
    ListedContainer,
    ListedSandbox,
    RuntimePod,
    RuntimePodStatus,
    SandboxRecord,
    SandboxState,
)
from refkubelet.runtime.termination_message import termination_message
from simtime import Clock


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The last lists and their pods; the client gives unchanged lists as the same objects."""

    sandboxes: tuple[ListedSandbox, ...]
    containers: tuple[ListedContainer, ...]
    pods: tuple[RuntimePod, ...]


class PodReader:
    """Lists pods and reads their statuses. Raises `CriCallError`."""

    def __init__(self, client: CriClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._last: dict[bool, _Grouped] = {}

    async def pods(self, *, all_states: bool) -> tuple[RuntimePod, ...]:
        """All pods, oldest first; the very same tuple while nothing changes."""
        only_alive = not all_states
        sandboxes = await self._client.list_pod_sandboxes(ready_only=only_alive)
        containers = await self._client.list_containers(running_only=only_alive)
        last = self._last.get(all_states)
        if last is None or last.sandboxes is not sandboxes or last.containers is not containers:
            last = _Grouped(sandboxes, containers, group_pods(sandboxes, containers))
            self._last[all_states] = last
        return last.pods

    async def pod(self, uid: str) -> RuntimePod | None:
        sandboxes = await self._client.list_pod_sandboxes(uid=uid)
        containers = await self._client.list_containers(uid=uid)
        return next((pod for pod in group_pods(sandboxes, containers) if pod.uid == uid), None)

    async def status_of(self, pod: RuntimePod) -> RuntimePodStatus:
        taken_at_s = self._clock.monotonic_s()
        sandboxes: list[SandboxRecord] = []
        containers: list[ContainerRecord] = []
        for listed in pod.sandboxes:
            try:
                sandboxes.append(await self._client.pod_sandbox_status(listed.id))
            except CriCallError as error:
                if not error.not_found:
                    raise
        for item in pod.containers:
            try:
                record = await self._client.container_status(item.id, item.sandbox_id)
            except CriCallError as error:
                if not error.not_found:
                    raise
                continue
            containers.append(replace(record, message=termination_message(record)))
        sandboxes.sort(key=lambda s: (-s.created_at_ns, s.id))
        containers.sort(key=lambda c: (-c.created_at_ns, c.id))
        return RuntimePodStatus(
            uid=pod.uid,
            name=pod.name,
            namespace=pod.namespace,
            ips=pod_ips(sandboxes),
            sandboxes=tuple(sandboxes),
            containers=tuple(containers),
            taken_at_s=taken_at_s,
        )


def pod_ips(sandboxes: list[SandboxRecord]) -> tuple[str, ...]:
    """The newest sandbox's, if it is READY (CRI-035, LIFE-176)."""
    newest = sandboxes[0] if sandboxes else None
    return newest.ips if newest is not None and newest.state is SandboxState.READY else ()


def group_pods(
    sandboxes: Iterable[ListedSandbox], containers: Iterable[ListedContainer]
) -> tuple[RuntimePod, ...]:
    """Lists into pods by the UID label, oldest pod first, newest object of a pod first (CRI-081).

    Objects without the label are not the kubelet's and are left out. Pure.
    """
    newest_sandboxes = sorted(sandboxes, key=lambda s: (-s.created_at_ns, s.id))
    newest_containers = sorted(containers, key=lambda c: (-c.created_at_ns, c.id))
    pods: dict[str, RuntimePod] = {}
    items: list[ListedSandbox | ListedContainer] = [*newest_sandboxes, *newest_containers]
    for item in items:
        uid = item.labels.get(POD_UID)
        if not uid:
            continue
        pod = pods.get(uid) or RuntimePod(
            uid, item.labels.get(POD_NAME, ""), item.labels.get(POD_NAMESPACE, "")
        )
        if isinstance(item, ListedSandbox):
            pods[uid] = replace(pod, sandboxes=(*pod.sandboxes, item))
        else:
            pods[uid] = replace(pod, containers=(*pod.containers, item))
    return tuple(sorted(pods.values(), key=_first_created))


def _first_created(pod: RuntimePod) -> tuple[int, str]:
    created = [s.created_at_ns for s in pod.sandboxes]
    created += [c.created_at_ns for c in pod.containers]
    return min(created), pod.uid
