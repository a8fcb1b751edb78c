"""`kubelet-conformance join`: the parts of a run (`--shard K/N`) come to one end, as if it had been
one run: one summary, one baseline, one exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kubelet_conformance.ci.baseline import (
    Baseline,
    BaselineError,
    baseline_of,
    known_ids,
    write_updated,
)
from kubelet_conformance.ci.markdown import Told, markdown
from kubelet_conformance.ci.options import OPTIONS
from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.results_file import read
from kubelet_conformance.results_lines import choice_of, result_of
from kubelet_conformance.results_run import ResultsError, RunFile, missing_parts
from kubelet_conformance.summary import print_summary

EXIT_FAILED: Final = 1
EXIT_FILES: Final = 2
EXIT_INCONCLUSIVE: Final = 3
EXIT_OPTIONS: Final = 4


def add_join(parser: argparse.ArgumentParser) -> None:
    """Add the words of `join`."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="result files")
    for name in ("--summary", "--baseline", "--write-baseline"):
        parser.add_argument(name, **OPTIONS[name])


def main(words: Sequence[str]) -> int:
    """Say how the parts of a run ended together. Exit codes are those of `run`; a part that is
    missing, or was stopped, is a failure; 2: a file cannot be read or written."""
    parser = argparse.ArgumentParser(prog="kubelet-conformance join", description=main.__doc__)
    add_join(parser)
    options = parser.parse_args(words)
    try:
        baseline = baseline_of(options.baseline, write=options.write_baseline)
        return _join(read(*options.files), baseline, options)
    except BaselineError as problem:
        code, text = EXIT_OPTIONS, str(problem)
    except ResultsError as problem:
        code, text = EXIT_FILES, str(problem)
    except OSError as problem:
        text = f"cannot write {problem.filename}: {(problem.strerror or '').lower()}"
        code = EXIT_FILES
    print(f"kubelet-conformance: {text}", file=sys.stderr)
    return code


def _join(run: RunFile, baseline: Baseline | None, options: argparse.Namespace) -> int:
    """Print the whole, write what is to be written. Raises OSError."""
    results = [result_of(case) for case in run.cases]
    problems = _not_whole(run)
    fixed: Sequence[str] = ()
    unknown: Sequence[str] = ()
    if baseline and not options.write_baseline:
        results = [baseline.judged(result) for result in results]
        fixed = baseline.fixed(results)
        if not problems:  # else they may be in what is missing
            unknown = baseline.unknown(known_ids({r.case.id for r in results}, baseline))
    choice, real_s = choice_of(run.head), run.end.real_s if run.end else 0.0
    print_summary(results, choice, sys.stdout, real_s)
    told = [*problems, *(baseline.told(fixed, unknown) if baseline else [])]
    if baseline and options.write_baseline:
        told.append(write_updated(baseline, results))
    print("\n".join(told), end="\n" if told else "")
    if options.summary:
        with options.summary.open("a") as out:
            out.write(markdown(results, choice, Told(real_s, fixed, unknown, problems)))
    return _exit_code(results, whole=not problems, known=options.write_baseline)


def _not_whole(run: RunFile) -> list[str]:
    """What is missing of the run, a line each."""
    problems = []
    if missing := missing_parts(run.head.shard):
        problems.append(f"of the parts of this run, {missing}")
    if run.end is None or not run.end.complete:
        problems.append("a part was stopped before all of its cases had run")
    return problems


def _exit_code(results: Sequence[Result], *, whole: bool, known: bool) -> int:
    """As that of one run. `known`: failures are in the baseline now."""
    outcomes = {result.outcome for result in results}
    failed = Outcome.FAILED in outcomes and not known
    if failed or Outcome.ERROR in outcomes or not whole:
        return EXIT_FAILED
    return EXIT_INCONCLUSIVE if Outcome.INCONCLUSIVE in outcomes else 0
