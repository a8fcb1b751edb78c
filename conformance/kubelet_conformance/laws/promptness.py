"""Laws about how soon things happen where nobody disturbs the kubelet. They are asked of worlds
of search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import Any, Final

from kubelet_conformance.laws.law import Seen
from kubelet_conformance.laws.lives import Container
from kubelet_conformance.laws.moments import (
    deletions,
    drivers_are_well,
    is_still,
    kubelet_runs,
    law_of_worlds,
    runtime_is_well,
    server_is_well,
    shown_over_s,
    sidecars_of,
    spec_of,
    under_way,
)

STOPPED_S: Final = 6.0
"""So long after its grace period the hooks of a container may hold up its end."""
OF_OTHERS: Final = ("PodSandboxStatus", "ContainerStatus", "PullImage")
"""Calls about another pod that are waited for: they are made one after the other."""
TURN_S: Final = 4.0
"""So long after those before it a sidecar is stopped."""
GONE_S: Final = 30.0
"""So long after the end of all that was of it an object may stay."""
BEGUN_S: Final = 2.0
"""So long after the deletion of a pod may be begun what was on its way."""
SILENT_S: Final = 60.0
"""A runtime that does not tell its status for so long is known to be dead."""


@law_of_worlds("LIFE-033", "LIFE-142.7")
def stopped_in_time(seen: Seen) -> Iterator[str]:
    """A container that runs when its pod is deleted is stopped before its grace period is over, a
    later and shorter one, too, whatever its hooks do."""
    history = seen.history
    for uid, asked in deletions(history).items():
        until_s = min(each.at_s + max(2.0, each.grace_s) for each in asked) + STOPPED_S
        begin_s = asked[0].at_s
        still = is_still(seen, uid, begin_s, until_s, counts=_is_no_command)
        if not still or _is_busy(seen, uid, begin_s):
            continue
        for one in _running(seen, uid, begin_s):
            stops = [stop.started_s for stop in one.stops if stop.started_s <= until_s]
            ended = one.over_s is not None and one.over_s <= until_s
            if not stops and not ended and until_s < history.end_s:
                yield (
                    f"{one.pod}/{one.name} is not stopped at {history.since(until_s)}, its pod was "
                    f"deleted at {history.since(begin_s)}"
                )


@law_of_worlds("LIFE-144.2")
def sidecars_in_turn(seen: Seen) -> Iterator[str]:
    """When all that runs before it has ended, a sidecar of a pod that is to end is stopped, or its
    hook begins."""
    history = seen.history
    hooks = [call for call in history.calls if call.method == "ExecSync"]
    for uid, asked in deletions(history).items():
        begin_s = asked[0].at_s
        side = sidecars_of(spec_of(history, uid))
        running = _running(seen, uid, begin_s)
        for one in running:
            if one.name not in side:
                continue
            later = side[side.index(one.name) + 1 :]
            before = [c for c in running if c.name not in side or c.name in later]
            if any(each.over_s is None for each in before):
                continue
            turn_s = max([begin_s, *(each.over_s or 0.0 for each in before)])
            if not is_still(seen, uid, begin_s, turn_s + TURN_S) or _is_busy(seen, uid, begin_s):
                continue
            begun = [stop.started_s for stop in one.stops]
            begun += [c.started_s for c in hooks if c.request.container_id == one.id]
            over = one.over_s is not None and one.over_s <= turn_s + TURN_S
            if not over and not any(begin_s <= at_s <= turn_s + TURN_S for at_s in begun):
                yield f"{one.pod}/{one.name} waits at {history.since(turn_s + TURN_S)} for nothing"


@law_of_worlds("STAT-030.4", "STAT-020.2")
def gone_in_time(seen: Seen) -> Iterator[str]:
    """The object of a pod that was deleted goes when its containers and its sandbox have ended, and
    the runtime has stopped the sandbox without an error."""
    history = seen.history
    if history.did("user"):  # it may have gone without a word
        return
    gone_s, over = _deleted_by_kubelet(seen), shown_over_s(history)
    failed_s: dict[str, list[float]] = {}
    for call in history.calls:
        if call.method == "StopPodSandbox" and call.error is not None and call.ended_s is not None:
            failed_s.setdefault(call.uid, []).append(call.ended_s)
    for uid, asked in deletions(history).items():
        if over.get(uid, inf) <= asked[-1].at_s or any(each.grace_s == 0 for each in asked):
            continue  # the server deletes it at once
        instances = [one for each in seen.lives.of_pod(uid).values() for one in each]
        boxes = [box for box in seen.lives.sandboxes.values() if box.uid == uid]
        ends_s = [one.over_s for one in instances if one.started_s is not None]
        ends_s += [box.over_s for box in boxes]
        ends_s += failed_s.get(uid, [])
        if None in ends_s:
            continue
        over_s = max([asked[0].at_s, *(end_s or 0.0 for end_s in ends_s)])
        end_s = over_s + GONE_S
        if end_s > history.end_s or not is_still(seen, uid, asked[0].at_s, end_s):
            continue
        if not drivers_are_well(history, asked[0].at_s, end_s):
            continue  # its volumes hold it up
        if not any(asked[0].at_s <= at_s <= end_s for at_s in gone_s.get(asked[0].pod, ())):
            yield f"pod {asked[0].pod} is still there at {history.since(end_s)}"


@law_of_worlds("LIFE-131", "LIFE-032")
def nothing_begun_at_the_end(seen: Seen) -> Iterator[str]:
    """No container of a pod that was deleted is made or started."""
    history = seen.history
    asked = deletions(history)
    for call in history.calls:
        if call.method not in ("RunPodSandbox", "CreateContainer", "StartContainer"):
            continue
        if call.uid not in asked or call.started_s > history.end_s:
            continue
        begin_s = asked[call.uid][0].at_s
        late = call.started_s - begin_s > BEGUN_S
        well = server_is_well(history, begin_s, call.started_s)
        if late and well and runtime_is_well(history, begin_s, call.started_s, call.uid):
            at, waits = history.since(call.started_s), under_way(seen, call.uid, begin_s)
            yield f"{call.method} {call.pod}/{call.container} at {at}: it was deleted{waits}"


@law_of_worlds("PLEG-202.1", "PLEG-202.4")
def dead_runtime_told(seen: Seen) -> Iterator[str]:
    """A node of which the runtime does not tell its status is not ready, where there is a server to
    be told."""
    history = seen.history
    if not history.requests:
        return
    told = [call for call in history.calls if call.method == "Status"]
    well_s = [call.ended_s for call in told if call.error is None and call.ended_s is not None]
    tried_s = [call.started_s for call in told]
    unready_s = [
        one.ended_s
        for one in history.requests
        if one.method == "PATCH" and "/nodes/" in one.path and _says_unready(one.body)
    ]
    for begin_s, end_s in pairwise([*well_s, history.end_s]):
        if end_s - begin_s < SILENT_S or not any(begin_s < at < end_s for at in tried_s):
            continue
        runs = kubelet_runs(history, begin_s, end_s) and server_is_well(history, begin_s, end_s)
        if runs and not any(begin_s < at_s < end_s + 1 for at_s in unready_s):
            silent = f"{history.since(begin_s)} to {history.since(end_s)}"
            yield f"the runtime tells nothing from {silent}, and the node stays ready"


def _says_unready(body: Any) -> bool:
    conditions = ((body or {}).get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") != "True" for c in conditions)


def _running(seen: Seen, uid: str, at_s: float) -> Sequence[Container]:
    """The containers of a pod that run then, as the kubelet knows. (When it has made a container
    again, the runtime has told it that the one before is no more, or has forgotten that one.)"""
    made = [
        max((one for one in instances if one.asked_s < at_s), key=_asked_s, default=None)
        for instances in seen.lives.of_pod(uid).values()
    ]
    return [
        one
        for one in made
        if one is not None
        and one.started_s is not None
        and one.started_s < at_s
        and (one.over_s is None or one.over_s > at_s)
    ]


def _asked_s(one: Container) -> float:
    return one.asked_s


def _is_no_command(call: Any) -> bool:
    """Whether a call is none of a probe or hook: whatever happens to these holds up no end."""
    return bool(call.method != "ExecSync")


def _is_busy(seen: Seen, uid: str, at_s: float) -> bool:
    """Whether a call that is no command is under way then, about the pod, about none, or one that
    those of the pod wait for: it cannot be given up."""
    return any(
        (call.uid in (uid, "") or call.method in OF_OTHERS)
        and call.method != "ExecSync"
        and call.started_s <= at_s + 1
        and (call.ended_s is None or call.ended_s > at_s + 1)
        for call in seen.history.calls
    )


def _deleted_by_kubelet(seen: Seen) -> dict[str, list[float]]:
    """Name of a pod -> when the kubelet has deleted its object."""
    found: dict[str, list[float]] = {}
    for one in seen.history.requests:
        if one.method == "DELETE" and "/pods/" in one.path and one.status == 200:
            found.setdefault(one.path.rpartition("/")[2], []).append(one.ended_s)
    return found
