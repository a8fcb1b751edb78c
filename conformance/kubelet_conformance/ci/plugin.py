"""What a run tells while it goes on and at its end, for people who watch it and for their CI.

The pytest plugin of the suite registers a `CiPlugin` for each run. Failures are shown when they
happen, instead of all at the end; between them a line says how far the run is.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.junitxml import xml_key

from kubelet_conformance.ci.annotations import annotation
from kubelet_conformance.ci.baseline import (
    Baseline,
    BaselineError,
    baseline_of,
    known_ids,
    write_updated,
)
from kubelet_conformance.ci.markdown import Told, markdown
from kubelet_conformance.ci.progress import Progress
from kubelet_conformance.harness.runs.case_run import REAL_CLOCK, Outcome, Result
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.summary import of_seed

EVERY_S: Final = 10.0
"""Real seconds between two lines of progress in a log; a terminal has one that changes."""
TERMINAL_EVERY_S: Final = 0.5


class CiPlugin:
    """The hooks of one run. `times_s`: case ID -> how long it took earlier."""

    def __init__(self, config: pytest.Config, choice: Choice, times_s: Mapping[str, float]) -> None:
        self._config = config
        self._choice = choice
        self._times_s = times_s
        self._options = config.option
        self.baseline = _baseline(config)
        self._collected: set[str] = set()
        self._results: list[Result] = []
        self._progress = Progress((), {})
        self._began_s = self._told_s = REAL_CLOCK.monotonic_s()
        self._problems: list[str] = []

    def judged(self, result: Result) -> Result:
        """The result as the baseline has it."""
        writes = self._options.write_baseline
        return self.baseline.judged(result) if self.baseline and not writes else result

    @property
    def _terminal(self) -> Any:
        return self._config.pluginmanager.getplugin("terminalreporter")

    @property
    def _plain(self) -> bool:
        """Whether pytest tells of no case by itself, as with -v."""
        return int(self._options.verbose) <= 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        """Know all cases that were collected, before those of this shard are chosen."""
        self._collected = {item.case.id for item in items if hasattr(item, "case")}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """From here on cases run."""
        ids = [item.case.id for item in session.items if hasattr(item, "case")]
        self._progress = Progress(ids, self._times_s)
        self._began_s = self._told_s = REAL_CLOCK.monotonic_s()
        if self._terminal is not None and self._plain:
            self._terminal.showfspath = False
        if (junit := self._config.stash.get(xml_key, None)) is not None:
            for name, value in _run_properties(self._choice).items():
                junit.add_global_property(name, value)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any) -> Generator[None, Any, Any]:
        """A report has the properties of the case, and the time that the case took, wherever it
        ran."""
        report = yield
        result: Result | None = getattr(item, "result", None)
        if result is None:
            return report
        report.user_properties = list(_properties(result, self._choice).items())
        report.duration = result.real_s if report.when == "call" else 0.0
        if result.outcome is Outcome.ERROR and report.when == "setup":
            report.duration = result.real_s
        report.case_result = result
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """Without -v no letter is printed for a case: failures and progress are told instead."""
        result: Result | None = getattr(report, "case_result", None)
        if result is None or not self._plain:
            return None
        if report.when == "setup" and report.failed:
            return "error", "", ""
        if report.when != "call":
            return ("", "", "") if report.passed else None
        if hasattr(report, "wasxfail"):
            return "xfailed", "", ""
        return str(report.outcome), "", ""

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        """Tell of a case when it has ended."""
        result: Result | None = getattr(report, "case_result", None)
        if result is None or self._terminal is None:
            return
        if report.failed:
            self._terminal.ensure_newline()
            self._terminal.write_line(f"{result.outcome.value.upper()} {_named(result)}", red=True)
            self._terminal.write_line(report.longreprtext.rstrip() + "\n")
        if report.when == "teardown":
            self._results.append(result)
            self._annotate(result)
            self._progress.ended(result.case.id, bad=result.outcome.value in ("failed", "error"))
            self._tell_progress()

    def _annotate(self, result: Result) -> None:
        if self._options.annotations is None:
            return
        repeat = of_seed(self._choice, result.seed).repeat(result.case.id, result.case.file)
        if line := annotation(result, repeat, Path.cwd()):
            self._terminal.ensure_newline()
            self._terminal.write_line(line)

    def _tell_progress(self) -> None:
        """A line now and then; on a terminal the same line again and again."""
        if not self._plain or self._options.verbose < 0:
            return
        now_s = REAL_CLOCK.monotonic_s()
        changes = _is_terminal(self._terminal)
        if now_s - self._told_s < (TERMINAL_EVERY_S if changes else EVERY_S):
            return
        self._told_s = now_s
        line = self._progress.line(now_s - self._began_s)
        if changes:
            self._terminal.rewrite(line, erase=True)
        else:
            self._terminal.write_line(line)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """What was shown is not shown again; failures that become the baseline do not count."""
        if self._results:
            self._options.tbstyle = "no"
            self._config.option.reportchars = ""
        outcomes = {result.outcome for result in self._results}
        if self._options.write_baseline and session.exitstatus == pytest.ExitCode.TESTS_FAILED:
            if Outcome.ERROR not in outcomes and self._write_baseline():
                session.exitstatus = pytest.ExitCode.OK
        elif self._options.write_baseline and session.exitstatus == pytest.ExitCode.OK:
            self._write_baseline()

    def _write_baseline(self) -> bool:
        assert self.baseline is not None
        try:
            self._problems.append(write_updated(self.baseline, self._results))
        except OSError as error:
            self._problems.append(f"--baseline {self.baseline.path}: {error.strerror}")
            return False
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """What the baseline says, and the summary in Markdown."""
        fixed: Sequence[str] = ()
        unknown: Sequence[str] = ()
        if self.baseline and self._results and not self._options.write_baseline:
            fixed = self.baseline.fixed(self._results)
            unknown = self.baseline.unknown(known_ids(self._collected, self.baseline))
            self._problems += self.baseline.told(fixed, unknown)
        if self._options.summary and self._results:
            end = Told(REAL_CLOCK.monotonic_s() - self._began_s, fixed, unknown)
            self._append_summary(markdown(self._results, self._choice, end))
        for line in self._problems:
            terminalreporter.ensure_newline()
            terminalreporter.write_line(line)

    def _append_summary(self, text: str) -> None:
        file: Path = self._options.summary
        try:
            with file.open("a") as out:
                out.write(text)
        except OSError as error:
            pytest.exit(f"--summary {file}: cannot be written: {error.strerror}", returncode=1)


def _baseline(config: pytest.Config) -> Baseline | None:
    """The baseline of the options. Raises pytest.UsageError."""
    try:
        return baseline_of(config.option.baseline, write=config.option.write_baseline)
    except BaselineError as problem:
        raise pytest.UsageError(str(problem)) from None


def _is_terminal(reporter: Any) -> bool:
    """Whether pytest writes to a terminal. It told so by a boolean before it did by a method."""
    is_a_tty = reporter.isatty
    return bool(is_a_tty() if callable(is_a_tty) else is_a_tty)


def _named(result: Result) -> str:
    seed = "" if result.seed is None else f" (seed {result.seed})"
    return f"{result.case.area}/{result.case.id}{seed}"


def _run_properties(choice: Choice) -> dict[str, str]:
    """What JUnit says of the whole run."""
    release = choice.kubelet_release
    return {
        "kubelet": choice.kubelet,
        "kubelet_version": ".".join(map(str, release)) if release else "",
        "runtime": choice.runtime,
        **({"seed": str(choice.seed), "latency": f"{choice.latency:g}"} if choice.virtual else {}),
    }


def _properties(result: Result, choice: Choice) -> dict[str, str]:
    """What JUnit says of a case."""
    case = result.case
    return {
        "area": case.area,
        "rules": " ".join(case.rules),
        "level": case.level.name,
        "kubelet": choice.kubelet,
        "runtime": choice.runtime,
        **({"seed": str(result.seed)} if result.seed is not None else {}),
        "outcome": result.outcome.value,
        "case_s": f"{result.case_s:.3f}",
    }
