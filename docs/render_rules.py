"""Writes docs/rules.md: each rule of docs/spec, where it is implemented, tested and verified.

`python docs/render_rules.py` rewrites the page; with `--check` it writes nothing and says what is
wrong (exit code 1): the page is old, or a MUST rule has no test and no row in docs/gaps.md, or a
row there is not needed. `--add FILE --kubelet NAME --runtime NAME` takes the outcome of a
`kubelet-conformance run ... --results FILE` into docs/conformance.json first.

A rule counts as implemented where its ID stands in a docstring or a comment, and as tested where it
stands inside a test function, its name included, or in the `rules` of a conformance case.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
LEVELS: Final = ("MUST", "SHOULD", "DETAIL")
AREAS: Final = "LIFE|BACK|PLEG|GC|SRC|MIRR|STAT|EVIC|PREE|CG|PROBE|CRI|NODE|SRV|CFG"
DEFINED: Final = re.compile(rf"\*\*((?:{AREAS})-\d{{3}})\*\*")
CITED: Final = re.compile(rf"(?<![A-Za-z0-9])(?:{AREAS})[-_]\d{{3}}(?!\d)")
RANGE: Final = re.compile(rf"\b({AREAS})-(\d{{3}})(?:\.\.| to (?:{AREAS})-)(\d{{3}})\b")
GAP: Final = re.compile(rf"^\| ((?:(?:, )?(?:{AREAS})-\d{{3}})+) \|", re.M)
SHOWN: Final = 4

Places = dict[str, list[str]]
"""Rule -> where it is cited, in order, each place once."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `level`: "" where the page gives none."""

    id: str
    page: str
    level: str


@dataclass(slots=True)
class Case:
    """One conformance case, as its decorator says."""

    id: str
    rules: tuple[str, ...]


@dataclass(slots=True)
class Found:
    """What the tree says of all rules."""

    rules: list[Rule]
    code: Places
    tests: Places
    cases: Places = field(default_factory=dict)  # rule -> case IDs


def rules_of(page: Path) -> Iterator[Rule]:
    """The rules that a page of docs/spec defines, in order.

    A rule's level follows its ID, or stands before it on its line, or in the line that heads its
    table (`all MUST`).
    """
    heading = ""
    for line in page.read_text().splitlines():
        told = re.search(rf"\ball ({'|'.join(LEVELS)})\b|^#.*\(({'|'.join(LEVELS)}):", line)
        if told:
            heading = told[1] or told[2]
        elif line.startswith("#"):
            heading = ""
        for found in DEFINED.finditer(line):
            own = re.match(rf"\W*({'|'.join(LEVELS)})\b", line[found.end() :])
            before = re.match(rf"({'|'.join(LEVELS)})\b", line)
            level = own[1] if own else before[1] if before else heading
            yield Rule(found[1], page.stem, level)


def cited(text: str) -> Iterator[tuple[int, str]]:
    """Line number and rule of every citation; ranges name all between their ends."""
    for number, line in enumerate(text.splitlines(), 1):
        for found in CITED.finditer(line):
            yield number, found[0].replace("_", "-")
        for area, first, last in RANGE.findall(line):
            for between in range(int(first), int(last) + 1):
                yield number, f"{area}-{between:03}"


def places(files: Iterable[Path], *, tests: bool) -> Places:
    """Where each rule is cited: `file: function`, or the file for what stands outside (not in
    tests)."""
    found: Places = {}
    for path in files:
        text = path.read_text()
        spans = _spans(ast.parse(text))
        for number, rule in cited(text):
            name = _enclosing(spans, number)
            if tests:
                name = next((part for part in name.split(".") if part.startswith("test_")), "")
                if not name:
                    continue  # a heading of the file claims more than a test does
            where = str(path.relative_to(ROOT)) + (f": {name}" if name else "")
            if where not in found.setdefault(rule, []):
                found[rule].append(where)
    return found


def _spans(tree: ast.Module) -> list[tuple[int, int, str]]:
    """First line (that of the first decorator), last line, dotted name."""
    spans: list[tuple[int, int, str]] = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}"
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                spans.append((first, child.end_lineno or child.lineno, name))
                visit(child, f"{name}.")

    visit(tree, "")
    return spans


def _enclosing(spans: Sequence[tuple[int, int, str]], line: int) -> str:
    inside = [(last - first, name) for first, last, name in spans if first <= line <= last]
    return min(inside, default=(0, ""))[1]


def cases_of(files: Iterable[Path]) -> Iterator[Case]:
    """The conformance cases, read from the decorators, so that nothing is imported."""
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "conformance":
                given = {k.arg: k.value for k in node.keywords}
                yield Case(ast.literal_eval(given["id"]), tuple(ast.literal_eval(given["rules"])))


def look() -> Found:
    """Read the tree."""
    pages = sorted((ROOT / "docs" / "spec").glob("*.md"))
    rules = [rule for page in pages for rule in rules_of(page)]
    cases: Places = {}
    for case in cases_of(sorted((ROOT / "conformance" / "cases").rglob("*.py"))):
        for rule in case.rules:
            cases.setdefault(rule, []).append(case.id)
    code = places(sorted((ROOT / "refkubelet").rglob("*.py")), tests=False)
    for package in ("fakecri", "fakeapi"):
        for rule, where in places(sorted((ROOT / package).rglob("*.py")), tests=False).items():
            code.setdefault(rule, []).extend(where)
    project = ROOT / "tests" / "project"  # about the project, not about a kubelet
    files = [p for p in sorted((ROOT / "tests").rglob("test_*.py")) if project not in p.parents]
    tests = places(files, tests=True)
    return Found(rules, code, tests, cases)


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
            _row(rule, found, [outcomes for _, outcomes in subjects])
            for rule in found.rules
            if rule.page == name
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
        "not proving it. A rule without code reads *not yet*.\n\n",
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


def _row(rule: Rule, found: Found, outcomes: Sequence[dict[str, str]]) -> Sequence[str]:
    code, tests = found.code.get(rule.id, []), found.tests.get(rule.id, [])
    cases = found.cases.get(rule.id, [])
    done = code or tests or cases
    missing = "*not yet*" + (" ([why](gaps.md))" if rule.level == "MUST" else "")
    return (
        rule.id,
        rule.level,
        _some(_closest(code)) if done else missing,
        _some([place.removeprefix("tests/") for place in tests]),
        ", ".join(cases),
        *(_verified(cases, outcome) for outcome in outcomes),
    )


def _closest(code: Sequence[str]) -> list[str]:
    """The places without the files that also have a function or class named here."""
    files = {place.partition(": ")[0] for place in code if ": " in place}
    return [place.removeprefix("refkubelet/") for place in code if place not in files]


def _some(told: Sequence[str]) -> str:
    """The first few, the rest as a number."""
    more = [f"{len(told) - SHOWN} more"] if len(told) > SHOWN else []
    return ", ".join([*(f"`{place}`" for place in told[:SHOWN]), *more])


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
        add_run(results, json.loads(given.add.read_text()), given.kubelet, given.runtime)
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
