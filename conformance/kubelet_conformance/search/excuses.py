"""Breaches that are known: which laws which kubelets are known to break, where that is written, and
how narrow it is. A breach that is excused is counted, and is no failure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

from kubelet_conformance.search.playing import Breach
from kubelet_conformance.search.world import World


class Excuse(Struct, frozen=True):
    """One known breach."""

    name: str
    """A fixture (`138446`), a row of docs/gaps.md (`MIRR-003`), or a heading of docs/found.md."""
    law: str
    why: str
    """What is known, in a sentence."""
    holds: Callable[[World, Breach], bool]
    """Whether this breach in this world is that one."""


def _changed_while_down(world: World, breach: Breach) -> bool:
    """Whether the manifest of a static pod changes while no kubelet runs."""
    down = False
    for step in world.document["steps"]:
        (word,) = step
        if word == "kubelet":
            argument = step[word]
            does = argument["do"] if isinstance(argument, Mapping) else argument
            down = does in ("kill", "stop")
        elif down and word in ("edit", "rename_file", "write_file", "apply", "remove_file"):
            return True
    return False


EXCUSES: Final = (
    Excuse(
        "static-changed-while-down",
        "one-static",
        "a static pod whose manifest changes while no kubelet runs starts beside the old one, "
        "which only the runtime knows (docs/found.md)",
        _changed_while_down,
    ),
)
"""All of them, in the order in which they are asked."""


def excuse_of(world: World, breach: Breach, excuses: Iterable[Excuse] = EXCUSES) -> Excuse | None:
    """The first excuse for that breach; None: there is none."""
    for excuse in excuses:
        if excuse.law == breach.law and excuse.holds(world, breach):
            return excuse
    return None
