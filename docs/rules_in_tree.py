"""What the tree says of each rule: its text in docs/spec, where code, tests and cases cite it, and
which of them a broken clause was seen to make fail.

A rule counts as implemented where its ID stands in a docstring or a comment, and as tested where it
stands inside a test function, its name included, or in the `rules` of a conformance case. A rule
that says several things has numbered clauses: `BACK-003.2` is what follows `**.2**` in the text of
BACK-003. A case or a test that cites a rule is *proved* for a clause when a mutant, a kubelet that
breaks this clause, makes it fail (`docs/suite-mutants.json`, which `tox -e mutants-suite -- --keep`
writes).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from conformance.rule_texts import rules_in

ROOT: Final = Path(__file__).parents[1]
AREAS: Final = "LIFE|BACK|PLEG|GC|SRC|MIRR|STAT|EVIC|PREE|CG|PROBE|CRI|NODE|SRV|CFG"
CITED: Final = re.compile(rf"(?<![A-Za-z0-9])((?:{AREAS})[-_]\d{{3}})(\.\d{{1,2}})?(?!\d)")
RANGE: Final = re.compile(rf"\b({AREAS})-(\d{{3}})(?:\.\.| to (?:{AREAS})-)(\d{{3}})\b")

Places = dict[str, list[str]]
"""Rule or clause -> where it is cited, in order, each place once. Where a clause is cited, its rule
is, too."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `level`: "" where the page gives none. `clauses`: the numbers of its clauses; none
    where it says one thing."""

    id: str
    page: str
    level: str
    clauses: tuple[int, ...] = ()

    def parts(self) -> list[str]:
        """The IDs of what can be broken by itself: its clauses, or the rule.

        >>> Rule("BACK-003", "", "MUST", (1, 2)).parts(), Rule("BACK-004", "", "MUST").parts()
        (['BACK-003.1', 'BACK-003.2'], ['BACK-004'])
        """
        return [f"{self.id}.{number}" for number in self.clauses] or [self.id]


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
    cases: Places = field(default_factory=dict)  # rule or clause -> case IDs
    proved: Places = field(default_factory=dict)
    """Clause -> cases and tests that fail when it is broken."""


def rules_of(page: Path) -> Iterator[Rule]:
    """The rules that a page of docs/spec defines, in order."""
    for rule in rules_in(page.stem, page.read_text()):
        yield Rule(rule.id, rule.page, rule.level, tuple(rule.clauses()))


def cited(text: str) -> Iterator[tuple[int, str]]:
    """Line number and rule of every citation, and the clause where it names one; ranges name all
    between their ends."""
    for number, line in enumerate(text.splitlines(), 1):
        for found in CITED.finditer(line):
            rule = found[1].replace("_", "-")
            yield number, rule
            if found[2]:
                yield number, rule + found[2]
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
        for rule in dict.fromkeys([r.partition(".")[0] for r in case.rules] + list(case.rules)):
            cases.setdefault(rule, []).append(case.id)
    code = places(sorted((ROOT / "refkubelet").rglob("*.py")), tests=False)
    for package in ("kubeobjects", "fakecri", "fakekubeapi"):
        for rule, where in places(sorted((ROOT / package).rglob("*.py")), tests=False).items():
            code.setdefault(rule, []).extend(where)
    project = ROOT / "tests" / "project"  # about the project, not about a kubelet
    files = [p for p in sorted((ROOT / "tests").rglob("test_*.py")) if project not in p.parents]
    tests = places(files, tests=True)
    return Found(rules, code, tests, cases, proved_by(ROOT / "docs" / "suite-mutants.json", cases))


def proved_by(kept: Path, cases: Places) -> Places:
    """Clause -> the cases that cite its rule, and the tests, that failed on a mutant of it."""
    proved: Places = {}
    mutants = json.loads(kept.read_text()) if kept.exists() else {}
    for mutant in mutants.values():
        for clause in mutant["rules"]:
            citing = cases.get(clause.partition(".")[0], [])
            failed = [case for case in mutant["noticed"] if case in citing]
            for one in [*failed, *mutant.get("tests", [])]:
                if one not in proved.setdefault(clause, []):
                    proved[clause].append(one)
    return proved
