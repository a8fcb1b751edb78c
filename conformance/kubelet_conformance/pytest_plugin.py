"""Cases as pytest items: collection, options, running and the summary.

Loaded with `-p kubelet_conformance.pytest_plugin`, as `kubelet-conformance run` does. Virtual cases
run on all processors, real ones side by side, before pytest reports them. A harness error is raised
during set-up, so that pytest counts it as an error and not as a failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from kubelet_conformance.ci.plugin import CiPlugin
from kubelet_conformance.harness.runs.case_run import REAL_CLOCK, Outcome
from kubelet_conformance.harness.runs.choice import EnvironmentProblem
from kubelet_conformance.harness.runs.garbage import collect_less
from kubelet_conformance.harness.runs.offered import IN_PROCESS
from kubelet_conformance.harness.runs.processes import processors
from kubelet_conformance.registry import Case, SelectionError, select
from kubelet_conformance.scenarios.files import SUFFIXES
from kubelet_conformance.session.items import CaseFile, CaseItem
from kubelet_conformance.session.options import add_options, choices_of, selection_of
from kubelet_conformance.session.run import RUN, Run
from kubelet_conformance.session.running import (
    run_on_cluster,
    run_real,
    run_virtual,
    run_warped,
    until_sigterm,
)
from kubelet_conformance.sources import with_fixtures
from kubelet_conformance.summary import print_summary, where_more_is

CASES_DIR: Final = Path(__file__).parent / "cases"
EXIT_ENVIRONMENT: Final = 2
EXIT_INCONCLUSIVE: Final = 3


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Read the options and check that kubelet and runtime can be used: exit code 2 if not."""
    option = config.option
    selection = selection_of(option)
    config.stash[RUN] = run = Run(choices_of(option), selection)
    config.args[:] = with_fixtures(config.args, selection, CASES_DIR)
    if option.collectonly:
        return
    run.ci = CiPlugin(config, run.choice, selection.times_s)
    config.pluginmanager.register(run.ci, "conformance-ci")
    try:
        run.choice.check()
        if option.seeds and not run.choice.virtual:
            raise EnvironmentProblem(
                f"--seeds: only --kubelet {IN_PROCESS} runs in virtual time, which has seeds"
            )
        if option.dask and not run.choice.virtual:
            raise EnvironmentProblem(
                f"--dask: only --kubelet {IN_PROCESS}, in virtual time, runs on a cluster"
            )
        if option.results:
            _open_results(config, option.results)
    except EnvironmentProblem as problem:
        pytest.exit(str(problem), returncode=EXIT_ENVIRONMENT)


def _open_results(config: pytest.Config, file: Path) -> None:
    """Begin the result file. Raises EnvironmentProblem when it cannot be written."""
    if getattr(config.option, "numprocesses", None):
        raise EnvironmentProblem(
            "--results: not with -n: a virtual run takes all processors without pytest-xdist"
        )
    try:
        config.stash[RUN].open(file)
    except OSError as error:
        raise EnvironmentProblem(f"--results {file}: cannot be written: {error.strerror}") from None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> CaseFile | None:
    inside = file_path.is_relative_to(CASES_DIR)
    named = parent.session.isinitpath(file_path)  # then it is made by the hook below
    if inside and not named and file_path.suffix == ".py" and file_path.name != "__init__.py":
        return CaseFile.from_parent(parent, path=file_path)
    if file_path.suffix in SUFFIXES:
        return CaseFile.from_parent(parent, path=file_path)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> Any:
    """A module that the user names has cases, not tests."""
    return CaseFile.from_parent(parent, path=module_path)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the chosen cases only."""
    run = config.stash[RUN]
    cases = [item for item in items if isinstance(item, CaseItem)]
    if not cases:
        return
    try:
        all_cases = _by_id(cases)
        chosen = {case.id for case in select(list(all_cases.values()), run.selection)}
        run.chosen_cases = sum(map(run.selection.chooses, all_cases.values()))
    except SelectionError as problem:
        raise pytest.UsageError(str(problem)) from None
    chosen_items = [i for i in items if not isinstance(i, CaseItem) or i.case.id in chosen]
    config.hook.pytest_deselected(items=[i for i in items if i not in chosen_items])
    places = {choice.seed: place for place, choice in enumerate(run.choices)}
    chosen_items.sort(
        key=lambda item: places[item.choice.seed] if isinstance(item, CaseItem) else 0
    )
    items[:] = chosen_items
    run.places = {
        (item.case.id, item.choice.seed if item.choice.virtual else None): place
        for place, item in enumerate(chosen_items)
        if isinstance(item, CaseItem)
    }


def _by_id(items: Iterable[CaseItem]) -> dict[str, Case]:
    """The cases of the items. Raises SelectionError when two have the same ID."""
    by_id: dict[str, Case] = {}
    for item in items:
        first = by_id.setdefault(item.case.id, item.case)
        if first.module != item.case.module:
            raise SelectionError(
                f"case ID {first.id!r} is in {first.module} and in {item.case.module}"
            )
    return by_id


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run real cases side by side, and virtual ones on all processors.

    Virtual cases stay in pytest's own loop (None) for --pdb and -s, and when pytest-xdist
    distributes them.
    """
    run = session.config.stash[RUN]
    items = [item for item in session.items if isinstance(item, CaseItem)]
    if session.config.option.collectonly or not items:
        return None
    if run.choice.virtual:
        if session.config.option.dask:
            return _on_cluster(run, items, session)
        if len(items) == len(session.items):
            collect_less()
        count = min(run.choice.jobs, processors(), len(items))
        if count < 2 or len(items) < len(session.items) or _in_one_process(session.config):
            return None
        run_virtual(run, items, count, session)
        return True
    try:
        if run.choice.warped:
            run_warped(run, items, session)
            return True
        asyncio.run(until_sigterm(run_real(run, items, session)))
    except EnvironmentProblem as problem:
        run.environment_problem = str(problem)
    return True


def _on_cluster(run: Run, items: list[CaseItem], session: pytest.Session) -> bool:
    try:
        run_on_cluster(run, items, session.config.option.dask, session)
    except EnvironmentProblem as problem:
        run.environment_problem = str(problem)
    return True


def _in_one_process(config: pytest.Config) -> bool:
    option = config.option
    by_xdist = hasattr(config, "workerinput") or getattr(option, "numprocesses", None)
    return bool(option.usepdb or option.capture == "no" or by_xdist)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run in which nothing failed, but some cases could not be judged, has not passed."""
    outcomes = {result.outcome for result in session.config.stash[RUN].results}
    run = session.config.stash[RUN]
    run.end(sum(isinstance(item, CaseItem) for item in getattr(session, "items", ())))
    if session.exitstatus == pytest.ExitCode.OK and Outcome.INCONCLUSIVE in outcomes:
        session.exitstatus = EXIT_INCONCLUSIVE
    if session.exitstatus == pytest.ExitCode.OK and run.file_problem:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if run.environment_problem:
        session.exitstatus = EXIT_ENVIRONMENT


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    run = config.stash[RUN]
    run.results.sort(key=run.place_of)
    if run.results:
        terminalreporter.ensure_newline()
        real_s = REAL_CLOCK.monotonic_s() - run.began_s
        print_summary(run.results, run.choice, terminalreporter._tw._file, real_s)
        if more := where_more_is(run.results, config.option.results):
            terminalreporter.write_line(more)
    if run.environment_problem:
        terminalreporter.ensure_newline()
        terminalreporter.write_line(run.environment_problem, red=True)
    if run.file_problem:
        file = config.option.results
        terminalreporter.write_line(f"--results {file}: not written to its end: {run.file_problem}")
