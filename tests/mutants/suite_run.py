"""Asks the suite about one mutant: a process that imports it, and runs cases in virtual time.

The process is a fork of one that has everything imported, and has run a case of each area; the
functions that the mutant changes are exchanged there, or, where that is not possible, all is
imported anew. A case in which the mutant hangs counts as failed: virtual time does not go on there.
"""

from __future__ import annotations

import gc
import io
import multiprocessing  # noqa: TID251  # each mutant is a process
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import _lru_cache_wrapper, cache
from multiprocessing.connection import Connection, wait  # noqa: TID251
from typing import Any, Final

from mutant_import import become
from mutant_in_place import Functions, become_in_place, mutable_functions
from mutant_plan import Plan, Question
from mutant_reach import Line, Reach, lines_of, recorded
from mutant_tables import MUTATED, Mutant, MutantError

CASE_WITHIN_S: Final = 20
"""Seconds of processor time for one case; the longest take two."""
AGAIN_S: Final = 5
"""The same for what it does then to end."""
CONTEXT: Final = multiprocessing.get_context("fork")


@dataclass(slots=True)
class Answer:
    """What the suite says of a mutant."""

    mutant: Mutant
    noticed: tuple[str, ...] = ()
    """The cases that fail; all of those that cite the rule were run, of the others as many as it
    took to find one."""
    ran: int = 0
    error: str = ""
    """Why the mutant could not be asked about: it does not fit, or cannot be imported."""


def ask(plans: Sequence[Plan], seed: int, jobs: int) -> Iterator[Answer]:
    """The answers about all mutants, each as soon as it is there; `jobs` processes at a time."""
    functions = warmed_up(seed)
    waiting = list(reversed(plans))
    running: dict[Any, tuple[Plan, Any]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                plan = waiting.pop()
                receiver, sender = CONTEXT.Pipe(duplex=False)
                process = CONTEXT.Process(
                    target=_answer, args=(plan, functions, seed, sender), daemon=True
                )
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)  # forks beside threads
                    process.start()
                sender.close()
                running[receiver] = (plan, process)
            for ready in wait(list(running)):
                plan, process = running.pop(ready)
                yield _received(plan, ready)
                process.join()
    finally:
        for _, process in running.values():
            process.terminate()


@cache
def warmed_up(seed: int) -> Functions:
    """Do here what every process of a mutant would do again: import what cases import, and run a
    case of each area, because the first one in a process takes some seven times as long as later
    on. What refkubelet remembers of that is forgotten. Returns the functions of refkubelet."""
    from kubelet_conformance.harness.runs.choice import Choice
    from kubelet_conformance.harness.runs.garbage import collect_less
    from kubelet_conformance.harness.runs.virtual import run_virtual_case
    from kubelet_conformance.registry import load_cases

    a_case_of_each_area = {case.area: case for case in load_cases()}
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        for case in a_case_of_each_area.values():
            run_virtual_case(case, Choice(seed=seed))
    gc.collect()
    for each in gc.get_objects():
        if isinstance(each, _lru_cache_wrapper) and each.__module__.partition(".")[0] in MUTATED:
            each.cache_clear()
    functions = mutable_functions()
    collect_less()  # nor does it copy what is there now into the processes
    return functions


def _received(plan: Plan, receiver: Any) -> Answer:
    try:
        noticed, ran, error = receiver.recv()
    except EOFError:
        noticed, ran, error = (), 0, "its process has ended without an answer"
    return Answer(plan.mutant, noticed, ran, error)


def _answer(plan: Plan, functions: Functions, seed: int, sender: Connection) -> None:
    """Become the mutant, ask, and send the answer. Runs in the process of the mutant."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.close()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        try:
            sender.send((*_noticed(plan, functions, seed), ""))
        except MutantError as problem:
            sender.send(((), 0, str(problem)))
        except Exception as problem:  # a module of the mutant that cannot be imported
            sender.send(((), 0, f"{type(problem).__name__}: {problem}"))
    os._exit(0)  # what belongs to the parent is not to be cleaned up here


def _noticed(plan: Plan, functions: Functions, seed: int) -> tuple[tuple[str, ...], int]:
    finder = None
    if plan.anew or not become_in_place(plan.mutant, functions):
        finder = become(plan.mutant)
    from kubelet_conformance.harness.runs.choice import Choice
    from kubelet_conformance.sources import all_cases

    cases = {case.id: case for case in all_cases()}
    choice = Choice(seed=seed)
    noticed: list[str] = []
    ran = 0
    for question in plan.questions:
        if question.enough and noticed:
            break
        if question.case in cases:
            ran += 1
            if fails(cases[question.case], choice):
                noticed.append(question.case)
    unseen = plan.mutant.modules.keys() - finder.found if finder and ran else set()
    if unseen and not plan.mutant.survives:  # one may survive because it is not imported
        raise MutantError(f"{', '.join(sorted(unseen))}: not imported by the suite")
    return tuple(noticed), ran


class Hangs(KeyboardInterrupt):
    """A case computes without end. A task keeps other exceptions until it is awaited, and the loop
    would go on."""


def fails(case: Any, choice: Any) -> bool:
    """Whether the case fails, or hangs, otherwise than a bug of it shows."""
    from kubelet_conformance.harness.runs.case_run import Breach, Outcome
    from kubelet_conformance.harness.runs.virtual import run_virtual_case

    def hangs(*_: object) -> None:
        raise Hangs

    signal.signal(signal.SIGPROF, hangs)
    signal.setitimer(signal.ITIMER_PROF, CASE_WITHIN_S, AGAIN_S)
    try:
        result = run_virtual_case(case, choice)
        elsewhere = bool(case.bugs) and result.breach is Breach.OTHER  # not how its bug shows
        return result.outcome is not Outcome.PASSED and not elsewhere
    except Hangs:
        return True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def failing_without(cases: Sequence[str], seed: int, jobs: int) -> set[str]:
    """Those of the cases that fail on refkubelet as it is: they prove nothing about mutants."""
    none = Mutant("", (), "", "", ())
    plans = [
        Plan(none, tuple(Question(case) for case in share)) for share in _shares(cases, 4 * jobs)
    ]
    return {case for answer in ask(plans, seed, jobs) for case in answer.noticed}


def reach_of(mutants: Sequence[Mutant], cases: Sequence[Any], seed: int, jobs: int) -> Reach:
    """Which cases reach what the mutants change. Runs all cases."""
    from kubelet_conformance.harness.runs.choice import Choice

    wanted = {line for mutant in mutants for line in lines_of(mutant)}
    reach = Reach()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with CONTEXT.Pool(jobs) as pool:
            shares = [(share, Choice(seed=seed), wanted) for share in _shares(cases, 8 * jobs)]
            for found in pool.imap_unordered(_recorded, shares):
                for case, lines in found:
                    reach.add(case, lines)
    return reach


def _recorded(share: tuple[Sequence[Any], Any, set[Line]]) -> list[tuple[str, set[Line]]]:
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return recorded(*share)


def _shares(cases: Sequence[Any], count: int) -> list[Sequence[Any]]:
    return [share for n in range(count) if (share := cases[n::count])]
