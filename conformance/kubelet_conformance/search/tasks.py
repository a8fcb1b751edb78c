"""What the processes of a campaign do: a world of a seed is played, or made small. Plain data goes
in and out, so that they may be processes of this machine or of another."""

from __future__ import annotations

import traceback

from msgspec import Struct

from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.search.drawing import world_of
from kubelet_conformance.search.drawing.kinds import Size
from kubelet_conformance.search.drawing.world import World
from kubelet_conformance.search.excuses import excuse_of, excuses_of
from kubelet_conformance.search.playing import Verdict, play
from kubelet_conformance.search.records import Excused, Met
from kubelet_conformance.search.shrinking import shrink


class Small(Struct, frozen=True):
    """A world that breaks a law, made small."""

    law: str
    world: World
    breaks: int
    """In how many of `tried` plays it broke the law."""
    tried: int


def begin_worker() -> None:
    """Prepare a process for kubelet programs: it sees mounts of its own alone, if it may."""
    from kubelet_conformance.harness.runs.warped import take_own_mounts

    _OWN["mounts"] = take_own_mounts()


_OWN: dict[str, bool] = {"mounts": False}


def meet(seed: int, size: Size, choice: Choice) -> Met:
    """Draw the world of that seed, play it, and say what came of it. Raises nothing: what goes
    wrong is the `error` of the line."""
    try:
        world = world_of(seed, size)
        verdict = _played(world, choice)
    except Exception:
        return Met(seed=seed, kinds=(), verdict="error", error=traceback.format_exc())
    broken, excused, excuses = [], [], excuses_of(choice.kubelet)
    for breach in verdict.breaches:
        excuse = excuse_of(world, breach, excuses)
        if excuse is None:
            broken.append(breach)
        else:
            excused.append(Excused(breach.law, excuse.name))
    word = "error" if verdict.error else "broken" if broken else "excused" if excused else "holds"
    return Met(
        seed=seed,
        kinds=world.kinds,
        verdict=word,  # type: ignore[arg-type]  # one of them
        breaches=tuple(broken),
        excused=tuple(excused),
        error=verdict.error,
        world_s=verdict.world_s,
        real_s=verdict.real_s,
    )


def make_small(seed: int, size: Size, law: str, choice: Choice, tries: int, repeats: int) -> Small:
    """Make the world of that seed small, and try what is left `repeats` times."""
    small = shrink(world_of(seed, size), law, lambda world: _judged(world, choice), tries)
    breaks = sum(law in _judged(small, choice).laws for _ in range(repeats))
    return Small(law, small, breaks, repeats)


def _played(world: World, choice: Choice) -> Verdict:
    return play(world, choice, own_mounts=_OWN["mounts"])


def _judged(world: World, choice: Choice) -> Verdict:
    """The verdict without what is excused: a world must not become a known one on its way."""
    verdict = _played(world, choice)
    excuses = excuses_of(choice.kubelet)
    left = tuple(breach for breach in verdict.breaches if excuse_of(world, breach, excuses) is None)
    return Verdict(verdict.seed, left, verdict.error, verdict.world_s, verdict.real_s)
