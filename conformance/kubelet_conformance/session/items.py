"""Cases as pytest items, and the files that they are collected from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.known import with_known_bugs, with_since_checked
from kubelet_conformance.registry import Case
from kubelet_conformance.session.run import RUN, Run
from kubelet_conformance.sources import cases_in
from kubeobjects.structs import replace


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
        if self.choice.check_since:
            judged = with_since_checked(self.result, self.choice.kubelet_minor)
        else:
            judged = with_known_bugs(self.result, self.choice.kubelet_release)
        self.result = run.ci.judged(judged) if run.ci else judged
        run.add(self.result)
        self.result = replace(self.result, record=None)
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
            log = self.result.log if self.result else ()
            said = "\n".join(["last log lines of the kubelet:", *(f"  {line}" for line in log)])
            text = f"{head}\n{excinfo.value}" + (f"\n{said}" if log else "")
            return f"{text}\nrepeat:   {again}"
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
