"""Laws about what a pod or a container has alone: no two have the same at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import inf
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.laws.law import Seen, law
from kubelet_conformance.laws.lives import Container, Sandbox
from kubeobjects.quantity import NANO, QuantityError, parse_nano
from refkubelet.model.cpuset import parse_cpuset

CPU: Final = "CPU "
DEVICES: Final = "DEVICES_"
"""So begin the variables in which fakecri's device plug-ins tell a container its devices."""


@law("CG-081.1", "CG-084.4")
def given_once(seen: Seen) -> Iterator[str]:
    """No two containers that run have the same exclusive CPU, or the same device."""
    has: dict[str, frozenset[str]] = {}
    running: dict[str, Container] = {}
    for call in seen.history.calls:
        one = _container_of(seen, call)
        if one is None:
            continue
        if call.method == "CreateContainer":
            config = call.request.config
            has[one.id] = _devices(config) | _cpus(seen, one, config.linux.resources)
        elif call.method == "UpdateContainerResources":
            kept = frozenset(thing for thing in has[one.id] if not thing.startswith(CPU))
            has[one.id] = kept | _cpus(seen, one, call.request.linux)
        else:
            running[one.id] = one
        running = {each.id: each for each in running.values() if _runs_at(seen, each, call.ended_s)}
        for other in running.values() if one.id in running else ():
            both = has[one.id] & has[other.id]
            is_same = (other.uid, other.name) == (one.uid, one.name)  # another instance of it
            if both and not is_same:
                at = seen.history.since(call.started_s)
                things = ", ".join(sorted(both))
                yield f"{one.pod}/{one.name} and {other.pod}/{other.name} have {things} at {at}"


@law("LIFE-147.4")
def user_ids_given_once(seen: Seen) -> Iterator[str]:
    """The ranges of user IDs of two pods that have ready sandboxes do not overlap."""
    ranges = []
    for call in seen.history.calls:
        if call.method != "RunPodSandbox" or not _succeeded(call):
            continue
        box = seen.lives.sandboxes[call.response.pod_sandbox_id]
        options = call.request.config.linux.security_context.namespace_options.userns_options
        ranges += [
            (box, range(ids.host_id, ids.host_id + ids.length))
            for ids in options.uids
            if ids.length
        ]
    over = _over_s(seen)
    for (one, ids), (other, others) in combinations(ranges, 2):
        is_over = over.get(one.id, inf) <= other.made_s
        if one.uid != other.uid and not is_over and (ids[0] in others or others[0] in ids):
            yield f"{one.pod} has the user IDs from {ids[0]}, {other.pod} those from {others[0]}"


@law("CG-012.1")
def cgroups_given_once(seen: Seen) -> Iterator[str]:
    """No two pods that have ready sandboxes have the same cgroup."""
    given: dict[str, list[Sandbox]] = {}
    over = _over_s(seen)
    for call in seen.history.calls:
        if call.method != "RunPodSandbox" or not _succeeded(call):
            continue
        parent = call.request.config.linux.cgroup_parent
        box = seen.lives.sandboxes[call.response.pod_sandbox_id]
        for other in given.setdefault(parent, []) if parent else ():
            is_over = over.get(other.id, inf) <= box.made_s
            if other.uid != box.uid and not is_over:
                yield f"{other.pod} and {box.pod} have the cgroup {parent}"
        given.setdefault(parent, []).append(box)


def _over_s(seen: Seen) -> Mapping[str, float]:
    """ID of a sandbox -> from when on the kubelet could know that it is not ready any more: a call
    about it has told so, or a list of all that are ready does not have it (somebody else has
    stopped it, or the runtime has lost its record)."""
    boxes = seen.lives.sandboxes.values()
    over = {box.id: box.over_s for box in boxes if box.over_s is not None}
    for call in seen.history.calls:
        if call.method != "ListPodSandbox" or not _succeeded(call) or not _is_of_all(call.request):
            continue
        ready = {one.id for one in call.response.items if one.state == cri.SANDBOX_READY}
        for box in boxes:
            if box.made_s <= call.started_s and box.id not in ready:
                over[box.id] = min(over.get(box.id, inf), call.ended_s)
    return over


def _is_of_all(request: Any) -> bool:
    """Whether a list has all sandboxes that are ready."""
    asked = request.filter
    of_state = not asked.HasField("state") or asked.state.state == cri.SANDBOX_READY
    return of_state and not asked.id and not asked.label_selector


def _container_of(seen: Seen, call: Any) -> Container | None:
    """The container that a call has given something, or has started; None: it did neither."""
    if not _succeeded(call):
        return None
    if call.method == "CreateContainer":
        return seen.lives.containers.get(call.response.container_id)
    if call.method in ("StartContainer", "UpdateContainerResources"):
        return seen.lives.containers.get(call.request.container_id)
    return None


def _succeeded(call: Any) -> bool:
    """Whether it has ended, and well."""
    return call.ended_s is not None and call.error is None


def _runs_at(seen: Seen, one: Container, at_s: float) -> bool:
    """Whether it has not ended by then, as far as any call tells: events of the runtime, which are
    no calls, may have told the kubelet sooner, but not before its end. One of which no end is ever
    told may have been forgotten by the runtime."""
    history = seen.history
    lost_s = [each.at_s for each in history.planned if each.kind == "outside"]
    if not one.finished_ns and any(one.asked_s <= each_s <= at_s for each_s in lost_s):
        return False
    at_ns = history.start_ns + int((at_s - history.start_s) * 1e9)
    has_ended = 0 < one.finished_ns <= at_ns
    return not has_ended and (one.over_s is None or one.over_s > at_s)


def _devices(config: Any) -> frozenset[str]:
    texts = [bytes(each.value).decode() for each in config.envs if each.key.startswith(DEVICES)]
    return frozenset(f"device {name}" for text in texts for name in text.split(",") if name)


def _cpus(seen: Seen, one: Container, resources: Any) -> frozenset[str]:
    """The CPUs that are the container's alone: as many as the whole number of its limit, in a
    Guaranteed pod. (Those that it shares are all that is left, which may be as many.)"""
    given = seen.history.pods.get(one.uid)
    if not given or not resources.cpuset_cpus:
        return frozenset()
    cpus = parse_cpuset(resources.cpuset_cpus)
    if len(cpus) != exclusive_cpus(given[-1]["spec"], one.name):
        return frozenset()
    return frozenset(f"{CPU}{cpu}" for cpu in cpus)


def exclusive_cpus(spec: Mapping[str, Any], name: str) -> int:
    """How many CPUs the container of that name has alone under the static policy; 0: none."""
    containers = [*spec.get("containers", ()), *(spec.get("initContainers") or ())]
    if not all(_is_guaranteed(each.get("resources") or {}) for each in containers):
        return 0
    limits = [each["resources"]["limits"]["cpu"] for each in containers if each["name"] == name]
    nanos = parse_nano(str(limits[0])) if limits else 0
    return 0 if nanos % NANO else nanos // NANO


def _is_guaranteed(resources: Mapping[str, Any]) -> bool:
    limits = resources.get("limits") or {}
    requests = {**limits, **(resources.get("requests") or {})}
    try:
        return all(
            name in limits and parse_nano(str(limits[name])) == parse_nano(str(requests[name]))
            for name in ("cpu", "memory")
        )
    except QuantityError:
        return False
