"""Rule IDs are the common language: every one that is cited is that of a rule."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from places import ROOT

from kubelet_conformance.rule_places import AREAS

# Test names end in `_LIFE_033`: an underscore may stand before and between.
RULE = re.compile(rf"(?<![A-Za-z0-9])(?:{AREAS})[-_]\d{{3}}(?!\d)")
CLAUSE = re.compile(rf"(?<![A-Za-z0-9])(?:{AREAS})-\d{{3}}\.\d{{1,2}}(?!\d)")
RANGE = re.compile(rf"\b({AREAS})-(\d{{3}})\.\.(\d{{3}})\b")
CODE = (
    *("simclock", "kubeobjects", "fakecri", "fakekubeapi", "refkubelet", "kubenodes"),
    *("conformance", "tests", "benchmarks"),
)


def defined() -> set[str]:
    """The rules of docs/spec: every ID that a rule starts with, or that heads a table row."""
    text = "\n".join(path.read_text() for path in sorted((ROOT / "docs" / "spec").glob("*.md")))
    return set(re.findall(rf"\*\*((?:{AREAS})-\d{{3}})\*\*", text))


def citations() -> Iterator[tuple[Path, str]]:
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for match in RULE.finditer(path.read_text()):
                yield path, match.group(0).replace("_", "-")


def test_every_cited_rule_exists() -> None:
    rules = defined()
    assert len(rules) > 500
    wrong = sorted(
        {f"{p.relative_to(ROOT)}: {rule}" for p, rule in citations() if rule not in rules}
    )
    assert wrong == []


def clauses() -> dict[str, list[int]]:
    """The numbers of each rule's clauses, as they stand in its text."""
    found: dict[str, list[int]] = {}
    for path in sorted((ROOT / "docs" / "spec").glob("*.md")):
        parts = re.split(rf"\*\*((?:{AREAS})-\d{{3}})\*\*", path.read_text())
        for rule, text in zip(parts[1::2], parts[2::2], strict=True):
            found[rule] = [int(number) for number in re.findall(r"\*\*\.(\d+)\*\*", text)]
    return found


def test_clauses_are_numbered_from_one() -> None:
    wrong = [rule for rule, found in clauses().items() if found != [*range(1, len(found) + 1)]]
    assert wrong == []


def test_every_cited_clause_exists() -> None:
    known = {f"{rule}.{number}" for rule, found in clauses().items() for number in found}
    cited = {
        (clause, path.name)
        for folder in CODE
        for path in [*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("mutants/*.txt")]
        for clause in CLAUSE.findall(path.read_text())
    }
    examples = {
        "test_rules_page.py",
        "test_mutant_tables.py",
        "mutant_tables.py",
        "mutant_plan.py",
        "registry.py",
    }
    assert sorted(one for one in cited if one[0] not in known and one[1] not in examples) == []


def test_ranges_begin_and_end_with_a_rule() -> None:
    rules = defined()
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for area, first, last in RANGE.findall(path.read_text()):
                assert f"{area}-{first}" in rules, path
                assert f"{area}-{last}" in rules, path
