"""Runs cases in processes that are forks of this one: each takes the next case that nobody has
begun.

The cases, and anything that a test has replaced, are there as they are here. When no further result
is wanted, the processes are stopped in the middle of a case, and tidy up; none outlives this one.
Of a process that dies the case that it ran is an error, and the others run the rest.
"""

from __future__ import annotations

import asyncio
import multiprocessing  # noqa: TID251  # whole cases run elsewhere, with their whole time
import signal
import warnings
from collections.abc import Callable, Generator, Sequence
from itertools import accumulate
from multiprocessing.connection import Connection, wait  # noqa: TID251
from typing import Any

from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.garbage import collect_less, collect_young
from kubelet_conformance.registry import Case
from kubeobjects.structs import replace

RunCase = Callable[[Case, Choice], Result]
Group = Sequence[tuple[Case, Choice]]
"""Cases that one process runs."""
RunGroup = Callable[[Group, Callable[[int, Result], None]], None]
"""Runs a group, and tells the place of each case in it and its result, as they end."""


def one_by_one(run: RunCase) -> RunGroup:
    """Runs the cases of a group one after the other."""

    def run_group(group: Group, ended: Callable[[int, Result], None]) -> None:
        for place, (case, choice) in enumerate(group):
            ended(place, run(case, choice))

    return run_group


def run_forked(
    prepare: Callable[[], RunGroup],
    groups: Sequence[Group],
    count: int,
    end_within_s: float,
) -> Generator[tuple[int, Result], None, None]:
    """Run the groups in `count` processes; yields the place of each case among those of all groups
    and its result, as they end. `prepare`: called in each process, makes what runs its groups;
    `end_within_s`: real seconds for the cases that are stopped when no further result is wanted."""
    context = multiprocessing.get_context("fork")
    begun = context.Value("i", 0)
    workers: dict[Connection, Any] = {}
    try:
        for _ in range(min(count, len(groups))):
            results, sender = context.Pipe(duplex=False)
            work = (prepare, groups, begun, sender)
            worker = context.Process(target=_run_next, args=work, daemon=True)
            with warnings.catch_warnings():
                # Python 3.12 warns where there are threads, as in workers of pytest-xdist; ours has
                # no business with what they hold.
                warnings.simplefilter("ignore", DeprecationWarning)
                worker.start()
            sender.close()
            workers[results] = worker
        yield from _as_they_end([one for group in groups for one in group], list(workers))
    finally:
        for results, worker in workers.items():
            results.close()
            worker.terminate()  # one that is through has ended already
        for worker in workers.values():
            worker.join(end_within_s)
            worker.kill()
            worker.join()


def _as_they_end(
    wanted: Sequence[tuple[Case, Choice]], open_ends: list[Connection]
) -> Generator[tuple[int, Result], None, None]:
    """Places and results; at the end errors for those that no process has sent."""
    missing = set(range(len(wanted)))
    while missing and open_ends:
        for end in wait(open_ends):
            assert isinstance(end, Connection)
            try:
                place, result = end.recv()
            except EOFError:
                open_ends.remove(end)
                continue
            missing.discard(place)
            yield place, replace(result, case=wanted[place][0])
    for place in sorted(missing):
        case, choice = wanted[place]
        why = "the process that ran it has ended; try --jobs 1"
        yield place, Result(case, Outcome.ERROR, why, seed=choice.seed)


def _run_next(
    prepare: Callable[[], RunGroup],
    groups: Sequence[Group],
    begun: Any,
    results: Connection,
) -> None:
    """Run groups until all are begun. `begun`: how many are, shared by the processes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that reports
    collect_less()
    first = [0, *accumulate(len(group) for group in groups)]
    try:
        run = prepare()
        while True:
            with begun.get_lock():
                number = begun.value
                begun.value += 1
            if number >= len(groups):
                return

            def ended(place: int, result: Result, before: int = first[number]) -> None:
                results.send((before + place, replace(result, case=None)))  # type: ignore[arg-type]  # is code

            run(groups[number], ended)
            collect_young()
    except (BrokenPipeError, KeyboardInterrupt, asyncio.CancelledError):
        return
