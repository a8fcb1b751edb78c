"""Laws about sandboxes and containers: what runs beside what, in which order, and how often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from kubelet_conformance.laws.history import History
from kubelet_conformance.laws.law import Seen, law
from kubelet_conformance.laws.lives import Container, Sandbox
from kubelet_conformance.laws.successive import is_static

ENDED = ("Succeeded", "Failed")


@law("LIFE-114.5", "LIFE-130.3")
def one_running(seen: Seen) -> Iterator[str]:
    """No container is started while an earlier one of that name may still run."""
    history = seen.history
    if any(c.method == "GetContainerEvents" for c in history.calls):
        return  # the runtime may have told otherwise that it has ended
    for instances in _by_name(seen).values():
        for before, after in pairwise(instances):
            began_s = after.start_asked_s
            if began_s is None or before.started_s is None:
                continue
            if history.did_between(before.asked_s, began_s, "outside"):
                continue  # it may have been ended so
            if before.over_s is None or before.over_s > began_s:
                yield (
                    f"{after.pod}/{after.name} is started again at {history.since(began_s)}, and "
                    "nothing had told that the one before has ended"
                )


@law("LIFE-101", "LIFE-130.1")
def one_sandbox(seen: Seen) -> Iterator[str]:
    """No sandbox is made for a pod while an earlier one of it may still be ready. (What somebody
    else has done to the runtime since that was made may have ended it.)"""
    history = seen.history
    boxes: dict[str, Sandbox] = {}
    for box in seen.lives.sandboxes.values():
        before = boxes.get(box.uid)
        if before is not None and _may_be_ready(history, before, box):
            at = history.since(box.asked_s)
            yield f"pod {box.pod} gets another sandbox at {at}, and the one before is not stopped"
        boxes[box.uid] = box


@law("LIFE-034.1")
def one_static(seen: Seen) -> Iterator[str]:
    """Of one static name no second pod gets a sandbox before the first one's is stopped."""
    boxes: dict[tuple[str, str], Sandbox] = {}
    for box in seen.lives.sandboxes.values():
        if box.source not in ("file", "http"):
            continue
        before = boxes.get((box.namespace, box.pod))
        other = before is not None and before.uid != box.uid
        if before is not None and other and _may_be_ready(seen.history, before, box):
            at = seen.history.since(box.asked_s)
            yield f"static pod {box.pod} is started at {at}, and an earlier one is not stopped"
        boxes[box.namespace, box.pod] = box


def _may_be_ready(history: History, before: Sandbox, box: Sandbox) -> bool:
    """Whether nothing has told, or may have told, that a sandbox was over when another one was
    made."""
    if before.over_s is not None and before.over_s <= box.asked_s:
        return False
    return not history.did_between(before.asked_s, box.asked_s, "outside")


@law("LIFE-132.1")
def attempts_grow(seen: Seen) -> Iterator[str]:
    """No attempt of a container or sandbox of a pod has a number that an earlier one had."""
    history = seen.history
    for instances in _by_name(seen).values():
        for before, after in pairwise(instances):
            if history.did_between(before.asked_s, after.asked_s, "outside"):
                continue
            # A container that was removed counts by its log, as long as its sandbox is there.
            counted = before.removed_s is None or before.sandbox == after.sandbox
            if after.attempt <= before.attempt and counted:
                yield (
                    f"{after.pod}/{after.name} of {seen.history.since(after.asked_s)} is attempt "
                    f"{after.attempt}, the one before was {before.attempt}"
                )
    boxes: dict[str, Sandbox] = {}
    for box in seen.lives.sandboxes.values():
        before_it = boxes.get(box.uid)
        if (
            before_it is not None
            and box.attempt <= before_it.attempt
            and not before_it.removed_s
            and not history.did_between(before_it.asked_s, box.asked_s, "outside")
        ):
            yield (
                f"sandbox of {box.pod} of {seen.history.since(box.asked_s)} is attempt "
                f"{box.attempt}, the one before was {before_it.attempt}"
            )
        boxes[box.uid] = box


@law("LIFE-206")
def nothing_after_its_end(seen: Seen) -> Iterator[str]:
    """Nothing of a pod is made or started when its phase says that it is over; that of a static pod
    is forgotten with its kubelet."""
    starts = [each.at_s for each in seen.history.planned if each.kind == "start"]
    over: dict[str, float] = {}
    for one in seen.history.shown:
        if one.again and is_static(seen, one.uid):
            over.pop(one.uid, None)  # it has come back as if it were new
        if one.status.get("phase") in ENDED:
            over.setdefault(one.uid, one.at_s)
    for call in seen.history.calls:
        if call.method in ("RunPodSandbox", "CreateContainer", "StartContainer"):
            ended_s = over.get(call.uid)
            if ended_s is None or call.started_s <= ended_s:
                continue
            forgotten = any(ended_s < at_s <= call.started_s for at_s in starts)
            if not (forgotten and is_static(seen, call.uid)):
                at = seen.history.since(call.started_s)
                yield f"{call.method} {call.pod} at {at}: it was over"


@law("LIFE-121.2", "LIFE-120.7")
def init_in_order(seen: Seen) -> Iterator[str]:
    """A container is started when the init containers before it have succeeded, and the sidecars
    before it have been started, in this sandbox."""
    history = seen.history
    if history.did("outside") or any(c.method == "GetContainerEvents" for c in history.calls):
        return  # the runtime may have told otherwise that one has ended
    for uid, given in history.pods.items():
        spec = given[0]["spec"]
        order = spec.get("initContainers") or ()
        if not order or len(given) > 1:  # an edit may let an init container run again
            continue
        for one in _flat(seen.lives.of_pod(uid)):
            if one.start_asked_s is None or _is_first_elsewhere(seen, one):
                continue
            for earlier in _before(one.name, order, spec):
                if not _is_through(seen, uid, earlier, one):
                    yield (
                        f"{one.pod}/{one.name} is started at {history.since(one.start_asked_s)} "
                        f"before {earlier['name']} was through"
                    )


def _before(
    name: str, order: Sequence[Mapping[str, Any]], spec: Mapping[str, Any]
) -> Sequence[Mapping[str, Any]]:
    """The init containers before that container; none before an ephemeral one."""
    names = [each["name"] for each in order]
    if name in names:
        return order[: names.index(name)]
    regular = any(each["name"] == name for each in spec["containers"])
    return order if regular else ()


def _is_first_elsewhere(seen: Seen, one: Container) -> bool:
    """Whether its sandbox was made before the history began."""
    return one.sandbox not in seen.lives.sandboxes


def _is_through(seen: Seen, uid: str, earlier: Mapping[str, Any], one: Container) -> bool:
    """Whether an init container was known to have succeeded, or if a sidecar been started, in the
    sandbox of `one` before that was started. The kubelet that has started it may have died before
    it had an answer: then the status of the container tells the next one."""
    assert one.start_asked_s is not None
    for each in seen.lives.of_pod(uid).get(earlier["name"], ()):
        started_s = each.known_started_s
        if each.sandbox != one.sandbox or started_s is None or started_s > one.start_asked_s:
            continue
        if earlier.get("restartPolicy") == "Always":
            return True
        ended = each.over_s is not None and each.over_s <= one.start_asked_s
        if ended and each.exit_code in (0, None):
            return True
    return False


@law("LIFE-124.2", "LIFE-112.2")
def policy_obeyed(seen: Seen) -> Iterator[str]:
    """A container whose policy is Never is not started again, nor one whose policy is OnFailure
    after it has succeeded by itself, in this sandbox."""
    history = seen.history
    if history.did("outside"):
        return
    for uid, given in history.pods.items():
        if len(given) > 1:  # an edit may restart a container whatever its policy
            continue
        for name, instances in seen.lives.of_pod(uid).items():
            policy = _policy(given[0]["spec"], name)
            for before, after in pairwise(instances):
                if before.sandbox != after.sandbox or before.started_s is None:
                    continue
                if after.start_asked_s is None:
                    continue
                ended_well = before.exit_code == 0 and before.reason != "OOMKilled"
                ended_well = ended_well and not before.stops  # a probe may have had it restarted
                done = ended_well and policy == "OnFailure"
                if policy == "Never" or done:
                    yield (
                        f"{after.pod}/{name}, restartPolicy {policy}, exit code "
                        f"{before.exit_code}, is started again at "
                        f"{history.since(after.start_asked_s)}"
                    )


def _policy(spec: Mapping[str, Any], name: str) -> str:
    """The restart policy of a container; "" where rules of its own decide, or of the pod's
    containers one has them restart all."""
    for kind in ("initContainers", "containers"):
        for each in spec.get(kind) or ():
            if each.get("restartPolicyRules"):
                return ""
    for each in spec.get("ephemeralContainers") or ():
        if each["name"] == name:
            return "Never"
    own: Mapping[str, Any] = {}
    for kind in ("initContainers", "containers"):
        for each in spec.get(kind) or ():
            own = each if each["name"] == name else own
    policy = str(own.get("restartPolicy") or spec.get("restartPolicy") or "Always")
    plain_init = any(each is own for each in spec.get("initContainers") or ())
    if plain_init and policy == "Always" and not own.get("restartPolicy"):
        return "OnFailure"
    return policy


@law("BACK-001.2")
def backed_off(seen: Seen) -> Iterator[str]:
    """From the second restart on, a container that has ended by itself is not started again before
    the shortest back-off has passed."""
    history = seen.history
    if history.did("outside", "stop", "kill"):
        return
    least_s = _first_delay_s(history.config)
    for uid, given in history.pods.items():
        if len(given) > 1 or _has_rules(given[0]["spec"]):
            continue
        for instances in seen.lives.of_pod(uid).values():
            for first, before, after in zip(instances, instances[1:], instances[2:], strict=False):
                if _restarted_early(history, (first, before, after), least_s):
                    yield (
                        f"{after.pod}/{after.name} is started again at "
                        f"{history.since(after.asked_s)}, less than {least_s:g} s after its end"
                    )


def _restarted_early(
    history: History, instances: tuple[Container, Container, Container], delay_s: float
) -> bool:
    """Whether the third of them came earlier than `delay_s` after the end of the second, which had
    followed the first within its back-off's life."""
    first, before, after = instances
    in_one = first.sandbox == before.sandbox == after.sandbox
    by_itself = not first.stops and not before.stops
    if not in_one or not by_itself or before.exit_code is None or first.exit_code is None:
        return False
    ended_s = history.start_s + (before.finished_ns - history.start_ns) / 1e9
    ran_s = (before.finished_ns - before.began_ns) / 1e9
    return ran_s < 300 and after.asked_s < ended_s + delay_s - 0.01


def _has_rules(spec: Mapping[str, Any]) -> bool:
    every = [*(spec.get("initContainers") or ()), *spec["containers"]]
    return any(each.get("restartPolicyRules") for each in every)


def _first_delay_s(config: Mapping[str, Any]) -> float:
    """The first delay of the series."""
    gates = config.get("featureGates") or {}
    if gates.get("ReduceDefaultCrashLoopBackOffDecay"):
        return 1.0
    told = str((config.get("crashLoopBackOff") or {}).get("maxContainerRestartPeriod") or "10s")
    plain = told.endswith("s") and told[:-1].isdigit()
    return min(10.0, float(told[:-1])) if plain else 1.0


def _by_name(seen: Seen) -> dict[tuple[str, str], list[Container]]:
    """The instances of each container, in order."""
    named: dict[tuple[str, str], list[Container]] = {}
    for one in seen.lives.containers.values():
        named.setdefault((one.uid, one.name), []).append(one)
    return named


def _flat(named: Mapping[str, Sequence[Container]]) -> list[Container]:
    return [one for instances in named.values() for one in instances]
