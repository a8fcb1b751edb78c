"""Plays worlds on a kubelet, and says which laws they broke."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.harness.runs.warped import run_warped_case
from kubelet_conformance.search.drawing.world import World
from kubeobjects.structs import replace

LIVES: Final = "kubelet-lives"
"""The law that a kubelet neither ends by itself nor refuses to start."""
IN_TIME: Final = "in-time"
"""The law that a world comes to its end within the time that a case has."""
_BREACH: Final = re.compile(r"^law ([a-z-]+) \([^)]*\): (.*)$")


class Breach(Struct, frozen=True):
    """A law that a world has broken."""

    law: str
    what: str
    """The sentence that says how."""


class Verdict(Struct, frozen=True):
    """What came of a world."""

    seed: int
    breaches: tuple[Breach, ...] = ()
    error: str = ""
    """Why it could not be played: a mistake of the harness or of the world, not of the kubelet."""
    world_s: float = 0.0
    """Seconds that passed in it."""
    real_s: float = 0.0

    @property
    def laws(self) -> frozenset[str]:
        """The names of the broken laws."""
        return frozenset(breach.law for breach in self.breaches)


Play = Callable[[World], Verdict]


def play(world: World, choice: Choice | None = None, *, own_mounts: bool = False) -> Verdict:
    """Play a world. `choice`: on which kubelet; None: refkubelet, in virtual time. `own_mounts`: as
    for `run_warped_case`."""
    chosen = replace(choice or Choice(), seed=world.seed)
    case = world.case()
    if chosen.virtual:
        result = run_virtual_case(case, chosen, log_of_failures=False)
    else:
        result = run_warped_case(case, chosen, own_mounts)
    return verdict_of(world.seed, result)


def verdict_of(seed: int, result: Result) -> Verdict:
    """The verdict that the result of its case is."""
    breaches, error = [], ""
    if result.outcome is Outcome.FAILED:
        breaches = _breaches(result.detail.splitlines())
    elif result.outcome is not Outcome.PASSED:
        error = result.detail or result.outcome.value
    return Verdict(
        seed,
        breaches=tuple(breaches),
        error=error,
        world_s=round(result.case_s, 3),
        real_s=round(result.real_s, 3),
    )


def _breaches(lines: Sequence[str]) -> list[Breach]:
    told = [Breach(match[1], match[2]) for match in map(_BREACH.match, lines) if match]
    if told:
        return told
    text = " ".join(line.strip() for line in lines[:2])
    law = IN_TIME if "within its time limit" in text else LIVES
    return [Breach(law, text)]
