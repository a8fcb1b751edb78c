"""Laws about how pods begin, and how what has failed is tried again. They are asked of worlds of
search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import Any, Final

from kubelet_conformance.laws.history import History, PlannedKind, Shown
from kubelet_conformance.laws.law import Seen
from kubelet_conformance.laws.moments import (
    AROUND_S,
    calm_since,
    deletions,
    drivers_are_well,
    is_of_api,
    kubelet_runs,
    law_of_worlds,
    listens_to_events,
    runtime_is_well,
    server_is_well,
    shown_over_s,
    spec_of,
)

AT_ONCE: Final = 4
"""So many failures of one call within AT_ONCE_S are too many."""
AT_ONCE_S: Final = 2.0
IN_A_ROW: Final = 4
IN_A_ROW_S: Final = 8.0
"""So many failures, each so soon after the one before, want a reason."""
NO_NETWORK: Final = "network is not ready"
"""What a kubelet tries again each second (LIFE-037)."""
STIRRING: Final = (
    *("RunPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "StopPodSandbox"),
    *("RemoveContainer", "RemovePodSandbox", "ExecSync"),
)
"""Calls after which a pod may be synced again."""
UID: Final = "io.kubernetes.pod.uid"
BEGUN_S: Final = 40.0
"""So long a pod may wait for its sandbox: that a name is free is seen when it is asked again, after
16 s at most (MIRR-002)."""
BEFORE_S: Final = 5.0
"""So long before it is seen that a pod is there anew it may have begun."""
RESTARTED_S: Final = 20.0
"""So long after a start a kubelet may show no pods."""
JUST_NOW_S: Final = 1.0
"""So long a change of a manifest may not have been noticed."""
NETWORK_S: Final = 20.0
"""So long before a moment the runtime has told of its network."""


@law_of_worlds("MIRR-002.3", "MIRR-003.1", "LIFE-070", "CRI-086.1")
def begun_in_time(seen: Seen) -> Iterator[str]:
    """A pod that is there, or there anew, gets a sandbox soon, once what had its name has ended and
    nobody disturbs the kubelet."""
    history = seen.history
    boxes: dict[str, list[float]] = {}
    for call in history.calls:
        if call.method == "RunPodSandbox":
            boxes.setdefault(call.uid, []).append(call.started_s)
    known: set[str] = set()
    for shown in history.shown:
        is_new = shown.uid not in known
        known.add(shown.uid)
        if not is_new and not _came_back(history, shown):
            continue
        since_s = -inf if is_new else shown.at_s - BEFORE_S
        first_s = next((at_s for at_s in boxes.get(shown.uid, ()) if at_s >= since_s), inf)
        for begin_s in _beginnings(seen, shown):
            until_s = begin_s + BEGUN_S
            if first_s > until_s and _is_to_begin(seen, shown, begin_s, until_s):
                yield (
                    f"{shown.pod} is there since {history.since(shown.at_s)}, and has not begun at "
                    f"{history.since(until_s)}"
                )
                break


def _came_back(history: History, shown: Shown) -> bool:
    """Whether a pod was away and is to run again: one that has ended for good may not, and after a
    start of the kubelet it goes on as it is."""
    always = str(spec_of(history, shown.uid).get("restartPolicy") or "Always") == "Always"
    started = history.did_between(shown.at_s - RESTARTED_S, shown.at_s, "stop", "kill", "start")
    return shown.again and always and not started


def _beginnings(seen: Seen, shown: Shown) -> Iterator[float]:
    """The moments from which on the pod can begin: it is there, a kubelet starts, all is calm, each
    not before what had its name has ended."""
    history = seen.history
    starts = [each.at_s for each in history.planned if each.kind == "start"]
    moments = [at_s for at_s in (*starts, calm_since(history)) if shown.at_s < at_s < inf]
    earlier = [
        one
        for one in seen.lives.containers.values()
        if one.pod == shown.pod and one.asked_s < shown.at_s and one.start_asked_s is not None
    ]
    boxes = [
        box
        for box in seen.lives.sandboxes.values()
        if box.pod == shown.pod and box.asked_s < shown.at_s - BEFORE_S
    ]
    over_s = [one.over_s for one in earlier] + [box.over_s for box in boxes]
    free_s = max((inf if end_s is None else end_s for end_s in over_s), default=0.0)
    for at_s in (shown.at_s, *moments):
        yield max(at_s + 0.1, free_s)


def _is_to_begin(seen: Seen, shown: Shown, begin_s: float, until_s: float) -> bool:
    """Whether the pod is wanted all this time, and one kubelet can do what it wants."""
    history, uid = seen.history, shown.uid
    asked, over_s = deletions(history).get(uid), shown_over_s(history).get(uid, inf)
    moved = not is_of_api(history, uid) and _manifests_move(history, shown.at_s, until_s)
    return (
        uid in history.pods
        and until_s <= history.end_s
        and over_s > until_s
        and (not asked or asked[0].at_s > until_s)
        and not _was_deleted_at_once(history, shown)
        and not moved
        and not _name_is_taken(seen, shown, begin_s, until_s)
        and not history.did_between(shown.at_s - BEFORE_S, until_s, "user")
        and _has_its_objects(history, uid)
        and (not _has_drivers(history, uid) or drivers_are_well(history, begin_s, until_s))
        and kubelet_runs(history, begin_s, until_s)
        and server_is_well(history, begin_s, until_s)
        and runtime_is_well(history, begin_s, until_s)
        and _has_network(history, begin_s - NETWORK_S, until_s)
    )


def _was_deleted_at_once(history: History, shown: Shown) -> bool:
    """Whether a user has deleted a pod of its name just before it was shown: perhaps this one."""
    return any(
        one.method == "DELETE"
        and one.path.endswith(f"/pods/{shown.pod}")
        and shown.at_s - BEFORE_S <= one.started_s <= shown.at_s
        for one in history.by_users
    )


def _name_is_taken(seen: Seen, shown: Shown, begin_s: float, until_s: float) -> bool:
    """Whether a container of another pod of its name runs then: of two manifests of one name only
    one runs at a time."""
    return any(
        one.asked_s < until_s and (one.over_s is None or one.over_s > begin_s)
        for one in seen.lives.containers.values()
        if one.pod == shown.pod and one.uid != shown.uid and one.start_asked_s is not None
    )


def _manifests_move(history: History, since_s: float, until_s: float) -> bool:
    """Whether manifests change in this time, or more than one has just before: one change is what
    brought the pod."""
    before = [
        each
        for each in history.planned
        if each.kind == "manifest" and since_s - JUST_NOW_S <= each.at_s <= since_s
    ]
    return len(before) > 1 or history.did_between(since_s, until_s, "manifest")


def _has_drivers(history: History, uid: str) -> bool:
    """Whether volumes of it are a driver's."""
    volumes = spec_of(history, uid).get("volumes") or ()
    return any("csi" in each or "persistentVolumeClaim" in each for each in volumes)


def _has_its_objects(history: History, uid: str) -> bool:
    """Whether nothing that is a volume of it may be missing."""
    volumes = spec_of(history, uid).get("volumes") or ()
    moved = any("/configmaps" in one.path for one in history.by_users if one.method == "DELETE")
    return not (moved and any("configMap" in each for each in volumes))


def _has_network(history: History, begin_s: float, until_s: float) -> bool:
    """Whether the runtime has told of no condition in this time that is not well."""
    return all(
        condition.status
        for call in history.calls
        if call.method == "Status" and call.response is not None
        if begin_s <= call.started_s <= until_s
        for condition in call.response.status.conditions
    )


@law_of_worlds("LIFE-037")
def retries_wait(seen: Seen) -> Iterator[str]:
    """What has failed is not tried again and again at once, nor within seconds where nothing has
    happened to its pod since."""
    failed: dict[tuple[str, str, str], list[float]] = {}
    for call in seen.history.calls:
        if call.method in ("RunPodSandbox", "CreateContainer", "StartContainer") and call.error:
            times = failed.setdefault((call.method, call.uid, call.container), [])
            times.append(call.started_s)
            at_once = len(times) >= AT_ONCE and times[-1] - times[-AT_ONCE] < AT_ONCE_S
            if at_once or _in_a_row(seen, call, times[-IN_A_ROW:]):
                at = seen.history.since(call.started_s)
                yield f"{call.method} {call.pod}/{call.container} at {at} fails again at once"
                times.clear()


def _in_a_row(seen: Seen, call: Any, times: Sequence[float]) -> bool:
    """Whether these are failures of a call, each soon after the one before, and nothing that a
    kubelet may be told of has happened to the pod meanwhile."""
    if len(times) < IN_A_ROW or max(b - a for a, b in pairwise(times)) > IN_A_ROW_S:
        return False
    history, (begin_s, *_, end_s) = seen.history, times
    if listens_to_events(history) or NO_NETWORK in call.error[1]:
        return False
    users = any(begin_s - AROUND_S <= one.started_s <= end_s for one in history.by_users)
    kinds: Sequence[PlannedKind] = ("start", "outside", "stopped", "user", "manifest")
    if users or history.did_between(begin_s - AROUND_S, end_s, *kinds):
        return False
    told: list[Any] = []
    for each in history.calls:
        if each.ended_s is None or not begin_s - AROUND_S <= each.ended_s <= end_s:
            continue
        if each.uid == call.uid and each.error is None and each.method in STIRRING:
            return False
        if each.method == "ListContainers" and each.error is None and not each.request.filter.id:
            told.append(_told_of(each.response.containers, call.uid))
    return all(one == told[0] for one in told)


def _told_of(listed: Any, uid: str) -> frozenset[tuple[str, int]]:
    """What a list of containers tells of a pod."""
    return frozenset((one.id, one.state) for one in listed if one.labels.get(UID) == uid)
