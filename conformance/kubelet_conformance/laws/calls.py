"""Laws about calls: none that only a mistake explains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, Final

from kubelet_conformance.laws.law import Seen, law
from kubelet_conformance.laws.lives import Container, Lives

MISTAKES: Final = ("INVALID_ARGUMENT", "ALREADY_EXISTS", "FAILED_PRECONDITION")
"""Codes with which a runtime refuses what its client should not have asked. UNIMPLEMENTED is none:
a kubelet finds out so what an older runtime has (CRI-009.3)."""
AWAY_S: Final = 15.0
"""So long after the runtime was away a pod may be shown as it was: its sync is tried again."""
OUTSIDE_S: Final = 1.5
"""So long a kubelet may go on with a sandbox that somebody else has stopped, although an answer has
said so: it looks at that when it lists sandboxes again."""
STARTING: Final = (
    *("RunPodSandbox", "ImageStatus", "PullImage", "CreateContainer", "StartContainer"),
)
"""The calls with which a sync starts a pod, one after the other."""
NAME_TAKEN: Final = "failed to reserve "
"""So containerd begins when a sandbox or container is to have a name that another one has; with the
code UNKNOWN."""
MIN_TIMEOUT_S: Final = 2


@law("LIFE-131.1")
def no_mistaken_call(seen: Seen) -> Iterator[str]:
    """No call is refused as a mistake that no planned fault explains."""
    faults = {each.about for each in seen.history.planned if each.kind == "fault"}
    if "*" in faults or seen.history.did("outside"):
        return
    for call in seen.history.calls:
        if call.error is None or call.disturbed or call.method in faults:
            continue
        if call.error[0] in MISTAKES or call.error[1].startswith(NAME_TAKEN):
            yield f"{call.method} {call.pod}/{call.container} fails: {': '.join(call.error)}"


@law("GC-002.2", "GC-010.1")
def removed_when_over(seen: Seen) -> Iterator[str]:
    """A container is removed when it is known to have ended, or was never started, a sandbox when
    it was stopped."""
    if seen.history.did("outside", "stop", "kill"):
        return
    lives = seen.lives
    for call in seen.history.calls:
        if call.method == "RemoveContainer":
            one = lives.containers.get(call.request.container_id)
            if one is None or one.started_s is None or one.started_s > call.started_s:
                continue
            if one.over_s is None or one.over_s > call.started_s:
                yield f"{one.pod}/{one.name} is removed at {seen.history.since(call.started_s)}"
        elif call.method == "RemovePodSandbox":
            box = lives.sandboxes.get(call.request.pod_sandbox_id)
            if box is not None and (box.over_s is None or box.over_s > call.started_s):
                yield f"sandbox of {box.pod} is removed at {seen.history.since(call.started_s)}"


@law("PROBE-014.1")
def nothing_in_what_is_over(seen: Seen) -> Iterator[str]:
    """No command runs in a container that is known to have ended, unless the one before has failed
    and is tried again, or others of its pod are still being stopped; no container is made in a
    sandbox that was stopped. (A sync goes on that began before somebody else stopped it.)"""
    lives = seen.lives
    failed_s: dict[str, float] = {}
    held_up = seen.history.did("outside", "stopped", "fault", "server", "driver")
    for call in seen.history.calls:
        if call.method == "ExecSync":
            one = lives.containers.get(call.request.container_id)
            again = failed_s.get(call.request.container_id) == call.started_s
            if call.error is not None:
                failed_s[call.request.container_id] = call.ended_s
            if again or one is None or one.over_s is None or _others_stop(lives, one, call):
                continue
            if held_up and _step_waits(seen, one, call.started_s):
                continue
            over_s = _told_s(seen, one.over_s) + AWAY_S if held_up else one.over_s + 1.0
            if over_s < call.started_s:
                at = seen.history.since(call.started_s)
                yield f"a command runs in {one.pod}/{one.name} at {at}, which had ended"
        elif call.method == "CreateContainer":
            box = lives.sandboxes.get(call.request.pod_sandbox_id)
            slack_s = OUTSIDE_S if seen.history.did("outside", "stopped") else 0.0
            if box is None or box.over_s is None or _was_held_up(seen, box.over_s):
                continue
            if _waited_meanwhile(seen, call, box.over_s):
                continue
            if box.over_s < call.started_s - slack_s:
                at = seen.history.since(call.started_s)
                yield f"{call.pod}/{call.container} is made at {at} in a stopped sandbox"


def _told_s(seen: Seen, over_s: float) -> float:
    """When a list has told what there was after that moment: the runtime may be away meanwhile."""
    return next(
        (
            call.ended_s
            for call in seen.history.calls
            if call.method == "ListContainers" and call.error is None and call.ended_s is not None
            if call.started_s >= over_s
        ),
        inf,
    )


def _step_waits(seen: Seen, one: Container, at_s: float) -> bool:
    """Whether a call of its pod is under way then, for which its step waits, or one of no pod that
    somebody holds up, such as a list: nothing new is known before."""
    return any(
        ((call.uid == one.uid and call.method != "ExecSync") or (call.disturbed and not call.uid))
        and call.started_s <= at_s
        and (call.ended_s is None or call.ended_s >= at_s - 1.0)
        for call in seen.history.calls
    )


def _was_held_up(seen: Seen, over_s: float) -> bool:
    """Whether somebody else has stopped a sandbox while a fault held up a call with which a pod is
    started: that sync goes on with what it knew at its begin."""
    return seen.history.did("outside", "stopped") and any(
        call.disturbed
        and call.method in STARTING
        and call.started_s <= over_s <= (over_s if call.ended_s is None else call.ended_s)
        for call in seen.history.calls
    )


def _waited_meanwhile(seen: Seen, made: Any, over_s: float) -> bool:
    """Whether the sync that makes a container has just waited for its image, or for a hook of the
    one before, while somebody else stopped the sandbox."""
    return seen.history.did("outside", "stopped") and any(
        call.method in ("PullImage", "ExecSync")
        and call.uid == made.uid
        and call.ended_s is not None
        and max(over_s, made.started_s - OUTSIDE_S) <= call.ended_s <= made.started_s
        for call in seen.history.calls
    )


def _others_stop(lives: Lives, one: Container, call: Any) -> bool:
    """Whether a container was stopped with its pod, of which others have not ended yet: the status
    of the pod is made anew when all have."""
    if not one.stops:
        return False
    others = (other for each in lives.of_pod(one.uid).values() for other in each)
    return any(
        other.over_s is None or other.over_s > call.started_s - 1
        for other in others
        if other is not one and other.known_started_s is not None
    )


@law("LIFE-143.1", "LIFE-143.5")
def grace_kept(seen: Seen) -> Iterator[str]:
    """No container gets more time to end than anybody has given its pod, nor less than 2 s."""
    graces = _graces(seen)
    for one in seen.lives.containers.values():
        named = graces.get(one.uid)
        for call in one.stops:
            asked = call.request.timeout
            at = f"{one.pod}/{one.name} at {seen.history.since(call.started_s)}"
            if asked < MIN_TIMEOUT_S:
                yield f"{at}: StopContainer with a timeout of {asked} s"
            elif named is not None and asked > max(MIN_TIMEOUT_S, *named):
                yield f"{at}: StopContainer with a timeout of {asked} s, given were {named}"


def _graces(seen: Seen) -> Mapping[str, list[int]]:
    """UID -> all graces that were given to the pod, in its spec, by users, by the configuration."""
    config = seen.history.config
    general = [
        int(config.get("evictionMaxPodGracePeriod") or 0),
        _seconds(config.get("shutdownGracePeriod")),
        *(
            int(each.get("shutdownGracePeriodSeconds") or 0)
            for each in config.get("shutdownGracePeriodByPodPriority") or ()
        ),
    ]
    asked: dict[str, list[int]] = {}
    for request in seen.history.by_users:
        if request.method == "DELETE" and isinstance(request.body, dict):
            name = request.path.rpartition("/")[2]
            given = request.body.get("gracePeriodSeconds")
            asked.setdefault(name, []).append(int(given) if given is not None else 0)
    graces = {}
    for uid, given in seen.history.pods.items():
        own = [int(each["spec"].get("terminationGracePeriodSeconds") or 0) for each in given]
        own += [_of_deletion(each) for each in given]
        own += [grace for each in given for grace in _of_probes(each["spec"])]
        graces[uid] = own + general + asked.get(given[0]["metadata"]["name"], [])
    return graces


def _of_deletion(pod: Mapping[str, Any]) -> int:
    return int(pod["metadata"].get("deletionGracePeriodSeconds") or 0)


def _of_probes(spec: Mapping[str, Any]) -> Iterator[int]:
    for kind in ("initContainers", "containers"):
        for each in spec.get(kind) or ():
            for probe in ("livenessProbe", "startupProbe"):
                yield int((each.get(probe) or {}).get("terminationGracePeriodSeconds") or 0)


def _seconds(duration: object) -> int:
    """A duration such as `30s`, in seconds; of every other form a large number."""
    text = str(duration or "0s")
    return int(text[:-1]) if text.endswith("s") and text[:-1].isdigit() else 1 << 30
