"""Lets the cases of a run run, in processes or side by side, and reports each as it ends."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterable, Sequence
from concurrent.futures import Future  # noqa: TID251  # of cases that run elsewhere
from contextlib import aclosing, closing
from typing import Any

import pytest

from kubelet_conformance.cluster.cases import named, run_named
from kubelet_conformance.cluster.client import cluster_at
from kubelet_conformance.cluster.flow import as_they_end
from kubelet_conformance.cluster.worker import ClusterProblem, TaskLost
from kubelet_conformance.harness.runs.case_run import Outcome, Result, not_to_run
from kubelet_conformance.harness.runs.choice import EnvironmentProblem
from kubelet_conformance.harness.runs.offered import CONTAINERD
from kubelet_conformance.harness.runs.processes import run_virtual_cases
from kubelet_conformance.harness.runs.warped import require_warped_kubelet, run_warped_cases
from kubelet_conformance.results_schema import Product, RuntimeTold
from kubelet_conformance.session.items import CaseItem
from kubelet_conformance.session.run import Run
from kubeobjects.structs import replace


def run_virtual(run: Run, items: Sequence[CaseItem], count: int, session: pytest.Session) -> None:
    """Run the cases in `count` processes and report each as it ends."""
    for item in items:
        item.result = not_to_run(item.case, item.choice, run.selection.disabled)
    to_run = [(item.case, item.choice) for item in items if item.result is None]
    for item in items:
        if item.result is not None:
            _report(item, session)
            _stop_if_asked(session)
    waiting = [item for item in items if item.result is None]
    with closing(run_virtual_cases(to_run, count)) as results:
        for number, result in results:
            _take(waiting[number], result, session)


def run_on_cluster(
    run: Run, items: Sequence[CaseItem], address: str, session: pytest.Session
) -> None:
    """Run virtual cases on the workers of a Dask cluster and report each as it ends. Raises
    EnvironmentProblem when there is none, or when it can do no more."""
    for item in items:
        item.result = not_to_run(item.case, item.choice, run.selection.disabled)
        if item.result is not None:
            _report(item, session)
            _stop_if_asked(session)
    waiting = [item for item in items if item.result is None]
    try:
        with cluster_at(address) as cluster:
            names = {item: named(item.case, item.path) for item in waiting}
            _say(session, _begins(len(waiting), cluster.count))

            def submit(item: CaseItem) -> Future[Result]:
                return cluster.submit(run_named, names[item], item.choice)

            ends = as_they_end(submit, iter(waiting), cluster.count, cluster.look)
            with closing(ends):
                for item, future in ends:
                    _take(item, _result(item, future), session)
    except ClusterProblem as problem:
        raise EnvironmentProblem(str(problem)) from None


def _result(item: CaseItem, future: Future[Result]) -> Result:
    try:
        return replace(future.result(), case=item.case)
    except (TaskLost, RuntimeError) as problem:
        return Result(item.case, Outcome.ERROR, str(problem), seed=item.choice.seed)


def _take(item: CaseItem, result: Result, session: pytest.Session) -> None:
    item.result = result
    _report(item, session)
    _stop_if_asked(session)


def _stop_if_asked(session: pytest.Session) -> None:
    """Do what pytest's own loop does after each test: obey -x and --maxfail, and Ctrl-C in a
    report."""
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


async def until_sigterm(work: Coroutine[Any, Any, None]) -> None:
    """Do the work until it is done. SIGTERM ends it as Ctrl-C does, at a place where it waits."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    signals: list[int] = []

    def end() -> None:
        signals.append(signal.SIGTERM)
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, end)
    try:
        await task
    except asyncio.CancelledError:
        if signals:
            raise KeyboardInterrupt from None
        raise


async def run_real(run: Run, items: Iterable[CaseItem], session: pytest.Session) -> None:
    """Report the cases that are not to run, run the others, and report each as it ends."""
    # Here, not above: virtual runs start half a second earlier without gRPC's sockets, and their
    # processes must be forked before gRPC has threads.
    from kubelet_conformance.harness.runs.real import (
        real_environment,
        require_kubelet,
        run_real_cases,
    )

    waiting = _to_run(run, items, session)
    if not waiting:
        return
    if run.choice.runtime == CONTAINERD:
        _say(session, "starting containerd; its image is built on first use, in a minute")
    async with real_environment(run.choice) as environment:
        cases = [item.case for item in waiting.values()]
        if environment.told is not None:
            run.write(RuntimeTold(Product(*environment.told, run.choice.runtime)))
        _say(session, "trying the kubelet: it is started once, without pods")
        await require_kubelet(environment)
        _say(session, _begins(len(cases), run.choice.jobs))
        async with aclosing(run_real_cases(cases, environment, run.choice.jobs)) as results:
            async for result in results:
                _take(waiting.pop(result.case.id), result, session)


def run_warped(run: Run, items: Iterable[CaseItem], session: pytest.Session) -> None:
    """The same with each case in a time of its own."""
    waiting = _to_run(run, items, session)
    if not waiting:
        return
    _say(session, "trying the kubelet: a minute of its time, without pods")
    require_warped_kubelet(run.choice)
    cases = [item.case for item in waiting.values()]
    _say(session, _begins(len(cases), run.choice.jobs))
    with closing(run_warped_cases(cases, run.choice, run.choice.jobs)) as results:
        for result in results:
            _take(waiting.pop(result.case.id), result, session)


def _begins(count: int, jobs: int) -> str:
    """What begins when the kubelet has been tried.

    >>> _begins(1, 8), _begins(20, 8)
    ('it runs; 1 case begins', 'it runs; 20 cases begin, at most 8 at a time')
    """
    many = f"{count} cases begin, at most {jobs} at a time"
    return f"it runs; {'1 case begins' if count == 1 else many}"


def _say(session: pytest.Session, text: str) -> None:
    """Tell what takes a while before the first result; not with -q."""
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None and session.config.option.verbose >= 0:
        reporter.ensure_newline()
        reporter.write_line(text)


def _to_run(run: Run, items: Iterable[CaseItem], session: pytest.Session) -> dict[str, CaseItem]:
    """The items of cases that are to run, by case; the others are reported."""
    waiting = {item.case.id: item for item in items}
    for item in list(waiting.values()):
        item.result = not_to_run(item.case, run.choice, run.selection.disabled)
        if item.result is not None:
            _report(waiting.pop(item.case.id), session)
    return waiting


def _report(item: CaseItem, session: pytest.Session) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
