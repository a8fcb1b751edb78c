"""Laws about what a kubelet tells the API server, and how often. They are asked of worlds of
search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final

from kubelet_conformance.laws.history import REBOOT, History, Shown
from kubelet_conformance.laws.law import Seen
from kubelet_conformance.laws.moments import (
    AROUND_S,
    deletions,
    is_of_api,
    kubelet_runs,
    law_of_worlds,
    plain_init_of,
    runtime_is_well,
    server_is_well,
    shown_over_s,
    spec_of,
)
from kubeobjects.quantity import parse_nano

TOLD_S: Final = 5.0
BRIEFLY_S: Final = 2.5
"""Within this time a status follows what the runtime does."""
CREATED: Final = 201
AGAIN_S: Final = 15.0
"""Within this time the mirror of a pod is not made twice."""
MOST_EVENTS: Final = 20
"""After so many events about a pod the bucket of 25 that each has may be empty."""
STILL_S: Final = 240.0
"""So long before the end nothing may be asked about a pod to which nothing happens."""


@law_of_worlds("LIFE-130.4")
def failures_told(seen: Seen) -> Iterator[str]:
    """That a sandbox could not be made is told in an event about its pod, if it is there, unless
    so many have been told about it that no more are sent (BACK-012)."""
    history = seen.history
    counts = Counter[str]()
    for event in history.events:
        counts[(event.get("involvedObject") or {}).get("uid", "")] += int(event.get("count") or 1)
    there = {pod["metadata"].get("uid") for pod in history.stored.values()}
    told = {
        event["involvedObject"].get("uid")
        for event in history.events
        if event.get("reason") == "FailedCreatePodSandBox"
    }
    ended = deletions(history).keys() | shown_over_s(history).keys()
    for call in history.calls:
        if call.method != "RunPodSandbox" or call.error is None or call.ended_s is None:
            continue
        if call.uid in told or call.uid in ended or call.uid not in there:
            continue
        if counts[call.uid] >= MOST_EVENTS:
            continue
        until_s = call.ended_s + TOLD_S
        if history.did("user") or call.ended_s > history.end_s - TOLD_S:
            continue
        if kubelet_runs(history, call.started_s, until_s) and server_is_well(
            history, call.ended_s, until_s
        ):
            yield f"nothing tells that {call.pod} got no sandbox at {history.since(call.ended_s)}"


@law_of_worlds("NODE-034.2")
def reboots_told_once(seen: Seen) -> Iterator[str]:
    """A reboot is told once."""
    told: Counter[str] = Counter()
    for event in seen.history.events:
        if event.get("reason") == "Rebooted":
            told[str(event.get("message"))] += int(event.get("count") or 1)
    starts = sum(each.kind == "start" for each in seen.history.planned) + 1
    for message, count in told.items():
        if count > 1 and starts < count:
            yield f"told {count} times: {message}"


@law_of_worlds("LIFE-161.1", "LIFE-161.2")
def running_is_initialized(seen: Seen) -> Iterator[str]:
    """A pod of which no container runs, since all wait for init containers, or one of these runs,
    is not shown as Running for long. (Where a regular container was made in its sandbox, a sidecar
    may start anew.)"""
    last: dict[str, float] = {}
    outside = [each for each in seen.history.planned if each.kind == "outside"]
    if any(each.about != REBOOT for each in outside):
        return  # what the runtime has forgotten is begun anew, while Running
    for shown in reversed(seen.history.shown):
        until_s = last.get(shown.uid, seen.history.end_s)
        last[shown.uid] = shown.at_s
        if shown.status.get("phase") != "Running" or until_s - shown.at_s < BRIEFLY_S:
            continue
        kinds = {each["type"] for each in shown.status.get("conditions") or ()}
        if "AllContainersRestarting" in kinds or any(map(_runs, _regular(shown))):
            continue
        if not runtime_is_well(seen.history, shown.at_s + AROUND_S, until_s, shown.uid):
            continue
        init = shown.status.get("initContainerStatuses") or ()
        waits = [(one.get("state") or {}).get("waiting") or {} for one in _regular(shown)]
        behind = waits and all(each.get("reason") == "PodInitializing" for each in waits)
        plain = plain_init_of(spec_of(seen.history, shown.uid))
        if behind or any(
            one["name"] in plain or not _was_begun(seen, shown)
            for one in init
            if _runs(one) and (one["name"] in plain or not one.get("started"))
        ):
            at = seen.history.since(shown.at_s)
            yield f"{shown.pod} is Running at {at}, and its containers wait for init containers"


def _was_begun(seen: Seen, shown: Shown) -> bool:
    """Whether the newest sandbox of the pod has a regular container then, of whatever state.
    Containers are made in the newest one: they tell of it where the answer with it was lost."""
    made = [one for one in seen.lives.containers.values() if one.uid == shown.uid]
    made = [one for one in made if one.asked_s <= shown.at_s]
    boxes = [(one.asked_s, one.sandbox) for one in made]
    for box in seen.lives.sandboxes.values():
        if box.uid == shown.uid and box.made_s <= shown.at_s:
            boxes.append((box.asked_s, box.id))
    newest = max(boxes, default=(0.0, ""))[1]
    regular = {each["name"] for each in _regular(shown)}
    return any(
        one.sandbox == newest and one.name in regular
        for one in made
        if one.removed_s is None or one.removed_s > shown.at_s
    )


def _regular(shown: Shown) -> Sequence[Mapping[str, Any]]:
    return shown.status.get("containerStatuses") or ()


def _runs(status: Mapping[str, Any]) -> bool:
    return "running" in (status.get("state") or {})


@law_of_worlds("LIFE-012")
def refused_when_full(seen: Seen) -> Iterator[str]:
    """A pod is refused for lack of CPUs only when those of all pods that are not over, and its own,
    are more than the node has. One that was refused itself, and never had a sandbox, does not
    count, whenever the server is told so."""
    history = seen.history
    have = cpus_of_node(history.requests)
    over, refused = shown_over_s(history), _refused_s(seen)
    counts = {call.uid for call in history.calls if call.method == "RunPodSandbox"}
    counts |= deletions(history).keys()  # one that is to end counts until it has
    first: dict[str, float] = {}
    for shown in history.shown:
        first.setdefault(shown.uid, shown.at_s)
        if shown.status.get("reason") != "OutOfcpu" or have is None:
            continue
        if over.get(shown.uid) != shown.at_s:
            continue
        wanted = max(
            sum(
                _cpus(history.pods[uid])
                for uid in first
                if uid in history.pods and _counts_still(history, uid, over.get(uid, at_s), at_s)
                if uid == shown.uid or uid in counts or min(refused.get(uid, [inf])) > at_s
            )
            for at_s in refused[shown.uid]
            if at_s <= shown.at_s
        )
        if wanted <= have:
            at = history.since(shown.at_s)
            yield f"{shown.pod} is refused at {at}: all want {wanted:g} CPUs, of {have:g}"


def _counts_still(history: History, uid: str, over_s: float, at_s: float) -> bool:
    """Whether a pod that was over then counts at this moment: a kubelet that starts does not know
    it of a static pod."""
    starts_s = [each.at_s for each in history.planned if each.kind == "start"]
    forgotten = not is_of_api(history, uid) and any(over_s <= s <= at_s for s in starts_s)
    return forgotten or over_s >= at_s - TOLD_S


def _refused_s(seen: Seen) -> Mapping[str, Sequence[float]]:
    """UID -> when an event or its status told that a pod was refused for lack of something."""
    told: dict[str, list[float]] = {}
    for one in seen.history.requests:
        body = one.body if isinstance(one.body, dict) else {}
        if one.path.endswith("/events") and str(body.get("reason")).startswith("OutOf"):
            about = body.get("involvedObject") or {}
            told.setdefault(str(about.get("uid")), []).append(one.started_s)
    for shown in seen.history.shown:
        if str(shown.status.get("reason")).startswith("OutOf"):
            told.setdefault(shown.uid, []).append(shown.at_s)
    return told


def _cpus(given: Sequence[Mapping[str, Any]]) -> float:
    """The most that a pod has asked for."""
    return max(
        sum(
            parse_nano(str(amount)) / 1e9
            for kind in ("containers", "initContainers")
            for each in pod["spec"].get(kind) or ()
            if (amount := ((each.get("resources") or {}).get("requests") or {}).get("cpu"))
        )
        for pod in given
    )


def cpus_of_node(requests: Sequence[Any]) -> float | None:
    """What the node has to give, as the kubelet has told; None: it has not."""
    for one in requests:
        if one.method == "POST" and one.path.endswith("/nodes") and isinstance(one.body, dict):
            told = ((one.body.get("status") or {}).get("allocatable") or {}).get("cpu")
            return None if told is None else parse_nano(str(told)) / 1e9
    return None


@law_of_worlds("STAT-021.3")
def quiet_when_still(seen: Seen) -> Iterator[str]:
    """Nothing is asked or written about a pod of the API server to which nothing has happened for
    minutes."""
    history = seen.history
    begin_s = history.end_s - STILL_S
    moved = {one.uid for one in history.shown if one.at_s > begin_s - STILL_S / 4}
    names = {one.pod: one.uid for one in history.shown if is_of_api(history, one.uid)}
    calls = Counter(
        f"{one.method} {one.path}"
        for one in history.requests
        if begin_s <= one.started_s < history.end_s and one.method in ("GET", "PATCH")
        if names.get(_pod_of(one.path), "") not in {*moved, ""}
    )
    for what, count in calls.items():
        if count > 2:
            yield f"{what}: {count} times in {STILL_S:g} s, and nothing has happened to the pod"


def _pod_of(path: str) -> str:
    """The name of the pod that a request is about; "": it is about none."""
    parts = path.removesuffix("/status").split("/pods/")
    return parts[1] if len(parts) == 2 and "/" not in parts[1] else ""


@law_of_worlds("MIRR-025.4", "MIRR-029.2")
def mirrors_made_once(seen: Seen) -> Iterator[str]:
    """A mirror that was just made is not made again, unless somebody deletes it or the manifest or
    the kubelet changes."""
    history = seen.history
    made: dict[str, Any] = {}
    for one in history.requests:
        if one.method != "POST" or not one.path.endswith("/pods") or one.status != CREATED:
            continue
        name = str(one.body["metadata"]["name"])
        before = made.get(name)
        made[name] = one
        if before is None or one.started_s - before.started_s > AGAIN_S:
            continue
        if before.body["metadata"].get("annotations") != one.body["metadata"].get("annotations"):
            continue
        between = [
            each.at_s
            for each in history.planned
            if each.kind in ("start", "manifest", "user", "server")
            and before.started_s - AGAIN_S <= each.at_s <= one.started_s
        ]
        by_users = [
            each
            for each in history.by_users
            if each.method == "DELETE"
            and each.path.endswith(f"/{name}")
            and before.started_s <= each.started_s <= one.started_s
        ]
        if not between and not by_users and before.started_s < history.end_s:
            yield f"the mirror {name} is made again at {history.since(one.started_s)}"
