"""Asks whether sharing a kubelet hides what is wrong with it.

`python tests/mutants/shared_mutants.py [NAMES] [--count 30]`: so many of the wrong kubelets of the
tables that cases which share notice are drawn with `--seed`. Each is asked by the cases that may
share: those that have noticed it, those that cite its rules and those of its area. They run alone,
and all beside each other. Every case that fails alone must not pass beside others; the other way
round costs time only, for such a case is run again alone. Exit code 1: one passes.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait  # noqa: TID251
from pathlib import Path
from typing import Any, Final

from mutant_import import become
from mutant_in_place import Functions, become_in_place, check_imported_from
from mutant_plan import first_plan
from mutant_tables import Mutant, MutantError, read_all
from suite_run import CONTEXT, Hangs, Verdict, tried, warmed_up

import refkubelet
from kubelet_conformance.harness.runs.batches import shares
from kubelet_conformance.registry import Case, load_cases
from simclock import Rng

ROOT: Final = Path(__file__).parents[2]
KEPT: Final = ROOT / "results" / "suite-mutants.json"
SEEDS: Final = 3
"""A case notices a mutant if it fails with each of so many seeds: beside others, chance differs."""
GROUP_WITHIN_S: Final = 120
"""Seconds of processor time for the cases that share; in virtual time a kubelet that hangs stands
still for ever."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Which cases have not passed with a wrong kubelet, or why it could not be asked about."""

    mutant: str
    alone: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    error: str = ""

    @property
    def hidden(self) -> list[str]:
        """The cases for which sharing hides that it is wrong."""
        return sorted(set(self.alone) - set(self.beside))

    def __str__(self) -> str:
        """
        >>> print(Seen("pleg/late", ("a", "b"), ("b", "c")))
        pleg/late: 2 cases notice it alone, 2 beside others; hidden: a
        """
        if self.error:
            return f"{self.mutant}: {self.error}"
        counts = f"{len(self.alone)} cases notice it alone, {len(self.beside)} beside others"
        hidden = f"; hidden: {', '.join(self.hidden)}" if self.hidden else ""
        return f"{self.mutant}: {counts}{hidden}"


def asked_of(mutant: Mutant, cases: Sequence[Case], before: Mapping[str, Any]) -> list[str]:
    """The cases that are asked about a mutant, by their IDs; `cases`: those that may share."""
    near = [question.case for question in first_plan(mutant, cases, before).questions]
    known = {case.id for case in cases}
    of_area = [case.id for case in cases if case.area == mutant.area]
    return [case for case in dict.fromkeys([*near, *of_area]) if case in known]


def ask(plans: Sequence[tuple[Mutant, Sequence[str]]], seed: int, jobs: int) -> Iterator[Seen]:
    """What is seen of the mutants, each as soon as it is there; `jobs` processes at a time."""
    functions = warmed_up(seed)
    waiting, running = list(reversed(plans)), dict[Any, tuple[Mutant, Any]]()
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant, names = waiting.pop()
            receiver, sender = CONTEXT.Pipe(duplex=False)
            process = CONTEXT.Process(
                target=_answer, args=(mutant, names, functions, seed, sender), daemon=True
            )
            process.start()
            sender.close()
            running[receiver] = (mutant, process)
        for ready in wait(list(running)):
            mutant, process = running.pop(ready)
            try:
                yield ready.recv()  # type: ignore[union-attr]
            except EOFError:
                yield Seen(mutant.name, error="its process has ended without an answer")
            process.join()


def _answer(
    mutant: Mutant, names: Sequence[str], functions: Functions, seed: int, sender: Connection
) -> None:
    """Become the mutant, run the cases both ways, and send what was seen."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        try:
            texts = mutant.texts()
            if not become_in_place(texts, functions):
                become(texts)
            sender.send(_both_ways(mutant.name, names, seed))
        except MutantError as problem:
            sender.send(Seen(mutant.name, error=str(problem)))
    os._exit(0)  # what belongs to the parent is not to be cleaned up here


def _both_ways(mutant: str, names: Collection[str], seed: int) -> Seen:
    # Here, not above: a mutant that is imported has modules of its own.
    from kubelet_conformance.harness.runs.batches import batches
    from kubelet_conformance.harness.runs.choice import Choice
    from kubelet_conformance.registry import load_cases

    cases = [case for case in load_cases() if case.id in names]
    choices = [Choice(seed=seed + number) for number in range(SEEDS)]
    alone = [
        case.id
        for case in cases
        if all(tried(case, choice) is not Verdict.PASSES for choice in choices)
    ]
    beside = [case for group in batches(cases) for case in _not_passed(group, seed)]
    return Seen(mutant, tuple(alone), tuple(beside))


def _not_passed(group: Sequence[Any], seed: int) -> Sequence[str]:
    """The cases of a group that do not pass beside each other."""
    from kubelet_conformance.harness.runs.case_run import Outcome
    from kubelet_conformance.harness.runs.virtual_sharing import run_virtual_group

    def hangs(*_: object) -> None:
        raise Hangs

    if len(group) == 1:  # it runs alone in any case
        return [case.id for case in group]
    signal.signal(signal.SIGPROF, hangs)
    signal.setitimer(signal.ITIMER_PROF, GROUP_WITHIN_S)
    try:
        results = run_virtual_group(group, seed)
    except Hangs:
        return [case.id for case in group]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return [result.case.id for result in results if result.outcome is not Outcome.PASSED]


def drawn(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """So many of them, in the order of the tables."""
    chosen = Rng(seed).stream("mutants").sample(mutants, min(count, len(mutants)))
    return sorted(chosen, key=lambda mutant: mutant.name)


def main(words: Sequence[str]) -> int:
    """See above."""
    parser = argparse.ArgumentParser(prog="shared_mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants, areas or globs; default all")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args(words)
    check_imported_from(refkubelet)
    kept = json.loads(KEPT.read_text())
    before = {name: answer["noticed"] for name, answer in kept.items()}
    cases = [case for case in load_cases() if shares(case)]
    known = {case.id for case in cases}
    mutants = [m for m in read_all(options.names) if known & set(before.get(m.name, ()))]
    chosen = drawn(mutants, options.count, options.seed)
    plans = [(mutant, asked_of(mutant, cases, before)) for mutant in chosen]
    wrong = 0
    for seen in ask(plans, options.seed, options.jobs):
        print(seen, flush=True)
        wrong += bool(seen.hidden or seen.error)
    print(f"{len(plans)} wrong kubelets; sharing hides something of {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
