"""In which worlds a breach is one that is known: what the excuses ask of a world and a breach."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubelet_conformance.search.drawing.pods import PULLED
from kubelet_conformance.search.drawing.world import World
from kubelet_conformance.search.playing import Breach

CHANGES: Final = ("edit", "rename_file", "write_file", "apply", "remove_file", "remove")
"""Steps that change manifests."""
ENDING: Final = ("startupProbe", "livenessProbe")
"""Probes that end their container."""
WAITS: Final = "of its pod is under way"
"""How a breach says that a sync of the pod waits for a call."""
_NAMES: Final = re.compile(r"[\w.-]+")
Holds = Callable[[World, Breach], bool]
"""Whether this breach in this world is one that is known."""


def pod_of(world: World, breach: Breach) -> Mapping[str, Any]:
    """The pod that the breach is about, as the world has planned it; {}: it is about none."""
    pods: Mapping[str, Any] = world.document.get("pods") or {}
    names = (name.removesuffix("-node") for name in _NAMES.findall(breach.what))
    key = next((name for name in names if name in pods), None)
    return {} if key is None else {"key": key, **pods[key]}


def _containers(world: World, breach: Breach) -> Iterator[Mapping[str, Any]]:
    """Those of that pod."""
    spec = pod_of(world, breach).get("spec") or {}
    yield from spec.get("containers") or ()
    yield from spec.get("initContainers") or ()


def has_hooks(world: World, breach: Breach) -> bool:
    """Whether a container of the pod has a hook."""
    return any("lifecycle" in one for one in _containers(world, breach))


def has_probes(world: World, breach: Breach) -> bool:
    """Whether a container of the pod has a probe."""
    return any(name.endswith("Probe") for one in _containers(world, breach) for name in one)


def pulls(world: World, breach: Breach) -> bool:
    """Whether the pod wants an image that has to be pulled, from the beginning or after an edit."""
    key = pod_of(world, breach).get("key")
    edits = [step["edit"] for step in world.document["steps"] if "edit" in step]
    edited = any(PULLED in str(edit) for edit in edits if edit.get("pod") == key)
    return edited or any(one.get("image") == PULLED for one in _containers(world, breach))


def goes_on(world: World, breach: Breach) -> bool:
    """Whether what is started of a deleted pod is what its sync had waited for when it was deleted:
    an image, or the end of a call."""
    return WAITS in breach.what or pulls(world, breach)


def reboots_with_init_containers(world: World, breach: Breach) -> bool:
    """Whether the pod has init containers, and the node boots."""
    boots = any("reboot" in step for step in world.document["steps"])
    return boots and bool((pod_of(world, breach).get("spec") or {}).get("initContainers"))


def is_dropped(world: World, breach: Breach) -> bool:
    """Whether the runtime loses a record of the pod."""
    key = pod_of(world, breach).get("key")
    drops = [step["drop"] for step in world.document["steps"] if "drop" in step]
    return any(key in (drop, drop.get("pod") if isinstance(drop, dict) else None) for drop in drops)


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
    policy = (pod_of(world, breach).get("spec") or {}).get("restartPolicy")
    words = {word for step in world.document["steps"] for word in step}
    away = bool(words & {"remove", "remove_file", "rename_file"})
    return away and policy == "OnFailure" and "shown as terminated" in breach.what


def is_back(world: World, breach: Breach) -> bool:
    """Whether a manifest was removed or renamed, and is there again later: its pod runs again, and
    is not asked about."""
    gone = set[str]()
    for step in world.document["steps"]:
        renamed = step.get("rename_file") or {}
        if renamed.get("file") in gone or step.get("apply") in gone:
            return True
        gone |= {step[word] for word in ("remove", "remove_file") if word in step}
        gone |= {renamed["to"]} if renamed else set()
    return False


def init_records_stay(world: World, breach: Breach) -> bool:
    """Whether a container of a pod with several init containers is made where calls that remove
    containers fail, hang, or find the runtime away."""
    inits = (pod_of(world, breach).get("spec") or {}).get("initContainers") or ()
    steps = world.document["steps"]
    faults = {step["fault"].get("on") for step in steps if "fault" in step}
    away = {"runtime": "crash"} in steps
    return len(inits) > 1 and (away or bool(faults & {"RemoveContainer", "*"}))


def has_deadline(world: World, breach: Breach) -> bool:
    """Whether the pod that is shown ready has a deadline."""
    return "activeDeadlineSeconds" in (pod_of(world, breach).get("spec") or {})


def ends_for_good(world: World, breach: Breach) -> bool:
    """Whether a static pod has no status but that it is Pending, and its containers are not always
    started again."""
    pod = pod_of(world, breach)
    made = [step.get("apply") for step in world.document["steps"]]
    policy = (pod.get("spec") or {}).get("restartPolicy") or "Always"
    is_pending = "no status" in breach.what or "its pod Pending" in breach.what
    return is_pending and pod.get("key") in made and policy != "Always"


def lost_its_sandbox(world: World, breach: Breach) -> bool:
    """Whether a pod that is never restarted waits for containers to be started, and has lost its
    sandbox, or the records of its containers."""
    spec = pod_of(world, breach).get("spec") or {}
    lost = "its sandbox was lost" in breach.what or is_dropped(world, breach)
    sentences = ("waits for init", "does not run: C", " waits: PodInitializing")
    waits = any(words in breach.what for words in sentences)
    return lost and waits and spec.get("restartPolicy") == "Never"


def has_a_crashing_sidecar(world: World, breach: Breach) -> bool:
    """Whether a container is not started again in a pod with sidecars that end by themselves, or
    have probes that may end them."""
    planned = pod_of(world, breach)
    inits = (planned.get("spec") or {}).get("initContainers") or ()
    sidecars = [one for one in inits if one.get("restartPolicy") == "Always"]
    does = planned.get("does") or {}
    ends = any("exits" in each for one in sidecars for each in does.get(one["name"]) or ())
    ends = ends or any(probe in one for one in sidecars for probe in ENDING)
    return ends and "is not started again" in breach.what


def deleted_before_a_start(world: World, breach: Breach) -> bool:
    """Whether the pod that is shown ready was deleted, and a kubelet starts after that."""
    key = pod_of(world, breach).get("key", "")
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


def panics_for_devices(world: World, breach: Breach) -> bool:
    """Whether a kubelet ends for want of a map where pods want devices."""
    return "devices" in world.kinds and "assignment to entry in nil map" in breach.what


def a_list_failed(world: World, breach: Breach) -> bool:
    """Whether a kubelet that listens to events has got no answer when it listed what runs."""
    return is_evented(world, breach) and "a list had failed" in breach.what


def lost_state(world: World, breach: Breach) -> bool:
    """Whether a kubelet that listens to events meets a runtime that has forgotten its pods."""
    return is_evented(world, breach) and {"runtime": "lose_state"} in world.document["steps"]


def in_worlds_of(*kinds: str) -> Holds:
    """Whether these kinds of things are in the world."""
    return lambda world, breach: all(kind in world.kinds for kind in kinds)


def says(text: str) -> Holds:
    """Whether the breach says so."""
    return lambda world, breach: text in breach.what


def _changed_at_the_end(words: Sequence[str]) -> bool:
    """Whether a manifest changes after the last thing that is done to the kubelet, which may be its
    end: it starts when all is calm."""
    last = max((place for place, word in enumerate(words) if word == "kubelet"), default=None)
    return last is not None and any(word in CHANGES for word in words[last:])
