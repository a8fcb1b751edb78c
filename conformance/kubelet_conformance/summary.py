"""The page at the end of a run: per area what passed, failed and was skipped, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import IO, Any, Final

from rich.console import Console
from rich.table import Table

from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.seeds import text_of
from kubelet_conformance.results_schema import told
from kubeobjects.structs import replace

LONGEST_REASON: Final = 300
COLUMNS: Final = (
    Outcome.PASSED,
    Outcome.FAILED,
    Outcome.KNOWN_BUG,
    Outcome.ERROR,
    Outcome.INCONCLUSIVE,
    Outcome.SKIPPED,
    Outcome.DISABLED,
)


def print_summary(results: Sequence[Result], choice: Choice, out: IO[str], real_s: float) -> None:
    """Print the table of areas, the reasons of skips, the known bugs, and for each failure the
    command that repeats it.

    `real_s`: wall time of the whole run.
    """
    width = None if out.isatty() else 112
    console = Console(file=out, highlight=False, width=width)
    console.print(_table(results, choice))
    for line in reasons(results):
        console.print(line, markup=False, soft_wrap=True)
    for result in results:
        if result.outcome is Outcome.KNOWN_BUG:
            text = "\n  ".join(known_bug(result))
            console.print(f"known bug: {result.case.id}: {text}", markup=False, soft_wrap=True)
    for result in results:
        if result.warning:
            console.print(f"warning: {result.case.id}: {result.warning}", markup=False)
    for result in results:
        if result.outcome in (Outcome.FAILED, Outcome.ERROR, Outcome.INCONCLUSIVE):
            head = f"{result.outcome.value}: {result.case.id}: {result.case.title}"
            console.print(head, markup=False)
            repeat = (
                f"  repeat: {of_seed(choice, result.seed).repeat(result.case.id, result.case.file)}"
            )
            console.print(repeat, markup=False, soft_wrap=True)
    console.print(f"{_conditions(results, choice)}{real_s:.1f} s in all", markup=False)


def _table(results: Sequence[Result], choice: Choice) -> Table:
    table = Table(title=f"{choice.kubelet} on {choice.runtime}", title_justify="left")
    table.add_column("area")
    for heading in (outcome.value for outcome in COLUMNS):
        table.add_column(heading, justify="right")
    table.add_column("virtual" if choice.virtual else "case time", justify="right")
    table.add_column("real", justify="right")
    for row in area_rows(results):
        table.add_row(*row)
    table.add_section()
    for row in seed_rows(results):
        table.add_row(*row)
    return table


def _conditions(results: Sequence[Result], choice: Choice) -> str:
    """What a virtual run depends on, for its last line."""
    if not choice.virtual:
        return ""
    seeds = seeds_in(results)
    word = "seeds" if len(seeds) > 1 else "seed"
    return f"{word} {text_of(seeds or [choice.seed])}, latency {choice.latency:g}, "


def of_seed(choice: Choice, seed: int | None) -> Choice:
    """The choice of the same run with that seed alone; None: it has none."""
    return choice if seed is None else replace(choice, seed=seed)


def seeds_in(results: Sequence[Result]) -> list[int]:
    """The seeds of the results, each once, in order of appearance."""
    return list(dict.fromkeys(r.seed for r in results if r.seed is not None))


def seed_rows(results: Sequence[Result]) -> list[list[str]]:
    """The rows of the table for the seeds of a run that had several, one each."""
    seeds = seeds_in(results)
    if len(seeds) < 2:
        return []
    return [_row(f"seed {seed}", [r for r in results if r.seed == seed]) for seed in seeds]


def area_rows(results: Sequence[Result]) -> list[list[str]]:
    """The rows of the table: one per area, in order of appearance, and the total."""
    areas = list(dict.fromkeys(r.case.area for r in results))
    rows = [_row(area, [r for r in results if r.case.area == area]) for area in areas]
    return [*rows, _row("all", results)]


def _row(name: str, results: Sequence[Result]) -> list[str]:
    by = Counter(r.outcome for r in results)
    numbers = [str(by[outcome] or "-") for outcome in COLUMNS]
    return [name, *numbers, duration(sum(r.case_s for r in results)), _seconds(results)]


def _seconds(results: Sequence[Result]) -> str:
    return f"{sum(r.real_s for r in results):.1f} s"


def duration(seconds: float) -> str:
    """Seconds in hours, minutes or seconds, as a person would say them.

    >>> duration(3725), duration(4.26)
    ('1 h 02 min', '4.3 s')
    """
    if seconds >= 3600:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"
    if seconds >= 120:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    return f"{seconds:.1f} s"


def known_bug(result: Result) -> list[str]:
    """What is told of a case that failed as is known: the bug, then what was expected and seen this
    time, a line each."""
    reason, expected, _ = told(result.detail)
    seen = [shorten(reason, LONGEST_REASON, placeholder=" ...")] if expected else []
    return [result.detail.splitlines()[0], *seen]


def where_more_is(results: Sequence[Result], file: Path | None) -> str:
    """Where what happened in the cases that did not pass can be read; "" when all passed. `file`:
    the result file, None without one."""
    told_of = (Outcome.FAILED, Outcome.ERROR, Outcome.INCONCLUSIVE, Outcome.KNOWN_BUG)
    if not any(result.outcome in told_of for result in results):
        return ""
    if file is None:
        return "call by call: run with --results FILE, then kubelet-conformance report FILE"
    return f"call by call: kubelet-conformance report {file}"


def reasons(results: Sequence[Result]) -> list[str]:
    """One line for each reason of a skip, with the number of cases."""
    counted: Counter[Any] = Counter(
        (r.outcome.value, r.detail)
        for r in results
        if r.outcome in (Outcome.SKIPPED, Outcome.DISABLED)
    )
    return [f"{outcome} {number}: {why}" for (outcome, why), number in counted.items()]
