"""Breaches that are known: which laws which kubelets are known to break, where that is written, and
how narrow it is. A breach that is excused is counted, and is no failure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from kubelet_conformance.harness.runs.offered import IN_PROCESS
from kubelet_conformance.search.drawing.world import World
from kubelet_conformance.search.playing import Breach

CHANGES: Final = ("edit", "rename_file", "write_file", "apply", "remove_file", "remove")
"""Steps that change manifests."""


class Excuse(Struct, frozen=True):
    """One known breach."""

    name: str
    """A fixture (`138446`), a row of docs/gaps.md (`MIRR-003`), or a heading of docs/found.md."""
    law: str
    why: str
    """What is known, in a sentence."""
    holds: Callable[[World, Breach], bool]
    """Whether this breach in this world is that one."""
    refkubelet: bool = False
    """Whether refkubelet breaks the law so, too; others are kubelets' alone."""


def _changed_before_a_start(world: World, breach: Breach) -> bool:
    """Whether a kubelet ends after a manifest has changed, or a manifest changes before it starts:
    the new kubelet does not know the old pod."""
    words = [word for step in world.document["steps"] for word in step]
    changes = [place for place, word in enumerate(words) if word in CHANGES]
    ends = [place for place, word in enumerate(words) if word in ("kubelet", "reboot")]
    dies = "dies_at" in words and len(changes) > 1  # at some call: perhaps after a change
    return dies or bool(changes and ends and changes[0] < ends[-1]) or _changed_at_the_end(words)


def _edited_and_shut_down(world: World, breach: Breach) -> bool:
    """Whether a static pod that is Pending was edited, and a shutdown was announced after that."""
    words = [word for step in world.document["steps"] for word in step]
    announced = [place for place, word in enumerate(words) if word == "shutdown"]
    is_pending = "its pod Pending" in breach.what or "is Pending" in breach.what
    return is_pending and bool(announced) and "edit" in words[: announced[-1]]


def _came_back(world: World, breach: Breach) -> bool:
    """Whether a pod with restartPolicy OnFailure is shown as ended whose manifest was removed or
    renamed."""
    pod = breach.what.partition("/")[0].removesuffix("-node")
    policy = world.document["pods"].get(pod, {}).get("spec", {}).get("restartPolicy")
    words = {word for step in world.document["steps"] for word in step}
    away = bool(words & {"remove", "remove_file", "rename_file"})
    return away and policy == "OnFailure" and "shown as terminated" in breach.what


def _has_deadline(world: World, breach: Breach) -> bool:
    """Whether the pod that is shown ready has a deadline."""
    pod = breach.what.partition("/")[0]
    return "activeDeadlineSeconds" in world.document["pods"].get(pod, {}).get("spec", {})


def _lost_its_sandbox(world: World, breach: Breach) -> bool:
    """Whether a pod that is never restarted waits for containers to be started, and something may
    have ended its sandbox, or taken the records of its containers away."""
    pod = breach.what.removeprefix("pod ").partition(":")[0].partition(" ")[0]
    spec = world.document["pods"].get(pod.removesuffix("-node"), {}).get("spec", {})
    words = {word for step in world.document["steps"] for word in step}
    lost = bool(words & {"reboot", "stop_sandbox", "kill_sandbox", "runtime", "fault", "drop"})
    waits = "waits for init" in breach.what or "does not run: ContainerCreating" in breach.what
    return lost and waits and spec.get("restartPolicy") == "Never"


def _has_a_crashing_sidecar(world: World, breach: Breach) -> bool:
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


def _deleted_before_a_start(world: World, breach: Breach) -> bool:
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
    return bool(deleted and starts) and deleted[0] < starts[-1]


def _is_evented(world: World, breach: Breach) -> bool:
    """Whether the kubelet listens to events of the runtime."""
    gates = (world.document.get("kubelet") or {}).get("featureGates") or {}
    return bool(gates.get("EventedPLEG"))


def _lost_state(world: World, breach: Breach) -> bool:
    """Whether a kubelet that listens to events meets a runtime that has forgotten its pods."""
    return _is_evented(world, breach) and {"runtime": "lose_state"} in world.document["steps"]


def _in_worlds_of(*kinds: str) -> Callable[[World, Breach], bool]:
    """Whether these kinds of things are in the world."""
    return lambda world, breach: all(kind in world.kinds for kind in kinds)


def _says(text: str) -> Callable[[World, Breach], bool]:
    """Whether the breach says so."""
    return lambda world, breach: text in breach.what


def _changed_at_the_end(words: Sequence[str]) -> bool:
    """Whether a manifest changes after the last thing that is done to the kubelet, which may be its
    end: it starts when all is calm."""
    last = max((place for place, word in enumerate(words) if word == "kubelet"), default=None)
    return last is not None and any(word in CHANGES for word in words[last:])


EXCUSES: Final = (
    Excuse(
        "112814",
        "one-static",
        "a static pod whose manifest was changed before a kubelet starts runs beside the old one, "
        "which only the runtime knows (kubernetes#112814, kubernetes#23186)",
        _changed_before_a_start,
        refkubelet=True,
    ),
    *(
        Excuse(
            "static-edited-before-shutdown",
            law,
            "a static pod that was edited before a shutdown is shown Pending for ever, its mirror "
            "Running",
            _edited_and_shut_down,
        )
        for law in ("mirrors-agree", "wanted-pods-go-on")
    ),
    *(
        Excuse(
            "evented-old-sandbox",
            law,
            "with EventedPLEG a pod is started a second time when its old sandbox is collected",
            _is_evented,
        )
        for law in ("one-sandbox", "never-two-at-once", "no-other-sandboxes")
    ),
    Excuse(
        "static-shown-ended",
        "told-as-it-is",
        "a static pod that was away for a second runs, and is shown as ended for ever",
        _came_back,
    ),
    *(
        Excuse(
            "deadline-shown-ready",
            law,
            "a pod past its deadline is shown ready while it stops, although no probe has passed",
            _has_deadline,
            refkubelet=True,
        )
        for law in ("ready-when-probed", "started-when-probed")
    ),
    *(
        Excuse(
            "deletion-shown-ready",
            law,
            "a pod deleted before a kubelet starts is shown ready while it stops, although no "
            "probe has passed",
            _deleted_before_a_start,
            refkubelet=True,
        )
        for law in ("ready-when-probed", "started-when-probed")
    ),
    *(
        Excuse(
            "136969",
            law,
            "the ended containers of a pod of which no other one runs are not started again while "
            "one of its sidecars does not run (kubernetes#136969)",
            _has_a_crashing_sidecar,
            refkubelet=True,
        )
        for law in ("wanted-pods-go-on", "running-is-initialized")
    ),
    Excuse(
        "118321",
        "wanted-pods-go-on",
        "a pod that is never restarted and has lost its sandbox before all of its containers were "
        "started stays Pending (kubernetes#118321)",
        _lost_its_sandbox,
        refkubelet=True,
    ),
    *(
        Excuse(
            "evented-lost-state",
            law,
            "with EventedPLEG a pod that only events have told of stays as it was when the runtime "
            "forgets it (docs/search.md)",
            _lost_state,
            refkubelet=True,
        )
        for law in ("wanted-pods-go-on", "told-as-it-is")
    ),
    *(
        Excuse(name, "stopped-in-time", "a hook holds up the end of its pod", _in_worlds_of(kind))
        for name, kind in (("116032", "hooks"), ("127339", "long hooks"))
    ),
    Excuse(
        "125050",
        "nothing-begun-at-the-end",
        "a pod that was deleted while its image was pulled is started",
        _in_worlds_of("pulled images"),
    ),
    *(
        Excuse("136962", law, "a copy beside a manifest is read, too", _in_worlds_of("copies kept"))
        for law in ("wanted-pods-go-on", "mirrors-agree", "one-static", "nothing-else-runs")
    ),
    Excuse(
        "140309",
        "init-in-order",
        "what was created before a reboot counts as initialized",
        _in_worlds_of("reboots", "init containers"),
    ),
    *(
        Excuse(
            "141155",
            law,
            "what an earlier instance had reached counts for the next one",
            _in_worlds_of("probes"),
        )
        for law in ("startup-first", "started-when-probed")
    ),
    Excuse(
        "29845",
        "mirrors-agree",
        "the mirror of a static pod that has finished is not made again",
        _says("has no mirror"),
    ),
    Excuse(
        "51142",
        "done-stays-done",
        "a container that the runtime has no record of is started, however it has ended",
        _in_worlds_of("drops"),
    ),
    Excuse(
        "91667",
        "ends-shown",
        "the end of a container is not shown while a sync of its pod is under way",
        _says("still shown to run"),
    ),
    Excuse(
        "evented-list-fails",
        "ends-noticed",
        "with EventedPLEG a list that failed is done again after 300 s only",
        _is_evented,
    ),
    Excuse(
        "lost-exit",
        "ends-stay",
        "an instance that never ran hides the one before it",
        _says("is told no more"),
    ),
    Excuse(
        "never-ran",
        "last-run-kept",
        "an instance that never ran takes the place of the one before it",
        _says("is removed"),
    ),
)
"""All of them, in the order in which they are asked."""


def excuse_of(
    world: World, breach: Breach, *, kubelet: str, excuses: Iterable[Excuse] = EXCUSES
) -> Excuse | None:
    """The first excuse for that breach on that kubelet; None: there is none. `kubelet`: as
    `--kubelet` has it."""
    for excuse in excuses:
        if not excuse.refkubelet and kubelet.startswith(IN_PROCESS):
            continue
        if excuse.law == breach.law and excuse.holds(world, breach):
            return excuse
    return None
