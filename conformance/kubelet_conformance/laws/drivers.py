"""Laws about volumes of storage drivers, as the calls to the drivers tell of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from kubelet_conformance.laws.history import History
from kubelet_conformance.laws.law import Seen, law
from kubelet_conformance.laws.lives import Container

STAGE: Final = "NodeStageVolume"
PUBLISH: Final = "NodePublishVolume"
UNPUBLISH: Final = "NodeUnpublishVolume"
UNSTAGE: Final = "NodeUnstageVolume"


class Places(Struct):
    """Where volumes of one driver are, as far as its answers told the kubelet."""

    published: dict[str, str]
    """Target path -> volume ID."""
    staged: dict[str, float]
    """Volume ID -> when it was staged last."""


@law("NODE-219.1")
def unpublished_when_unused(seen: Seen) -> Iterator[str]:
    """No volume is unpublished while a container runs that has it. (Kubelet 1.36.2 does so with
    volumes of pods that were gone when it started: those that it has published count.)"""
    users = _users(seen)
    for calls in seen.history.driver_calls.values():
        for call in calls:
            if call.method != UNPUBLISH or not _is_kept(seen.history, calls, call):
                continue
            volume, at = call.request.volume_id, seen.history.since(call.started_s)
            for one, mounts in users:
                is_user = _has(mounts, call.request.target_path)
                if is_user and _runs_at(seen.history, one, call.started_s):
                    yield f"{volume} is unpublished at {at}, and {one.pod}/{one.name} runs with it"


@law("NODE-219.2")
def unstaged_when_unpublished(seen: Seen) -> Iterator[str]:
    """No volume is unstaged while it is published for a pod."""
    for calls in seen.history.driver_calls.values():
        for number, call in enumerate(calls):
            if call.method != UNSTAGE:
                continue
            before = places_of(calls[:number], call.started_s)
            volume, at = call.request.volume_id, seen.history.since(call.started_s)
            for target in (t for t, other in before.published.items() if other == volume):
                yield f"{volume} is unstaged at {at}, and is published at {target}"


@law("NODE-219.1", "NODE-219.2")
def volumes_are_ended(seen: Seen) -> Iterator[str]:
    """When all pods are removed, each volume that this kubelet has published or staged is
    unpublished and unstaged, if its driver answers."""
    history = seen.history
    if not history.left.asked:
        return
    began_s = _last_start_s(history)
    for driver in sorted(history.driver_calls.keys() - history.silent_drivers):
        calls = [c for c in history.driver_calls[driver] if c.started_s >= began_s]
        still = places_of(calls)
        for target, volume in still.published.items():
            yield f"{driver}: {volume} is still published at {target}"
        for volume in still.staged:
            yield f"{driver}: {volume} is still staged"


def _is_kept(history: History, calls: Sequence[Any], end: Any) -> bool:
    """Whether the kubelet that ends a volume has published it itself."""
    starts = [each.at_s for each in history.planned if each.kind == "start"]
    began_s = max((at_s for at_s in starts if at_s <= end.started_s), default=history.start_s)
    return any(
        call.method == PUBLISH
        and call.request.target_path == end.request.target_path
        and began_s <= call.started_s <= end.started_s
        for call in calls
    )


def places_of(calls: Any, until_s: float | None = None) -> Places:
    """Where the volumes are after these calls; `until_s`: what had not ended by then has no
    effect. What failed has none, either: an end that failed is tried again."""
    places = Places({}, {})
    for call in calls:
        over = call.ended_s is not None and (until_s is None or call.ended_s <= until_s)
        if call.error is not None or not over:
            continue
        request = call.request
        if call.method == PUBLISH:
            places.published[request.target_path] = request.volume_id
        elif call.method == UNPUBLISH:
            places.published.pop(request.target_path, None)
        elif call.method == STAGE:
            places.staged[request.volume_id] = call.started_s
        elif call.method == UNSTAGE:
            places.staged.pop(request.volume_id, None)
    return places


def _last_start_s(history: History) -> float:
    """When the kubelet was started that runs in the end."""
    starts = [each.at_s for each in history.planned if each.kind in ("start", "stop", "kill")]
    return max(starts, default=history.start_s)


def _users(seen: Seen) -> list[tuple[Container, Mapping[str, str]]]:
    """The containers that have mounts, and these: path on the node -> path in the container."""
    found: list[tuple[Container, Mapping[str, str]]] = []
    for call in seen.history.calls:
        if call.method == "CreateContainer" and call.error is None and call.ended_s is not None:
            one = seen.lives.containers.get(call.response.container_id)
            mounts = {each.host_path: each.container_path for each in call.request.config.mounts}
            if one is not None and mounts:
                found.append((one, mounts))
    return found


def _has(mounts: Mapping[str, str], target: str) -> bool:
    return any(path == target or path.startswith(f"{target}/") for path in mounts)


def _runs_at(history: History, one: Container, at_s: float) -> bool:
    """Whether it runs then for all that is known: where something has happened in the runtime
    behind the kubelet's back, it may be gone without any call that tells so."""
    if one.started_s is None or one.started_s > at_s:
        return False
    behind = (each for each in history.planned if each.kind in ("outside", "stopped"))
    if any(one.started_s - 1.0 <= each.at_s <= at_s for each in behind):
        return False
    return one.over_s is None or one.over_s > at_s
