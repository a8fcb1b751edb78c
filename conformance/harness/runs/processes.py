"""Virtual cases on all processors: each process runs its share, one case after the other.

A virtual case needs nothing from outside and leaves nothing behind, so any process can run it. The
processes are forks, so the cases, and anything that a test has replaced, are there as they are
here. A process ends at the first result that is not read, so none outlives this one; the cases of a
process that dies are errors, not lost.
"""

from __future__ import annotations

import multiprocessing  # noqa: TID251  # whole cases run elsewhere, with their whole virtual time
import os
import signal
import warnings
from collections.abc import Generator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection  # noqa: TID251
from typing import Any, Final

from conformance.harness.runs.case_run import Outcome, Result
from conformance.harness.runs.choice import Choice
from conformance.harness.runs.virtual import run_virtual_case
from conformance.registry import Case

END_WITHIN_S: Final = 5.0
"""Real seconds for the cases that still run when no further result is wanted."""


def processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def run_virtual_cases(
    wanted: Sequence[tuple[Case, Choice]], count: int
) -> Generator[Result, None, None]:
    """Run the cases in `count` processes; yields the results in their order."""
    context = multiprocessing.get_context("fork")
    workers: list[tuple[Connection, Any]] = []
    try:
        for number in range(count):
            results, sender = context.Pipe(duplex=False)
            share = (wanted[number::count], sender)
            worker = context.Process(target=_run_share, args=share, daemon=True)
            with warnings.catch_warnings():
                # Python 3.12 warns where there are threads, as in workers of pytest-xdist; ours has
                # no business with what they hold.
                warnings.simplefilter("ignore", DeprecationWarning)
                worker.start()
            sender.close()
            workers.append((results, worker))
        for number, (case, choice) in enumerate(wanted):
            yield _next_result(case, choice, workers[number % count][0])
    finally:
        for results, _ in workers:
            results.close()
        for _, worker in workers:
            worker.join(END_WITHIN_S)
            worker.terminate()
            worker.join()


def _next_result(case: Case, choice: Choice, results: Connection) -> Result:
    try:
        found: Result = results.recv()
    except EOFError:
        why = "the process that ran it has ended; try --jobs 1"
        return Result(case, Outcome.ERROR, why, seed=choice.seed)
    return replace(found, case=case)


def _run_share(wanted: Sequence[tuple[Case, Choice]], results: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that reports
    try:
        for case, choice in wanted:
            result = run_virtual_case(case, choice)
            results.send(replace(result, case=None))  # type: ignore[arg-type]  # a case is code
    except BrokenPipeError:
        return
