"""Asks search about wrong kubelets: how many worlds does it take until a law is broken?

`tox -e search-known` plants each of the wrong kubelets of bugs.txt that search should find
(search_known.list), and plays the worlds of the seeds 1, 2, ... on it, without the fixtures, until
one breaks a law that nothing excuses and that the right kubelet keeps in this world; names choose
(`-- bugs/104107 "bugs/58*"`), also others of the tables. `--seeds 400` is how many are played at
most. The answers go into results/search-known.json as they come, from which docs/search.md has its
table; `--missing` leaves out those that are there already. Exit code 1: fewer than 80 % of those
that should be are found.

Worlds that do not reach what a wrong kubelet changes are not played on it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from mutant_in_place import Functions, check_imported_from
from mutant_plan import Plan, Question
from mutant_reach import numbers_of
from mutant_record import Record, record_of_worlds
from mutant_tables import Mutant, MutantError, read_all
from suite_run import Answer, Hangs, ask, at_most, become_planned

import refkubelet
from simclock import RealClock

HOME: Final = Path(__file__).parent
LISTED: Final = HOME / "search_known.list"
WANTED_HEAD: Final = "To be found"
KEPT: Final = HOME.parents[1] / "results" / "search-known.json"
WANTED: Final = 0.8
WORLD: Final = "world-"
ROUNDS: Final = (25, 100)
"""Up to these seeds worlds are played on all that are not found yet."""
IN_TIME: Final = "in-time"
RIGHT: Final = Mutant("", (), "", "", ())
CLOCK: Final = RealClock()
Row = dict[str, Any]


def listed(text: str) -> dict[str, list[str]]:
    """The names below each heading of search_known.list.

    >>> listed("# so\\nTo be found\\n  a b\\n  c\\nA plug-in\\n  d\\n")
    {'To be found': ['a', 'b', 'c'], 'A plug-in': ['d']}
    """
    names: dict[str, list[str]] = {}
    head = ""
    for line in text.splitlines():
        if line.startswith(" "):
            names[head] += line.split()
        elif line and not line.startswith("#"):
            head = line.strip()
            names[head] = []
    return names


def wanted_names() -> list[str]:
    """The wrong kubelets that search should find, as the tables name them."""
    return [f"bugs/{name}" for name in listed(LISTED.read_text())[WANTED_HEAD]]


def worlds(mutant: Mutant, seeds: Iterable[int]) -> Plan:
    """The plan to play the worlds of these seeds on it."""
    return Plan(mutant, tuple(Question(f"{WORLD}{seed}") for seed in seeds))


def reaching(mutant: Mutant, record: Record) -> list[int]:
    """The seeds of the worlds that reach what it changes: in others it is as the right kubelet."""
    found = record.reaching(numbers_of(mutant, record.numbers))
    return sorted(int(name.removeprefix(WORLD)) for name in found)


def played(plan: Plan, functions: Functions, _: int, at: Any) -> Answer:
    """Become the mutant, and play worlds on it until one breaks a law. Runs in its process."""
    become_planned(plan, functions)
    answer = Answer(plan.mutant)
    for number, question in enumerate(plan.questions):
        at.value = number
        answer.ran += 1
        laws = _broken(int(question.case.removeprefix(WORLD)), question.within_s)
        if laws:
            answer.noticed = (question.case,)
            answer.laws[question.case] = laws
            break
    return answer


def _broken(seed: int, within_s: float) -> tuple[str, ...]:
    """The laws that are broken in the world of that seed, without excuse. One that comes to no end
    breaks `in-time`."""
    # Here, not above: a mutant that is imported has modules of its own.
    from kubelet_conformance.harness.runs.choice import Choice
    from kubelet_conformance.search.tasks import meet

    try:
        with at_most(within_s):
            met = meet(seed, "small", Choice())
    except (Hangs, SystemExit):
        return (IN_TIME,)
    return tuple(dict.fromkeys(breach.law for breach in met.breaches))


@cache
def _broken_by_right(seed: int) -> frozenset[str]:
    """The laws that refkubelet as it is breaks in the world of that seed."""
    (answer,) = ask([worlds(RIGHT, [seed])], seed, 1, played)
    return frozenset(law for laws in answer.laws.values() for law in laws)


def found(mutants: Sequence[Mutant], most: int, jobs: int) -> Iterator[tuple[Mutant, Row]]:
    """What comes of each, as soon as it is there: first the worlds of few seeds are played on all,
    then those of more on the ones that are left. One that breaks only what the right kubelet does
    in the same world goes on behind it."""
    record = record_of_worlds(range(1, most + 1), jobs)
    left = {mutant.name: (mutant, reaching(mutant, record)) for mutant in mutants}
    used_s: dict[str, float] = {}
    last: dict[str, Answer] = {}
    for bound in (*(bound for bound in ROUNDS if bound < most), most):
        plans = _plans(left.values(), bound)
        while plans:
            for answer in ask(plans, 1, jobs, played):
                name = answer.mutant.name
                last[name] = answer
                used_s[name] = used_s.get(name, 0.0) + answer.seconds
                seed, laws = _first_of(answer)
                behind = bound if seed is None else seed
                seeds = [each for each in left[name][1] if each > behind]
                left[name] = (answer.mutant, seeds)
                if laws or answer.error:
                    del left[name]
                    yield answer.mutant, _row(answer, seed, laws, most, used_s[name])
            plans = _plans(left.values(), bound)
        for name, (mutant, _) in left.items():  # so far
            answer = last.get(name, Answer(mutant))
            yield mutant, _row(answer, None, [], bound, used_s.get(name, 0.0))


def _plans(left: Iterable[tuple[Mutant, Sequence[int]]], bound: int) -> list[Plan]:
    """Plans to play what is left of the worlds up to that seed; none where nothing is."""
    plans = [worlds(mutant, (seed for seed in seeds if seed <= bound)) for mutant, seeds in left]
    return [plan for plan in plans if plan.questions]


def _first_of(answer: Answer) -> tuple[int | None, list[str]]:
    """The seed of the world in which laws were broken, and those that the right kubelet keeps
    there."""
    if not answer.noticed:
        return None, []
    (name,) = answer.noticed
    if not name.startswith(WORLD):  # it could not be imported
        return None, []
    seed = int(name.removeprefix(WORLD))
    laws = answer.laws.get(name, (IN_TIME,))  # its process has ended in it
    return seed, [law for law in laws if law not in _broken_by_right(seed)]


def _row(answer: Answer, seed: int | None, laws: list[str], most: int, used_s: float) -> Row:
    row: Row = {
        "fixtures": list(answer.mutant.fixtures),
        "seed": seed,
        "worlds": most if seed is None else seed,
        "laws": laws,
        "seconds": round(used_s, 1),
        "date": f"{CLOCK.now():%Y-%m-%d}",
    }
    return {**row, "error": answer.error} if answer.error else row


def lines_of(rows: Mapping[str, Row], names: Iterable[str]) -> Iterator[str]:
    """The table: which were found, after how many worlds, by which laws."""
    for name in names:
        if (row := rows.get(name)) is not None:
            what = ", ".join(row["laws"]) or row.get("error") or _missed(row)
            yield f"  {name:24} {row['seed'] or '-':>5}  {what}"


def _missed(row: Row) -> str:
    return f"not found in {row['worlds']} worlds"


def share_of(rows: Mapping[str, Row], names: Sequence[str]) -> tuple[int, float]:
    """How many of these are found, and which part of all of them."""
    count = sum(1 for name in names if (rows.get(name) or {}).get("seed") is not None)
    return count, count / max(len(names), 1)


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="search_mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="wrong kubelets; default: those to be found")
    parser.add_argument("--seeds", type=int, default=400, metavar="N", help="worlds at most")
    parser.add_argument("--jobs", type=int, default=min(2, len(os.sched_getaffinity(0))))
    parser.add_argument("--missing", action="store_true", help="those without an answer so far")
    parser.add_argument("--results", type=Path, default=KEPT, help=f"default {KEPT.name}")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    """See above."""
    options = _options(words)
    try:
        check_imported_from(refkubelet)
        wanted = wanted_names()
        mutants = read_all(options.names or wanted)
    except MutantError as problem:
        print(problem, file=sys.stderr)
        return 2
    kept = json.loads(options.results.read_text()) if options.results.exists() else {}
    if options.missing:
        known = {
            name for name, row in kept.items() if row["seed"] or row["worlds"] >= options.seeds
        }
        mutants = [mutant for mutant in mutants if mutant.name not in known]
    began_s = CLOCK.monotonic_s()
    for mutant, row in found(mutants, options.seeds, options.jobs):
        kept[mutant.name] = row
        options.results.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
        print(*lines_of(kept, [mutant.name]), flush=True)
    asked = wanted if not options.names else [mutant.name for mutant in mutants]
    count, share = share_of(kept, asked)
    took_s = CLOCK.monotonic_s() - began_s
    print(f"{count} of {len(asked)} found ({share:.0%}), in {took_s:.0f} s")
    return 0 if share >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
