"""Laws about a node that is left alone for long after all faults (`Scenario.calm`): what is wanted
runs, nothing else does, and everybody is told so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.laws.history import There
from kubelet_conformance.laws.law import Seen, law
from kubelet_conformance.laws.moments import is_given_time, server_is_well, shown_over_s, under_way
from kubelet_conformance.laws.successive import made_pod
from simclock.clock import format_rfc3339

NAME: Final = "io.kubernetes.container.name"
UID: Final = "io.kubernetes.pod.uid"
MIRROR: Final = "kubernetes.io/config.mirror"
HASH: Final = "kubernetes.io/config.hash"
SOURCE: Final = "kubernetes.io/config.source"
ENDED: Final = ("Succeeded", "Failed")
CREATED: Final = 201
KINDS: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
JUST_NOW_S: Final = 5.0
"""So long a change may take to be told to everybody."""
DECIDED_S: Final = 200.0
"""After so long a startup probe has passed, or its container was stopped."""
LONGEST_BACKOFF_S: Final = 400.0
SIDES_MAY_WAIT: Final = ("CrashLoopBackOff", "PostStartHookError")
MAY_WAIT: Final = (*SIDES_MAY_WAIT, "PodInitializing")
"""Reasons for which a container may wait although nothing is in its way."""


@law("LIFE-114.2", "LIFE-200.3", "LIFE-206")
def wanted_pods_go_on(seen: Seen) -> Iterator[str]:
    """A pod that is neither over nor deleted has all its containers started, but for those in
    back-off and those behind init containers; one that was deleted is gone."""
    there = seen.history.there
    static = {} if there is None else _static(there)
    for name, pod in sorted({**static, **_own_pods(there)}.items()):
        if pod["metadata"].get("deletionTimestamp"):
            yield f"pod {name} was deleted, and is still there"
        elif _phase(pod) not in ENDED and _has_its_objects(there, pod):
            yield from _in_the_way(seen, name, pod)
            yield from _not_through(seen, name, pod)


def _has_its_objects(there: There | None, pod: Mapping[str, Any]) -> bool:
    """Whether the objects that are its volumes are there: it waits for them else."""
    volumes = pod["spec"].get("volumes") or ()
    wanted = {each["configMap"]["name"] for each in volumes if "configMap" in each}
    return there is None or wanted <= there.configmaps


def _in_the_way(seen: Seen, name: str, pod: Mapping[str, Any]) -> Iterator[str]:
    status = pod.get("status") or {}
    shown = {one["name"]: one for one in _statuses(pod)}
    for one in pod["spec"]["containers"]:
        state = (shown.get(one["name"]) or {}).get("state") or {}
        waits = state.get("waiting")
        if not state or (waits is not None and waits.get("reason") not in MAY_WAIT):
            why = (waits or {}).get("reason", "no status") + _lost(seen, pod)
            yield f"pod {name} is {_phase(pod) or 'new'}, {one['name']} does not run: {why}"
        elif "terminated" in state and _is_to_run(seen, pod, state["terminated"]):
            yield f"pod {name}: {one['name']} has ended, and is not started again"
        elif waits and waits.get("reason") == "PodInitializing" and not _init_waits(pod, shown):
            why = f"which are through{_lost(seen, pod)}"
            yield f"pod {name}: {one['name']} waits for init containers, {why}"
    if not status:
        yield f"pod {name} has no status"


def _is_to_run(seen: Seen, pod: Mapping[str, Any], ended: Mapping[str, Any]) -> bool:
    """Whether a container that is to be restarted has ended so long ago that no back-off can be in
    its way."""
    policy = pod["spec"].get("restartPolicy") or "Always"
    rules = any(each.get("restartPolicyRules") for each in pod["spec"]["containers"])
    own = any(each.get("restartPolicy") for each in pod["spec"]["containers"])
    ended_at = ended.get("finishedAt") or ""
    long_ago = ended_at < _wall(seen, seen.history.end_s - LONGEST_BACKOFF_S)
    again = policy == "Always" or (policy == "OnFailure" and ended.get("exitCode", 0) != 0)
    return again and not rules and not own and long_ago


def _not_through(seen: Seen, name: str, pod: Mapping[str, Any]) -> Iterator[str]:
    """Init containers that should have run by now, sidecars that should run, and containers of
    which a startup probe should have decided, unless a hook still holds up what it has."""
    shown = {one["name"]: one for one in _statuses(pod)}
    for one in pod["spec"].get("initContainers") or ():
        status = shown.get(one["name"]) or {}
        state = status.get("state") or {}
        waits = state.get("waiting") or {}
        if not state or (waits and waits.get("reason") not in SIDES_MAY_WAIT):
            why = (waits.get("reason") or "for nothing") + _lost(seen, pod)
            yield f"pod {name}: {one['name']} waits: {why}"
        side = one.get("restartPolicy") == "Always"
        done = status.get("started") if side else "terminated" in state
        if not done:
            break
    if under_way(seen, pod["metadata"]["uid"], seen.history.end_s):
        return
    for status in shown.values():
        begun = ((status.get("state") or {}).get("running") or {}).get("startedAt")
        decided = status.get("started") is not False
        if begun and not decided and begun < _wall(seen, seen.history.end_s - DECIDED_S):
            yield f"pod {name}: {status['name']} runs since {begun}, and has not started"


def _wall(seen: Seen, at_s: float) -> str:
    """A moment as objects have it."""
    history = seen.history
    return format_rfc3339(history.start_ns + int((at_s - history.start_s) * 1e9))


def _init_waits(pod: Mapping[str, Any], shown: Mapping[str, Any]) -> bool:
    """Whether an init container has not done its work yet."""
    for one in pod["spec"].get("initContainers") or ():
        status = shown.get(one["name"]) or {}
        ended = (status.get("state") or {}).get("terminated") or {}
        done = status.get("started") if one.get("restartPolicy") == "Always" else ended
        if not done or ended.get("exitCode"):
            return True
    return False


@law("LIFE-072.1", "LIFE-039.1")
def nothing_else_runs(seen: Seen) -> Iterator[str]:
    """Containers run of pods that are wanted and not over, and of no others but those that are
    being stopped and have time left."""
    there = seen.history.there
    if there is None:
        return
    wanted = {
        pod["metadata"]["uid"]
        for pod in (*_own_pods(there).values(), *_static(there).values())
        if _phase(pod) not in ENDED
    }
    for one in there.containers:
        uid = one.labels[UID]
        if one.state != cri.CONTAINER_RUNNING or uid in wanted:
            continue
        if not is_given_time(seen, uid, seen.history.end_s):
            pod = one.labels["io.kubernetes.pod.name"]
            yield f"{pod}/{one.labels[NAME]} runs, and no pod of its UID is wanted or goes on"


@law("LIFE-170.3", "STAT-020.1")
def told_as_it_is(seen: Seen) -> Iterator[str]:
    """The status of each container is that of its newest instance in the runtime, unless that has
    changed just now; one that was started is shown when the sync that did it is over."""
    there = seen.history.there
    if there is None:
        return
    history = seen.history
    end_ns = history.start_ns + (history.end_s - history.start_s) * 1e9
    newest: dict[tuple[str, str], Any] = {}
    for one in there.containers:
        key = (one.labels[UID], one.labels[NAME])
        if key not in newest or newest[key].created_at < one.created_at:
            newest[key] = one
    for name, pod in sorted({**_own_pods(there), **_static(there)}.items()):
        for status in _statuses(pod):
            real = newest.get((pod["metadata"]["uid"], status["name"]))
            if real is not None and _changed_ns(real) > end_ns - JUST_NOW_S * 1e9:
                continue
            runs = real is not None and real.state == cri.CONTAINER_RUNNING
            running = "running" in (status.get("state") or {})
            if runs and under_way(seen, pod["metadata"]["uid"], history.end_s):
                continue
            if runs != running:
                yield f"{name}/{status['name']} is shown as {_word(status)}, {_real(real)}"
            elif real is not None and runs and not status["containerID"].endswith(real.id):
                yield f"{name}/{status['name']} is shown with the ID of another instance"


@law("LIFE-114.5", "LIFE-130.1")
def one_of_each(seen: Seen) -> Iterator[str]:
    """Of each container one instance runs at most."""
    there = seen.history.there
    counts = Counter(
        (one.labels[UID], one.labels["io.kubernetes.pod.name"], one.labels[NAME])
        for one in (() if there is None else there.containers)
        if one.state == cri.CONTAINER_RUNNING
    )
    for (_, pod, name), count in counts.items():
        if count > 1:
            yield f"{count} instances of {pod}/{name} run"


@law("MIRR-021.1", "MIRR-031.1", "MIRR-034")
def mirrors_agree(seen: Seen) -> Iterator[str]:
    """Each static pod that is not over has a mirror with its phase, made of the same manifest, and
    each mirror a static pod.
    One that was over when it was read has no mirror, nor has one that was not admitted, nor one
    of which the server let none be made before it was over."""
    there = seen.history.there
    if there is None or not (there.at_api or seen.history.requests):
        return
    static = _static(there)
    mirrors = {name: pod for name, pod in there.at_api.items() if _is_mirror(pod)}
    for name in sorted({*static, *mirrors}):
        if name not in mirrors:
            if _phase(static[name]) not in ENDED or _had_mirror(seen, static[name]):
                yield f"static pod {name} has no mirror"
        elif name not in static:
            yield f"mirror {name} has no static pod"
        elif _phase(static[name]) != _phase(mirrors[name]):
            phases = f"{_phase(mirrors[name])}, its pod {_phase(static[name])}"
            yield f"mirror {name} is {phases}"
        elif _phase(static[name]) not in ENDED and _is_older(mirrors[name], static[name]):
            yield f"mirror {name} is of another manifest than its pod"


@law("SRC-002.2", "SRC-005.1", "SRC-008")
def manifests_are_read(seen: Seen) -> Iterator[str]:
    """Each manifest in the directory is a static pod as it is there, whatever other files there
    are, and each static pod is in a manifest."""
    there = seen.history.there
    if there is None or there.manifests is None:
        return
    suffix = f"-{seen.history.node_name}"
    static = {
        name: pod for name, pod in _static(there).items() if _note(pod, SOURCE) in ("", "file")
    }
    wanted = {name for name, of_it in there.manifests.items() if any(one.read for one in of_it)}
    for name in sorted({*wanted, *(name.removesuffix(suffix) for name in static)}):
        pod = static.get(f"{name}{suffix}")
        if pod is None:
            yield f"the manifest of {name} is there, and no pod of it"
        elif name not in there.manifests:
            yield f"static pod {name} is there, and no manifest of it"
        elif not any(_is_of(pod, one.pod) for one in there.manifests[name]):
            yield f"static pod {name} is not as its manifest is"


def _is_of(pod: Mapping[str, Any], manifest: Mapping[str, Any]) -> bool:
    """Whether what users change of a pod is as a manifest says."""
    labels = manifest["metadata"].get("labels") or {}
    has = pod["metadata"].get("labels") or {}
    spec, wanted = pod["spec"], manifest["spec"]
    grace = wanted.get("terminationGracePeriodSeconds")
    return (
        all(has.get(name) == value for name, value in labels.items())
        and grace in (None, spec.get("terminationGracePeriodSeconds"))
        and [each.get("image") for each in spec["containers"]]
        == [each.get("image") for each in wanted["containers"]]
    )


def _note(pod: Mapping[str, Any], name: str) -> str:
    """An annotation of a pod; "": it has none of that name."""
    return str((pod["metadata"].get("annotations") or {}).get(name, ""))


def _is_older(mirror: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Whether a mirror was made of another manifest than that of the pod."""
    return _note(pod, HASH) not in ("", _note(mirror, MIRROR))


def _had_mirror(seen: Seen, pod: Mapping[str, Any]) -> bool:
    """Whether this kubelet has shown the static pod running, its manifest has never changed, and
    the mirror was made, or nobody had disturbed requests up to the end of the pod: then it should
    have been."""
    history = seen.history
    if history.did("manifest", "stop", "kill", "user"):
        return False
    uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
    mine = [one for one in history.shown if one.uid == uid]
    ran_s = next((one.at_s for one in mine if one.status.get("phase") == "Running"), None)
    if ran_s is None:
        return False
    over_s = shown_over_s(history).get(uid, history.end_s)
    made = (made_pod(one) for one in history.requests if one.status == CREATED)
    return name in made or server_is_well(history, ran_s, over_s)


def _own_pods(there: There | None) -> Mapping[str, Mapping[str, Any]]:
    """The pods of the API server that are no mirrors."""
    pods = {} if there is None else there.at_api
    return {name: pod for name, pod in pods.items() if not _is_mirror(pod)}


def _static(there: There) -> Mapping[str, Mapping[str, Any]]:
    """The static pods in `/pods`."""
    return {
        name: pod
        for name, pod in there.listed.items()
        if (pod["metadata"].get("annotations") or {}).get("kubernetes.io/config.source") != "api"
    }


def _is_mirror(pod: Mapping[str, Any]) -> bool:
    return MIRROR in (pod["metadata"].get("annotations") or {})


def _lost(seen: Seen, pod: Mapping[str, Any]) -> str:
    """That a sandbox of the pod is over, to be put behind a sentence; "": none is."""
    return ", its sandbox was lost" if seen.lives.has_lost(pod["metadata"]["uid"]) else ""


def _phase(pod: Mapping[str, Any]) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def _statuses(pod: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    status = pod.get("status") or {}
    return [one for kind in KINDS for one in status.get(kind) or ()]


def _changed_ns(one: Any) -> int:
    return int(max(one.created_at, one.started_at, one.finished_at))


def _word(status: Mapping[str, Any]) -> str:
    return next(iter(status.get("state") or {}), "nothing")


def _real(one: Any) -> str:
    if one is None:
        return "the runtime has none"
    return (
        f"the runtime has {cri.ContainerState.Name(one.state).removeprefix('CONTAINER_').lower()}"
    )
