"""Draws what happens in a world: steps of a scenario, each with its moment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random  # noqa: TID251 (for its type)
from typing import Any, Final

from msgspec import Struct

from kubelet_conformance.search.drawing.aimed import AIMED
from kubelet_conformance.search.drawing.alone import ALONE
from kubelet_conformance.search.drawing.faults import (
    CALL_FAULTS,
    SERVER_FAULTS,
    detaches,
    driver_faults,
)
from kubelet_conformance.search.drawing.kinds import EXCLUSIVE
from kubelet_conformance.search.drawing.pods import OBJECT, PULLED

Step = dict[str, Any]
At = tuple[float, Step]
"""A step, and so many seconds after the begin of what it belongs to."""
GAPS_S: Final = (0.0, 0.05, 0.4, 1.0, 2.5, 7.0, 20.0)
"""Between the begins of two things; longer ones are drawn beside them."""
LASTS_S: Final = (0.0, 0.3, 1.5, 4.0, 12.0, 45.0, 130.0)
"""How long something is down, or disturbed."""


class Cast(Struct, frozen=True):
    """Who takes part: the pods by their keys, and where they come from."""

    pods: Mapping[str, Mapping[str, Any]]
    static: Collection[str]
    pulls: bool = False
    """Whether images have to be pulled."""
    has_server: bool = True

    @property
    def keys(self) -> Sequence[str]:
        return list(self.pods)

    @property
    def of_api(self) -> Sequence[str]:
        return [key for key in self.pods if key not in self.static]

    def container(self, dice: Random, key: str) -> str:
        """The name of one of its containers."""
        spec = self.pods[key]["spec"]
        return str(dice.choice([*spec["containers"], *spec.get("initContainers", ())])["name"])


SECRET: Final = """\
apiVersion: v1
kind: Pod
metadata: {name: pull}
spec:
  imagePullSecrets: [{name: registry}]
  containers: [{name: main, image: "localhost/busybox:1", imagePullPolicy: IfNotPresent}]
"""
Draw = Callable[[Random, Cast], list[At]]


def _edit(dice: Random, cast: Cast) -> list[At]:
    key = dice.choice(cast.keys)
    name = cast.pods[key]["spec"]["containers"][0]["name"]
    changes: list[dict[str, Any]] = [
        {"metadata": {"labels": {"edited": str(dice.randint(1, 9))}}},
        {"spec": {"containers": [{"name": name, "image": "localhost/busybox:2"}]}},
    ]
    if cast.pulls and dice.random() < 0.5:
        changes = [{"spec": {"containers": [{"name": name, "image": PULLED}]}}]
    if key in cast.static:
        changes.append({"spec": {"terminationGracePeriodSeconds": dice.choice((1, 3, 4))}})
    return [(0.0, {"edit": {"pod": key, "set": dice.choice(changes)}})]


def _delete(dice: Random, cast: Cast) -> list[At]:
    key = dice.choice(cast.keys)
    if key in cast.static and (dice.random() < 0.7 or not cast.has_server):
        return [(0.0, {"remove": key})]
    grace = dice.choice((None, None, 1, 3))
    return [(0.0, {"delete": key if grace is None else {"pod": key, "grace": grace}})]


def _force(dice: Random, cast: Cast) -> list[At]:
    return [(0.0, {"delete": {"pod": dice.choice(cast.of_api), "grace": 0}})]


def _again(dice: Random, cast: Cast) -> list[At]:
    """A pod goes, and comes back: a static one from the same manifest, another under its name."""
    key, gap_s = dice.choice(cast.keys), dice.choice((0.0, 0.1, 1.0, 3.0, 10.0))
    if key in cast.static:
        return [(0.0, {"remove": key}), (gap_s, {"apply": key})]
    grace = dice.choice((0, 0, 1))
    return [(0.0, {"delete": {"pod": key, "grace": grace}}), (gap_s, {"create": key})]


def _vanish(dice: Random, cast: Cast) -> list[At]:
    return [(0.0, {"vanish": dice.choice(cast.of_api)})]


def _move(dice: Random, cast: Cast) -> list[At]:
    key = dice.choice(sorted(cast.static))
    there = {"rename_file": {"file": f"{key}.yaml", "to": f"{key}-moved.yaml"}}
    back = {"rename_file": {"file": f"{key}-moved.yaml", "to": f"{key}.yaml"}}
    return [(0.0, there), (dice.choice(LASTS_S), back)]


def _twice(dice: Random, cast: Cast) -> list[At]:
    key = dice.choice(sorted(cast.static))
    file = f"{key}-twice.yaml"
    write = {"write_file": {"file": file, "pod": key}}
    return [(0.0, write), (dice.choice(LASTS_S), {"remove_file": file})]


def _copy(dice: Random, cast: Cast) -> list[At]:
    """The writer of a manifest keeps a copy beside it, and changes it."""
    key = dice.choice(sorted(cast.static))
    edited = {"edit": {"pod": key, "set": {"metadata": {"labels": {"copied": "yes"}}}}}
    copy = {"write_file": {"file": f"{key}.yaml.bak", "pod": key}}
    return [(0.0, copy), (dice.choice(LASTS_S), edited)]


def _secret(dice: Random, cast: Cast) -> list[At]:
    """A manifest that names a Secret, which is none of a static pod."""
    file = f"s{dice.randint(1, 9)}.yaml"
    return [(0.0, {"write_file": {"file": file, "text": SECRET}})]


def _deleted_again(dice: Random, cast: Cast) -> list[At]:
    """A pod is deleted, and once more with a shorter grace period."""
    key = dice.choice(cast.of_api)
    again = {"delete": {"pod": key, "grace": dice.choice((1, 2, 5))}}
    return [(0.0, {"delete": key}), (dice.choice(LASTS_S), again)]


def _ephemeral(dice: Random, cast: Cast) -> list[At]:
    one = {"name": "looker", "image": "localhost/busybox:1", "command": ["/x"]}
    patch = {
        "pod": dice.choice(cast.of_api),
        "subresource": "ephemeralcontainers",
        "set": {"spec": {"ephemeralContainers": [one]}},
    }
    return [(0.0, {"patch": patch})]


def _resize(dice: Random, cast: Cast) -> list[At]:
    key = dice.choice(cast.of_api)
    one = cast.pods[key]["spec"]["containers"][0]
    amounts = {"cpu": dice.choice(("20m", "200m", "100")), "memory": dice.choice(("64Mi", "96Mi"))}
    resources = {"requests": amounts}
    if "limits" in one.get("resources", {}):
        resources["limits"] = amounts
    change = {"spec": {"containers": [{"name": one["name"], "resources": resources}]}}
    return [(0.0, {"patch": {"pod": key, "subresource": "resize", "set": change}})]


def _object(dice: Random, cast: Cast) -> list[At]:
    """The object that pods have as a volume goes, and comes back."""
    gone = {"delete_object": {"plural": "configmaps", "name": OBJECT}}
    return [(0.0, gone), (dice.choice(LASTS_S), {"create_object": settings()})]


def settings() -> dict[str, Any]:
    """The step argument that makes that object."""
    metadata = {"name": OBJECT}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}
    return {"plural": "configmaps", "manifest": manifest}


def _exit(dice: Random, cast: Cast) -> list[At]:
    key = dice.choice(cast.keys)
    end = {"pod": key, "container": cast.container(dice, key), "code": dice.choice((0, 1, 137))}
    return [(0.0, {"exit": end})]


def _kill(dice: Random, cast: Cast) -> list[At]:
    key = dice.choice(cast.keys)
    return [(0.0, {"kill": {"pod": key, "container": cast.container(dice, key)}})]


def _drop(dice: Random, cast: Cast) -> list[At]:
    key = dice.choice(cast.keys)
    drop = {"pod": key}
    if dice.random() < 0.6:
        drop["container"] = cast.container(dice, key)
    return [(0.0, {"drop": drop})]


def _of_sandbox(word: str) -> Draw:
    return lambda dice, cast: [(0.0, {word: dice.choice(cast.keys)})]


def _between(begin: Step, end: Step) -> Draw:
    return lambda dice, cast: [(0.0, begin), (dice.choice(LASTS_S), end)]


def _restart(dice: Random, cast: Cast) -> list[At]:
    if dice.random() < 0.5:
        return [(0.0, {"kubelet": "restart"})]
    return [(0.0, {"kubelet": "stop"}), (dice.choice(LASTS_S), {"kubelet": "start"})]


def _other_settings(dice: Random, cast: Cast) -> list[At]:
    """The kubelet starts again with another configuration."""
    changed = dice.choice(
        ({"maxPods": 2}, {"maxPods": 110}, {"podPidsLimit": 1000}, {"syncFrequency": "10s"})
    )
    return [(0.0, {"kubelet": {"do": "restart", "set": changed}})]


def _pressure(dice: Random, cast: Cast) -> list[At]:
    left = dice.choice(({"memory": "50Mi"}, {"disk": "1Gi"}, {"inodes": 1000}, {"pids": 10}))
    plenty = {"memory": "8Gi", "disk": "100Gi", "inodes": 6_553_600, "pids": 32_768}
    back = {name: plenty[name] for name in left}
    return [(0.0, {"machine": left}), (dice.choice((15.0, 45.0)), {"machine": back})]


DRAWS: Final[Mapping[str, Draw]] = {
    "edits": _edit,
    "deletions": _delete,
    "forced deletions": _force,
    "made again": _again,
    "vanishing": _vanish,
    "files moved": _move,
    "files twice": _twice,
    "copies kept": _copy,
    "secrets": _secret,
    "deleted again": _deleted_again,
    "ephemeral": _ephemeral,
    "resizes": _resize,
    "late objects": _object,
    "exits": _exit,
    "kills": _kill,
    "drops": _drop,
    "sandboxes stopped": _of_sandbox("stop_sandbox"),
    "sandboxes killed": _of_sandbox("kill_sandbox"),
    "runtime crashes": _between({"runtime": "crash"}, {"runtime": "restart"}),
    "lost state": _between({"runtime": "lose_state"}, {"runtime": "restart"}),
    "no network": _between({"runtime": "lose_network"}, {"runtime": "network"}),
    "server away": _between({"api": "down"}, {"api": "up"}),
    "kubelet killed": _between({"kubelet": "kill"}, {"kubelet": "start"}),
    "kubelet restarted": _restart,
    "other settings": _other_settings,
    "reboots": lambda dice, cast: [(0.0, {"reboot": True})],
    "pressure": _pressure,
    "shutdowns": _between({"shutdown": "announce"}, {"shutdown": "call_off"}),
    **CALL_FAULTS,
    **SERVER_FAULTS,
    **ALONE,
    **AIMED,
    "driver faults": driver_faults,
    "attachments": detaches,
}
"""What happens -> how it is drawn."""


def draw_steps(
    dice: Random, kinds: Collection[str], cast: Cast, count: int, longest_wait_s: float
) -> list[At]:
    """`count` things that happen, as steps in order of time, counted from the begin."""
    possible = [kind for kind in kinds if kind in DRAWS]
    steps: list[At] = []
    busy_until_s = 0.0
    now_s = 0.0
    for number in range(count):
        now_s += dice.choice((*GAPS_S, dice.uniform(0.0, longest_wait_s)))
        kind = dice.choice(possible)
        drawn = [
            (now_s + after_s, _labelled(step, number)) for after_s, step in DRAWS[kind](dice, cast)
        ]
        if kind in EXCLUSIVE:
            if busy_until_s > now_s:
                continue
            busy_until_s = drawn[-1][0] + 0.1
        steps += drawn
    return sorted(steps, key=lambda at: at[0])


def _labelled(step: Step, number: int) -> Step:
    """The step with a label that is no other's, where it has one."""
    (word,) = step
    argument = step[word]
    if isinstance(argument, dict) and "label" in argument:
        return {word: {**argument, "label": f"f{number}{argument['label']}"}}
    return {word: f"f{number}{argument}"} if word in ("end", "release") else step
