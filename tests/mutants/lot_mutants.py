"""Mutants by lot: small changes of any code of refkubelet; does a case of the suite notice?

`tox -e mutants-lot` draws 1,000 of them (`--count`), each pair of a place and an operator as likely
as any other (lot_draw.py). `--seed` is hexadecimal; without it, the first eight digits of the hash
of the last commit. Which cases run a statement is recorded once for a state of the tree
(mutant_record.py); each mutant is asked of the cases that run it until one notices. A row for each
is added at once to mutants/lot/SEED.jsonl (`--results`), so that a run that was cut off goes on
where it was: `--resume`. `--only pleg` draws from one area.

What no case runs, and why not, is the table lot_outside.list. `--tests` asks tests of ours about
the mutants there; what they notice is told apart, not counted as noticed. `--show` prints those of
the file that were not noticed, as diffs, with the rules that the function names; `--never` the
functions of which no case runs anything and that have no reason, and lines of the table that are
about none (exit code 1 if there is one); `--one-sided` the conditions that are always true or
always false, whatever the case; nothing is asked then. `--least 90`: exit code 1 where the share of
all mutants is below this, with 95 % certainty. `--within 2`: none is begun after so many minutes.
`--most 100`: each is asked of so many of the cases that run it, those that differ most from each
other first; it takes a fraction of the time, and what more cases would notice counts as not
noticed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from math import inf
from pathlib import Path
from typing import IO, Final

import msgspec
from lot_draw import DRAWN, Site, drawn
from lot_outside import TABLE, Place, entries, reason_of, stale
from lot_reach import (
    Mentions,
    in_order,
    never_run,
    noticing_cases,
    places_never_run,
    plan_of,
    rules_in,
)
from lot_report import NEVER, SURVIVES, Row, interval, noticed, row_of, shown, tables
from lot_tests import asked_of, noticed_by, record_of_tests
from mutant_in_place import check_imported_from
from mutant_plan import Plan
from mutant_record import FOLDER, Record, digest, record_of
from mutant_source import Span, sources
from mutant_tables import ROOT, MutantError
from suite_run import Answer, ask

import refkubelet
from kubelet_conformance.registry import load_cases
from kubeobjects.structs import replace
from simclock import RealClock

CLOCK: Final = RealClock()
CASES_SEED: Final = 1


class Head(msgspec.Struct, frozen=True):
    """The first line of a result file: what its rows are about."""

    seed: str
    tree: str
    """A sum of all that an answer may depend on."""
    only: str = ""


def last_commit() -> str:
    """The first eight digits of its hash. Raises MutantError."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise MutantError("there is no commit here to make a seed of: give one, --seed") from None
    return done.stdout.strip()[:8]


def rows_in(file: Path, head: Head, resume: bool) -> list[Row]:
    """Those of a file that was begun before; otherwise it is begun. Raises MutantError where it is
    about other mutants."""
    if not file.exists() or not resume:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.encode(head) + b"\n")
        return []
    before, rows = read(file)
    if before != head:
        raise MutantError(f"{file} is about {before}, not {head}: leave out --resume")
    return rows


def read(file: Path) -> tuple[Head, list[Row]]:
    """A result file; its last line may have been cut off."""
    first, *lines = file.read_bytes().splitlines(keepends=True)
    whole = [line for line in lines if line.endswith(b"\n")]
    rows = (msgspec.json.decode(line, type=Row) for line in whole)
    by_number = {row.number: row for row in rows}  # the last word counts
    return msgspec.json.decode(first, type=Head), list(by_number.values())


def rows_of(
    sites: Iterable[tuple[int, Site]],
    record: Record,
    jobs: int,
    until_s: float = inf,
    most: int | None = None,
) -> Iterator[Row]:
    """What is told about these, each as soon as it is known. With their numbers. `until_s`: none is
    begun after this time of the clock. `most`: of so many cases each is asked."""
    texts = sources(ROOT, [DRAWN])
    mentions = Mentions(texts, record.numbers)
    cases = {case.id: case for case in load_cases()}
    reached: dict[Site, tuple[int, int]] = {}
    unasked: list[Row] = []

    def plans() -> Iterator[Plan]:
        for number, site in sites:
            if CLOCK.monotonic_s() > until_s:
                break
            numbers = mentions.of(site)
            reaching = record.reaching(numbers)
            able = noticing_cases(site, numbers, record)
            if not able:
                unasked.append(row_of(number, Answer(site), len(reaching)))
                continue
            rules = rules_in(texts[site.file], site.function)
            asked = in_order(able, rules, cases, record)[:most]
            reached[site] = (number, len(reaching))
            yield plan_of(site, record, numbers, asked)

    for answer in ask(plans(), CASES_SEED, jobs):
        number, count = reached[answer.mutant]
        yield row_of(number, answer, count)
        yield from _emptied(unasked)
    yield from _emptied(unasked)


def _emptied(rows: list[Row]) -> list[Row]:
    found, rows[:] = list(rows), []
    return found


async def asked_of_tests(rows: Sequence[Row], record: Record, jobs: int) -> AsyncIterator[Row]:
    """Those that no case runs, with what our tests say."""
    tests = record_of_tests(record, jobs)
    mentions = Mentions(sources(ROOT, [DRAWN]), record.numbers)
    left = {row.number: row for row in rows if row.told == NEVER and row.test is None}
    asked = [(n, row.site, asked_of(tests, mentions.of(row.site))) for n, row in left.items()]
    async for number, test in noticed_by(asked, jobs):
        yield replace(left[number], test=test)


def show_never(record: Record) -> bool:
    """Print the functions of which no case runs anything and that have no reason, and lines of the
    table that are about none; whether there is one."""
    table, texts = entries(TABLE.read_text()), sources(ROOT, [DRAWN])
    lines = [
        f"{source.file}:{line}: {name}"
        for source in texts.values()
        for line, name in never_run(source, record)
        if not reason_of(Place(source.file, name), table)
    ]
    never = {Place(file, name) for file, name in places_never_run(texts.values(), record)}
    for entry in stale(table, never):
        lines.append(f"{TABLE.name}: {entry.file}: {entry.function}: cases run all of it")
    print("\n".join(lines))
    return bool(lines)


def show_one_sided(record: Record) -> None:
    """Print the conditions that have one value only, whatever the case."""
    texts = sources(ROOT, [DRAWN])
    for (file, *bounds), value in record.one_sided():
        if file in texts:
            span = Span(*bounds)
            text = " ".join(texts[file].part(span).split())
            print(f"{file}:{texts[file].line(span)}: always {str(value).lower()}: {text}")


def show(rows: Sequence[Row]) -> None:
    """Print those that were not noticed."""
    texts = sources(ROOT, [DRAWN])
    for row in sorted(rows, key=lambda row: (row.site.file, row.site.line)):
        if row.told in (SURVIVES, NEVER):
            source = texts[row.site.file]
            print(shown(row, source.data, rules_in(source, row.site.function)), end="\n\n")


async def _with_tests(
    rows: Sequence[Row], record: Record, jobs: int, target: IO[bytes]
) -> list[Row]:
    """The rows with what tests of ours say; each is written down as soon as it is known."""
    known = {row.number: row for row in rows}
    async for row in asked_of_tests(rows, record, jobs):
        target.write(msgspec.json.encode(row) + b"\n")
        known[row.number] = row
    return list(known.values())


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="lot_mutants", description=__doc__)
    parser.add_argument("--seed", help="hexadecimal")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--only", default="", metavar="AREA", help="of one package of refkubelet")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--results", type=Path, metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="go on with this file")
    parser.add_argument("--show", action="store_true", help="what of the file was not noticed")
    parser.add_argument("--never", action="store_true", help="functions that no case runs")
    parser.add_argument("--one-sided", action="store_true", help="conditions with one value only")
    parser.add_argument("--tests", action="store_true", help="ask ours about what no case runs")
    parser.add_argument("--least", type=float, default=0.0, metavar="PERCENT")
    parser.add_argument("--most", type=int, metavar="CASES", help="are asked of a mutant")
    parser.add_argument("--within", type=float, default=inf, metavar="MINUTES")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    """See above."""
    options, began_s = _options(words), CLOCK.monotonic_s()
    try:
        check_imported_from(refkubelet)
        seed = options.seed or last_commit()
        file = options.results or FOLDER / f"{seed}{'-' * bool(options.only)}{options.only}.jsonl"
        if options.never:
            return int(show_never(record_of(CASES_SEED, options.jobs)))
        if options.one_sided or options.show:
            show_one_sided(record_of(CASES_SEED, options.jobs)) if options.one_sided else show(
                read(file)[1]
            )
            return 0
        head = Head(seed, digest(), options.only)
        rows = rows_in(file, head, options.resume)
    except MutantError as problem:
        print(problem, file=sys.stderr)
        return 2
    known = {row.number for row in rows}
    sites = enumerate(drawn(ROOT, seed, options.count, options.only), 1)
    left = [(number, site) for number, site in sites if number not in known]
    record = record_of(CASES_SEED, options.jobs)
    until_s = CLOCK.monotonic_s() + 60 * options.within
    with file.open("ab", buffering=0) as target:
        for row in rows_of(left, record, options.jobs, until_s, options.most):
            target.write(msgspec.json.encode(row) + b"\n")
            rows.append(row)
        if options.tests:
            rows = asyncio.run(_with_tests(rows, record, options.jobs, target))
    print("\n".join(tables(rows, entries(TABLE.read_text()))))
    used_s = sum(row.seconds for row in rows)
    took_s = CLOCK.monotonic_s() - began_s
    print(f"seed {seed}: ended after {took_s:.0f} s; mutants took {used_s:.0f} s of processors")
    return 1 if 100 * interval(noticed(rows), len(rows))[1] < options.least else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
