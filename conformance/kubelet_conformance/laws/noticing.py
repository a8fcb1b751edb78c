"""Laws about how soon it is noticed, and shown, that a container has ended. They are asked of
worlds of search."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any, Final

from kubelet_conformance.laws.law import Seen
from kubelet_conformance.laws.lives import Container
from kubelet_conformance.laws.moments import (
    command_of,
    containers_of,
    is_look,
    is_still,
    kubelet_runs,
    law_of_worlds,
    listens_to_events,
    policy_of,
    spec_of,
    under_way,
)

NOTICED_S: Final = 60.0
"""So long the end of a container may not be noticed."""
SHOWN_S: Final = 15.0
"""So long a container may be shown to run after its end was noticed."""


@law_of_worlds("PLEG-301", "PLEG-006.2")
def ends_noticed(seen: Seen) -> Iterator[str]:
    """That a container has ended is noticed within a minute, once nobody disturbs the kubelet."""
    history = seen.history
    disturbed = [each.at_s for each in history.planned if each.kind != "user"]
    disturbed += [c.ended_s for c in history.calls if c.disturbed and c.ended_s is not None]
    disturbed += [one.ended_s for one in history.requests if not one.status or one.status >= 500]
    for one, noticed_s in _noticed(seen):
        ended_s = history.start_s + (one.finished_ns - history.start_ns) / 1e9
        before = [at_s for at_s in disturbed if at_s <= noticed_s]
        since_s = max([ended_s, *before, *_held_up_s(seen, one, noticed_s)])
        if noticed_s - since_s > NOTICED_S and kubelet_runs(history, since_s + 1, noticed_s):
            yield (
                f"{one.pod}/{one.name} has ended at {history.since(ended_s)}, which is noticed at "
                f"{history.since(noticed_s)}{_failed_list(seen, ended_s, noticed_s)}"
            )


def _failed_list(seen: Seen, begin_s: float, end_s: float) -> str:
    """That a list of what runs had failed in this time, to be put behind a sentence; "": none."""
    for call in seen.history.calls:
        is_list = call.method in ("ListPodSandbox", "ListContainers")
        if is_list and call.error is not None and begin_s <= call.started_s <= end_s:
            return f": a list had failed at {seen.history.since(call.started_s)}"
    return ""


def _held_up_s(seen: Seen, one: Container, noticed_s: float) -> Iterator[float]:
    """When calls have ended that a step of the pod has waited for, such as a hook after a start:
    where the kubelet listens to events nothing of the pod is shown before."""
    for call in seen.history.calls if listens_to_events(seen.history) else ():
        over_s = noticed_s + 1 if call.ended_s is None else call.ended_s
        if call.uid == one.uid and call.started_s + SHOWN_S < over_s <= noticed_s:
            yield over_s


def _noticed(seen: Seen) -> Iterator[tuple[Container, float]]:
    """The containers of which the runtime has told when they ended, and when the kubelet knew:
    where it listens to events, when it has first shown so."""
    history = seen.history
    by_events, told = listens_to_events(history), dict[str, float]()
    for shown in history.shown if by_events else ():
        for kind in ("initContainerStatuses", "containerStatuses"):
            for status in shown.status.get(kind) or ():
                for state in (status.get("state") or {}, status.get("lastState") or {}):
                    one_id = str((state.get("terminated") or {}).get("containerID") or "")
                    told.setdefault(one_id.rpartition("/")[2], shown.at_s)
    for one in seen.lives.containers.values():
        noticed_s = told.get(one.id) if by_events else one.over_s
        if one.finished_ns and noticed_s is not None and noticed_s <= history.end_s:
            yield one, noticed_s


@law_of_worlds("STAT-012.3")
def ends_shown(seen: Seen) -> Iterator[str]:
    """A container that is known to have ended is not shown to run for long, whatever a sync of its
    pod waits for. But while others of the pod are being stopped nothing is shown, and while a sync
    waits not the end of a container that is not started again."""
    history = seen.history
    over = {one.id: one for one in seen.lives.containers.values() if one.over_s is not None}
    following: dict[str, Any] = {}
    for one in reversed(history.shown):
        after = following.get(one.uid)
        following[one.uid] = one
        if after is None or after.again:
            continue
        for kind in ("initContainerStatuses", "containerStatuses"):
            for status in one.status.get(kind) or ():
                one_id = str(status.get("containerID") or "").rpartition("/")[2]
                if "running" not in (status.get("state") or {}) or one_id not in over:
                    continue
                ended = over[one_id]
                since_s = _stopped_s(seen, one.uid, max(ended.over_s or 0.0, one.at_s))
                until_s = since_s + SHOWN_S
                if after.at_s > until_s and is_still(
                    seen, one.uid, since_s, until_s, counts=is_look
                ):
                    at, why = history.since(until_s), under_way(seen, one.uid, until_s)
                    if why and _is_for_good(seen, ended):
                        continue
                    yield f"{one.pod}/{status['name']} is still shown to run at {at}{why}"


def _is_for_good(seen: Seen, ended: Container) -> bool:
    """Whether a container that has ended so is not started again."""
    policy = policy_of(spec_of(seen.history, ended.uid), ended.name)
    return policy == "Never" or (policy == "OnFailure" and ended.exit_code == 0)


def _stopped_s(seen: Seen, uid: str, at_s: float) -> float:
    """That moment, or when the containers of the pod that are being stopped then have ended."""
    hooks = {command_of(each, "preStop") for each in containers_of(spec_of(seen.history, uid))}
    for call in seen.history.calls:
        stops = call.method in ("StopContainer", "StopPodSandbox")
        if call.method == "ExecSync":
            stops = tuple(call.request.cmd) in hooks
        if stops and call.uid == uid and call.started_s <= at_s + SHOWN_S:
            at_s = max(at_s, inf if call.ended_s is None else call.ended_s)
    return at_s
