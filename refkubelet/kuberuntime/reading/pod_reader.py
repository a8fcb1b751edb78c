"""Reads pods from the runtime: lists, grouped by the UID label, and statuses.

Objects that vanish between the list and the status call are skipped; every other failure fails the
whole pod's status (CRI-086).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from msgspec import Struct

from kubeobjects.structs import replace
from refkubelet.cri.client import CriClient
from refkubelet.cri.labels import POD_NAME, POD_NAMESPACE, POD_UID
from refkubelet.cri.records import (
    ContainerRecord,
    ListedContainer,
    ListedSandbox,
    RuntimePod,
    RuntimePodStatus,
    SandboxRecord,
    SandboxState,
)
from refkubelet.cri.target import CriCallError
from refkubelet.kuberuntime.logs.termination_message import TerminationMessages

L = TypeVar("L", ListedSandbox, ListedContainer)
NOTHING: Final[Mapping[str, RuntimePod]] = MappingProxyType({})


class _Grouped(Struct, frozen=True):
    """The last lists and their pods; the client returns unchanged lists as the same objects."""

    sandboxes: tuple[ListedSandbox, ...]
    containers: tuple[ListedContainer, ...]
    pods: tuple[RuntimePod, ...]


class PodReader:
    """Lists pods and reads their statuses. `own_directories`: the directories in which only the
    kubelet and the runtime make entries; termination messages elsewhere are not read through links.
    All methods raise `CriCallError`."""

    def __init__(self, client: CriClient, own_directories: tuple[str, ...] = ()) -> None:
        self._client = client
        self._messages = TerminationMessages(own_directories)
        self._last: dict[bool, _Grouped] = {}

    async def pods(self, *, all_states: bool) -> tuple[RuntimePod, ...]:
        """All pods, oldest first; the same tuple while nothing changes, and unchanged pods are the
        same objects."""
        only_alive = not all_states
        sandboxes = await self._client.list_pod_sandboxes(ready_only=only_alive)
        containers = await self._client.list_containers(running_only=only_alive)
        last = self._last.get(all_states)
        if last is None or last.sandboxes is not sandboxes or last.containers is not containers:
            pods_by_uid = {pod.uid: pod for pod in last.pods} if last is not None else NOTHING
            last = _Grouped(sandboxes, containers, group_pods(sandboxes, containers, pods_by_uid))
            self._last[all_states] = last
        return last.pods

    async def pod(self, uid: str) -> RuntimePod | None:
        """One pod, from lists filtered by its UID; None: the runtime has nothing of it."""
        sandboxes = await self._client.list_pod_sandboxes(uid=uid)
        containers = await self._client.list_containers(uid=uid)
        return next((pod for pod in group_pods(sandboxes, containers) if pod.uid == uid), None)

    async def status_of(self, pod: RuntimePod) -> RuntimePodStatus:
        """The statuses of a pod's sandboxes and containers, newest first, without those that have
        vanished (CRI-086)."""
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
            message = self._messages.of(record)
            same = message == record.message
            containers.append(record if same else replace(record, message=message))
        sandboxes.sort(key=lambda s: (-s.created_at_ns, s.id))
        containers.sort(key=lambda c: (-c.created_at_ns, c.id))
        return RuntimePodStatus(
            uid=pod.uid,
            name=pod.name,
            namespace=pod.namespace,
            ips=pod_ips(sandboxes),
            sandboxes=tuple(sandboxes),
            containers=tuple(containers),
        )


def pod_ips(sandboxes: list[SandboxRecord]) -> tuple[str, ...]:
    """The addresses of the newest sandbox, if it is READY (CRI-035, LIFE-176)."""
    newest = sandboxes[0] if sandboxes else None
    return newest.ips if newest is not None and newest.state is SandboxState.READY else ()


def running_pod(status: RuntimePodStatus) -> RuntimePod:
    """A status as a listed pod, with all its sandboxes and containers (upstream:
    ConvertPodStatusToRunningPod)."""
    return RuntimePod(
        uid=status.uid,
        name=status.name,
        namespace=status.namespace,
        sandboxes=tuple(
            ListedSandbox(s.id, s.state, s.attempt, s.created_at_ns) for s in status.sandboxes
        ),
        containers=tuple(
            ListedContainer(
                id=c.id,
                name=c.name,
                state=c.state,
                attempt=c.attempt,
                sandbox_id=c.sandbox_id,
                annotations=c.annotations,
            )
            for c in status.containers
        ),
    )


def group_pods(
    sandboxes: Iterable[ListedSandbox],
    containers: Iterable[ListedContainer],
    known: Mapping[str, RuntimePod] = NOTHING,
) -> tuple[RuntimePod, ...]:
    """The pods in two lists, by the UID label, oldest pod first, newest object of a pod first
    (CRI-081). Objects without the label are not the kubelet's and are left out. For a pod that
    equals the one in `known`, that object is returned. Pure."""
    boxes, runs = _by_uid(sandboxes), _by_uid(containers)
    pods = []
    for uid in {**boxes, **runs}:
        pod = RuntimePod(uid, *_names(boxes, runs, uid), boxes.get(uid, ()), runs.get(uid, ()))
        before = known.get(uid)
        pods.append(before if before is not None and before == pod else pod)
    return tuple(sorted(pods, key=_first_created))


def _by_uid(items: Iterable[L]) -> dict[str, tuple[L, ...]]:
    """The objects of each pod, newest first."""
    by_pod: dict[str, list[L]] = {}
    for item in sorted(items, key=lambda i: (-i.created_at_ns, i.id)):
        uid = item.labels.get(POD_UID)
        if uid:
            by_pod.setdefault(uid, []).append(item)
    return {uid: tuple(of_pod) for uid, of_pod in by_pod.items()}


def _names(
    boxes: Mapping[str, tuple[ListedSandbox, ...]],
    runs: Mapping[str, tuple[ListedContainer, ...]],
    uid: str,
) -> tuple[str, str]:
    labels = (boxes.get(uid) or runs[uid])[0].labels
    return labels.get(POD_NAME, ""), labels.get(POD_NAMESPACE, "")


def _first_created(pod: RuntimePod) -> tuple[int, str]:
    oldest = [s.created_at_ns for s in pod.sandboxes[-1:]]
    oldest += [c.created_at_ns for c in pod.containers[-1:]]
    return min(oldest), pod.uid
