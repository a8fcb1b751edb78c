"""Asks the suite about one mutant: a process that becomes it, and runs cases in virtual time.

The process is a fork of one that has everything imported, and has run a case of each area; the
functions that the mutant changes are exchanged there, or, where that is not possible, all is
imported anew. A case in which the mutant hangs counts as failed: virtual time does not go on there.
What a mutant writes where it should not goes with the directory in which it runs.
"""

from __future__ import annotations

import gc
import io
import multiprocessing  # noqa: TID251  # each mutant is a process
import os
import resource
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from enum import Enum
from functools import _lru_cache_wrapper, cache
from itertools import islice
from multiprocessing.connection import Connection, wait  # noqa: TID251
from typing import Any, Final

from mutant_import import MutantFinder, become
from mutant_in_place import Functions, become_in_place, mutable_functions
from mutant_plan import Plan, Question
from mutant_tables import MUTATED, Mutant, MutantError

AGAIN_S: Final = 5
"""Seconds of processor time for what a case that hangs does then to end."""
STANDS_STILL_S: Final = 300
"""After so many seconds of real time a case hangs, too, whatever it waits for."""
MEMORY_BYTES: Final = 2 << 30
"""More than any case needs."""
IN_MEMORY: Final = "/dev/shm"
CONTEXT: Final = multiprocessing.get_context("fork")


class Verdict(Enum):
    """What a case says of a mutant."""

    PASSES = "passes"
    FAILS = "fails"
    HANGS = "hangs"


@dataclass(slots=True)
class Answer:
    """What the suite says of a mutant."""

    mutant: Any
    noticed: tuple[str, ...] = ()
    """The cases that fail; all of those that cite the rule were run, of the others as many as it
    took to find one."""
    ran: int = 0
    error: str = ""
    """Why the mutant could not be asked about: it does not fit, or cannot be imported."""
    hangs: bool = False
    """The last case that noticed it came to no end."""
    seconds: float = 0.0
    """Of processor time."""
    laws: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of those of them in which only laws fail: these laws."""

    @property
    def blind(self) -> list[str]:
        """The laws that should notice the mutant, and have not so far."""
        noticing = {law for laws in self.laws.values() for law in laws}
        return [law for law in getattr(self.mutant, "laws", ()) if law not in noticing]


Noticed = Callable[[Plan, Functions, int, Any], Answer]
"""What is done with a plan in its process: it gets the plan, the functions of refkubelet, the seed,
and where to say at which question it is."""


@dataclass(slots=True)
class Asked:
    """A mutant in its process."""

    plan: Plan
    process: Any
    at: Any
    """The number of the question that it is at, shared with the process."""

    def received(self, receiver: Any) -> Answer:
        """Its answer. Where its process has ended without one, the case hangs that it was at."""
        try:
            answer: Answer = receiver.recv()
        except EOFError:
            at = self.at.value
            case = self.plan.questions[at].case if at < len(self.plan.questions) else "import"
            answer = Answer(self.plan.mutant, (case,), ran=at + 1, hangs=True)
        self.process.join()
        return answer


def ask(
    plans: Iterable[Plan], seed: int, jobs: int, noticed: Noticed | None = None
) -> Iterator[Answer]:
    """The answers about all mutants, each as soon as it is there; `jobs` processes at a time. A
    plan is taken when its process can begin. `noticed`: what is done with a plan in its process, by
    default the cases of its questions are run."""
    functions = warmed_up(seed)
    waiting = iter(plans)
    running: dict[Any, Asked] = {}
    with a_home() as home:
        try:
            while True:
                for plan in islice(waiting, jobs - len(running)):
                    receiver, asked = _started(plan, functions, seed, home, noticed or _noticed)
                    running[receiver] = asked
                if not running:
                    break
                for ready in wait(list(running)):
                    yield running.pop(ready).received(ready)
        finally:
            for asked in running.values():
                asked.process.terminate()


def _started(
    plan: Plan, functions: Functions, seed: int, home: str, noticed: Noticed
) -> tuple[Any, Asked]:
    receiver, sender = CONTEXT.Pipe(duplex=False)
    at = CONTEXT.Value("i", 0, lock=False)
    process = CONTEXT.Process(
        target=_answer, args=(plan, functions, seed, home, at, sender, noticed), daemon=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forks beside threads
        process.start()
    sender.close()
    return receiver, Asked(plan, process, at)


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


def _answer(
    plan: Plan,
    functions: Functions,
    seed: int,
    home: str,
    at: Any,
    sender: Connection,
    noticed: Noticed,
) -> None:
    """Become the mutant, ask, and send the answer. Runs in the process of the mutant."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.close()
    settle_in(home)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        try:
            answer = noticed(plan, functions, seed, at)
        except MutantError as problem:
            answer = Answer(plan.mutant, error=str(problem))
        except Exception as problem:  # a module of the mutant that cannot be imported
            answer = Answer(plan.mutant, error=f"{type(problem).__name__}: {problem}")
    answer.seconds = round(used_s(), 3)
    sender.send(answer)
    os._exit(0)  # what belongs to the parent is not to be cleaned up here


@contextmanager
def a_home() -> Iterator[str]:
    """A directory for processes that run cases, in memory where possible."""
    parent = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="m", dir=parent, ignore_cleanup_errors=True) as home:
        yield home


def settle_in(home: str) -> None:
    """Work there, also with names that say no directory, and in limited memory."""
    os.chdir(home)
    os.environ["TMPDIR"] = tempfile.tempdir = home
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))


def used_s() -> float:
    """Processor time of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def become_planned(plan: Plan, functions: Functions) -> MutantFinder | None:
    """Become the mutant of the plan: in place where that is possible, by importing it else."""
    texts = plan.mutant.texts()
    if plan.anew or not become_in_place(texts, functions):
        return become(texts)
    return None


def _noticed(plan: Plan, functions: Functions, seed: int, at: Any) -> Answer:
    finder = become_planned(plan, functions)
    from kubelet_conformance.harness.runs.choice import Choice

    cases = _cases({question.case for question in plan.questions})
    choice = Choice(seed=seed)
    answer = Answer(plan.mutant)
    for number, question in enumerate(plan.questions):
        if question.enough and answer.noticed and not answer.blind:
            break
        if question.case in cases:
            at.value = number
            answer.ran += 1
            verdict, laws = judged(cases[question.case], choice, question.within_s)
            if verdict is not Verdict.PASSES:
                answer.noticed = (*answer.noticed, question.case)
                answer.hangs = verdict is Verdict.HANGS
            if laws:
                answer.laws[question.case] = laws
    unseen = finder.unseen if finder and answer.ran else set()
    by_hand = isinstance(plan.mutant, Mutant) and not plan.mutant.survives
    if unseen and by_hand:  # one may survive because it is not imported
        raise MutantError(f"{', '.join(sorted(unseen))}: not imported by the suite")
    return answer


def _cases(names: set[str]) -> dict[str, Any]:
    """Those of the suite, and of the fixtures where one is asked for: reading them takes longer
    than most cases."""
    from kubelet_conformance.registry import load_cases
    from kubelet_conformance.sources import fixtures

    cases = {case.id: case for case in load_cases()}
    if not names <= cases.keys():
        cases |= {case.id: case for case in fixtures()}
    return cases


class Hangs(KeyboardInterrupt):
    """A case computes without end. A task keeps other exceptions until it is awaited, and the loop
    would go on."""


def tried(case: Any, choice: Any, within_s: float = Question.within_s) -> Verdict:
    """Whether the case fails, or hangs, otherwise than a bug of it shows."""
    return judged(case, choice, within_s)[0]


def judged(
    case: Any, choice: Any, within_s: float = Question.within_s
) -> tuple[Verdict, tuple[str, ...]]:
    """The same, and the laws that fail where nothing else of the case does."""
    from kubelet_conformance.harness.runs.case_run import Breach, Outcome
    from kubelet_conformance.harness.runs.virtual import run_virtual_case
    from kubelet_conformance.laws.law import laws_in

    try:
        with at_most(within_s):
            result = run_virtual_case(case, choice, log_of_failures=False)
        elsewhere = bool(case.bugs) and result.breach is Breach.OTHER  # not how its bug shows
        passes = result.outcome is Outcome.PASSED or elsewhere
        return (Verdict.PASSES, ()) if passes else (Verdict.FAILS, laws_in(result.detail))
    except Hangs:
        return Verdict.HANGS, ()
    except SystemExit:
        return Verdict.FAILS, ()


@contextmanager
def at_most(within_s: float) -> Iterator[None]:
    """Raises Hangs when what is done takes more processor time; the process ends where it stands
    still."""

    def hangs(*_: object) -> None:
        raise Hangs

    signal.signal(signal.SIGPROF, hangs)
    signal.setitimer(signal.ITIMER_PROF, within_s, AGAIN_S)
    signal.alarm(STANDS_STILL_S)  # ends the process
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


def failing_without(cases: Sequence[str], seed: int, jobs: int) -> set[str]:
    """Those of the cases that fail on refkubelet as it is: they prove nothing about mutants."""
    none = Mutant("", (), "", "", ())
    plans = [
        Plan(none, tuple(Question(case) for case in share)) for share in shares(cases, 4 * jobs)
    ]
    return {case for answer in ask(plans, seed, jobs) for case in answer.noticed}


def shares(cases: Sequence[Any], count: int) -> list[Sequence[Any]]:
    """The cases in so many parts, mixed."""
    return [share for n in range(count) if (share := cases[n::count])]
