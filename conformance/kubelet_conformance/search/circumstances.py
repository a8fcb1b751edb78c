"""In which worlds a breach is one that is known: what the excuses ask of a world and a breach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kubelet_conformance.search.drawing.world import World
from kubelet_conformance.search.playing import Breach

CHANGES: Final = ("edit", "rename_file", "write_file", "apply", "remove_file", "remove")
"""Steps that change manifests."""


def changed_before_a_start(world: World, breach: Breach) -> bool:
    """Whether a kubelet ends after a manifest has changed, or a manifest changes before it starts:
    the new kubelet does not know the old pod."""
    words = [word for step in world.document["steps"] for word in step]
    changes = [place for place, word in enumerate(words) if word in CHANGES]
    ends = [place for place, word in enumerate(words) if word in ("kubelet", "reboot")]
    dies = "dies_at" in words and len(changes) > 1  # at some call: perhaps after a change
    return dies or bool(changes and ends and changes[0] < ends[-1]) or _changed_at_the_end(words)


def edited_and_shut_down(world: World, breach: Breach) -> bool:
    """Whether a static pod that is Pending was edited, and a shutdown was announced after that."""
    words = [word for step in world.document["steps"] for word in step]
    announced = [place for place, word in enumerate(words) if word == "shutdown"]
    is_pending = "its pod Pending" in breach.what or "is Pending" in breach.what
    return is_pending and bool(announced) and "edit" in words[: announced[-1]]


def came_back(world: World, breach: Breach) -> bool:
    """Whether a pod with restartPolicy OnFailure is shown as ended whose manifest was removed or
    renamed."""
    pod = breach.what.partition("/")[0].removesuffix("-node")
    policy = world.document["pods"].get(pod, {}).get("spec", {}).get("restartPolicy")
    words = {word for step in world.document["steps"] for word in step}
    away = bool(words & {"remove", "remove_file", "rename_file"})
    return away and policy == "OnFailure" and "shown as terminated" in breach.what


def has_deadline(world: World, breach: Breach) -> bool:
    """Whether the pod that is shown ready has a deadline."""
    pod = breach.what.partition("/")[0]
    return "activeDeadlineSeconds" in world.document["pods"].get(pod, {}).get("spec", {})


def lost_its_sandbox(world: World, breach: Breach) -> bool:
    """Whether a pod that is never restarted waits for containers to be started, and something may
    have ended its sandbox, or taken the records of its containers away."""
    pod = breach.what.removeprefix("pod ").partition(":")[0].partition(" ")[0]
    spec = world.document["pods"].get(pod.removesuffix("-node"), {}).get("spec", {})
    words = {word for step in world.document["steps"] for word in step}
    lost = bool(words & {"reboot", "stop_sandbox", "kill_sandbox", "runtime", "fault", "drop"})
    waits = "waits for init" in breach.what or "does not run: ContainerCreating" in breach.what
    return lost and waits and spec.get("restartPolicy") == "Never"


def has_a_crashing_sidecar(world: World, breach: Breach) -> bool:
    """Whether a container is not started again in a pod with sidecars that end by themselves."""
    key = breach.what.removeprefix("pod ").partition(" ")[0].rstrip(":").removesuffix("-node")
    planned = world.document["pods"].get(key, {})
    sidecars = {
        one["name"]
        for one in planned.get("spec", {}).get("initContainers") or ()
        if one.get("restartPolicy") == "Always"
    }
    does = planned.get("does") or {}
    ends = any("exits" in each for name in sidecars for each in does.get(name) or ())
    return ends and any(
        words in breach.what for words in ("is not started again", "wait for init containers")
    )


def deleted_before_a_start(world: World, breach: Breach) -> bool:
    """Whether the pod that is shown ready was deleted, and a kubelet starts after that."""
    key = breach.what.partition("/")[0]
    asked = [step.get("delete") for step in world.document["steps"]]
    deleted = [
        place
        for place, one in enumerate(asked)
        if one == key or (isinstance(one, dict) and one.get("pod") == key)
    ]
    words = [word for step in world.document["steps"] for word in step]
    starts = [place for place, word in enumerate(words) if word in ("kubelet", "reboot")]
    dies = "dies_at" in words  # at some call: perhaps after that
    return bool(deleted) and (dies or (bool(starts) and deleted[0] < starts[-1]))


def is_evented(world: World, breach: Breach) -> bool:
    """Whether the kubelet listens to events of the runtime."""
    gates = (world.document.get("kubelet") or {}).get("featureGates") or {}
    return bool(gates.get("EventedPLEG"))


def lost_state(world: World, breach: Breach) -> bool:
    """Whether a kubelet that listens to events meets a runtime that has forgotten its pods."""
    return is_evented(world, breach) and {"runtime": "lose_state"} in world.document["steps"]


def in_worlds_of(*kinds: str) -> Callable[[World, Breach], bool]:
    """Whether these kinds of things are in the world."""
    return lambda world, breach: all(kind in world.kinds for kind in kinds)


def says(text: str) -> Callable[[World, Breach], bool]:
    """Whether the breach says so."""
    return lambda world, breach: text in breach.what


def _changed_at_the_end(words: Sequence[str]) -> bool:
    """Whether a manifest changes after the last thing that is done to the kubelet, which may be its
    end: it starts when all is calm."""
    last = max((place for place, word in enumerate(words) if word == "kubelet"), default=None)
    return last is not None and any(word in CHANGES for word in words[last:])
