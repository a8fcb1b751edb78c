"""Laws about what a kubelet has to remember: how containers have ended, and what is done. They
are asked of worlds of search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, Final

from kubelet_conformance.laws.law import Seen
from kubelet_conformance.laws.moments import (
    deletions,
    is_of_api,
    law_of_worlds,
    plain_init_of,
    policy_of,
    shown_over_s,
    spec_of,
    was_edited,
)

UNKNOWN: Final = "ContainerStatusUnknown"
KINDS: Final = ("initContainerStatuses", "containerStatuses")


def _ends(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """How a container has ended, as its status tells it: {} where it does not."""
    for field in ("state", "lastState"):
        ended = (status.get(field) or {}).get("terminated")
        if ended:
            return dict(ended)
    return {}


def _is_done(spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether a container is shown to have ended, and is not to run again."""
    ended = (status.get("state") or {}).get("terminated")
    if not ended or ended.get("reason") == UNKNOWN:
        return False
    policy = policy_of(spec, status["name"])
    return policy == "Never" or (policy == "OnFailure" and ended.get("exitCode", 0) == 0)


@law_of_worlds("STAT-008", "LIFE-173.1")
def ends_stay(seen: Seen) -> Iterator[str]:
    """How a container has ended stays told, as long as the runtime has it, or, of one that is done,
    nobody else has taken it away. (In another sandbox init containers run again.)"""
    history = seen.history
    outside = history.did("outside")
    last: dict[str, dict[str, Mapping[str, Any]]] = {}
    for shown in history.shown:
        if not is_of_api(history, shown.uid) or was_edited(history, shown.uid):
            continue
        spec, known = spec_of(history, shown.uid), last.setdefault(shown.uid, {})
        for kind in KINDS:
            for status in shown.status.get(kind) or ():
                before = known.get(status["name"])
                known[status["name"]] = status
                at = f"status of {shown.pod} at {history.since(shown.at_s)}"
                if before is None or not _ends(before) or _is_elsewhere(seen, before, status):
                    continue
                if _is_done(spec, before):
                    was, now = _ends(before).get("exitCode", 0), _ends(status).get("exitCode", 0)
                    if (not _ends(status) or was != now) and not outside:
                        yield f"{at}: {status['name']} had ended with {was}, now {now}"
                elif not _ends(status) and not outside:
                    yield f"{at}: how {status['name']} has ended is told no more"


def _is_elsewhere(seen: Seen, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether two statuses of a container are about instances in two sandboxes."""
    of_both = [
        seen.lives.containers.get(str(each.get("containerID") or "").rpartition("/")[2])
        for each in (before, after)
    ]
    old, new = of_both
    return old is not None and new is not None and old.sandbox != new.sandbox


@law_of_worlds("LIFE-114", "LIFE-120.2")
def done_stays_done(seen: Seen) -> Iterator[str]:
    """A container that was shown to have ended, and is not to run again, is not made again in its
    sandbox, also when it is gone from the runtime; but init containers run again when somebody has
    taken records of the pod away: nothing may tell that they have."""
    history = seen.history
    done: dict[tuple[str, str], float] = {}
    stopped = {one.id for one in seen.lives.containers.values() if one.stops}
    for shown in history.shown:
        spec = spec_of(history, shown.uid)
        if not is_of_api(history, shown.uid) or was_edited(history, shown.uid):
            continue
        for kind in KINDS:
            for status in shown.status.get(kind) or ():
                one_id = str(status.get("containerID") or "").rpartition("/")[2]
                if _is_done(spec, status) and one_id not in stopped:
                    done.setdefault((shown.uid, status["name"]), shown.at_s)
    boxes: dict[str, float] = {}
    outside = history.did("outside")
    for call in history.calls:
        if outside and call.container in plain_init_of(spec_of(history, call.uid)):
            continue
        if call.method == "RunPodSandbox":
            boxes[call.uid] = call.started_s
        elif call.method == "CreateContainer":
            since_s = done.get((call.uid, call.container))
            if since_s is not None and boxes.get(call.uid, 0.0) < since_s < call.started_s:
                at = history.since(call.started_s)
                yield f"{call.pod}/{call.container} is made again at {at}, and it had done its work"


@law_of_worlds("LIFE-120")
def initialized_again(seen: Seen) -> Iterator[str]:
    """A regular container is made in a sandbox in which each init container was started before."""
    history = seen.history
    begun: dict[tuple[str, str], float] = {}
    for one in seen.lives.containers.values():
        if one.start_asked_s is not None:
            begun.setdefault((one.sandbox, one.name), one.start_asked_s)
    for one in seen.lives.containers.values():
        spec = spec_of(history, one.uid)
        regular = one.name in [each["name"] for each in spec.get("containers") or ()]
        if not regular or one.sandbox not in seen.lives.sandboxes or was_edited(history, one.uid):
            continue
        for each in spec.get("initContainers") or ():
            if begun.get((one.sandbox, each["name"]), inf) > one.asked_s:
                at = history.since(one.asked_s)
                yield f"{one.pod}/{one.name} is made at {at}, before {each['name']} was started"


@law_of_worlds("LIFE-111.3")
def no_sandbox_for_nothing(seen: Seen) -> Iterator[str]:
    """A pod gets no further sandbox when all its containers have succeeded for good."""
    history = seen.history
    if history.did("outside"):
        return
    for box in seen.lives.sandboxes.values():
        spec = spec_of(history, box.uid)
        if not is_of_api(history, box.uid) or was_edited(history, box.uid):
            continue
        lives = seen.lives.of_pod(box.uid)
        last = [
            next(
                (c for c in reversed(lives.get(each["name"], ())) if c.asked_s < box.asked_s), None
            )
            for each in spec["containers"]
        ]
        if all(
            one is not None
            and one.exit_code == 0
            and one.over_s is not None
            and one.over_s < box.asked_s
            and not one.stops
            and policy_of(spec, one.name) != "Always"
            for one in last
        ):
            yield f"pod {box.pod} gets a sandbox at {history.since(box.asked_s)} for nothing"


@law_of_worlds("GC-003")
def last_run_kept(seen: Seen) -> Iterator[str]:
    """Of the instances of a container of a pod that goes on, the last one that ran is kept."""
    history = seen.history
    if history.did("outside"):
        return  # the newer one may be gone
    asked, over = deletions(history), shown_over_s(history)
    there = {pod["metadata"].get("uid") for pod in history.stored.values()}
    for uid, given in history.pods.items():
        names = {each["name"] for each in given[0]["spec"]["containers"]}
        if uid not in there or len(given) > 1 or uid in asked or uid in over:
            continue
        for name, instances in seen.lives.of_pod(uid).items():
            for one in instances:
                if one.removed_s is None or one.started_s is None or name not in names:
                    continue
                later = [
                    c
                    for c in instances
                    if c.asked_s > one.asked_s and c.known_started_s is not None
                ]
                is_last = not any((c.start_asked_s or 0.0) <= one.removed_s for c in later)
                if is_last and one.removed_s < history.end_s:
                    at = history.since(one.removed_s)
                    yield f"{one.pod}/{name}, attempt {one.attempt}, is removed at {at}"


@law_of_worlds("GC-010.4")
def kept_when_not_stopped(seen: Seen) -> Iterator[str]:
    """A sandbox is not removed when it has just been said that it could not be stopped."""
    failed: dict[str, str] = {}
    for call in seen.history.calls:
        if call.method == "StopPodSandbox":
            code = call.error[0] if call.error else ""
            failed[call.request.pod_sandbox_id] = "" if code == "NOT_FOUND" else code
        elif call.method == "RemovePodSandbox" and failed.get(call.request.pod_sandbox_id):
            at = seen.history.since(call.started_s)
            yield f"sandbox of {call.pod} is removed at {at}, and could not be stopped"
