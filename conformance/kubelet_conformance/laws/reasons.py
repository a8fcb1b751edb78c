"""Laws about what a sync does and says although its calls take their time: nothing is stopped for a
probe that has not failed, and a status shows only what a container has been. They are asked of
worlds of search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final

from msgspec import Struct

from kubelet_conformance.laws.law import Seen
from kubelet_conformance.laws.lives import Container
from kubelet_conformance.laws.moments import (
    containers_of,
    deletions,
    is_of_api,
    kubelet_runs,
    law_of_worlds,
    sidecars_of,
    since_a_start,
    spec_of,
    was_edited,
)

KILLING: Final = ("startup", "liveness")
KINDS: Final = ("initContainerStatuses", "containerStatuses")
ENDED: Final = ("Succeeded", "Failed")


class Probed(Struct, frozen=True):
    """One try of a probe that came to a result."""

    one: str
    """The ID of the container."""
    is_good: bool
    ended_s: float


def _tries(seen: Seen, uid: str, entry: Mapping[str, Any], kind: str) -> Sequence[Probed]:
    """The tries of a probe of a container of the pod, in all its instances."""
    action = (entry.get(f"{kind}Probe") or {}).get("exec") or {}
    instances = {one.id for one in seen.lives.of_pod(uid).get(entry["name"], ())}
    return [
        Probed(
            call.request.container_id,
            is_good=call.error is None and call.response.exit_code == 0,
            ended_s=call.ended_s,
        )
        for call in seen.history.calls
        if call.method == "ExecSync" and call.ended_s is not None
        if call.request.container_id in instances
        if action and list(call.request.cmd) == list(action.get("command") or ())
        if call.error is None or call.error[0] == "DEADLINE_EXCEEDED"
    ]


def _failed_for_good(
    seen: Seen, uid: str, entry: Mapping[str, Any], kind: str, before_s: float
) -> set[str]:
    """The IDs of the instances with whose try the probe had failed so often in a row as it wants,
    before that moment. A row goes on in the next instance (PROBE-027)."""
    threshold = int((entry.get(f"{kind}Probe") or {}).get("failureThreshold") or 3)
    failed, row = set[str](), 0
    for each in _tries(seen, uid, entry, kind):
        row = 0 if each.is_good else row + 1
        if each.ended_s <= before_s and row >= threshold:
            failed.add(each.one)
    return failed


@law_of_worlds("PROBE-014.1", "PROBE-014.5")
def stops_have_reasons(seen: Seen) -> Iterator[str]:
    """Where calls take their time and none fails, a container of a pod that goes on is stopped only
    if its own probe had failed as often as it wants, however long the sync before took."""
    history = seen.history
    if history.did("outside", "manifest", "user") or _calls_fail(seen):
        return
    asked = deletions(history)
    for uid in history.pods:
        if uid in asked or was_edited(history, uid) or _has_other_reasons(seen, uid):
            continue
        spec = spec_of(history, uid)
        over_sides = sidecars_of(spec) if _comes_to_its_end(seen, uid) else ()
        for entry in containers_of(spec):
            if entry["name"] in over_sides or (entry.get("lifecycle") or {}).get("postStart"):
                continue  # it is stopped with its pod, or its hook has failed
            for one in seen.lives.of_pod(uid).get(entry["name"], ()):
                if not one.stops or not _is_of_one_kubelet(seen, one):
                    continue
                stop_s = one.stops[0].started_s
                failed = {
                    each
                    for kind in KILLING
                    for each in _failed_for_good(seen, uid, entry, kind, stop_s)
                }
                if one.id not in failed and stop_s < history.end_s:
                    at = history.since(stop_s)
                    yield f"{one.pod}/{one.name} is stopped at {at}, and no probe of it had failed"


def _calls_fail(seen: Seen) -> bool:
    """Whether a call has failed, or was not answered, beside those of probes and hooks."""
    return any(
        call.error is not None and call.method != "ExecSync" and call.started_s < seen.history.end_s
        for call in seen.history.calls
    )


def _has_other_reasons(seen: Seen, uid: str) -> bool:
    """Whether the kubelet itself may have ended the pod: a deadline, a shutdown, an eviction; or
    somebody has stopped its sandbox."""
    history = seen.history
    if history.did("stopped") or "shutdownGracePeriod" in history.config:
        return True
    if spec_of(history, uid).get("activeDeadlineSeconds") is not None:
        return True
    return any(one.uid == uid and one.status.get("reason") for one in history.shown)


def _is_of_one_kubelet(seen: Seen, one: Container) -> bool:
    begun_s = one.start_asked_s or one.asked_s
    return kubelet_runs(seen.history, begun_s, one.stops[0].started_s)


def _comes_to_its_end(seen: Seen, uid: str) -> bool:
    """Whether the pod is over by itself, and its sidecars are stopped then."""
    return any(one.uid == uid and one.status.get("phase") in ENDED for one in seen.history.shown)


@law_of_worlds("LIFE-115.2", "LIFE-115.3")
def kills_told_as_often(seen: Seen) -> Iterator[str]:
    """No event Killing names a probe of a container more often than instances of it have failed
    that probe."""
    history = seen.history
    if _calls_fail(seen):
        return  # a stop that failed is tried, and told, again
    for uid in history.pods:
        for entry in containers_of(spec_of(history, uid)):
            for kind in KILLING:
                words = f"ontainer {entry['name']} failed {kind} probe"
                told = sum(
                    int(event.get("count") or 1)
                    for event in history.events
                    if event.get("reason") == "Killing" and words in str(event.get("message"))
                    if event["involvedObject"].get("uid") == uid
                )
                failed = _failed_for_good(seen, uid, entry, kind, inf) if told else ()
                if told > len(failed):
                    pod = history.pods[uid][0]["metadata"]["name"]
                    yield f"{pod}/{entry['name']}: {told} kills for its {kind} probe are told"


@law_of_worlds("STAT-012.1")
def created_is_not_shown(seen: Seen) -> Iterator[str]:
    """A container that waits is shown with the ID of the instance that has ended, not with that of
    one that is being started."""
    for shown in seen.history.shown:
        for status in _each(shown.status):
            ended = (status.get("lastState") or {}).get("terminated") or {}
            one = _bare(status.get("containerID"))
            if "waiting" not in (status.get("state") or {}) or not one:
                continue
            if one != _bare(ended.get("containerID")) and _starts_at(seen, one, shown.at_s):
                at = seen.history.since(shown.at_s)
                yield f"{shown.pod}/{status['name']} is shown at {at} while it is being started"


def _starts_at(seen: Seen, one: str, at_s: float) -> bool:
    """Whether the start of that instance is under way then, and will be a success."""
    life = seen.lives.containers.get(one)
    return life is not None and not life.start_failed and at_s < (life.started_s or 0.0)


@law_of_worlds("LIFE-175.1", "PROBE-044")
def started_when_probed(seen: Seen) -> Iterator[str]:
    """A container of an API pod with a startup probe has started when that has passed in this
    instance."""
    history = seen.history
    passed_s = _passed_s(seen)
    for shown in history.shown:
        for status in _each(shown.status):
            one = _bare(status.get("containerID"))
            if status.get("started") and passed_s.get(one, 0.0) > shown.at_s:
                at = history.since(shown.at_s)
                text = f"{shown.pod}/{status['name']} has started at {at}, no probe has passed"
                yield text + since_a_start(seen, one, shown.at_s)


def _passed_s(seen: Seen) -> Mapping[str, float]:
    """When the startup probe has first passed in each instance of a container of an API pod that
    has one; inf: it never has."""
    found: dict[str, float] = {}
    for uid in seen.history.pods:
        if not is_of_api(seen.history, uid) or was_edited(seen.history, uid):
            continue
        for entry in containers_of(spec_of(seen.history, uid)):
            if (entry.get("startupProbe") or {}).get("exec"):
                instances = seen.lives.of_pod(uid).get(entry["name"], ())
                found |= {one.id: inf for one in instances}
                for each in _tries(seen, uid, entry, "startup"):
                    if each.is_good:
                        found[each.one] = min(found[each.one], each.ended_s)
    return found


@law_of_worlds("STAT-040.1", "STAT-040.2")
def ready_when_all_are(seen: Seen) -> Iterator[str]:
    """ContainersReady is not False for containers that are not ready in a status that shows all
    regular containers and sidecars as ready."""
    for shown in seen.history.shown:
        reasons = {
            str(each.get("reason"))
            for each in shown.status.get("conditions") or ()
            if each["type"] == "ContainersReady" and each["status"] == "False"
        }
        spec = spec_of(seen.history, shown.uid)
        if "ContainersNotReady" not in reasons or not spec:
            continue
        lasting = {each["name"] for each in spec["containers"]} | {*sidecars_of(spec)}
        ready = {each["name"] for each in _each(shown.status) if each.get("ready")}
        if lasting <= ready:
            at = seen.history.since(shown.at_s)
            yield f"status of {shown.pod} at {at}: all are ready, and ContainersReady is False"


def _each(status: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [one for kind in KINDS for one in status.get(kind) or ()]


def _bare(container_id: Any) -> str:
    return str(container_id or "").rpartition("/")[2]
