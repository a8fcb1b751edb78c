"""What the tree says of each rule: its text in docs/spec, where code, tests and cases cite it, and
which of them a broken clause was seen to make fail.

A rule counts as implemented where its ID stands in a docstring or a comment, and as tested where it
stands inside a test function, its name included, or in the `rules` of a conformance case. A rule
that says several things has numbered clauses: `BACK-003.2` is what follows `**.2**` in the text of
BACK-003. A case or a test that cites a rule is *proved* for a clause when a mutant, a kubelet (or a
runtime) that breaks this clause, makes it fail (`results/suite-mutants.json`, which `tox -e
mutants-suite -- --keep` and `mutant_tests.py` write).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from kubelet_conformance.rule_places import AREAS, Places, places, product_places
from kubelet_conformance.rule_texts import RuleText, all_rules

ROOT: Final = Path(__file__).parents[2]
KEYS: Final = ("id", "rules")
CONTRACT: Final = "tests/verified/test_cri_"
"""What begins the names of the contract tests: what a runtime does, asked of the fake and of a real
containerd."""
GAP: Final = re.compile(rf"^\| ((?:(?:, )?(?:{AREAS})-\d{{3}})+) \|", re.M)


@dataclass(slots=True)
class Case:
    """One conformance case, as its decorator says."""

    id: str
    rules: tuple[str, ...]
    place: str
    """`conformance/kubelet_conformance/cases/backoff/growth.py:12`."""


@dataclass(slots=True)
class Found:
    """What the tree says of all rules."""

    rules: Sequence[RuleText]
    code: Places
    tests: Places
    cases: Mapping[str, list[str]] = field(default_factory=dict)
    """Rule or clause -> IDs of cases."""
    proved: Mapping[str, list[str]] = field(default_factory=dict)
    """Clause -> IDs of cases, and tests as `file: function`, that fail when it is broken."""
    case_places: Mapping[str, str] = field(default_factory=dict)
    """ID of a case -> where it is."""

    def proves(self, one: str) -> bool:
        """Whether what noticed a breach counts: a case, or a contract test of runtimes."""
        return one in self.case_places or one.startswith(CONTRACT)


def parts(rule: RuleText) -> list[str]:
    """The IDs of what can be broken by itself: its clauses, or the rule."""
    return [f"{rule.id}.{number}" for number in rule.clauses()] or [rule.id]


def test_places(files: Iterable[Path]) -> Places:
    """The test functions that cite each rule; a heading of a file claims more than a test does."""
    found = {
        rule: [place for place in of if place.name.rpartition(".")[2].startswith("test_")]
        for rule, of in places(files, ROOT).items()
    }
    return {rule: of for rule, of in found.items() if of}


def cases_of(files: Iterable[Path]) -> Iterator[Case]:
    """The conformance cases, read from the decorators, so that nothing is imported."""
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "conformance":
                given = {k.arg: ast.literal_eval(k.value) for k in node.keywords if k.arg in KEYS}
                where = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield Case(given["id"], tuple(given["rules"]), where)


def fixtures() -> Iterator[Case]:
    """The fixtures of bugs, which are cases, too."""
    for path in sorted((ROOT / "fixtures" / "bugs").glob("*.yaml")):
        given = yaml.safe_load(path.read_text())
        yield Case(path.stem, tuple(given["rules"]), str(path.relative_to(ROOT)))


def look() -> Found:
    """Read the tree."""
    cases: dict[str, list[str]] = {}
    case_places = {}
    modules = sorted((ROOT / "conformance" / "kubelet_conformance" / "cases").rglob("*.py"))
    for case in (*cases_of(modules), *fixtures()):
        case_places[case.id] = case.place
        for rule in dict.fromkeys([r.partition(".")[0] for r in case.rules] + list(case.rules)):
            cases.setdefault(rule, []).append(case.id)
    tests = ROOT / "tests"
    others = {tests / "project", tests / "conformance"}  # about the project and the suite's tools
    files = [p for p in sorted(tests.rglob("test_*.py")) if others.isdisjoint(p.parents)]
    return Found(
        rules=list(all_rules().values()),
        code=product_places(),
        tests=test_places(files),
        cases=cases,
        proved=proved_by(ROOT / "results" / "suite-mutants.json", cases),
        case_places=case_places,
    )


def proved_by(kept: Path, cases: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Clause -> the cases that cite its rule, and the tests, that failed on a mutant of it."""
    proved: dict[str, list[str]] = {}
    mutants = json.loads(kept.read_text()) if kept.exists() else {}
    for mutant in mutants.values():
        for clause in mutant["rules"]:
            citing = cases.get(clause.partition(".")[0], [])
            failed = [case for case in mutant["noticed"] if case in citing]
            for one in [*failed, *mutant.get("tests", [])]:
                if one not in proved.setdefault(clause, []):
                    proved[clause].append(one)
    return proved


def untested(found: Found) -> list[str]:
    """MUST rules without a test or a case, and what a fake must do without one."""
    return [
        rule.id
        for rule in found.rules
        if rule.level in ("MUST", "FAKE")
        and rule.id not in found.tests
        and rule.id not in found.cases
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
