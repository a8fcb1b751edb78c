"""Laws about probes and hooks: which run when, and what follows from them. They are asked of worlds
of search, where commands that probes and hooks execute differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubelet_conformance.laws.law import Seen
from kubelet_conformance.laws.lives import Container
from kubelet_conformance.laws.moments import (
    command_of,
    containers_of,
    deletions,
    is_of_api,
    kubelet_runs,
    law_of_worlds,
    listens_to_events,
    runtime_is_well,
    server_is_well,
    since_a_start,
    spec_of,
    was_edited,
)

PROBES: Final = ("startupProbe", "livenessProbe", "readinessProbe")
UNDER_WAY_S: Final = 2.5
"""So long after a moment a probe may begin that was due before."""
EVENTS_LATE_S: Final = 11.5
"""So long where the runtime's events are listened to (gate EventedPLEG)."""
LATE_S: Final = 4.0
"""So much later than its period a probe may come."""
NEAR_S: Final = 0.1


def _runs_of(seen: Seen) -> Mapping[str, Sequence[Any]]:
    """ID of a container -> the commands that were executed in it and have ended, in order."""
    found: dict[str, list[Any]] = {}
    for call in seen.history.calls:
        if call.method == "ExecSync" and call.started_s < seen.history.end_s:
            found.setdefault(call.request.container_id, []).append(call)
    return found


def _probed(seen: Seen) -> Iterator[tuple[Container, Mapping[str, Any], dict[str, list[Any]]]]:
    """Each instance of a container that has probes, its entry in the spec, and the runs of each of
    these probes."""
    runs = _runs_of(seen)
    for one in seen.lives.containers.values():
        for each in containers_of(spec_of(seen.history, one.uid)):
            if each["name"] == one.name and any(command_of(each, probe) for probe in PROBES):
                mine = {
                    probe: [
                        call
                        for call in runs.get(one.id, ())
                        if tuple(call.request.cmd) == command_of(each, probe)
                    ]
                    for probe in PROBES
                    if command_of(each, probe)
                }
                yield one, each, mine


def _passed(call: Any) -> bool:
    return call.ended_s is not None and call.error is None and call.response.exit_code == 0


def _failed(call: Any) -> bool:
    return call.ended_s is not None and not _passed(call)


@law_of_worlds("PROBE-041")
def startup_first(seen: Seen) -> Iterator[str]:
    """A container with a startup probe meets its other probes when that has passed, in this
    instance; for a kubelet that has started later, it may have."""
    for one, _, runs in _probed(seen):
        if "startupProbe" not in runs or not _of_one_kubelet(seen, one):
            continue
        passed_s = next((call.ended_s for call in runs["startupProbe"] if _passed(call)), None)
        for probe in ("livenessProbe", "readinessProbe"):
            for call in runs.get(probe, ()):
                if passed_s is None or call.started_s < passed_s:
                    at = seen.history.since(call.started_s)
                    yield f"{one.pod}/{one.name} meets its {probe} at {at} before it has started"
                    break


@law_of_worlds("PROBE-052")
def ready_when_probed(seen: Seen) -> Iterator[str]:
    """A container of an API pod with a readiness probe is ready when that has passed in it."""
    passed: dict[str, float] = {}
    probed = set()
    for one, _, runs in _probed(seen):
        if "readinessProbe" in runs and is_of_api(seen.history, one.uid):
            probed.add(one.id)
            well = [call.ended_s for call in runs["readinessProbe"] if _passed(call)]
            if well:
                passed[one.id] = well[0]
    for shown in seen.history.shown:
        for kind in ("initContainerStatuses", "containerStatuses"):
            for status in shown.status.get(kind) or ():
                one_id = str(status.get("containerID") or "").rpartition("/")[2]
                if not status.get("ready") or one_id not in probed:
                    continue
                if one_id not in passed or passed[one_id] > shown.at_s:
                    at = seen.history.since(shown.at_s)
                    text = f"{shown.pod}/{status['name']} is ready at {at}, no probe has passed"
                    yield text + since_a_start(seen, one_id, shown.at_s)


@law_of_worlds("PROBE-091.1")
def probes_end(seen: Seen) -> Iterator[str]:
    """When its pod is to end, a regular container meets no liveness or startup probe any more. (The
    step that ends it may wait for events of the runtime.)"""
    history = seen.history
    limit_s = EVENTS_LATE_S if listens_to_events(history) else UNDER_WAY_S
    for one, entry, runs in _probed(seen):
        asked = deletions(history).get(one.uid)
        if not asked or entry not in spec_of(history, one.uid)["containers"]:
            continue
        began_s = asked[0].at_s
        for probe in ("livenessProbe", "startupProbe"):
            for call in runs.get(probe, ()):
                late_s = call.started_s - began_s
                if late_s > limit_s and _is_told(seen, one.uid, began_s, call.started_s):
                    at = history.since(call.started_s)
                    yield f"{one.pod}/{one.name} meets its {probe} at {at}, its pod is to end"
                    break


@law_of_worlds("PROBE-091.1")
def readiness_goes_on(seen: Seen) -> Iterator[str]:
    """A container that runs on while its pod ends meets its readiness probe as before."""
    history = seen.history
    asked = {} if listens_to_events(history) else deletions(history)
    for one, entry, runs in _probed(seen):
        probe = entry.get("readinessProbe")
        if one.uid not in asked or not probe or not runs["readinessProbe"]:
            continue
        step_s = float(probe.get("periodSeconds") or 10) + LATE_S
        begin_s = max(asked[one.uid][0].at_s, runs["readinessProbe"][0].started_s)
        over_s = min(one.over_s or history.end_s, history.end_s)
        if over_s - begin_s < step_s or not _is_told(seen, one.uid, begin_s, over_s):
            continue
        met_s = [c.started_s for c in runs["readinessProbe"] if begin_s <= c.started_s <= over_s]
        longest_s = max(b - a for a, b in zip([begin_s, *met_s], [*met_s, over_s], strict=True))
        if longest_s > step_s:
            at = history.since(begin_s)
            yield f"{one.pod}/{one.name} ends from {at} on, for {longest_s:.1f} s without probe"


@law_of_worlds("PROBE-053")
def killed_for_failures(seen: Seen) -> Iterator[str]:
    """A container that is stopped while its pod goes on, and no hook of it, no other container and
    nothing else asks for that, has failed a probe so often in a row as that probe wants."""
    history = seen.history
    if history.did("outside", "stopped", "manifest", "user", "fault"):
        return
    asked = deletions(history)
    for one, entry, runs in _probed(seen):
        alone = one.uid not in asked and not was_edited(history, one.uid)
        if not alone or not one.stops or _ends_otherwise(seen, one, entry):
            continue
        stop_s = one.stops[0].started_s
        wanted = {
            probe: int((entry.get(probe) or {}).get("failureThreshold") or 3)
            for probe in ("livenessProbe", "startupProbe")
            if probe in runs
        }
        if wanted and not any(
            _failures(runs[probe], stop_s) >= count for probe, count in wanted.items()
        ):
            at = history.since(stop_s)
            yield f"{one.pod}/{one.name} is stopped at {at}, no probe has failed so often"


def _ends_otherwise(seen: Seen, one: Container, entry: Mapping[str, Any]) -> bool:
    """Whether its pod is or may be over for another reason then, or a hook after its start may have
    failed."""
    history = seen.history
    spec = spec_of(history, one.uid)
    stop_s = one.stops[0].started_s
    if command_of(entry, "postStart") or spec.get("activeDeadlineSeconds") is not None:
        return True
    if stop_s >= history.end_s or any(k in history.config for k in ("shutdownGracePeriod",)):
        return True
    if not kubelet_runs(history, one.started_s or 0.0, stop_s):
        return True
    ended = [
        shown
        for shown in history.shown
        if shown.uid == one.uid and shown.status.get("phase") in ("Succeeded", "Failed")
    ]
    others = [
        other
        for instances in seen.lives.of_pod(one.uid).values()
        for other in instances
        if other.name != one.name and other.over_s is not None and other.over_s <= stop_s
    ]
    return bool(ended) or bool(others)


def _failures(calls: Sequence[Any], before_s: float) -> int:
    """How many of these have failed in a row, just before that moment."""
    count = 0
    for call in calls:
        if call.started_s <= before_s and call.ended_s is not None:
            count = count + 1 if _failed(call) else 0
    return count


@law_of_worlds("LIFE-143.4")
def hook_time_counts(seen: Seen) -> Iterator[str]:
    """The time that a preStop hook takes is taken off the grace period of its container."""
    history = seen.history
    runs = _runs_of(seen)
    for one in seen.lives.containers.values():
        (entry,) = [
            each for each in containers_of(spec_of(history, one.uid)) if each["name"] == one.name
        ] or [{}]
        hook = command_of(entry, "preStop")
        if not hook or not one.stops:
            continue
        stop = one.stops[0]
        own_s = int(spec_of(history, one.uid).get("terminationGracePeriodSeconds") or 0)
        given_s = [own_s, *(each.grace_s for each in deletions(history).get(one.uid, ()))]
        for call in runs.get(one.id, ()):
            if tuple(call.request.cmd) != hook or call.started_s > stop.started_s:
                continue
            took_s = stop.started_s - call.started_s
            if not kubelet_runs(history, call.started_s, stop.started_s):
                break  # another kubelet gives all of the time again
            if stop.request.timeout > max(2.0, max(given_s) - took_s + 1.5):
                at = history.since(stop.started_s)
                yield (
                    f"{one.pod}/{one.name} has {stop.request.timeout} s at {at}, its hook took "
                    f"{took_s:.1f} s of {max(given_s):g}"
                )
            break


def _of_one_kubelet(seen: Seen, one: Container) -> bool:
    """Whether the kubelet that has started it is there until its end: another has no results."""
    begun_s = one.start_asked_s or one.asked_s
    return kubelet_runs(seen.history, begun_s, one.over_s or seen.history.end_s)


def _is_told(seen: Seen, uid: str, begin_s: float, end_s: float) -> bool:
    """Whether one kubelet runs in this time, knows of the deletion, and nobody disturbs it."""
    history = seen.history
    return (
        kubelet_runs(history, begin_s, end_s)
        and server_is_well(history, begin_s, end_s)
        and runtime_is_well(history, begin_s, end_s, uid)
    )
