"""The summary of a run in Markdown, for the page of a CI job or a comment on a pull request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Final

from msgspec import Struct

from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.summary import (
    COLUMNS,
    area_rows,
    duration,
    known_bug,
    of_seed,
    reasons,
    seed_rows,
)

MOST_FAILURES: Final = 50
MOST_CHARACTERS: Final = 6_000
"""Of one failure. GitHub takes a mebibyte a step: 50 failures are far below it."""
BAD: Final = (Outcome.FAILED, Outcome.ERROR, Outcome.INCONCLUSIVE)


class Told(Struct, frozen=True):
    """What the summary tells beside the results: `fixed` and `unknown` of the baseline, `missing`
    of a run in parts."""

    real_s: float
    fixed: Sequence[str] = ()
    unknown: Sequence[str] = ()
    missing: Sequence[str] = ()


def markdown(results: Sequence[Result], choice: Choice, told: Told) -> str:
    """The page: what it comes to, the table of areas, each failure with the line that repeats it,
    what is known, why cases were skipped."""
    parts = [
        f"## kubelet-conformance: {headline(results)}",
        f"`{choice.kubelet}` on `{choice.runtime}`, {duration(told.real_s)}{_seed(choice)}",
        *_list("This is not the whole run", told.missing),
        _table(results),
        *_failures(results, choice),
        *_list("Known failures that passed: take them out of the baseline", told.fixed),
        *_list("The baseline names cases that there are not", told.unknown),
        *_list("Known failures", _known(results)),
        *_list("Not run", reasons(results)),
    ]
    return "\n\n".join(parts) + "\n"


def headline(results: Sequence[Result]) -> str:
    """The outcomes in words, the worst first.

    >>> headline([])
    'no case'
    """
    counted = Counter(result.outcome for result in results)
    order = (*BAD, Outcome.KNOWN_BUG, Outcome.PASSED, Outcome.SKIPPED, Outcome.DISABLED)
    words = [f"{counted[outcome]} {outcome.value}" for outcome in order if counted[outcome]]
    return ", ".join(words) or "no case"


def _seed(choice: Choice) -> str:
    return f", seed {choice.seed}, latency {choice.latency:g}" if choice.virtual else ""


def _table(results: Sequence[Result]) -> str:
    """The areas, without the columns in which nothing is counted."""
    rows = [*area_rows(results), *seed_rows(results)]
    heads = ["area", *(outcome.value for outcome in COLUMNS), "case time", "real"]
    columns = [
        place
        for place, head in enumerate(heads)
        if head in ("area", "passed", "failed", "case time", "real")
        or any(row[place] not in ("-", "0") for row in rows)
    ]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line[place] for place in columns) + " |" for line in lines)


def _failures(results: Sequence[Result], choice: Choice) -> list[str]:
    bad = [result for result in results if result.outcome in BAD]
    parts = [_failure(result, choice) for result in bad[:MOST_FAILURES]]
    if more := len(bad) - len(parts):
        parts.append(f"... and {more} more; the log of the run has all.")
    return parts


def _failure(result: Result, choice: Choice) -> str:
    case = result.case
    repeat = of_seed(choice, result.seed).repeat(case.id, case.file)
    detail = result.detail
    if len(detail) > MOST_CHARACTERS:
        detail = detail[:MOST_CHARACTERS] + "\n..."
    return (
        f"<details><summary>{result.outcome.value}: <b>{case.id}</b>: {escape(case.title)} "
        f"({', '.join(case.rules)}, {case.level.name})</summary>\n\n"
        f"<pre>{_pre(detail)}</pre>\n\n<pre>{_pre(repeat)}</pre>\n\n</details>"
    )


def _pre(text: str) -> str:
    """Text inside <pre>: an empty line would end the HTML block of Markdown."""
    return escape(text, quote=False).replace("\n\n", "\n&#8203;\n").strip("\n")


def _known(results: Sequence[Result]) -> list[str]:
    bugs = [result for result in results if result.outcome is Outcome.KNOWN_BUG]
    return [f"`{bug.case.id}`: {escape('; '.join(known_bug(bug)), quote=False)}" for bug in bugs]


def _list(title: str, lines: Sequence[str]) -> list[str]:
    return [f"**{title}**\n\n" + "\n".join(f"- {line}" for line in lines)] if lines else []
