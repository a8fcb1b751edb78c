"""Cases as pytest items: collection, options, running and the summary.

Loaded with `-p conformance.pytest_plugin`, as `kubelet-conformance run` does. Virtual cases run
on all processors, real ones side by side, before pytest reports them. A harness error is raised
during set-up, so that pytest counts it as an error and not as a failure.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from conformance import results_file
from conformance.harness.runs.case_run import REAL_CLOCK, Outcome, Result, not_to_run
from conformance.harness.runs.choice import Choice, EnvironmentProblem
from conformance.harness.runs.known import with_known_bugs
from conformance.harness.runs.offered import IN_PROCESS
from conformance.harness.runs.processes import processors, run_virtual_cases
from conformance.harness.runs.seeds import seeds_of
from conformance.harness.runs.virtual import run_virtual_case
from conformance.harness.runs.warped import require_warped_kubelet, run_warped_cases
from conformance.registry import Case, Level, Selection, SelectionError, select, shard_of
from conformance.scenarios.files import SUFFIXES
from conformance.sources import cases_in, with_fixtures
from conformance.summary import print_summary

CASES_DIR: Final = Path(__file__).parent / "cases"
EXIT_ENVIRONMENT: Final = 2
EXIT_INCONCLUSIVE: Final = 3
DEFAULT: Final = Choice()


class CaseFailed(Exception):
    """The text of a failed case or of a harness error, for pytest's report."""


class CaseItem(pytest.Item):
    """One case. It runs in `setup`; `runtest` only reports how it ended."""

    def __init__(self, *, case: Case, choice: Choice, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.case = case
        self.choice = choice
        self.result: Result | None = None

    def setup(self) -> None:
        run: Run = self.config.stash[RUN]
        if self.result is None:
            self.result = run.run(self.case, self.choice)
        self.result = with_known_bugs(self.result, self.choice.kubelet_release)
        run.add(self.result)
        if self.result.outcome is Outcome.ERROR:
            raise CaseFailed(self.result.detail)

    def runtest(self) -> None:
        assert self.result is not None
        if self.result.outcome is Outcome.FAILED:
            raise CaseFailed(self.result.detail)
        if self.result.outcome is Outcome.KNOWN_BUG:
            raise pytest.xfail.Exception(self.result.detail)
        if self.result.outcome in (Outcome.SKIPPED, Outcome.DISABLED, Outcome.INCONCLUSIVE):
            raise pytest.skip.Exception(self.result.detail, _use_item_location=True)

    def _repr_failure_py(self, excinfo: Any, style: Any = None) -> Any:
        """The text of a harness error, which pytest meets during set-up, is made like that of a
        failure."""
        if isinstance(excinfo.value, CaseFailed):
            return self.repr_failure(excinfo, style)
        return super()._repr_failure_py(excinfo, style)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if isinstance(excinfo.value, CaseFailed):
            rules = ", ".join(self.case.rules) or "none"
            head = f"{self.case.title}\nrules:    {rules} ({self.case.level.name})"
            again = self.choice.repeat(self.case.id, self.case.file)
            return f"{head}\n{excinfo.value}\nrepeat:   {again}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.line, self.case.id


class CaseFile(pytest.File):
    """A module of cases, of this package or anywhere, or a file with a scenario."""

    def collect(self) -> Iterator[CaseItem]:
        choices = self.config.stash[RUN].choices
        for case in cases_in(self.path):
            for choice in choices:
                name = case.id if len(choices) == 1 else f"{case.id}[seed={choice.seed}]"
                yield CaseItem.from_parent(self, name=name, case=case, choice=choice)


class Run:
    """The state of one run: what was chosen, and the results so far. `choices`: one for each
    seed."""

    def __init__(self, choices: Sequence[Choice], selection: Selection) -> None:
        self.choices = choices
        self.choice = choices[0]
        self.selection = selection
        self.results: list[Result] = []
        self.began_s = REAL_CLOCK.monotonic_s()

    def run(self, case: Case, choice: Choice) -> Result:
        """Run a virtual case now, unless it is disabled or lacks a feature."""
        done = not_to_run(case, choice, self.selection.disabled)
        return done or run_virtual_case(case, choice)

    def add(self, result: Result) -> None:
        """Keep the result for the summary and the results file."""
        self.results.append(result)


RUN: Final = pytest.StashKey[Run]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of `kubelet-conformance run`."""
    parser.prog = "kubelet-conformance run"
    group = parser.getgroup("kubelet conformance")
    group.addoption("--kubelet", default=DEFAULT.kubelet, help="refkubelet (in this process, virtual time), refkubelet-process, or the path of a kubelet binary")  # fmt: skip  # noqa: E501
    group.addoption("--runtime", default=DEFAULT.runtime, help="fake (in this process), fake-socket, containerd (started in Docker), or unix:///path.sock")  # fmt: skip  # noqa: E501
    group.addoption("--containerd-version", default=DEFAULT.containerd_version, metavar="VERSION", help="of --runtime containerd: 1.6 (default), 1.7 or 2.1")  # fmt: skip  # noqa: E501
    group.addoption("--kubernetes-version", default=DEFAULT.kubernetes_version, metavar="VERSION", help="of the kubelet, where the program does not tell the right one: 1.30.3")  # fmt: skip  # noqa: E501
    group.addoption("--seed", type=int, default=DEFAULT.seed, help="fixes every random choice of a virtual run")  # fmt: skip  # noqa: E501
    group.addoption("--seeds", type=seeds_of, metavar="SEEDS", help="a virtual run for each of these seeds: 1:20 (from 1 to 20), 3,7; instead of --seed")  # fmt: skip  # noqa: E501
    group.addoption("--latency", type=float, default=DEFAULT.latency, metavar="FACTOR", help="factor on how long the calls of a virtual run take (default 1; 0: no time)")  # fmt: skip  # noqa: E501
    group.addoption("--jobs", type=int, default=DEFAULT.jobs, help="cases at a time in a real run (default 8); in a virtual one at most one per processor")  # fmt: skip  # noqa: E501
    group.addoption(
        "--time",
        default=DEFAULT.time,
        help="of a kubelet binary: real, or jump: its time jumps over waiting",
    )
    group.addoption(
        "--speed",
        type=float,
        default=DEFAULT.speed,
        metavar="N",
        help="of a kubelet binary: its time passes N times as fast, roughly",
    )
    group.addoption("--long", action="store_true", help="let a real run take the minutes that some cases last")  # fmt: skip  # noqa: E501
    group.addoption("--level", default="must", choices=["must", "should", "detail"], help="run cases of this level and the stricter ones")  # fmt: skip  # noqa: E501
    group.addoption("--area", action="append", default=[], help="only this area (may be repeated)")
    group.addoption("--rule", action="append", default=[], help="only cases of this rule (BACK-009) or family (BACK)")  # fmt: skip  # noqa: E501
    group.addoption("--id", action="append", default=[], dest="case_id", help="only this case")
    group.addoption("--disable", action="append", default=[], help="report this case as disabled")
    group.addoption("--shard", type=shard_of, default=(1, 1), metavar="K/N", help="the K-th of N parts of the chosen cases")  # fmt: skip  # noqa: E501
    group.addoption("--results", type=Path, metavar="FILE", help="write the outcome of each case to this JSON file")  # fmt: skip  # noqa: E501


def pytest_configure(config: pytest.Config) -> None:
    """Read the options and check that kubelet and runtime can be used: exit code 2 if not."""
    option = config.option
    choice = Choice(
        kubelet=option.kubelet,
        runtime=option.runtime,
        seed=option.seed,
        latency=option.latency,
        jobs=option.jobs,
        time=option.time,
        speed=option.speed,
        long=option.long,
        containerd_version=option.containerd_version,
        kubernetes_version=option.kubernetes_version,
    )
    selection = Selection(
        ids=tuple(option.case_id),
        areas=tuple(option.area),
        rules=tuple(option.rule),
        level=Level[option.level.upper()],
        disabled=tuple(option.disable),
        shard=option.shard,
    )
    choices = [replace(choice, seed=seed) for seed in option.seeds or (option.seed,)]
    config.stash[RUN] = Run(choices, selection)
    config.args[:] = with_fixtures(config.args, selection, CASES_DIR)
    if config.option.collectonly:
        return
    try:
        choice.check()
        if option.seeds and not choice.virtual:
            raise EnvironmentProblem(
                f"--seeds: only --kubelet {IN_PROCESS} runs in virtual time, which has seeds"
            )
    except EnvironmentProblem as problem:
        pytest.exit(str(problem), returncode=EXIT_ENVIRONMENT)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> CaseFile | None:
    inside = file_path.is_relative_to(CASES_DIR)
    if inside and file_path.suffix == ".py" and file_path.name != "__init__.py":
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
    except SelectionError as problem:
        raise pytest.UsageError(str(problem)) from None
    kept = [i for i in items if not isinstance(i, CaseItem) or i.case.id in chosen]
    config.hook.pytest_deselected(items=[i for i in items if i not in kept])
    places = {choice.seed: place for place, choice in enumerate(run.choices)}
    kept.sort(key=lambda item: places[item.choice.seed] if isinstance(item, CaseItem) else 0)
    items[:] = kept


def _by_id(items: Iterable[CaseItem]) -> dict[str, Case]:
    """The cases of the items. Raises SelectionError when two have the same ID."""
    found: dict[str, Case] = {}
    for item in items:
        first = found.setdefault(item.case.id, item.case)
        if first.module != item.case.module:
            raise SelectionError(
                f"case ID {first.id!r} is in {first.module} and in {item.case.module}"
            )
    return found


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
        count = min(run.choice.jobs, processors(), len(items))
        if count < 2 or len(items) < len(session.items) or _in_one_process(session.config):
            return None
        _run_virtual(run, items, count, session)
        return True
    try:
        if run.choice.warped:
            _run_warped(run, items, session)
            return True
        asyncio.run(_until_sigterm(_run_real(run, items, session)))
    except EnvironmentProblem as problem:
        pytest.exit(str(problem), returncode=EXIT_ENVIRONMENT)
    return True


def _in_one_process(config: pytest.Config) -> bool:
    option = config.option
    by_xdist = hasattr(config, "workerinput") or getattr(option, "numprocesses", None)
    return bool(option.usepdb or option.capture == "no" or by_xdist)


def _run_virtual(run: Run, items: Sequence[CaseItem], count: int, session: pytest.Session) -> None:
    """Run the cases in `count` processes and report them in their order."""
    for item in items:
        item.result = not_to_run(item.case, item.choice, run.selection.disabled)
    wanted = [(item.case, item.choice) for item in items if item.result is None]
    with closing(run_virtual_cases(wanted, count)) as results:
        for item in items:
            if item.result is None:
                item.result = next(results)
            _report(item, session)
            _stop_if_asked(session)


def _stop_if_asked(session: pytest.Session) -> None:
    """Do what pytest's own loop does after each test: obey -x and --maxfail, and Ctrl-C in a
    report."""
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


async def _until_sigterm(work: Coroutine[Any, Any, None]) -> None:
    """Do the work until it is done. SIGTERM ends it as Ctrl-C does, at a place where it waits."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    told: list[int] = []

    def end() -> None:
        told.append(signal.SIGTERM)
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, end)
    try:
        await task
    except asyncio.CancelledError:
        if told:
            raise KeyboardInterrupt from None
        raise


async def _run_real(run: Run, items: Iterable[CaseItem], session: pytest.Session) -> None:
    """Report the cases that are not to run, run the others, and report each as it ends."""
    # Here, not above: virtual runs start half a second earlier without gRPC's sockets, and their
    # processes must be forked before gRPC has threads.
    from conformance.harness.runs.real import real_environment, require_kubelet, run_real_cases

    waiting = _to_run(run, items, session)
    if not waiting:
        return
    async with real_environment(run.choice) as environment:
        cases = [item.case for item in waiting.values()]
        await require_kubelet(environment)
        async with aclosing(run_real_cases(cases, environment, run.choice.jobs)) as results:
            async for result in results:
                item = waiting.pop(result.case.id)
                item.result = result
                _report(item, session)
                _stop_if_asked(session)


def _run_warped(run: Run, items: Iterable[CaseItem], session: pytest.Session) -> None:
    """The same with each case in a time of its own."""
    waiting = _to_run(run, items, session)
    if not waiting:
        return
    require_warped_kubelet(run.choice)
    cases = [item.case for item in waiting.values()]
    with closing(run_warped_cases(cases, run.choice, run.choice.jobs)) as results:
        for result in results:
            item = waiting.pop(result.case.id)
            item.result = result
            _report(item, session)
            _stop_if_asked(session)


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


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run in which nothing failed, but some cases could not be judged, has not passed."""
    outcomes = {result.outcome for result in session.config.stash[RUN].results}
    if session.exitstatus == pytest.ExitCode.OK and Outcome.INCONCLUSIVE in outcomes:
        session.exitstatus = EXIT_INCONCLUSIVE


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    run = config.stash[RUN]
    if run.results:
        terminalreporter.ensure_newline()
        real_s = REAL_CLOCK.monotonic_s() - run.began_s
        print_summary(run.results, run.choice, terminalreporter._tw._file, real_s)
        if file := config.option.results:
            _write_results(file, run, real_s)


def _write_results(file: Path, run: Run, real_s: float) -> None:
    content = results_file.document(
        run.results,
        run.choice,
        run.selection,
        real_s=real_s,
        load=os.getloadavg()[1],
        now=REAL_CLOCK.now(),
    )
    try:
        results_file.write(file, content)
    except OSError as error:
        pytest.exit(f"--results {file}: cannot be written: {error.strerror}", returncode=1)
