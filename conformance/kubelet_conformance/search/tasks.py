"""What the processes of a campaign do: a world of a seed is played, or made small. Plain data goes
in and out, so that they may be processes of this machine or of another."""

from __future__ import annotations

import resource
import traceback
from typing import Final

from msgspec import Struct

from kubelet_conformance.harness.runs.choice import Choice, EnvironmentProblem
from kubelet_conformance.harness.runs.warped import require_warped_kubelet
from kubelet_conformance.scenarios.play.struck import NOTED, Noted
from kubelet_conformance.search.beside import AS_BESIDE
from kubelet_conformance.search.drawing.world import World
from kubelet_conformance.search.excuses import excuse_of
from kubelet_conformance.search.playing import Verdict, play
from kubelet_conformance.search.records import Excused, Met
from kubelet_conformance.search.shrinking import shrink
from kubelet_conformance.search.sources import world_of
from kubeobjects.structs import replace
from refkubelet.pod_workers.taken import TAKEN, Row, name_of


class Asks(Struct, frozen=True):
    """What is asked of each world."""

    laws: tuple[str, ...] = ()
    """Only these laws; empty: all."""
    beside: Choice | None = None
    """Another kubelet, on which each world must end as on this one."""


ALL: Final = Asks()


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


def require(choice: Choice, asks: Asks = ALL) -> None:
    """Raise EnvironmentProblem when the kubelet, or the one beside it, cannot be used here."""
    for option, kubelet in (("--kubelet", choice), ("--beside", asks.beside)):
        if kubelet is not None:
            try:
                kubelet.check()
                if kubelet.warped:
                    require_warped_kubelet(kubelet)
            except EnvironmentProblem as problem:
                text = str(problem).replace("--kubelet", option, 1)
                raise EnvironmentProblem(_in_a_line(text)) from None


def _in_a_line(text: str) -> str:
    """The first line of a text, and the last: what a program has said last before it ended."""
    first, *others = text.splitlines()
    return f"{first} ({others[-1].strip()})" if others else first


def meet(seed: int, size: str, choice: Choice, asks: Asks = ALL) -> Met:
    """Draw the world of that seed, play it, and say what came of it. Raises nothing: what goes
    wrong is the `error` of the line."""
    noted, rows = Noted(), set[Row]()
    began_s = _cpu_s()
    noting, of_workers = NOTED.set(noted), TAKEN.set(rows)
    try:
        world = world_of(seed, size)
        rows.clear()  # of a world that was played to know its calls
        verdict = _played(world, choice, asks)
    except Exception:
        return Met(seed=seed, kinds=(), verdict="error", error=traceback.format_exc())
    finally:
        NOTED.reset(noting)
        TAKEN.reset(of_workers)
    broken, excused = [], []
    for breach in verdict.breaches:
        excuse = excuse_of(world, breach, kubelet=choice.kubelet)
        if excuse is None:
            broken.append(breach)
        else:
            excused.append(Excused(breach.law, excuse.name))
    word = "error" if verdict.error else "broken" if broken else "excused" if excused else "holds"
    return Met(
        seed=seed,
        kinds=world.kinds,
        struck=tuple(sorted(noted.struck)),
        trace=noted.trace,
        transitions=tuple(sorted(map(name_of, rows))) if choice.virtual else (),
        verdict=word,  # type: ignore[arg-type]  # one of them
        breaches=tuple(broken),
        excused=tuple(excused),
        unasked=verdict.unasked,
        error=verdict.error,
        world_s=verdict.world_s,
        real_s=verdict.real_s,
        cpu_s=round(_cpu_s() - began_s, 3),
    )


def _cpu_s() -> float:
    """Processor time of this process and of the programs that it has waited for."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def make_small(
    seed: int,
    size: str,
    law: str,
    choice: Choice,
    tries: int,
    repeats: int,
    beside: Choice | None = None,
) -> Small:
    """Make the world of that seed small, and try what is left `repeats` times. `beside` is played
    on for its own law alone."""
    asks = Asks((law,), beside if law == AS_BESIDE else None)
    small = shrink(world_of(seed, size), law, lambda world: _judged(world, choice, asks), tries)
    breaks = sum(law in _judged(small, choice, asks).laws for _ in range(repeats))
    return Small(law, small, breaks, repeats)


def _played(world: World, choice: Choice, asks: Asks) -> Verdict:
    own_mounts = _OWN["mounts"]
    return play(world, choice, own_mounts=own_mounts, laws=asks.laws, beside=asks.beside)


def _judged(world: World, choice: Choice, asks: Asks) -> Verdict:
    """The verdict without what is excused: a world must not become a known one on its way."""
    verdict = _played(world, choice, asks)
    left = tuple(
        breach
        for breach in verdict.breaches
        if excuse_of(world, breach, kubelet=choice.kubelet) is None
    )
    return replace(verdict, breaches=left)
