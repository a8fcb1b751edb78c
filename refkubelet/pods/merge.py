"""Compares successive sets of pods of a source; the differences become operations. Pure.

A source always delivers all its pods; pods are compared by UID with its previous set (SRC-060..067,
LIFE-002). Each source is merged on its own.
Upstream: pkg/kubelet/config/config.go: Merge, updatePodsInCache, checkAndUpdatePod.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from refkubelet.model.objects import Pod
from refkubelet.model.pod import (
    CONFIG_MIRROR,
    CONFIG_SEEN,
    CONFIG_SOURCE,
    is_being_deleted,
    unsafe_name,
)
from refkubelet.model.pod import annotations as annotations_of
from refkubelet.model.pod import full_name as full_name_of
from refkubelet.model.pod import labels as labels_of
from refkubelet.model.pod import uid as uid_of
from refkubelet.model.pod_updates import PodOperation, PodSource, PodUpdate

LOCAL_ANNOTATIONS: Final = frozenset({CONFIG_SOURCE, CONFIG_SEEN, CONFIG_MIRROR})  # SRC-061


class MergeResult(Struct, frozen=True):
    """The new set of a source (UID -> pod), the operations in their order, and the pods that were
    left out."""

    pods: Mapping[str, Pod]
    updates: tuple[PodUpdate, ...]
    dropped: tuple[DroppedPod, ...] = ()


class DroppedPod(Struct, frozen=True):
    """A pod that is left out, and why."""

    pod: Pod
    why: str


def merge_pod_sources(
    previous: Mapping[str, Pod],
    message: Sequence[Pod],
    source: PodSource,
    *,
    first: bool,
    seen_at: str,
    same: Collection[int] = (),
) -> MergeResult:
    """Compare one source's message with the set before it.

    `same`: the identities of the objects of which pods of that set were made, which are not
    compared again: a source tells of all its pods whenever one has changed. `first`: this is the
    first message of the source, for which an ADD is made even if it would be empty; `seen_at`: the
    annotation kubernetes.io/config.seen of new pods (SRC-065). Order: REMOVE, ADD, UPDATE, DELETE,
    the empty ADD, RECONCILE (SRC-064).
    """
    pods: dict[str, Pod] = {}
    changes: dict[PodOperation, list[Pod]] = {operation: [] for operation in PodOperation}
    names: set[str] = set()
    unsafe, twice = list[DroppedPod](), list[DroppedPod]()
    for pod in message:
        known = previous.get(uid_of(pod)) if id(pod) in same else None
        if known is None and (why := unsafe_name(pod)) is not None:  # SRC-025
            unsafe.append(DroppedPod(pod, why))
            continue
        name = full_name_of(pod)
        if name in names:  # SRC-024, LIFE-002
            twice.append(DroppedPod(pod, f'duplicate pod name "{name.rpartition("_")[0]}"'))
            continue
        names.add(name)
        if known is not None:
            pods[uid_of(known)] = known
            continue
        old = previous.get(uid_of(pod))
        operation, merged_pod = _compare(old, pod, source, seen_at)
        pods[uid_of(merged_pod)] = merged_pod
        if operation is not None:
            changes[operation].append(merged_pod)
    changes[PodOperation.REMOVE] = [p for u, p in previous.items() if u not in pods]
    return MergeResult(pods, _in_order(changes, source, first), (*unsafe, *twice))


def _compare(
    old: Pod | None, new: Pod, source: PodSource, seen_at: str
) -> tuple[PodOperation | None, Pod]:
    """The operation for one pod (None: it has not changed), and the object to keep."""
    if old is None:
        return PodOperation.ADD, _annotated(new, source, seen_at)  # also when deleted: SRC-063
    if differ_semantically(old, new):
        deleted = is_being_deleted(new)
        return (PodOperation.DELETE if deleted else PodOperation.UPDATE), _taken_over(old, new)
    if old.status != new.status:
        return PodOperation.RECONCILE, msgspec.structs.replace(old, status=new.status)
    return None, old


def _taken_over(old: Pod, new: Pod) -> Pod:
    """The old object with the changeable fields of the new one. Other fields, and the values of the
    kubelet's own annotations, stay (SRC-065, SRC-068)."""
    before, after = old.metadata, new.metadata
    assert before is not None  # both passed uid_of
    assert after is not None
    local = {k: v for k, v in annotations_of(old).items() if k in LOCAL_ANNOTATIONS}
    metadata = msgspec.structs.replace(
        before,
        labels=after.labels,
        annotations=annotations_of(new) | local,
        deletionTimestamp=after.deletionTimestamp,
        deletionGracePeriodSeconds=after.deletionGracePeriodSeconds,
        generation=after.generation,
    )
    return msgspec.structs.replace(old, metadata=metadata, spec=new.spec, status=new.status)


def differ_semantically(old: Pod, new: Pod) -> bool:
    """Whether spec, labels, deletion or annotations differ, which a pod worker must know
    (SRC-061)."""
    before, after = old.metadata, new.metadata
    assert before is not None  # both passed uid_of
    assert after is not None
    return (
        old.spec != new.spec
        or labels_of(old) != labels_of(new)
        or before.deletionTimestamp != after.deletionTimestamp
        or before.deletionGracePeriodSeconds != after.deletionGracePeriodSeconds
        or _foreign_annotations(old) != _foreign_annotations(new)
    )


def _foreign_annotations(pod: Pod) -> dict[str, str]:
    return {k: v for k, v in annotations_of(pod).items() if k not in LOCAL_ANNOTATIONS}


def _annotated(pod: Pod, source: PodSource, seen_at: str) -> Pod:
    """A copy with the kubelet's own annotations (SRC-034)."""
    merged = annotations_of(pod) | {CONFIG_SOURCE: source.value, CONFIG_SEEN: seen_at}
    metadata = msgspec.structs.replace(pod.metadata, annotations=merged)
    return msgspec.structs.replace(pod, metadata=metadata)


def _in_order(
    changes: Mapping[PodOperation, Sequence[Pod]], source: PodSource, first: bool
) -> tuple[PodUpdate, ...]:
    o = PodOperation
    result = [
        PodUpdate(operation, source, tuple(changes[operation]))
        for operation in (o.REMOVE, o.ADD, o.UPDATE, o.DELETE)
        if changes[operation]
    ]
    if first and not any(changes[operation] for operation in (o.ADD, o.UPDATE, o.DELETE)):
        result.append(PodUpdate(o.ADD, source))
    if changes[o.RECONCILE]:
        result.append(PodUpdate(o.RECONCILE, source, tuple(changes[o.RECONCILE])))
    return tuple(result)
