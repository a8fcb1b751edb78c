"""The state of one run: what was chosen, the results so far, the result file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from kubelet_conformance.ci.plugin import CiPlugin
from kubelet_conformance.harness.runs.case_run import REAL_CLOCK, Result, not_to_run
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.garbage import collect_young
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.registry import Case, Selection
from kubelet_conformance.results_file import ResultsWriter
from kubelet_conformance.results_lines import case_line, head_line, trace_line
from kubelet_conformance.results_schema import Line, RunEnd
from kubeobjects.structs import replace


class Run:
    """The state of one run: what was chosen, and the results so far. `choices`: one for each
    seed."""

    def __init__(self, choices: Sequence[Choice], selection: Selection) -> None:
        self.choices = choices
        self.choice = choices[0]
        self.selection = selection
        self.results: list[Result] = []
        self.writer: ResultsWriter | None = None
        """The result file; None without `--results`."""
        self.file_problem = ""
        self.environment_problem = ""
        """Why kubelet or runtime cannot be used, found when they were tried."""
        self.ci: CiPlugin | None = None
        self.places: dict[tuple[str, int | None], int] = {}
        self.chosen_cases = 0
        """How many cases all parts have together."""
        self.began_s = REAL_CLOCK.monotonic_s()

    def run(self, case: Case, choice: Choice) -> Result:
        """Run a virtual case now, unless it is disabled or lacks a feature."""
        unrun = not_to_run(case, choice, self.selection.disabled)
        if unrun is not None:
            return unrun
        result = run_virtual_case(case, choice)
        collect_young()
        return result

    def add(self, result: Result) -> None:
        """Keep the result for the summary, and write it into the result file."""
        self.results.append(replace(result, record=None))
        self.write(case_line(result, self.choice), trace_line(result))

    def write(self, *lines: Line | None) -> None:
        """Add lines to the result file, if there is one. When that fails the run goes on without:
        `file_problem` says why."""
        try:
            for line in lines:
                if self.writer is not None and line is not None:
                    self.writer.write(line)
        except OSError as error:
            self.writer = None
            self.file_problem = error.strerror or str(error)

    def open(self, file: Path) -> None:
        """Begin the result file. Raises OSError."""
        self.writer = ResultsWriter(file)
        self.write(head_line(self.choices, self.selection, now=REAL_CLOCK.now()))

    def end(self, wanted: int) -> None:
        """End the result file. `wanted`: how many cases were to run; there are fewer results when
        the run was stopped."""
        real_s = round(REAL_CLOCK.monotonic_s() - self.began_s, 3)
        complete = len(self.results) == wanted
        load = round(os.getloadavg()[1], 1)
        self.write(RunEnd(real_s, load, complete=complete, chosen=self.chosen_cases))
        if self.writer is not None:
            self.writer.close()

    def place_of(self, result: Result) -> int:
        """Where the result stands in the summary and the results file: cases in their order, one
        seed after the other, in whatever order they ended."""
        return self.places.get((result.case.id, result.seed), 0)


RUN: Final = pytest.StashKey[Run]()
