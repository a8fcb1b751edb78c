"""Plays worlds on a kubelet, and says which laws they broke."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.harness.runs.warped import run_warped_case
from kubelet_conformance.laws import LAWS
from kubelet_conformance.registry import CaseBody
from kubelet_conformance.scenarios.play.playing import Player
from kubelet_conformance.search.beside import AS_BESIDE, BEGINS_S, differing, seeds_of
from kubelet_conformance.search.drawing.world import World
from kubelet_conformance.search.ends import End, end_of
from kubeobjects.structs import replace

LIVES: Final = "kubelet-lives"
"""The law that a kubelet neither ends by itself nor refuses to start."""
IN_TIME: Final = "in-time"
"""The law that a world comes to its end within the time that a case has."""
OWN_LAWS: Final = (LIVES, IN_TIME, AS_BESIDE)
"""Those that no history is asked about."""
_BREACH: Final = re.compile(r"^law ([a-z-]+) \([^)]*\): (.*)$")
_ENDS_IT: Final = re.compile(r"panic: |fatal error: ")
"""How the line begins with which a Go program says why it ends."""


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
    unasked: tuple[str, ...] = ()
    """Broken laws that were not asked for: what ends a world lets no other law be asked."""

    @property
    def laws(self) -> frozenset[str]:
        """The names of the broken laws."""
        return frozenset(breach.law for breach in self.breaches)


Play = Callable[[World], Verdict]


def play(
    world: World,
    choice: Choice | None = None,
    *,
    own_mounts: bool = False,
    laws: Collection[str] = (),
    beside: Choice | None = None,
) -> Verdict:
    """Play a world. `choice`: on which kubelet; None: refkubelet, in virtual time. `own_mounts`: as
    for `run_warped_case`. `laws`: only these are asked; empty: all. `beside`: another kubelet that
    it is played on, too, for the law `as-beside`."""
    chosen = replace(choice or Choice(), seed=world.seed)
    compares = beside is not None and (not laws or AS_BESIDE in laws)
    verdict, end = _ended(world, chosen, own_mounts, laws, looks=compares)
    if not compares or beside is None or end is None:
        return verdict
    told = _beside(world, (chosen, end), beside, own_mounts)
    return replace(
        verdict, breaches=(*verdict.breaches, *(Breach(AS_BESIDE, what) for what in told))
    )


def _beside(
    world: World, played: tuple[Choice, End], beside: Choice, own_mounts: bool
) -> Iterable[str]:
    """What differs between the end on one kubelet and that on another, a sentence a pod."""
    begins_s = BEGINS_S if beside.virtual and not played[0].virtual else 0.0
    verdict, other = _ended(world, replace(beside, seed=world.seed), own_mounts, begins_s=begins_s)
    if other is None:
        why = next((one.what for one in verdict.breaches), verdict.error)
        return [f"on {beside.kubelet} the world has no end: {why}"]

    def pairs() -> Iterator[tuple[End, End]]:
        """The two ends, and then those of the kubelet in virtual time under other seeds."""
        one, two = played[1], other
        yield one, two
        for seed in seeds_of(world.seed) if beside.virtual or played[0].virtual else ():
            again = replace(beside if beside.virtual else played[0], seed=seed)
            _, end = _ended(world, again, own_mounts, begins_s=begins_s)
            if end is not None:
                one, two = (one, end) if beside.virtual else (end, two)
                yield one, two

    return differing(pairs(), world, (played[0].kubelet, beside.kubelet)).values()


def _ended(
    world: World,
    choice: Choice,
    own_mounts: bool,
    laws: Collection[str] = (),
    *,
    looks: bool = True,
    begins_s: float = 0.0,
) -> tuple[Verdict, End | None]:
    """Play a world. With `looks` also its end is told; None: it has not come to one. `begins_s`: so
    long the kubelet runs before."""
    case, ends = world.case(), list[End]()
    if laws:
        unasked = {law.name: "not asked for" for law in LAWS if law.name not in laws}
        case = replace(case, except_laws=unasked)
    if looks:
        case = replace(case, body=_looking(world, ends, begins_s))
    if choice.virtual:
        result = run_virtual_case(case, choice, log_of_failures=False)
    else:
        result = run_warped_case(case, choice, own_mounts)
    return _asked_for(verdict_of(world.seed, result), laws), (ends[-1] if ends else None)


def _looking(world: World, ends: list[End], begins_s: float) -> CaseBody:
    """Plays the world as its case does, and looks at what is there in the end."""
    scenario = world.scenario()
    places = {id(step): place for place, step in enumerate(scenario.steps)}

    async def body(node: Node) -> None:
        left_out: list[int] = []
        if begins_s:
            await node.run_for(begins_s)
        player = Player(scenario, node, leaves_out=lambda step: left_out.append(places[id(step)]))
        await player.play()
        there = await node.there()
        ends.append(end_of(there, node.unix_s, left_out, node.plugins.drivers))

    return body


def _asked_for(verdict: Verdict, laws: Collection[str]) -> Verdict:
    """The verdict without breaches of other laws: a kubelet may have ended."""
    if not laws:
        return verdict
    kept = tuple(breach for breach in verdict.breaches if breach.law in laws)
    others = tuple(sorted(verdict.laws.difference(laws)))
    return replace(verdict, breaches=kept, unasked=others)


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
    why = [line for line in lines[2:] if _ENDS_IT.match(line.strip())]
    text = " ".join(line.strip() for line in (*lines[:2], *why[:1]))
    law = IN_TIME if "within its time limit" in text else LIVES
    return [Breach(law, text)]
