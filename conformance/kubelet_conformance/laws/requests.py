"""Laws about requests to the API server and about events."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubelet_conformance.laws.law import Seen, law

_POD: Final = r"/api/v1/namespaces/[^/]+/pods"
MAY: Final[Mapping[str, re.Pattern[str]]] = {
    "GET": re.compile("."),
    "POST": re.compile(
        rf"^({_POD}|/api/v1/nodes|/api/v1/namespaces/[^/]+/(events|serviceaccounts/[^/]+/token)"
        r"|/apis/(coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        r"|storage.k8s.io/v1/csinodes"
        r"|certificates.k8s.io/v1/certificatesigningrequests"
        r"|authentication.k8s.io/v1/tokenreviews"
        r"|authorization.k8s.io/v1/subjectaccessreviews))$"
    ),
    "PUT": re.compile(
        r"^/apis/(coordination.k8s.io/v1/namespaces/kube-node-lease/leases/[^/]+"
        r"|storage.k8s.io/v1/csinodes/[^/]+)$"
    ),
    "PATCH": re.compile(
        rf"^({_POD}/[^/]+/status|/api/v1/nodes/[^/]+(/status)?"
        r"|/api/v1/namespaces/[^/]+/(events/[^/]+|persistentvolumeclaims/[^/]+/status)"
        r"|/apis/storage.k8s.io/v1/csinodes/[^/]+)$"
    ),
    "DELETE": re.compile(
        rf"^({_POD}/[^/]+|/apis/storage.k8s.io/v1/csinodes/[^/]+"
        r"|/apis/resource.k8s.io/v1/resourceslices(/[^/]+)?)$"
    ),
}
"""What a kubelet asks an API server to do, by HTTP method."""
BAD: Final = (400, 405, 406, 411, 413, 415, 422)
"""Statuses with which a server refuses what is wrong in itself."""
IMMUTABLE: Final = 422
"""The one for a UID that is not the object's."""
MEANWHILE_S: Final = 1.0
"""So long a write may be under way, after the kubelet has read what it writes to."""


@law("STAT-030.1", "STAT-022.2")
def only_what_it_may(seen: Seen) -> Iterator[str]:
    """Each request is one that kubelets make; a pod is deleted at once, by its UID."""
    mirrors = {
        (one.body["metadata"]["name"])
        for one in (*seen.history.by_users, *seen.history.requests)
        if one.method == "POST" and one.path.endswith("/pods") and _is_mirror(one.body)
    }
    for one in seen.history.requests:
        if not MAY.get(one.method, MAY["PUT"]).search(one.path):
            yield f"{one.method} {one.path} at {seen.history.since(one.started_s)}"
        elif one.method == "DELETE" and "/pods/" in one.path:
            body = one.body or {}
            mirror = one.path.rpartition("/")[2] in mirrors
            named = mirror or (body.get("preconditions") or {}).get("uid")
            if body.get("gracePeriodSeconds") != 0 or not named:
                yield f"{one.method} {one.path} with {body}"


def _is_mirror(pod: Any) -> bool:
    notes = pod["metadata"].get("annotations") or {} if isinstance(pod, dict) else {}
    return "kubernetes.io/config.mirror" in notes


@law("STAT-022.3")
def nothing_refused(seen: Seen) -> Iterator[str]:
    """No request is refused as wrong in itself, unless the case has the server do so, or the pod
    was replaced by another of its name meanwhile."""
    if seen.history.did("server"):
        return
    every = (*seen.history.requests, *seen.history.by_users)
    deleted = [(one.path, one.started_s) for one in every if one.method == "DELETE"]
    for one in seen.history.requests:
        if one.status in BAD and not _was_replaced(one, deleted):
            at = seen.history.since(one.started_s)
            yield f"{one.method} {one.path} at {at} is refused with {one.status}"


def _was_replaced(write: Any, deleted: list[tuple[str, float]]) -> bool:
    """Whether a write was refused for its UID: that of a pod that had just been deleted."""
    pod = write.path.removesuffix("/status")
    return write.status == IMMUTABLE and any(
        path == pod and 0 <= write.started_s - at_s <= MEANWHILE_S for path, at_s in deleted
    )


@law("STAT-021.1")
def no_equal_writes(seen: Seen) -> Iterator[str]:
    """No status is written twice in a row as it was, when nobody has changed the object, and no
    write is empty."""
    repeats = seen.history.did("server", "start")
    touched = {one.path.partition("/status")[0] for one in seen.history.by_users}
    last: dict[str, Any] = {}
    for one in seen.history.requests:
        if one.method != "PATCH" or not one.path.endswith("/status") or one.status != 200:
            continue
        place = one.path.partition("/status")[0]
        if one.body == last.get(place) and place not in touched and not repeats:
            at = seen.history.since(one.started_s)
            yield f"{one.method} {one.path} at {at} writes what was written before"
        last[place] = one.body
        if "/pods/" in one.path and set(one.body or {}) <= {"metadata"}:
            yield f"{one.method} {one.path} at {seen.history.since(one.started_s)} changes nothing"


@law("LIFE-240")
def events_of_what_is_there(seen: Seen) -> Iterator[str]:
    """Each event is of the kubelet of this node, about a pod it has had or has refused to take,
    or the node, and says so in full. (A manifest may be the pod of its name for less than a moment:
    of a static pod the name is enough.)"""
    names = {
        given[0]["metadata"]["name"] for given in seen.history.pods.values() if _is_static(given)
    }
    of_manifests = f"-{seen.history.node_name}" if seen.history.did("manifest") else ()
    uids = {one.uid for one in seen.history.shown} | seen.history.pods.keys()
    uids |= {call.uid for call in seen.history.calls}
    uids.update(pod["metadata"]["uid"] for pod in seen.history.stored.values())
    for event in seen.history.events:
        about = event["involvedObject"]
        name = f"event {event.get('reason')} about {about.get('name')}"
        if not event.get("reason") or not event.get("message"):
            yield f"{name} has no reason or no message"
        if event.get("type") not in ("Normal", "Warning"):
            yield f"{name} is of type {event.get('type')}"
        first, last = event.get("firstTimestamp"), event.get("lastTimestamp")
        if first and last and last < first:
            yield f"{name} was last seen before it was first"
        host = (event.get("source") or {}).get("host")
        if host not in (None, "", seen.history.node_name):
            yield f"{name} is from {host}"
        refused = event.get("reason") == "FailedValidation"  # SRC-024: it is no pod of the node
        known = about.get("uid", "") in uids | {""} or about.get("name") in names
        known |= about.get("name", "").endswith(of_manifests)
        if about.get("kind") == "Pod" and not known and not refused:
            yield f"{name} ({about['uid']}): no such pod was there"


COUNTED: Final = {"Created": "CreateContainer", "Started": "StartContainer"}


@law("LIFE-240")
def events_as_often(seen: Seen) -> Iterator[str]:
    """No pod has more events Created or Started than containers that were."""
    told: Counter[tuple[str, str]] = Counter()
    for event in seen.history.events:
        if event.get("reason") in COUNTED:
            uid = str(event["involvedObject"].get("uid"))
            told[uid, COUNTED[event["reason"]]] += int(event.get("count") or 1)
    made = Counter((call.uid, call.method) for call in seen.history.calls if call.error is None)
    for key, count in told.items():
        if count > made[key]:
            yield f"{count} events for {made[key]} successful {key[1]} of {key[0]}"


def _is_static(given: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a pod, as `/pods` gave it, is from a manifest."""
    notes = given[0]["metadata"].get("annotations") or {}
    return bool(notes.get("kubernetes.io/config.source", "api") != "api")
