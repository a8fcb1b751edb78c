"""Writes docs/rules.md: each rule of docs/spec, where it is implemented, tested and verified.

`python docs/render_rules.py` rewrites the page; with `--check` it writes nothing and says what is
wrong (exit code 1): the page is old, or a MUST rule has no test and no row in docs/gaps.md, or a
row there is not needed. `--add FILE --kubelet NAME --runtime NAME` takes the outcome of a
`kubelet-conformance run ... --results FILE` into docs/conformance.json first.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))  # rules_in_tree, also with PYTHONSAFEPATH

from rules_in_tree import AREAS, ROOT, Found, Rule, look

from conformance.results_file import document, read

GAP: Final = re.compile(rf"^\| ((?:(?:, )?(?:{AREAS})-\d{{3}})+) \|", re.M)
SHOWN: Final = 4


# The page


def page(found: Found, results: Sequence[dict[str, Any]]) -> str:
    """The text of docs/rules.md."""
    subjects = [
        ("refkubelet on fakecri", _outcomes(results, r"^refkubelet", r"^fakecri")),
        ("on containerd", _outcomes(results, r"^refkubelet", r"^containerd")),
        ("real kubelet", _outcomes(results, r"^kubelet", r".")),
    ]
    parts = [_head(found, results)]
    for name in dict.fromkeys(rule.page for rule in found.rules):
        heads = ("rule", "level", "implemented in", "tests", "cases", *(s for s, _ in subjects))
        rows = [
            row
            for rule in found.rules
            if rule.page == name
            for row in _rows(rule, found, [outcomes for _, outcomes in subjects])
        ]
        parts += [f"\n## [{name}](spec/{name}.md)\n\n", _table(heads, rows)]
    return "".join(parts)


def _head(found: Found, results: Sequence[dict[str, Any]]) -> str:
    must = [r for r in found.rules if r.level == "MUST"]
    pages = len({r.page for r in found.rules})
    tested = [r for r in must if _is_tested(r.id, found)]
    lines = [
        "# Rules\n\n",
        "Made by `docs/render_rules.py` from the rule IDs in the code, the tests and the cases.\n",
        f"Of the {len(must)} MUST rules of all {pages} pages, {len(tested)} have a test or a\n",
        "case that names them; [gaps.md](gaps.md) has the rest, with reasons. Naming a rule is\n",
        "not proving it. They say ",
        *_proofs([part for rule in must for part in rule.parts()], found),
        "A rule without code reads *not yet*.\n\n",
        "The last three columns: cases passed of cases run that cite the rule, in these runs ",
        "(`docs/conformance.json`).\n\n",
    ]
    rows = [
        (run["kubelet"], run["runtime"], run["date"], *_counts(outcomes_of(run))) for run in results
    ]
    heads = ("kubelet", "runtime", "date", "passed", "failed", "skipped")
    return "".join(lines) + _table(heads, rows)


def _counts(cases: dict[str, str]) -> tuple[str, str, str]:
    told = list(cases.values())
    failed = told.count("failed") + told.count("error")
    return str(told.count("passed")), str(failed), str(told.count("skipped"))


def _proofs(parts: Sequence[str], found: Found) -> Iterator[str]:
    """How many of these clauses were broken, and what noticed."""
    all_cases = {case for of in found.cases.values() for case in of}
    proved = [found.proved.get(part, []) for part in parts]
    by_case = sum(any(one in all_cases for one in of) for of in proved)
    by_test = sum(bool(of) for of in proved) - by_case
    yield f"{len(parts)} things: a rule with several has numbered clauses. {by_case} of these\n"
    yield f"were broken on purpose, and a case that cites the rule failed; with {by_test} more\n"
    yield "a test did. Such cases and tests are **bold** (`docs/suite-mutants.json`).\n"


def _rows(rule: Rule, found: Found, outcomes: Sequence[dict[str, str]]) -> Iterator[Sequence[str]]:
    """The row of a rule, and one for each of its clauses that something is known of."""
    code, tests = found.code.get(rule.id, []), found.tests.get(rule.id, [])
    done = code or tests or found.cases.get(rule.id)
    missing = "*not yet*" + (" ([why](gaps.md))" if rule.level == "MUST" else "")
    implemented = _some(_closest(code)) if done else missing
    yield _row(rule.id, rule.level, implemented, found, outcomes)
    for number in rule.clauses:
        clause = f"{rule.id}.{number}"
        yield _row(clause, "", _some(_closest(found.code.get(clause, []))), found, outcomes)


def _row(
    part: str, level: str, code: str, found: Found, outcomes: Sequence[dict[str, str]]
) -> Sequence[str]:
    """What is known of a rule or of a clause."""
    proved = found.proved.get(part, [])
    cases = list(dict.fromkeys([*found.cases.get(part, []), *_cases(proved, found)]))
    tests = list(dict.fromkeys([*_tests(proved, found), *found.tests.get(part, [])]))
    return (
        part,
        level,
        code,
        _some([place.removeprefix("tests/") for place in tests], _short(proved)),
        ", ".join(f"**{case}**" if case in proved else case for case in cases),
        *(_verified(cases, outcome) for outcome in outcomes),
    )


def _cases(proved: Sequence[str], found: Found) -> list[str]:
    everything = {case for of in found.cases.values() for case in of}
    return [one for one in proved if one in everything]


def _tests(proved: Sequence[str], found: Found) -> list[str]:
    cases = _cases(proved, found)
    return [one for one in proved if one not in cases]


def _short(places: Sequence[str]) -> set[str]:
    return {place.removeprefix("tests/") for place in places}


def _closest(code: Sequence[str]) -> list[str]:
    """The places without the files that also have a function or class named here."""
    files = {place.partition(": ")[0] for place in code if ": " in place}
    return [place.removeprefix("refkubelet/") for place in code if place not in files]


def _some(told: Sequence[str], proved: Collection[str] = ()) -> str:
    """The first few, the rest as a number; those that are proved in bold."""
    more = [f"{len(told) - SHOWN} more"] if len(told) > SHOWN else []
    shown = (f"**`{place}`**" if place in proved else f"`{place}`" for place in told[:SHOWN])
    return ", ".join([*shown, *more])


def _verified(cases: Sequence[str], outcomes: dict[str, str]) -> str:
    ran = [outcomes[case] for case in cases if outcomes.get(case) in ("passed", "failed", "error")]
    return f"{ran.count('passed')}/{len(ran)}" if ran else ""


def _outcomes(results: Sequence[dict[str, Any]], kubelet: str, runtime: str) -> dict[str, str]:
    """Case -> outcome over all runs of such a pair; one failure outweighs what passed."""
    merged: dict[str, str] = {}
    for run in results:
        if re.search(kubelet, run["kubelet"]) and re.search(runtime, run["runtime"]):
            for case, outcome in outcomes_of(run).items():
                if merged.get(case) not in ("failed", "error") and outcome != "skipped":
                    merged[case] = outcome
    return merged


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in r)} |\n" for r in lines
    )


# What must hold


def _is_tested(rule: str, found: Found) -> bool:
    return rule in found.tests or rule in found.cases


def untested(found: Found) -> list[str]:
    """MUST rules without a test or a case."""
    return [
        rule.id for rule in found.rules if rule.level == "MUST" and not _is_tested(rule.id, found)
    ]


def complaints(found: Found, gaps: str) -> list[str]:
    """What is wrong between tests and docs/gaps.md, in words."""
    table = gaps.partition("\n## On purpose")[0]
    missing, listed = untested(found), [r for row in GAP.findall(table) for r in row.split(", ")]
    return [
        f"{rule}: a MUST rule without a test; name it in one, or give the reason in docs/gaps.md"
        for rule in missing
        if rule not in listed
    ] + [
        f"{rule}: listed in docs/gaps.md, but it has a test"
        for rule in listed
        if rule not in missing
    ]


# The record of runs


def add_run(
    results: list[dict[str, Any]], added: dict[str, Any], kubelet: str, runtime: str
) -> None:
    """Take the cases of a run into the record of that pair, each in the place of its last outcome:
    a run of a few cases says nothing about the others."""
    record: dict[str, Any] = {"cases": {}, "date": added["date"]}
    for run in results:
        if (run["kubelet"], run["runtime"]) == (kubelet, runtime):
            record = run
            results.remove(run)
            break
    cases = {area: dict(of) for area, of in record["cases"].items()}
    for case, told in added["cases"].items():
        cases.setdefault(told["area"], {})[case] = told["outcome"]
    new = {
        "kubelet": kubelet,
        "runtime": runtime,
        "date": max(added["date"], record["date"]),
        "cases": {area: dict(sorted(of.items())) for area, of in sorted(cases.items())},
    }
    whole = _whole(added) or record.get("whole")
    results.append(new | ({"whole": whole} if whole else {}))
    results.sort(key=lambda r: (r["kubelet"], r["runtime"]))


def _whole(added: dict[str, Any]) -> dict[str, Any] | None:
    """Of a run of all MUST cases: what it took, for the table of the README."""
    if not added["whole"] or added["level"] != "must":
        return None
    counted: dict[str, Counter[str]] = {}
    for told in added["cases"].values():
        counted.setdefault(told["area"], Counter())[told["outcome"]] += 1
    return {
        "date": added["date"],
        "real_s": added["real_s"],
        "areas": {
            area: times | {"outcomes": dict(counted[area])}
            for area, times in sorted(added["areas"].items())
        },
    }


def outcomes_of(run: dict[str, Any]) -> dict[str, str]:
    """Case -> outcome of a recorded run."""
    return {case: outcome for of in run["cases"].values() for case, outcome in of.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: written, or current; 1: `--check` has a complaint."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--add", type=Path, metavar="FILE", help="take this run in")
    parser.add_argument("--kubelet", default="refkubelet", help="name and version, for --add")
    parser.add_argument("--runtime", default="fakecri", help="name and version, for --add")
    given = parser.parse_args(arguments)
    docs = ROOT / "docs"
    record = docs / "conformance.json"
    results = json.loads(record.read_text()) if record.exists() else []
    if given.add:
        add_run(results, document(read(given.add)), given.kubelet, given.runtime)
        record.write_text(json.dumps(results, indent=1) + "\n")
    found = look()
    text, target = page(found, results), docs / "rules.md"
    problems = complaints(found, (docs / "gaps.md").read_text())
    if not given.check:
        target.write_text(text)
    elif not target.exists() or target.read_text() != text:
        problems.append("docs/rules.md is old: run docs/render_rules.py")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
