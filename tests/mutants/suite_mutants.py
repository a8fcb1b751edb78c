"""Asks the suite about wrong kubelets: does a case fail for each mutant?

`tox -e mutants-suite` asks about all of them, in processes, and prints what was noticed by area and
what was not; names, areas and globs choose (`-- backoff "probes/*late*"`). `--sample 10` takes a
tenth, drawn with `--seed`. One case that notices a mutant is enough; `--links` asks all those that
cite its rules. `--keep` does so, too (`--no-links`: it does not), and the answers go into
results/suite-mutants.json, from which the pages of rules show which case covers which clause. Exit
code 1: fewer than 95 % are noticed (of a sample: of those that were noticed when the answers were
kept), a mutant does not fit, or, where no sample was taken, one that is not noticed says no reason,
or one that is said to survive is noticed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mutant_in_place import check_imported_from
from mutant_plan import Plan, first_plan, second_plan
from mutant_reach import numbers_of
from mutant_record import record_of
from mutant_tables import RUNTIME, Mutant, MutantError, read_all
from suite_run import Answer, ask, failing_without

import refkubelet
from kubelet_conformance.registry import load_cases
from simclock import RealClock, Rng

ROOT: Final = Path(__file__).parents[2]
KEPT: Final = ROOT / "results" / "suite-mutants.json"
WANTED: Final = 0.95
FEW: Final = 20
"""Of fewer mutants no share is asked for."""
CLOCK: Final = RealClock()


def lines_by_area(answers: Sequence[Answer]) -> Iterable[str]:
    """The table: area, noticed of all."""
    everything = Counter(answer.mutant.area for answer in answers)
    noticed = Counter(answer.mutant.area for answer in answers if answer.noticed)
    for area, count in sorted(everything.items()):
        yield f"  {area:14} {noticed[area]:4} of {count:4} noticed"
    share = noticed.total() / max(everything.total(), 1)
    yield f"  {'all':14} {noticed.total():4} of {everything.total():4} noticed  {share:.1%}"


def remarks(answers: Sequence[Answer]) -> Iterable[str]:
    """What is not as the catalogue says, a line for each mutant."""
    for answer in answers:
        mutant = answer.mutant
        said = f"{mutant.name} ({', '.join(mutant.rules)})"
        if answer.error:
            yield f"{said}: cannot be asked about: {answer.error}"
        elif blind := [name for name in mutant.fixtures if name not in answer.noticed]:
            yield f"{said}: fixture {', '.join(blind)} does not notice it"
        elif answer.blind:
            yield f"{said}: law {', '.join(answer.blind)} does not notice it"
        elif not answer.noticed and not mutant.survives:
            yield f"{said}: not noticed by {answer.ran} cases: {mutant.breaks}"
        elif answer.noticed and mutant.survives:
            yield f"{said}: is said to survive, but noticed by {', '.join(answer.noticed)}"


def not_good_enough(answers: Sequence[Answer], *, whole: bool, known: Collection[str] = ()) -> str:
    """Why the run has failed; "" when it has not. A sample asks whether the suite still notices
    what it has noticed (`known`); one seed may hide what others show, so there a single mutant does
    not count."""
    if any(answer.error for answer in answers):
        return "a mutant could not be asked about"
    if whole and any(remarks(answers)):
        return "the catalogue and the suite do not agree"
    asked = [answer for answer in answers if whole or answer.mutant.name in known]
    noticed = sum(bool(answer.noticed) for answer in asked)
    if len(asked) >= FEW and noticed < WANTED * len(asked):
        return f"fewer than {WANTED:.0%} are noticed"
    return ""


def recorded(answers: Iterable[Answer], before: Mapping[str, Any], date: str) -> dict[str, Any]:
    """The kept answers, by mutant; mutants that were not asked about keep theirs."""
    found = dict(before)
    for answer in answers:
        if not answer.error:
            mutant = answer.mutant
            tests = found.get(mutant.name, {})  # those that notice it, from mutant_tests.py
            tests.pop("laws", None)
            found[mutant.name] = {
                **tests,
                "rules": list(mutant.rules),
                "breaks": mutant.breaks,
                "survives": mutant.survives,
                "noticed": list(answer.noticed),
                **({"laws": answer.laws} if answer.laws else {}),
                "date": date,
            }
    return dict(sorted(found.items()))


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="suite_mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants, areas or globs; default all")
    parser.add_argument("--seed", type=int, default=1, help="of the cases and of --sample")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="one of N mutants")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--area-only", action="store_true", help="do not go beyond its area")
    parser.add_argument("--links", action="store_true", help="ask all cases that cite its rules")
    parser.add_argument(
        "--keep", action="store_true", help=f"write {KEPT.relative_to(ROOT)}, with the links"
    )
    parser.add_argument(
        "--no-links", action="store_true", help="keep only the first case that notices a mutant"
    )
    parser.add_argument("-v", action="store_true", help="show which cases noticed each mutant")
    return parser.parse_args(words)


def _chosen(options: argparse.Namespace) -> list[Mutant]:
    mutants = [mutant for mutant in read_all(options.names) if mutant.area != RUNTIME]
    if options.sample > 1:
        count = max(1, len(mutants) // options.sample)
        drawn = Rng(options.seed).stream("mutants").sample(mutants, count)
        return sorted(drawn, key=lambda mutant: mutant.name)
    return mutants


def main(words: Sequence[str]) -> int:
    """See above."""
    options = _options(words)
    try:
        check_imported_from(refkubelet)
        mutants = _chosen(options)
    except MutantError as problem:
        print(problem, file=sys.stderr)
        return 2
    began_s = CLOCK.monotonic_s()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    before = {name: answer["noticed"] for name, answer in kept.items()}
    cases = load_cases()
    links = options.links or (options.keep and not options.no_links)
    plans = [first_plan(mutant, cases, before, links=links) for mutant in mutants]
    answers = _all_answers(plans, cases, options)
    print("\n".join(lines_by_area(answers)))
    print(f"{len(mutants)} mutants in {CLOCK.monotonic_s() - began_s:.0f} s, seed {options.seed}")
    if options.keep:
        if not options.names:
            kept = {m.name: kept[m.name] for m in read_all() if m.name in kept}
        found = recorded(answers, kept, f"{CLOCK.now():%Y-%m-%d}")
        KEPT.write_text(json.dumps(found, indent=1) + "\n")
    for line in remarks(answers):
        print(line)
    known = {name for name, cases_before in before.items() if cases_before}
    wrong = not_good_enough(answers, whole=options.sample == 1, known=known)
    print(wrong, end="\n" if wrong else "")
    return 1 if wrong else 0


def _all_answers(
    plans: Sequence[Plan], cases: Sequence[Any], options: argparse.Namespace
) -> list[Answer]:
    answers = {a.mutant.name: a for a in _asked(plans, options)}
    unnoticed = {name for name, a in answers.items() if (not a.noticed or a.blind) and not a.error}
    open_ones = [plan for plan in plans if plan.mutant.name in unnoticed]
    if open_ones:
        record = None if options.area_only else record_of(options.seed, options.jobs)

        def reached(mutant: Mutant) -> list[str] | None:
            if record is None:
                return None
            return record.reaching(numbers_of(mutant, record.numbers))

        again = [second_plan(p, cases, reached(p.mutant)) for p in open_ones]
        answers |= {a.mutant.name: a for a in _asked(again, options)}
    witnesses = sorted({case for answer in answers.values() for case in answer.noticed})
    for case in sorted(failing_without(witnesses, options.seed, options.jobs)):
        print(f"case {case} fails without any mutant: it does not count")
        for answer in answers.values():
            answer.noticed = tuple(name for name in answer.noticed if name != case)
            answer.laws.pop(case, None)
    return sorted(answers.values(), key=lambda answer: answer.mutant.name)


def _asked(plans: Sequence[Plan], options: argparse.Namespace) -> Iterable[Answer]:
    for answer in ask(plans, options.seed, options.jobs):
        if options.v:
            told = answer.error or ", ".join(answer.noticed) or f"not noticed by {answer.ran}"
            print(f"{answer.mutant.name}: {told}", flush=True)
        yield answer


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
