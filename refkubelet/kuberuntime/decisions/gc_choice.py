"""Chooses the dead containers and sandboxes to remove (GC-002, GC-003, GC-010, GC-020). Pure.

What must never happen here: a RUNNING container is chosen, or a sandbox that is READY or still has
a container. The results are in the order of removal, the oldest first.
Upstream: pkg/kubelet/kuberuntime/kuberuntime_gc.go: evictableContainers, evictContainers,
evictSandboxes; pkg/kubelet/pod_container_deletor.go: getContainersToDeleteInPod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct

from refkubelet.cri.labels import POD_UID
from refkubelet.cri.records import (
    ContainerRecord,
    ContainerState,
    ListedContainer,
    ListedSandbox,
    RuntimePodStatus,
    SandboxState,
)
from refkubelet.model.by_identity import by_identity
from simclock.clock import NANOSECONDS

MayGo: TypeAlias = Callable[[str], bool]
"""Whether everything of the pod with that UID may be removed."""


class GcOptions(Struct, frozen=True):
    """Limits of container garbage collection (GC-001)."""

    min_age_s: float = 0.0
    max_per_pod_container: int = 1  # dead containers kept per pod and name; negative: no limit
    max_containers: int = -1  # dead containers kept in all; negative: no limit


def removable_containers(
    containers: Iterable[ListedContainer], now_ns: int, limits: GcOptions, content_may_go: MayGo
) -> list[ListedContainer]:
    """The containers to remove: all dead ones of pods in `content_may_go`, then those beyond the
    limits (GC-003)."""
    dead = evictable(containers, now_ns, limits.min_age_s)
    removable = [c for c in dead if content_may_go(_uid(c))]
    rest = [c for c in dead if not content_may_go(_uid(c))]
    return [*reversed(removable), *over_limit(rest, limits)]


def evictable(
    containers: Iterable[ListedContainer], now_ns: int, min_age_s: float
) -> list[ListedContainer]:
    """Containers that do not run and are old enough, newest first (GC-002)."""
    newest_allowed_ns = now_ns - round(min_age_s * NANOSECONDS)
    dead = [
        c
        for c in containers
        if c.state is not ContainerState.RUNNING and c.created_at_ns <= newest_allowed_ns
    ]
    return sorted(dead, key=lambda c: (-c.created_at_ns, c.id))


def over_limit(dead: Sequence[ListedContainer], limits: GcOptions) -> list[ListedContainer]:
    """The containers beyond the limits: the oldest of each unit, then the oldest of all (GC-003 b,
    c). A unit is a container name of a pod; `dead` is sorted newest first."""
    remaining, to_remove = _keep_per_unit(dead, limits.max_per_pod_container)
    to_remove.reverse()
    if 0 <= limits.max_containers < len(remaining):
        units = len({_unit(c) for c in remaining})
        remaining, more = _keep_per_unit(remaining, max(1, limits.max_containers // units))
        to_remove += [*reversed(more), *reversed(remaining[limits.max_containers :])]
    return to_remove


def _keep_per_unit(
    dead: Sequence[ListedContainer], limit: int
) -> tuple[list[ListedContainer], list[ListedContainer]]:
    """Split `dead` into containers that stay, at most `limit` per unit, and those to remove.

    An instance that never ran stays while it is the newest, and is not counted: a kubelet that died
    between create and start may not have reported yet how the instance before it ended."""
    counts: dict[tuple[str, str], int] = {}
    remaining: list[ListedContainer] = []
    to_remove: list[ListedContainer] = []
    for container in dead:
        unit = _unit(container)
        ran = container.state is not ContainerState.CREATED
        stays = counts.get(unit, 0) < limit if ran else unit not in counts
        counts[unit] = counts.get(unit, 0) + ran
        (remaining if limit < 0 or stays else to_remove).append(container)
    return remaining, to_remove


def _uid(container: ListedContainer) -> str:
    return container.labels.get(POD_UID, "")


def _unit(container: ListedContainer) -> tuple[str, str]:
    return (_uid(container), container.name)


def removable_sandboxes(
    sandboxes: Iterable[ListedSandbox],
    containers: Iterable[ListedContainer],
    content_may_go: MayGo,
) -> list[str]:
    """The ids of the sandboxes to remove: the inactive ones; of a pod that is not in
    `content_may_go` not the newest.

    A sandbox is active if it is READY or has a listed container (GC-010).
    """
    owners = {c.sandbox_id for c in containers}
    by_pod: dict[str, list[ListedSandbox]] = {}
    for sandbox in sorted(sandboxes, key=lambda s: (-s.created_at_ns, s.id)):
        by_pod.setdefault(sandbox.labels.get(POD_UID, ""), []).append(sandbox)
    return [
        sandbox.id
        for uid, of_pod in by_pod.items()
        for sandbox in reversed(of_pod if content_may_go(uid) else of_pod[1:])
        if sandbox.state is not SandboxState.READY and sandbox.id not in owners
    ]


def dead_to_delete(
    container_id: str, status: RuntimePodStatus, keep: int, *, remove_all: bool = False
) -> tuple[ContainerRecord, ...]:
    """The records to remove after a container died: its EXITED instances beyond the newest `keep`;
    with `remove_all` all EXITED records of the pod; none for an unknown id."""
    if remove_all:
        return tuple(c for c in status.containers if c.state is ContainerState.EXITED)
    records = status.of(_names(status).get(container_id, ""))
    return tuple(c for c in records if c.state is ContainerState.EXITED)[keep:]


@by_identity
def _names(status: RuntimePodStatus) -> dict[str, str]:
    """The names of the containers by ID."""
    return {record.id: record.name for record in status.containers}
