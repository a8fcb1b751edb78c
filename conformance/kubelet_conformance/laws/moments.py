"""What laws about moments work out of a history: since when a pod is to end, whether a kubelet runs
and nobody disturbs it meanwhile. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from math import inf
from typing import Any, Final

from msgspec import Struct

from kubelet_conformance.laws.history import History
from kubelet_conformance.laws.law import Check, Law, Seen, law

FILES: Final = ("file", "http")
SOURCE: Final = "kubernetes.io/config.source"
ENDED: Final = ("Succeeded", "Failed")
OK: Final = 200
STARTED_SINCE: Final = ", and a kubelet has started since"
LOOKS: Final = ("ListPodSandbox", "ListContainers", "PodSandboxStatus", "ContainerStatus")
"""Calls that tell a kubelet what there is."""
AROUND_S: Final = 2.0
"""A disturbance counts so long before and after."""


class Deletion(Struct, frozen=True):
    """A user's request to delete a pod."""

    uid: str
    pod: str
    at_s: float
    grace_s: float


def law_of_worlds(*rules: str) -> Callable[[Check], Law]:
    """As `law`, for what is asked of worlds of search alone (`Scenario.calm`): cases do things to
    their nodes of which such a law knows nothing."""

    def make(check: Check) -> Law:
        @wraps(check)
        def in_worlds(seen: Seen) -> Iterator[str]:
            if seen.history.did("calm"):
                yield from check(seen)

        return law(*rules)(in_worlds)

    return make


def is_of_api(history: History, uid: str) -> bool:
    """Whether the pod is one of the API server, as far as is known."""
    given = history.pods.get(uid)
    notes = given[0]["metadata"].get("annotations") or {} if given else {}
    return bool(given) and notes.get(SOURCE) not in FILES


def spec_of(history: History, uid: str) -> Mapping[str, Any]:
    """The spec of a pod, as it was given first; {}: it was never shown."""
    given = history.pods.get(uid)
    return given[0]["spec"] if given else {}


def was_edited(history: History, uid: str) -> bool:
    """Whether somebody has changed the spec of a pod since it was given first; its deletion and its
    labels do not count."""
    specs = [each["spec"] for each in history.pods.get(uid) or ()]
    return any(spec != specs[0] for spec in specs)


def containers_of(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Its regular containers and its init containers."""
    return [*spec.get("containers", ()), *(spec.get("initContainers") or ())]


def command_of(of: Mapping[str, Any], what: str) -> Sequence[str]:
    """The command of a probe or hook of a container; (): it has none."""
    action = (of.get("lifecycle") or {}).get(what) or of.get(what) or {}
    return tuple((action.get("exec") or {}).get("command") or ())


def sidecars_of(spec: Mapping[str, Any]) -> Sequence[str]:
    """The names of its sidecars, in order."""
    first = spec.get("initContainers") or ()
    return [each["name"] for each in first if each.get("restartPolicy") == "Always"]


def plain_init_of(spec: Mapping[str, Any]) -> Sequence[str]:
    """The names of its init containers that are no sidecars, in order."""
    sides = sidecars_of(spec)
    return [each["name"] for each in spec.get("initContainers") or () if each["name"] not in sides]


def policy_of(spec: Mapping[str, Any], name: str) -> str:
    """When a container is started again: Always, OnFailure, Never."""
    pod = str(spec.get("restartPolicy") or "Always")
    for each in spec.get("initContainers") or ():
        if each["name"] == name:
            own = str(each.get("restartPolicy") or "")
            return own or ("OnFailure" if pod == "Always" else pod)
    return pod


def deletions(history: History) -> Mapping[str, Sequence[Deletion]]:
    """UID -> the deletions of the pod by users, in order: of pods of the API server that the
    kubelet has shown before."""
    found: dict[str, list[Deletion]] = {}
    for one in history.by_users:
        if one.method != "DELETE" or "/pods/" not in one.path or one.status != OK:
            continue
        name = one.path.rpartition("/")[2]
        uid = _shown_as(history, name, one.started_s)
        if not uid or not is_of_api(history, uid) or one.started_s >= history.end_s:
            continue
        asked = (one.body or {}).get("gracePeriodSeconds") if isinstance(one.body, dict) else None
        own = spec_of(history, uid).get("terminationGracePeriodSeconds")
        grace_s = float(asked if asked is not None else own if own is not None else 30)
        found.setdefault(uid, []).append(Deletion(uid, name, one.started_s, grace_s))
    return found


def _shown_as(history: History, name: str, at_s: float) -> str:
    """The UID of the pod that was shown last by that name; "": none was."""
    uid = ""
    for one in history.shown:
        if one.at_s > at_s:
            break
        if one.pod == name:
            uid = one.uid
    return uid


def kubelet_runs(history: History, begin_s: float, end_s: float) -> bool:
    """Whether one kubelet runs all this time."""
    runs = True
    for each in history.planned:
        if each.kind not in ("stop", "kill", "start"):
            continue
        if begin_s <= each.at_s <= end_s:
            return False
        if each.at_s < begin_s:
            runs = each.kind == "start"
    return runs


def server_is_well(history: History, begin_s: float, end_s: float) -> bool:
    """Whether nobody disturbs requests in this time. When a disturbance ends is not told, but that
    all have when it is calm."""
    calm_s = calm_since(history)
    for each in history.planned:
        if each.kind == "server" and each.at_s <= end_s and begin_s < calm_s + AROUND_S:
            return False
    return True


def calm_since(history: History) -> float:
    """Since when nothing is done to the node any more; inf: it has not come so far."""
    return next((each.at_s for each in history.planned if each.kind == "calm"), inf)


def runtime_is_well(
    history: History,
    begin_s: float,
    end_s: float,
    uid: str = "",
    *,
    counts: Callable[[Any], bool] = lambda call: True,
) -> bool:
    """Whether nobody disturbs a call in this time, and nothing happens in the runtime behind the
    kubelet. `uid`: only what is done to this pod counts, and calls of no pod. `counts`: which calls
    do. That a container is not there is an answer that a kubelet has to go on with (CRI-086)."""
    own = {"", *(pod["metadata"]["name"] for pod in history.pods.get(uid) or ())}
    for each in history.planned:
        stopped = each.kind == "stopped" and (not uid or each.about in own)
        if (stopped or each.kind == "outside") and begin_s - AROUND_S <= each.at_s <= end_s:
            return False
    for call in history.calls:
        mine = not uid or call.uid in ("", uid)
        if not mine or not counts(call) or not (call.disturbed or _is_unavailable(call)):
            continue
        if call.method in LOOKS and call.error is not None and call.error[0] == "NOT_FOUND":
            continue
        over_s = inf if call.ended_s is None else call.ended_s
        if call.started_s <= end_s and over_s >= begin_s - AROUND_S:
            return False
    return True


def drivers_are_well(history: History, begin_s: float, end_s: float) -> bool:
    """Whether nobody disturbs storage drivers in this time, and all their calls are answered."""
    calm_s = calm_since(history)
    for each in history.planned:
        if each.kind == "driver" and each.at_s <= end_s and begin_s < calm_s + AROUND_S:
            return False
    for calls in history.driver_calls.values():
        for call in calls:
            over_s = inf if call.ended_s is None else call.ended_s
            failed = call.disturbed or call.error is not None
            if failed and call.started_s <= end_s and over_s >= begin_s - AROUND_S:
                return False
    return True


def _is_unavailable(call: Any) -> bool:
    return call.error is not None and call.error[0] in ("UNAVAILABLE", "DEADLINE_EXCEEDED")


def shown_over_s(history: History) -> Mapping[str, float]:
    """UID -> when the pod was first shown as over."""
    over: dict[str, float] = {}
    for one in history.shown:
        if one.status.get("phase") in ENDED:
            over.setdefault(one.uid, one.at_s)
    return over


def listens_to_events(history: History) -> bool:
    """Whether the kubelet follows the runtime's events: then its calls do not tell when it learns
    of something, and each step of a pod may wait five seconds for the time of its cache
    (PLEG-302)."""
    return bool((history.config.get("featureGates") or {}).get("EventedPLEG"))


def is_still(
    seen: Seen,
    uid: str,
    begin_s: float,
    end_s: float,
    *,
    counts: Callable[[Any], bool] = lambda call: True,
) -> bool:
    """Whether one kubelet runs in this time and nobody disturbs what it does for the pod. `counts`:
    which calls are asked about."""
    history = seen.history
    return (
        not listens_to_events(history)
        and kubelet_runs(history, begin_s, end_s)
        and server_is_well(history, begin_s, end_s)
        and runtime_is_well(history, begin_s, end_s, uid, counts=counts)
        and is_of_api(history, uid)
    )


def is_given_time(seen: Seen, uid: str, at_s: float) -> bool:
    """Whether a container of the pod is being stopped then, and has time left for it."""
    return any(
        call.method == "StopContainer"
        and call.uid == uid
        and call.started_s <= at_s <= (inf if call.ended_s is None else call.ended_s)
        and at_s <= call.started_s + call.request.timeout
        for call in seen.history.calls
    )


def since_a_start(seen: Seen, one_id: str, at_s: float) -> str:
    """That a kubelet has started between the start of a container and this moment, to be put behind
    a sentence; "": none has."""
    one = seen.lives.containers.get(one_id)
    if one is None or one.start_asked_s is None:
        return ""
    # The kubelet that has asked for the start may have died before it had an answer.
    begun_s = one.start_asked_s if one.started_s is None else one.started_s
    starts_s = [each.at_s for each in seen.history.planned if each.kind == "start"]
    return STARTED_SINCE if any(begun_s <= start_s <= at_s for start_s in starts_s) else ""


def is_look(call: Any) -> bool:
    """Whether a call tells the kubelet what there is."""
    return call.method in LOOKS


def under_way(seen: Seen, uid: str, at_s: float) -> str:
    """Which call a sync of the pod waits for then, to be put behind a sentence; "": none. Of the
    commands in its containers only hooks count: no sync waits for a probe."""
    entries = containers_of(spec_of(seen.history, uid))
    hooks = {command_of(each, hook) for each in entries for hook in ("postStart", "preStop")}
    for call in seen.history.calls:
        of_pod = call.uid == uid or call.method == "PullImage"
        over_s = inf if call.ended_s is None else call.ended_s
        if not of_pod or is_look(call) or not call.started_s <= at_s < over_s:
            continue
        if call.method != "ExecSync" or tuple(call.request.cmd) in hooks:
            return f", while {call.method} of its pod is under way"
    return ""
