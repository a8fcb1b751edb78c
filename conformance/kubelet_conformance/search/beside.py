"""The law `as-beside`: a world ends on a kubelet as it ends on another one (`--beside`). Pure.

Compared is what is wanted in the end: which pods there are, their phases and conditions, what their
containers have come to, what runs; and, where all pods are as they will stay, where the volumes of
storage drivers are. What depends on the moment of a call is not: how often something
was restarted, IDs, times, texts. This sorts it out:

- a container that has changed within STEADY_S is one that ends again and again (the longest
  back-off lasts 300 s, the longest run 30 s); it is compared as that, not by what it does just now;
- a step that could be done on one kubelet and not on the other (the container to end did not run
  yet) makes two worlds of one: the pod that it is about is not compared;
- a pod that one of them alone has refused is not compared: another one may have been over a moment
  later (`refused-when-full` asks whether there was no room for it); of one that both have refused
  it is a matter of the moment whether its containers had run before;
- what the containers of a pod end with that was evicted or ended by a shutdown depends on what they
  did just then, and so does whether it had ended by itself before;
- which pods a node refuses that has too few places is a matter of the order in which they come:
  where both kubelets have refused some, and not the same ones, nothing is compared;
- a kubelet program has started, and registered its node, when a world begins, and so has refkubelet
  beside it (BEGINS_S): mirrors of pods that were refused are made at that moment alone;
- a kubelet in virtual time is played again, with other latencies (`seeds_of`), as long as something
  differs: what one of these plays ends with, too, is a matter of the moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kubelet_conformance.search.drawing.world import World
from kubelet_conformance.search.ends import ContainerEnd, End, PodEnd

AS_BESIDE: Final = "as-beside"
STEADY_S: Final = 360.0
PLAYS: Final = 6
"""So often a world is played at most where latencies are drawn."""
BEGINS_S: Final = 5.0
SEEDS_APART: Final = 1_000_003
OVER: Final = ("Succeeded", "Failed")
REFUSED: Final = ("Preempting", "UnexpectedAdmissionError", "OutOf")
"""How reasons begin of pods that were refused, or had to go for others."""
EARLY: Final = ("Evicted", "Terminated")
"""Reasons of pods that the kubelet has ended for what happens to the node."""
NOT_THERE: Final = "not there"
VOLUME: Final = "volume"
"""How the names of volumes of storage drivers begin, where they stand for pods."""
MOST: Final = 4
"""So many facts are told of a pod."""

Place = tuple[str, str]
"""The name of a pod or a volume, and what of it is compared."""


def seeds_of(seed: int) -> Iterable[int]:
    """Further seeds under which the world of that seed is played."""
    return (seed + number * SEEDS_APART for number in range(1, PLAYS))


def differing(
    ends: Iterable[tuple[End, End]], world: World, names: tuple[str, str]
) -> dict[str, str]:
    """Pod -> a sentence: what differs in all of these pairs. They are asked for one after the
    other, as long as something does. `names`: of the two kubelets."""
    left: dict[Place, str] = {}
    for number, (one, two) in enumerate(ends):
        said = dict(_said(one, two, world, names))
        left = {place: left[place] for place in left if place in said} if number else said
        if not left:
            break
    by_pod: dict[str, list[str]] = {}
    for (pod, _), text in left.items():
        by_pod.setdefault(pod, []).append(text)
    return {of: f"{_named(of)}: {'; '.join(texts[:MOST])}" for of, texts in by_pod.items()}


def _named(of: str) -> str:
    return of if of.startswith(VOLUME) else f"pod {of}"


def _said(one: End, two: End, world: World, names: tuple[str, str]) -> Iterator[tuple[Place, str]]:
    """What differs between two ends: where, and how."""
    refused = _refused(one), _refused(two)
    if all(refused) and refused[0] != refused[1]:
        return
    apart = _apart(one, two, world)
    here, there = facts_of(one), facts_of(two)
    apart += sorted(refused[0].keys() ^ refused[1].keys())
    apart += [name for name in _pods(one) if _ended_before(one, two, name)]
    if not apart and all(map(_all_still, (one, two))):
        here, there = ({**facts, **_volumes(end)} for facts, end in ((here, one), (there, two)))
    for place in dict.fromkeys([*here, *there]):
        pod, field = place
        values = here.get(place, NOT_THERE), there.get(place, NOT_THERE)
        if values[0] == values[1] or any(_is(pod, key) for key in apart):
            continue
        if field == "it" or ((pod, "it") in here) == ((pod, "it") in there):
            yield place, f"{field} is {values[0]} on {names[0]}, {values[1]} on {names[1]}"


def _is(pod: str, key: str) -> bool:
    """Whether a pod is that of the world, which has the node's name after it if it is a mirror."""
    return pod == key or pod.startswith(f"{key}-")


def _pods(end: End) -> dict[str, PodEnd]:
    return {**end.at_api, **end.mirrors, **end.listed}


def _refused(end: End) -> dict[str, str]:
    """The pods that were refused, and why."""
    pods = _pods(end).items()
    return {name: pod.reason for name, pod in pods if pod.reason.startswith(REFUSED)}


def _ended_before(one: End, two: End, name: str) -> bool:
    """Whether a pod was evicted, or ended by a shutdown, on one kubelet, and on the other one had
    ended before."""
    pods = [end[name] for end in map(_pods, (one, two)) if name in end]
    early = [pod.reason in EARLY for pod in pods]
    return len(pods) == 2 and any(early) and not all(early) and all(p.phase in OVER for p in pods)


def _apart(one: End, two: End, world: World) -> list[str]:
    """The pods that something has happened to on one kubelet alone."""
    steps = world.document["steps"]
    differ = [steps[place] for place in set(one.left_out) ^ set(two.left_out)]
    return [key for key in world.document["pods"] if any(_about(step, key) for step in differ)]


def _about(step: Mapping[str, Any], key: str) -> bool:
    (argument,) = step.values()
    if isinstance(argument, Mapping):
        file = str(argument.get("file", ""))
        return argument.get("pod") == key or file.startswith((f"{key}.", f"{key}-"))
    return bool(argument == key)


def facts_of(end: End) -> dict[Place, str]:
    """What of an end is compared."""
    facts: dict[Place, str] = {}
    for name, pod in {**end.at_api, **end.mirrors}.items():
        facts[name, "it"] = "a mirror" if name in end.mirrors else "a pod of the API server"
        facts.update(((name, what), value) for what, value in _of_pod(pod))
        if _is_still(pod):
            running = sorted(one for at, one in end.running if at == name)
            facts[name, "what runs of it"] = ", ".join(running) or "nothing"
            facts[name, "the number of its ready sandboxes"] = str(end.sandboxes.get(name, 0))
    for name in sorted(end.sandboxes.keys() - end.at_api.keys() - end.mirrors.keys()):
        facts[name, "the number of its ready sandboxes"] = str(end.sandboxes[name])
    facts.update(((name, "its place in /pods"), "there") for name in end.listed)
    return facts


def _volumes(end: End) -> dict[Place, str]:
    return {(f"{VOLUME} {volume}", "its places"): where for volume, where in end.volumes.items()}


def _all_still(end: End) -> bool:
    return all(map(_is_still, {**end.at_api, **end.listed}.values()))


def _of_pod(pod: PodEnd) -> Iterator[tuple[str, str]]:
    yield "its phase", pod.phase
    yield "its reason", pod.reason or "none"
    yield "its deletion", "under way" if pod.deleted else "not asked for"
    if pod.reason.startswith(REFUSED):
        return
    ended_early = pod.reason in EARLY
    for name, one in pod.containers.items():
        yield f"container {name}", _word(one, over=pod.phase in OVER, tells_code=not ended_early)
    if _is_still(pod):
        for condition, holds in pod.conditions.items():
            yield f"condition {condition}", str(holds)


def _is_still(pod: PodEnd) -> bool:
    return all(_is_steady(one, over=pod.phase in OVER) for one in pod.containers.values())


def _is_steady(one: ContainerEnd, *, over: bool) -> bool:
    """Whether a container is as it will stay. `over`: whether its pod is over."""
    if one.kind == "waiting":
        return over or one.reason != "CrashLoopBackOff"
    return over or one.for_s >= STEADY_S


def _word(one: ContainerEnd, *, over: bool, tells_code: bool) -> str:
    if not _is_steady(one, over=over):
        return "ending again and again"
    if one.kind == "waiting":
        return f"waiting ({one.reason})"
    if one.kind == "running":
        return "ready" if one.ready else "running, not ready"
    return f"ended with {one.exit_code}" if tells_code else "ended"
