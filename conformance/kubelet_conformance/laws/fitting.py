"""Laws about what runs beside what, by what the runtime itself tells, and about how much of it
there may be. They are asked of worlds of search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.laws.alone import exclusive_cpus
from kubelet_conformance.laws.history import There
from kubelet_conformance.laws.law import Seen
from kubelet_conformance.laws.lives import Container, Sandbox
from kubelet_conformance.laws.moments import (
    FILES,
    SOURCE,
    containers_of,
    deletions,
    is_given_time,
    is_of_api,
    law_of_worlds,
    shown_over_s,
    sidecars_of,
    spec_of,
    was_edited,
)
from kubelet_conformance.laws.telling import cpus_of_node
from kubeobjects.quantity import parse_nano
from refkubelet.model.cpuset import parse_cpuset

NAME: Final = "io.kubernetes.container.name"
UID: Final = "io.kubernetes.pod.uid"
ENDED: Final = ("Succeeded", "Failed")
MANY: Final = 6
"""So many sandboxes of one pod within MANY_S are the most that no loop makes."""
MANY_S: Final = 2.0
MOST_PODS: Final = 110


@law_of_worlds("LIFE-114.5", "LIFE-130.3")
def never_two_at_once(seen: Seen) -> Iterator[str]:
    """No two instances of a container have run at the same time, by the times that the runtime
    tells of them, whatever the kubelet knew."""
    there = {} if seen.history.there is None else _by_id(seen.history.there)
    named: dict[tuple[str, str], list[tuple[int, int, Container]]] = {}
    for one in seen.lives.containers.values():
        began_ns, finished_ns = one.began_ns, one.finished_ns
        if one.id in there:
            began_ns, finished_ns = there[one.id].started_at, there[one.id].finished_at
        elif not finished_ns:
            continue  # it is gone, and when it has ended was never told
        if began_ns:
            named.setdefault((one.uid, one.name), []).append((began_ns, finished_ns, one))
    for instances in named.values():
        for (_, finished_ns, _), (began_ns, _, after) in pairwise(sorted(instances, key=_begin)):
            if not finished_ns or finished_ns > began_ns:
                at_s = seen.history.start_s + (began_ns - seen.history.start_ns) / 1e9
                at = seen.history.since(at_s)
                yield f"{after.pod}/{after.name} begins at {at}, and the one before runs on"


def _begin(instance: tuple[int, int, Container]) -> int:
    return instance[0]


def _by_id(there: There) -> Mapping[str, Any]:
    return {one.id: one for one in there.containers}


@law_of_worlds("LIFE-101", "LIFE-072.1")
def no_other_sandboxes(seen: Seen) -> Iterator[str]:
    """In a node left alone, sandboxes are ready of pods that are wanted and not over, or whose
    containers are being stopped and have time left, and of each one at most."""
    there = seen.history.there
    if there is None:
        return
    wanted = {
        pod["metadata"]["uid"]
        for pod in (*there.listed.values(), *there.at_api.values())
        if (pod.get("status") or {}).get("phase") not in ENDED
    }
    ready = [box.metadata for box in there.sandboxes if box.state == cri.SANDBOX_READY]
    for uid, count in Counter(box.uid for box in ready).items():
        name = next(box.name for box in ready if box.uid == uid)
        if uid not in wanted and not is_given_time(seen, uid, seen.history.end_s):
            yield f"the sandbox of {name} is ready, and no pod of its UID is wanted or goes on"
        if uid in wanted and count > 1:
            yield f"{count} sandboxes of {name} are ready"


@law_of_worlds("LIFE-111.2", "LIFE-111.3", "LIFE-111.5")
def done_in_any_sandbox(seen: Seen) -> Iterator[str]:
    """A regular container that has succeeded by itself, or whose policy is Never, is not started
    again, in another sandbox either, as long as the runtime has a record of it."""
    history = seen.history
    if history.did("outside"):
        return
    for uid in history.pods:
        spec = spec_of(history, uid)
        policy = spec.get("restartPolicy") or "Always"
        came_back = history.did("manifest") and not is_of_api(history, uid)
        if policy == "Always" or came_back or was_edited(history, uid):
            continue
        for each in spec["containers"]:
            for before, after in pairwise(seen.lives.of_pod(uid).get(each["name"], ())):
                if after.start_asked_s is None or not _is_done(before, policy, after.asked_s):
                    continue
                at = history.since(after.start_asked_s)
                yield f"{after.pod}/{after.name} is started again at {at}, it had done its work"


def _is_done(before: Container, policy: str, at_s: float) -> bool:
    """Whether an instance was known then to have ended, and is a reason not to start another."""
    known = before.over_s is not None and before.over_s <= at_s and before.exit_code is not None
    kept = before.removed_s is None or before.removed_s > at_s
    ended = before.exit_code == 0 or policy == "Never"
    return before.started_s is not None and known and kept and ended and not before.stops


@law_of_worlds("LIFE-226.3")
def ports_given_once(seen: Seen) -> Iterator[str]:
    """No pod of the API server gets a sandbox with a port of the node that a ready sandbox of
    another one has. (The port of one that is over, or that is gone from the server, counts no
    more.)"""
    history = seen.history
    if history.did("user", "outside"):
        return
    over = shown_over_s(history)
    gone = {uid for uid, asked in deletions(history).items() if any(d.grace_s == 0 for d in asked)}
    has: dict[tuple[str, int, int], list[Sandbox]] = {}
    for call in history.calls:
        if call.method != "RunPodSandbox" or call.error is not None or call.ended_s is None:
            continue
        box = seen.lives.sandboxes[call.response.pod_sandbox_id]
        for port in call.request.config.port_mappings if is_of_api(history, box.uid) else ():
            others = has.setdefault((port.host_ip, port.protocol, port.host_port), [])
            for other in others if port.host_port else ():
                ended_s = min(over.get(other.uid, inf), other.over_s or inf)
                if other.uid not in {box.uid, *gone} and ended_s > box.asked_s:
                    at = history.since(box.asked_s)
                    yield f"{box.pod} gets the port {port.host_port} of {other.pod} at {at}"
            others.append(box)


@law_of_worlds("LIFE-037")
def sandboxes_in_no_hurry(seen: Seen) -> Iterator[str]:
    """Not more than six sandboxes are asked for one pod within two seconds, whether they can be
    made or not."""
    asked: dict[str, list[float]] = {}
    for call in seen.history.calls:
        if call.method != "RunPodSandbox":
            continue
        times = asked.setdefault(call.uid, [])
        times.append(call.started_s)
        if len(times) > MANY and times[-1] - times[-1 - MANY] < MANY_S:
            at = seen.history.since(call.started_s)
            yield f"pod {call.pod} has asked for {MANY + 1} sandboxes at {at} in {MANY_S:g} s"
            times.clear()


@law_of_worlds("LIFE-162", "LIFE-163", "LIFE-164", "LIFE-165")
def phases_fit(seen: Seen) -> Iterator[str]:
    """In a node left alone, a pod goes on unless all its containers have ended for good, and is not
    Pending while all its containers run."""
    there = seen.history.there
    if there is None:
        return
    for name, pod in sorted(_all_pods(there).items()):
        status = pod.get("status") or {}
        phase = status.get("phase") or "Pending"
        if phase in ENDED or pod["metadata"].get("deletionTimestamp"):
            continue
        states = [each.get("state") or {} for each in status.get("containerStatuses") or ()]
        if not states or len(states) < len(pod["spec"]["containers"]):
            continue
        ends = [each.get("terminated") for each in states]
        if all(ends) and _are_for_good(pod["spec"], [end or {} for end in ends]):
            yield f"pod {name} is {phase}, and all its containers have ended for good"
        elif phase == "Pending" and all("running" in each for each in states):
            yield f"pod {name} is Pending, and all its containers run"


def _are_for_good(spec: Mapping[str, Any], ends: Sequence[Mapping[str, Any]]) -> bool:
    """Whether containers that have ended so are not started again."""
    policy = spec.get("restartPolicy") or "Always"
    own = any(each.get("restartPolicy") for each in spec["containers"])
    well = all(end.get("exitCode", 0) == 0 for end in ends)
    return not own and (policy == "Never" or (policy == "OnFailure" and well))


def _all_pods(there: There) -> Mapping[str, Mapping[str, Any]]:
    """The static pods as `/pods` shows them, and those of the API server."""
    static = {
        name: pod
        for name, pod in there.listed.items()
        if (pod["metadata"].get("annotations") or {}).get(SOURCE) in FILES
    }
    return {**there.at_api, **static}


@law_of_worlds("CG-081.1", "CG-081.4")
def shared_keep_off(seen: Seen) -> Iterator[str]:
    """In a node left alone, no container may use the CPUs that another one has alone."""
    there = seen.history.there
    if there is None or seen.history.config.get("cpuManagerPolicy") != "static":
        return
    may_use: dict[str, frozenset[int]] = {}
    for call in seen.history.calls:
        if call.error is not None or call.ended_s is None:
            continue
        if call.started_s > seen.history.end_s:
            break  # the pods are being removed
        if call.method == "CreateContainer":
            linux = call.request.config.linux.resources
            may_use[call.response.container_id] = frozenset(parse_cpuset(linux.cpuset_cpus))
        elif call.method == "UpdateContainerResources" and call.request.linux.cpuset_cpus:
            cpus = parse_cpuset(call.request.linux.cpuset_cpus)
            may_use[call.request.container_id] = frozenset(cpus)
    running = [
        one
        for one in there.containers
        if one.state == cri.CONTAINER_RUNNING and one.id in may_use
        if seen.history.pods.get(one.labels[UID]) and not was_edited(seen.history, one.labels[UID])
    ]
    for one in running:
        mine = may_use[one.id]
        count = exclusive_cpus(spec_of(seen.history, one.labels[UID]), one.labels[NAME])
        for other in running if count and len(mine) == count else ():
            theirs = may_use[other.id]
            if other.id != one.id and (not theirs or theirs & mine):
                yield f"{_name(other)} may use CPUs that {_name(one)} has alone"


def _name(one: Any) -> str:
    return f"{one.labels['io.kubernetes.pod.name']}/{one.labels[NAME]}"


@law_of_worlds("LIFE-225.1", "LIFE-225.3")
def no_more_than_fits(seen: Seen) -> Iterator[str]:
    """In a node left alone, what runs asks for no more CPUs than the node has to give, and no more
    pods run than it may have."""
    there = seen.history.there
    if there is None:
        return
    uids = {
        one.labels[UID]
        for one in there.containers
        if one.state == cri.CONTAINER_RUNNING and one.labels[UID] in seen.history.pods
    }
    most = int(seen.history.config.get("maxPods") or MOST_PODS)
    if len(uids) > most:
        yield f"{len(uids)} pods run, and the node may have {most}"
    have = cpus_of_node(seen.history.requests)
    wanted = sum(min(map(_cpus, seen.history.pods[uid])) for uid in uids)
    if have is not None and wanted > have:
        yield f"what runs asks for {wanted:g} CPUs, of {have:g}"


def _cpus(pod: Mapping[str, Any]) -> float:
    """How many CPUs the regular containers and sidecars of a pod ask for."""
    sides = sidecars_of(pod["spec"])
    regular = [each["name"] for each in pod["spec"]["containers"]]
    amounts = [
        {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.get("cpu", 0)
        for each in containers_of(pod["spec"])
        if each["name"] in (*regular, *sides)
        for resources in [each.get("resources") or {}]
    ]
    return sum(parse_nano(str(amount)) / 1e9 for amount in amounts)
