"""Kubelet programs in warped time (`--time jump`, `--speed N`): each case in a time of its own.

The cases run in some processes at a time, one after the other in each, so that no kubelet waits for
the work of another case. A process has an asyncio loop and a clock page for each case; the kubelet,
the fake runtime, the fake API server and the case live in that time (`timewarp`).
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from kubelet_conformance.harness.expect import expect
from kubelet_conformance.harness.kubelets.base import DEVICE_PLUGINS, LOG_LINKS
from kubelet_conformance.harness.kubelets.last_words import own_error
from kubelet_conformance.harness.machines import mounting
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.runs.batches import TOGETHER, batches
from kubelet_conformance.harness.runs.case_run import (
    REAL_CLOCK,
    Outcome,
    Result,
    run_case,
    verdict,
)
from kubelet_conformance.harness.runs.choice import Choice, EnvironmentProblem
from kubelet_conformance.harness.runs.forked import Group, RunGroup, run_forked
from kubelet_conformance.registry import Case, Level

if TYPE_CHECKING:  # the processes must be forked before gRPC has threads
    from kubelet_conformance.harness.runs.real_parts import RealEnvironment

T = TypeVar("T")
END_WITHIN_S: Final = 60.0
"""Real seconds for the cases that still run when no further result is wanted: they stop their
kubelets and undo their mounts."""
MINUTE_S: Final = 60.0
RELISTS: Final = 50
"""A kubelet lists its sandboxes once a second (PLEG-001)."""
DISK_BYTES: Final = 8 << 30
DISK_INODES: Final = 1 << 14
"""Of the file system in memory that holds the directory of a case. Pods of cases request up to
3 GiB of storage."""
USED: Final = 500
"""One part of so many is used."""
TIMER_SLACK_S: Final = 0.05
"""How late the timers of a kubelet may come. Twenty a second are due in an idle one, nearly all of
loops of 100 ms (volumes); those that once fell together do so from then on."""
MINUTE_WITHIN_S: Final = 240.0
"""Real seconds; about one on an idle machine, and eight minutes for a time that never jumps."""


async def _minute(node: Node) -> None:
    """A minute of the case is one of the kubelet, and takes less in reality."""
    before = node.count("ListPodSandbox")
    real_s = REAL_CLOCK.monotonic_s()
    await node.run_for(MINUTE_S)
    real_s = REAL_CLOCK.monotonic_s() - real_s
    relists = node.count("ListPodSandbox") - before
    expect(node, relists >= RELISTS, f"{RELISTS} relists or more in a minute", f"{relists} relists")
    expect(node, real_s <= MINUTE_WITHIN_S, f"a minute in {MINUTE_WITHIN_S:g} s", f"{real_s:.1f} s")


SELF_TEST: Final = Case(
    id="a-minute-passes",
    area="harness",
    title="The kubelet lives in the time of its case.",
    rules=(),
    level=Level.MUST,
    needs=frozenset(),
    body=_minute,
)


def require_warped_kubelet(choice: Choice) -> None:
    """Run the kubelet for a minute of its time. Raises EnvironmentProblem when it does not start or
    does not live in that time: every case would fail for that."""
    with closing(run_warped_cases([SELF_TEST], choice, 1)) as results:
        result = next(results)
    if error := own_error(result.detail):
        raise EnvironmentProblem(f"--kubelet {choice.kubelet}: {error}")
    if result.outcome is Outcome.ERROR:
        raise EnvironmentProblem(f"--kubelet {choice.kubelet}: {result.detail.strip()}")
    if result.outcome is not Outcome.PASSED:
        raise EnvironmentProblem(
            f"--kubelet {choice.kubelet}: wanted a kubelet that runs in warped time, takes "
            f"--config and answers on its healthz and its read-only port; {result.detail.strip()}"
        )


def run_warped_cases(
    cases: Sequence[Case], choice: Choice, count: int
) -> Generator[Result, None, None]:
    """Run the cases in `count` processes; yields the results as they come. The cases of a process
    that dies are errors."""
    parts = batches(cases, most=TOGETHER if choice.shares else 1)
    groups = [[(case, choice) for case in part] for part in parts]
    with closing(run_forked(_prepare, groups, count, END_WITHIN_S)) as results:
        for _, result in results:
            yield result


def _prepare() -> RunGroup:
    return partial(_run_group, take_own_mounts())


def _run_group(own_mounts: bool, group: Group, ended: Callable[[int, Result], None]) -> None:
    """Run cases that share a kubelet, and those that do not pass again, each alone."""
    again: dict[str, Result] = {}
    places = {case.id: place for place, (case, _) in enumerate(group)}

    def ended_beside(result: Result) -> None:
        if result.outcome is Outcome.PASSED and not result.must_be_alone:
            ended(places[result.case.id], result)
        else:
            again[result.case.id] = result

    if len(group) > 1:
        run_warped_group(group, ended_beside, own_mounts)
    for place, (case, choice) in enumerate(group):
        if len(group) == 1 or case.id in again:
            alone = run_warped_case(case, choice, own_mounts)
            ended(place, verdict(again[case.id], alone) if case.id in again else alone)


def take_own_mounts() -> bool:
    """Give this process a mount namespace of its own, if it may have one: kubelets then see no
    mounts of other cases, and none is left behind.

    In it the directories that all kubelets of a machine share are its own, too. Kubelets remove the
    links to logs of others that lead nowhere, and those of other processes lead to mounts that they
    do not see; and all of them remove and make the same socket for device plugins."""
    try:
        mounting.own_namespace()
        for place in (LOG_LINKS, DEVICE_PLUGINS):
            place.mkdir(parents=True, exist_ok=True)
            mounting.mount_memory(place)
    except OSError:
        return False
    return True


def run_warped_case(case: Case, choice: Choice, own_mounts: bool = False) -> Result:
    """Run one case on a new loop, in a new time. SIGTERM ends it, with its clean-up; a second one
    changes nothing: a clean-up that is cut off would leave a kubelet behind.

    `own_mounts`: whether nobody else sees what this process mounts. Then the directory of the case
    is a file system in memory: kubelets write and sync many small files."""

    async def one(environment: RealEnvironment) -> Result:
        from kubelet_conformance.harness.runs.real import case_directory

        async with case_directory(environment.shared) as directory:
            return await run_case(case, environment.parts, directory, choice.traces)

    return _in_new_time(one, choice, own_mounts)


def run_warped_group(
    group: Group, ended: Callable[[Result], None], own_mounts: bool = False
) -> None:
    """The same of cases that share a kubelet, and the time."""

    async def all_of_them(environment: RealEnvironment) -> None:
        from kubelet_conformance.harness.runs.sharing import run_beside

        cases = [case for case, _ in group]
        make, base = environment.shared_kubelet, environment.shared
        await run_beside(cases, make, base, ended, traces=environment.choice.traces)

    _in_new_time(all_of_them, group[0][1], own_mounts)


def _in_new_time(
    work: Callable[[RealEnvironment], Awaitable[T]], choice: Choice, own_mounts: bool
) -> T:
    from simclock.timewarp import TimePage, WarpedLoop

    with closing(TimePage.create(choice.speed)) as page:

        def new_loop() -> asyncio.AbstractEventLoop:
            return WarpedLoop(page, timer_slack_s=TIMER_SLACK_S)

        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(_with_environment(work, choice, own_mounts))


async def _with_environment(
    work: Callable[[RealEnvironment], Awaitable[T]], choice: Choice, own_mounts: bool
) -> T:
    # Here, not above: the processes must be forked before gRPC has threads.
    from kubelet_conformance.harness.runs.real import real_environment

    task = asyncio.current_task()
    assert task is not None
    signals: list[int] = []

    def end() -> None:
        if not signals:
            signals.append(signal.SIGTERM)
            task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    async with real_environment(choice) as environment:
        with in_memory(environment.shared) if own_mounts else nullcontext():
            return await work(environment)


@contextmanager
def in_memory(place: Path) -> Iterator[None]:
    """A file system in memory at that directory, until the block ends. A part of its bytes and of
    its inodes is used (USED), so that a threshold of 99.9 % is met on it, as on any disk.

    It is shared: kubelets bind a root directory that is not once more to its own place. cAdvisor
    calls a file system in memory by the place where it is mounted, so that a kubelet which starts
    again would find one disk under two names, and by chance take it for two (docs/found.md)."""
    mounting.mount_memory(place, f"mode=755,size={DISK_BYTES},nr_inodes={DISK_INODES}")
    try:
        mounting.make_shared(place)
        used = place / "used"
        used.mkdir()
        with (used / "bytes").open("wb") as file:  # faster than to write so many
            os.posix_fallocate(file.fileno(), 0, DISK_BYTES // USED)
        for number in range(DISK_INODES // USED):
            (used / str(number)).touch()
        yield
    finally:
        mounting.unmount(place)
