"""The kinds of things that worlds have, and which of them are in one: few in each, so that what
many kinds would hide shows (swarm testing)."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random  # noqa: TID251 (for its type)
from typing import Final, Literal

from msgspec import Struct

Size = Literal["small", "large"]

SOURCES: Final = {"api pods": 0.8, "static pods": 0.5}
OF_PODS: Final = {
    "jobs": 0.4,
    "crashes": 0.5,
    "init containers": 0.3,
    "sidecars": 0.25,
    "probes": 0.3,
    "hooks": 0.25,
    "stubborn": 0.2,
    "deadlines": 0.15,
    "volumes": 0.25,
    "amounts": 0.3,
    "own users": 0.08,
    "exclusive CPUs": 0.08,
    "large amounts": 0.1,
    "long hooks": 0.12,
    "long starts": 0.12,
    "never well": 0.12,
    "pulled images": 0.12,
    "strangers": 0.08,
    "restarting resizes": 0.05,
    "odd probes": 0.05,
    "host ports": 0.04,
    "devices": 0.04,
    "csi volumes": 0.1,
}
"""What pods may have -> how many of the worlds have such pods."""
OF_STEPS: Final = {
    # what users do
    "edits": 0.3,
    "deletions": 0.5,
    "forced deletions": 0.2,
    "made again": 0.35,
    "vanishing": 0.1,
    "files moved": 0.2,
    "files twice": 0.1,
    "copies kept": 0.08,
    "secrets": 0.06,
    "ephemeral": 0.1,
    "resizes": 0.1,
    "late objects": 0.3,
    "deleted again": 0.15,
    # what happens to containers
    "exits": 0.3,
    "kills": 0.25,
    "drops": 0.15,
    "sandboxes stopped": 0.2,
    "sandboxes killed": 0.15,
    # what happens to calls
    "failing calls": 0.35,
    "slow calls": 0.25,
    "hanging calls": 0.2,
    "lost answers": 0.2,
    "half calls": 0.15,
    "failing pulls": 0.04,
    "broken streams": 0.05,
    "driver faults": 0.08,
    "attachments": 0.04,
    "aimed faults": 0.3,
    "priority changes": 0.1,
    # what happens to runtime, API server, kubelet, node
    "runtime crashes": 0.2,
    "lost state": 0.1,
    "no network": 0.1,
    "server away": 0.25,
    "server refuses": 0.25,
    "server slow": 0.2,
    "kubelet killed": 0.4,
    "kubelet restarted": 0.2,
    "killed at calls": 0.2,
    "other settings": 0.1,
    "fewer devices": 0.03,
    "reboots": 0.1,
    "pressure": 0.15,
    "shutdowns": 0.08,
}
"""What happens -> in how many of the worlds it may."""
OF_NODE: Final = {"evented": 0.3, "few pods": 0.1, "no server": 0.05}
KINDS: Final = {**SOURCES, **OF_PODS, **OF_STEPS, **OF_NODE}
ONLY_API: Final = frozenset(
    {
        *("forced deletions", "vanishing", "ephemeral", "resizes", "late objects", "deadlines"),
        *("deleted again", "strangers", "host ports", "devices", "fewer devices"),
        *("restarting resizes", "csi volumes", "driver faults", "attachments"),
    }
)
OF_SERVER: Final = frozenset({"server away", "server refuses", "server slow"})
"""Kinds that are about an API server."""
LATER: Final = frozenset(
    {
        *("restarting resizes", "odd probes", "host ports", "devices", "failing pulls"),
        *("broken streams", "fewer devices", "no server", "csi volumes", "driver faults"),
        *("attachments", "aimed faults", "priority changes", "killed at calls"),
    }
)
"""Kinds that are drawn from dice of their own: the worlds without them are as they were before."""
EXCLUSIVE: Final = frozenset(
    {
        *("kubelet killed", "kubelet restarted", "other settings"),
        *("reboots", "runtime crashes", "lost state"),
    }
)
"""Kinds of which two do not go on at the same time: what is down cannot be taken down, and a
kubelet does not start without its runtime. None is where a kubelet is killed at calls."""
ONLY_STATIC: Final = frozenset({"files moved", "files twice", "copies kept", "secrets"})
"""Kinds that are about pods of the API server alone, and about static ones alone."""


WANT: Final = {
    "resizes": "amounts",
    "large amounts": "amounts",
    "long hooks": "hooks",
    "long starts": "probes",
    "never well": "probes",
    "odd probes": "probes",
    "restarting resizes": "resizes",
    "failing pulls": "pulled images",
    "broken streams": "evented",
    "fewer devices": "devices",
    "driver faults": "csi volumes",
    "attachments": "csi volumes",
}
"""Kinds that are nothing without another one."""


class Bounds(Struct, frozen=True):
    """How large worlds of a size are: from, to."""

    pods: tuple[int, int]
    steps: tuple[int, int]
    longest_wait_s: float


BOUNDS: Final[Mapping[Size, Bounds]] = {
    "small": Bounds(pods=(1, 4), steps=(2, 10), longest_wait_s=60.0),
    "large": Bounds(pods=(5, 20), steps=(20, 60), longest_wait_s=120.0),
}


def kinds_of(dice: Random, later: Random, weights: Mapping[str, float]) -> tuple[str, ...]:
    """The kinds of one world. `later`: the dice of the kinds of `LATER`; `weights`: factors on how
    often a kind is there, by its name."""
    drawn = {
        kind
        for kind, share in KINDS.items()
        if (later if kind in LATER else dice).random() < min(0.9, share * weights.get(kind, 1.0))
    }
    if "no server" in drawn:
        drawn = {*drawn, "static pods"} - {"api pods", *OF_SERVER}
    if not drawn & SOURCES.keys():
        drawn.add(dice.choice(sorted(SOURCES)))
    if "api pods" not in drawn:
        drawn -= ONLY_API
    if "static pods" not in drawn:
        drawn -= ONLY_STATIC
    if "killed at calls" in drawn:
        drawn -= EXCLUSIVE
    if not drawn & OF_STEPS.keys():
        drawn.add("kubelet killed")
    for kind, wants in (*WANT.items(), *WANT.items()):  # what is wanted may want something, too
        if kind in drawn:
            drawn.add(wants)
    return tuple(kind for kind in KINDS if kind in drawn)
