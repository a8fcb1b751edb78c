"""Laws about the statuses of pods: what one says, and what the next may say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubelet_conformance.laws.history import Shown
from kubelet_conformance.laws.law import Seen, law
from kubelet_conformance.laws.lives import Container
from kubelet_conformance.laws.successive import (
    PUT_RIGHT_S,
    has_started,
    is_forgotten,
    is_static,
    of_one_life,
    remembered,
    replaced_mirrors,
    successive,
)
from simclock.clock import format_rfc3339

KINDS: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
ENDED: Final = ("Succeeded", "Failed")
FLIP: Final = ("Ready", "ContainersReady")
"""Conditions that change while a container is restarted."""
UNKNOWN: Final = "ContainerStatusUnknown"
OWNED: Final = (
    "Initialized",
    "PodReadyToStartContainers",
    "ContainersReady",
    "Ready",
    "PodScheduled",
)


@law("STAT-029.1")
def phases_go_on(seen: Seen) -> Iterator[str]:
    """A pod that is over stays so. (Failed may become Succeeded in `/pods` while a pod that was
    evicted ends. A kubelet that starts does not know why a static pod was refused or ended.)"""
    starts_s = [each.at_s for each in seen.history.planned if each.kind == "start"]
    for before, after in of_one_life(seen):
        old, new = before.status.get("phase"), after.status.get("phase")
        had_a_reason = before.status.get("reason") or not before.status.get("containerStatuses")
        forgotten = had_a_reason and is_static(seen, before.uid)
        if forgotten and any(before.at_s <= at_s <= after.at_s for at_s in starts_s):
            continue
        if old in ENDED and new not in ENDED:
            yield f"{_at(seen, after)}: {old} becomes {new}"


@law("LIFE-173.3")
def restarts_go_up(seen: Seen) -> Iterator[str]:
    """The number of restarts of a container never goes down. (Of one that the runtime has lost only
    the last status tells it, which is forgotten when it meets another mirror than its own, and of
    a static pod by every kubelet that starts.)"""
    mirrors = replaced_mirrors(seen)
    for before, after in of_one_life(seen):
        counts = {name: one.get("restartCount", 0) for name, one in _each(before.status)}
        begun_anew = is_static(seen, after.uid) and has_started(seen, before, after)
        forgotten = begun_anew or is_forgotten(seen, mirrors, before, after)
        for name, one in _each(after.status):
            if forgotten and not one.get("containerID"):
                continue
            if one.get("restartCount", 0) < counts.get(name, 0):
                new = one.get("restartCount", 0)
                yield f"{_at(seen, after)}: {name} has {new} restarts after {counts[name]}"


@law("STAT-009.1")
def ready_while_running(seen: Seen) -> Iterator[str]:
    """A container that does not run is neither ready nor started; a plain init container is ready
    when it has succeeded, also while it waits to do so again in another sandbox. (The result of a
    probe may come when the container has ended: the next status puts it right. Of a container that
    could not be found at the end of its pod both are left as they were: STAT-010.)"""
    corrected = {id(before) for before, after in successive(seen) if _soon(before, after)}
    for one in seen.history.shown:
        if id(one) in corrected and _is_probed(seen, one.uid):
            continue
        plain = _plain_init(seen, one.uid)
        if "AllContainersRestarting" in _conditions(one.status):
            continue  # what is shown of containers that are restarted with all others is made up
        for name, container in _each(one.status):
            state = container.get("state") or {}
            if "running" in state:
                if name in plain and container.get("ready"):
                    yield f"{_at(seen, one)}: init container {name} is ready while it runs"
                continue
            last = (container.get("lastState") or {}).get("terminated") or {}
            ended = state.get("terminated") or (last if "waiting" in state else {})
            done = ended.get("exitCode") == 0
            if ended.get("reason") == UNKNOWN:
                continue
            if container.get("ready") and not (name in plain and done):
                yield f"{_at(seen, one)}: {name} is ready and does not run"
            if container.get("started"):
                yield f"{_at(seen, one)}: {name} is started and does not run"


@law("STAT-040.1", "STAT-041.1", "STAT-028.1")
def conditions_agree(seen: Seen) -> Iterator[str]:
    """ContainersReady is True only while all containers and sidecars are ready, and Ready only
    while ContainersReady is; the server is told neither of a pod that is over."""
    for name, pod in seen.history.stored.items():
        if pod.get("status", {}).get("phase") in ENDED:
            for kind in FLIP:
                if _conditions(pod["status"]).get(kind, {}).get("status") == "True":
                    yield f"pod {name} is over and {kind} at the API server"
    for one in seen.history.shown:
        conditions = _conditions(one.status)
        told = {kind: each["status"] for kind, each in conditions.items()}
        if told.get("Ready") == "True" and told.get("ContainersReady") != "True":
            yield f"{_at(seen, one)}: Ready, and ContainersReady is {told.get('ContainersReady')}"
        plain = _plain_init(seen, one.uid)
        lasting = [
            each
            for kind in ("initContainerStatuses", "containerStatuses")
            for each in one.status.get(kind) or ()
            if each["name"] not in plain
        ]
        ready = one.uid not in seen.history.pods or all(each.get("ready") for each in lasting)
        if told.get("ContainersReady") == "True" and not ready:
            yield f"{_at(seen, one)}: ContainersReady, and not all containers are ready"


@law("STAT-004.1")
def transitions_have_times(seen: Seen) -> Iterator[str]:
    """lastTransitionTime of a condition changes exactly when its status does, unless another
    client writes conditions of the pod, or the server is not told of all statuses: requests fail,
    or are late."""
    untold = seen.history.did("server")
    written = _written_by_users(seen)
    for before, after in remembered(seen):
        if after.pod in written:
            continue
        old = _conditions(before.status)
        for kind, new in _conditions(after.status).items():
            was = old.get(kind)
            if was is None or kind not in OWNED:
                continue
            same = was["status"] == new["status"]
            times = was.get("lastTransitionTime"), new.get("lastTransitionTime")
            flipped = untold or _may_have_flipped(seen, kind, before, after)
            if same and times[0] != times[1] and not flipped:
                yield (
                    f"{_at(seen, after)}: {kind} stays {new['status']}, and its time becomes "
                    f"{times[1]}"
                )
            elif not same and str(times[1] or "") < str(times[0] or ""):
                yield f"{_at(seen, after)}: the time of {kind} goes back to {times[1]}"


@law("LIFE-170.3")
def as_the_runtime_had_it(seen: Seen) -> Iterator[str]:
    """IDs, exit codes and times of containers are those that the runtime told."""
    if seen.history.did("outside"):
        return
    for one in seen.history.shown:
        for name, container in _each(one.status):
            ended = (container.get("lastState") or {}).get("terminated")
            for state in (container.get("state") or {}, {"terminated": ended} if ended else {}):
                yield from _state_differs(seen, one, name, container, state)


def _state_differs(
    seen: Seen, one: Shown, name: str, container: Mapping[str, Any], state: Mapping[str, Any]
) -> Iterator[str]:
    ended = state.get("terminated")
    told_id = (ended or {}).get("containerID") or ("running" in state and container["containerID"])
    if not told_id:
        return
    life = seen.lives.containers.get(str(told_id).rpartition("/")[2])
    if life is None:
        yield f"{_at(seen, one)}: {name} has the ID {told_id}, which no container had"
    elif (life.uid, life.name) != (one.uid, name) and one.uid in seen.history.pods:
        yield f"{_at(seen, one)}: {name} has the ID of {life.pod}/{life.name}"
    elif ended is not None and _told(life) and ended.get("exitCode", 0) != life.exit_code:
        yield f"{_at(seen, one)}: {name} ended with {ended.get('exitCode')}, not {life.exit_code}"
    else:
        at_ns = {"startedAt": life.began_ns}
        if ended is not None and _told(life):
            at_ns["finishedAt"] = life.finished_ns
        shown = ended if ended is not None else state["running"]
        for field, told_ns in at_ns.items():
            right = format_rfc3339(told_ns)
            if told_ns and shown.get(field) != right:
                yield f"{_at(seen, one)}: {name} has {field} {shown.get(field)}, not {right}"


def _told(life: Container) -> bool:
    return life.exit_code is not None


@law("LIFE-132.1")
def counted_as_made(seen: Seen) -> Iterator[str]:
    """The restart count of a container that runs is no less than the number of its attempt."""
    if seen.history.did("outside"):
        return
    for one in seen.history.shown:
        for name, container in _each(one.status):
            life = seen.lives.containers.get(
                str(container.get("containerID") or "").rpartition("/")[2]
            )
            runs = "running" in (container.get("state") or {})
            if runs and life is not None and container.get("restartCount", 0) < life.attempt:
                count = container.get("restartCount", 0)
                yield f"{_at(seen, one)}: {name} has {count} restarts, it is attempt {life.attempt}"


@law("STAT-005.2")
def generation_not_back(seen: Seen) -> Iterator[str]:
    """observedGeneration never goes back, and is none that the pod has not had yet, unless another
    client writes one."""
    written = _written_by_users(seen)
    for one in seen.history.shown:
        given = seen.history.pods.get(one.uid) or ()
        newest = max((each["metadata"].get("generation", 0) for each in given), default=None)
        observed = one.status.get("observedGeneration", 0)
        if newest and observed > newest and one.pod not in written:
            yield f"{_at(seen, one)}: observedGeneration {observed}, the pod has had {newest}"
    for before, after in successive(seen):
        old, new = (each.status.get("observedGeneration", 0) for each in (before, after))
        if new < old:
            yield f"{_at(seen, after)}: observedGeneration goes from {old} to {new}"


@law("STAT-003.3")
def start_time_kept(seen: Seen) -> Iterator[str]:
    """startTime of a pod does not change once it is there."""
    for before, after in remembered(seen):
        old, new = before.status.get("startTime"), after.status.get("startTime")
        if old is not None and old != new:
            yield f"{_at(seen, after)}: startTime changes from {old} to {new}"


@law("STAT-043.1")
def addresses_of_sandbox(seen: Seen) -> Iterator[str]:
    """The addresses of a pod are those that the runtime told of one of its sandboxes, or the
    node's, unless another client writes one."""
    if seen.history.did("outside", "stopped"):
        return
    known, written = seen.lives.addresses, _written_by_users(seen)
    for one in seen.history.shown:
        address = one.status.get("podIP")
        given = seen.history.pods.get(one.uid)
        if not address or given is None or given[0]["spec"].get("hostNetwork"):
            continue
        if one.pod in written:
            continue
        if address not in known.get(one.uid, ()):
            yield f"{_at(seen, one)}: the address {address} is none that the runtime told"


def _written_by_users(seen: Seen) -> set[str]:
    """The names of the pods of which somebody else than the kubelet has written the status."""
    return {
        one.path.split("/")[-2]
        for one in seen.history.by_users
        if "/pods/" in one.path and one.path.endswith("/status")
    }


def _may_have_flipped(seen: Seen, kind: str, before: Shown, after: Shown) -> bool:
    """Whether a condition may have been another between two statuses, for less than the time from
    one look to the next: a container has ended or started, a sandbox was made."""
    if kind == "PodReadyToStartContainers":
        made = (box.made_s for box in seen.lives.sandboxes.values() if box.uid == after.uid)
        return any(before.at_s <= made_s <= after.at_s for made_s in made)
    if kind not in FLIP:
        return False
    if is_static(seen, after.uid) and _is_probed(seen, after.uid):
        return True  # a probe that failed once, and not again
    states = [
        [(name, one.get("containerID"), one.get("state")) for name, one in _each(each.status)]
        for each in (before, after)
    ]
    return states[0] != states[1]


def _soon(before: Shown, after: Shown) -> bool:
    return after.at_s - before.at_s <= PUT_RIGHT_S


def _is_probed(seen: Seen, uid: str) -> bool:
    """Whether a probe decides if one of the pod's containers is ready, or has started."""
    given = seen.history.pods.get(uid)
    spec = given[0]["spec"] if given else {}
    containers = (*spec.get("containers", ()), *spec.get("initContainers", ()))
    return any("readinessProbe" in each or "startupProbe" in each for each in containers)


def _each(status: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for kind in KINDS:
        for one in status.get(kind) or ():
            yield one["name"], one


def _conditions(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {each["type"]: each for each in status.get("conditions") or ()}


def _plain_init(seen: Seen, uid: str) -> frozenset[str]:
    """The names of the init containers that are no sidecars."""
    given = seen.history.pods.get(uid)
    if given is None:
        return frozenset()
    order = given[0]["spec"].get("initContainers") or ()
    return frozenset(each["name"] for each in order if each.get("restartPolicy") != "Always")


def _at(seen: Seen, one: Shown) -> str:
    return f"status of {one.pod} at {seen.history.since(one.at_s)}"
