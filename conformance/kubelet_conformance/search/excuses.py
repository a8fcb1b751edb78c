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
    cured: bool = False
    """Whether refkubelet does not do so: then it is not excused there."""


def _changed_before_a_start(world: World, breach: Breach) -> bool:
    """Whether a kubelet ends after a manifest has changed, or a manifest changes before it starts:
    the new kubelet does not know the old pod."""
    words = [word for step in world.document["steps"] for word in step]
    changes = [place for place, word in enumerate(words) if word in CHANGES]
    ends = [place for place, word in enumerate(words) if word in ("kubelet", "reboot")]
    dies = "dies_at" in words and len(changes) > 1  # at some call: perhaps after a change
    return dies or bool(changes and ends and changes[0] < ends[-1]) or _changed_at_the_end(words)


def _was_shut_down(world: World, breach: Breach) -> bool:
    """Whether a shutdown was announced, and the pod is one that has not been admitted since."""
    words = [word for step in world.document["steps"] for word in step]
    return "shutdown" in words and "its pod Pending" in breach.what


def _came_back(world: World, breach: Breach) -> bool:
    """Whether a pod with restartPolicy OnFailure is shown as ended whose manifest was removed or
    renamed."""
    pod = breach.what.partition("/")[0].removesuffix("-node")
    policy = world.document["pods"].get(pod, {}).get("spec", {}).get("restartPolicy")
    words = {word for step in world.document["steps"] for word in step}
    away = bool(words & {"remove", "remove_file", "rename_file"})
    return away and policy == "OnFailure" and "shown as terminated" in breach.what


def _is_evented(world: World, breach: Breach) -> bool:
    """Whether the kubelet listens to events of the runtime."""
    gates = (world.document.get("kubelet") or {}).get("featureGates") or {}
    return bool(gates.get("EventedPLEG"))


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
    ),
    Excuse(
        "116484",
        "mirrors-agree",
        "a static pod that is refused, as while the node is shut down, is not tried again "
        "(kubernetes#116484)",
        _was_shut_down,
    ),
    Excuse(
        "evented-old-sandbox",
        "one-sandbox",
        "with EventedPLEG a pod is started a second time when its old sandbox is collected",
        _is_evented,
        cured=True,
    ),
    Excuse(
        "static-shown-ended",
        "told-as-it-is",
        "a static pod that was away for a second runs, and is shown as ended for ever",
        _came_back,
        cured=True,
    ),
)
"""All of them, in the order in which they are asked."""


def excuse_of(
    world: World, breach: Breach, *, kubelet: str, excuses: Iterable[Excuse] = EXCUSES
) -> Excuse | None:
    """The first excuse for that breach on that kubelet; None: there is none. `kubelet`: as
    `--kubelet` has it."""
    for excuse in excuses:
        if excuse.cured and kubelet.startswith(IN_PROCESS):
            continue
        if excuse.law == breach.law and excuse.holds(world, breach):
            return excuse
    return None
