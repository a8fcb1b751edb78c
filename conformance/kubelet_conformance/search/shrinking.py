"""Makes a world small: it loses pods, steps, faults and time as long as the same law is broken.

Pure but for the playing, which is handed in. Greedy: each candidate that still breaks the law takes
the place of the world, and the rest is tried from there, until nothing more can go or the tries are
used up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubelet_conformance.search.drawing.world import World
from kubelet_conformance.search.playing import Play
from kubeobjects.strict.errors import ScriptError
from kubeobjects.structs import replace

Document = Mapping[str, Any]
TRIES: Final = 200
SHORT_S: Final = (0.1, 1.0, 5.0)
"""Times that longer ones are replaced by, if it goes on like that."""
OPTIONAL: Final = (
    *("initContainers", "volumes", "activeDeadlineSeconds", "lifecycle", "resources"),
    *("readinessProbe", "livenessProbe", "startupProbe", "volumeMounts"),
)
"""Fields of pods and containers that can go."""


def shrink(world: World, law: str, play: Play, tries: int = TRIES) -> World:
    """The smallest world that was found to break the law, too. `tries`: how many worlds are played
    at most."""
    again = True
    while again and tries > 0:
        again = False
        for document in _smaller(world.document):
            if tries <= 0:
                break
            candidate = replace(world, document=document)
            tries -= 1
            if _breaks(candidate, law, play):
                world, again = candidate, True
                break
    return world


def _breaks(world: World, law: str, play: Play) -> bool:
    try:
        return law in play(world).laws
    except ScriptError:  # it makes no sense without what went
        return False


def _smaller(document: Document) -> Iterator[Document]:
    """Documents with less in them, those with much less first."""
    yield from _without_pods(document)
    yield from _without_steps(document)
    yield from _without_fields(document)
    yield from _sooner(document)


def _without_pods(document: Document) -> Iterator[Document]:
    pods = document["pods"]
    for key in pods if len(pods) > 1 else ():
        steps = [step for step in document["steps"] if not _names(step, key)]
        if steps:
            left = {other: pod for other, pod in pods.items() if other != key}
            yield {**document, "pods": left, "steps": _joined(steps)}


def _names(step: Mapping[str, Any], key: str) -> bool:
    """Whether a step is about that pod."""
    (argument,) = step.values()
    if isinstance(argument, Mapping):
        file = str(argument.get("file", ""))
        return argument.get("pod") == key or file.startswith((f"{key}.", f"{key}-"))
    return bool(argument == key)


def _without_steps(document: Document) -> Iterator[Document]:
    """Without halves, quarters, and so on of the steps that make no pod."""
    steps = document["steps"]
    free = [place for place, step in enumerate(steps) if _can_go(step)]
    size = len(free)
    while size >= 1:
        for begin in range(0, len(free), size):
            gone = set(free[begin : begin + size])
            left = [step for place, step in enumerate(steps) if place not in gone]
            yield {**document, "steps": _joined(left)}
        size //= 2


def _can_go(step: Mapping[str, Any]) -> bool:
    (word,) = step
    return word not in ("apply", "create", "advance") or isinstance(step[word], Mapping)


def _joined(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The steps with times that follow each other as one."""
    joined: list[Mapping[str, Any]] = []
    for step in steps:
        if "advance" in step and joined and "advance" in joined[-1]:
            joined[-1] = {"advance": round(joined[-1]["advance"] + step["advance"], 3)}
        else:
            joined.append(step)
    while joined and "advance" in joined[-1] and len(joined) > 1:
        joined.pop()
    return joined


def _without_fields(document: Document) -> Iterator[Document]:
    """Without containers, runs and optional parts of pods, and without configuration."""
    for key in list(document.get("kubelet") or ()):
        left = {name: value for name, value in document["kubelet"].items() if name != key}
        yield {**document, "kubelet": left}
    for key, pod in document["pods"].items():
        for smaller in _smaller_pods(pod):
            yield {**document, "pods": {**document["pods"], key: smaller}}


def _smaller_pods(pod: Document) -> Iterator[Document]:
    spec, does = pod["spec"], pod.get("does", {})
    for kind in ("initContainers", "containers"):
        listed = spec.get(kind, [])
        for one in listed if kind == "initContainers" or len(listed) > 1 else ():
            left = [other for other in listed if other is not one]
            rest = {name: runs for name, runs in does.items() if name != one["name"]}
            yield {"spec": {**spec, kind: left}, "does": rest}
        for one in listed:
            for field in OPTIONAL:
                if field in one:
                    less = {name: value for name, value in one.items() if name != field}
                    others = [less if other is one else other for other in listed]
                    yield {"spec": {**spec, kind: others}, "does": does}
    for field in OPTIONAL:
        if spec.get(field):
            yield {"spec": {k: v for k, v in spec.items() if k != field}, "does": does}
    for name, runs in does.items():
        for run in runs if isinstance(runs, list) and len(runs) > 1 else ():
            left = [other for other in runs if other is not run]
            yield {"spec": spec, "does": {**does, name: left}}


def _sooner(document: Document) -> Iterator[Document]:
    """With less time between two steps, or none."""
    steps = document["steps"]
    for place, step in enumerate(steps):
        if "advance" not in step:
            continue
        yield {**document, "steps": [*steps[:place], *steps[place + 1 :]]}
        for short_s in SHORT_S:
            if short_s < step["advance"]:
                sooner = [*steps[:place], {"advance": short_s}, *steps[place + 1 :]]
                yield {**document, "steps": sooner}


def sized(world: World) -> int:
    """How large a world is: its pods, containers and steps."""
    pods = world.document["pods"].values()
    containers = sum(
        len(pod["spec"][kind])
        for pod in pods
        for kind in ("containers", "initContainers")
        if kind in pod["spec"]
    )
    return len(pods) + containers + len(world.document["steps"])
