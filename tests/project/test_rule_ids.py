"""Rule IDs are the common language: every one that is cited is that of a rule."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from places import ROOT

AREAS = "LIFE|BACK|PLEG|GC|SRC|MIRR|STAT|EVIC|PREE|CG|PROBE|CRI|NODE|SRV|CFG"
# Test names end in `_LIFE_033`: an underscore may stand before and between.
RULE = re.compile(rf"(?<![A-Za-z0-9])(?:{AREAS})[-_]\d{{3}}(?!\d)")
RANGE = re.compile(rf"\b({AREAS})-(\d{{3}})\.\.(\d{{3}})\b")
CODE = ("simclock", "fakecri", "fakekubeapi", "refkubelet", "conformance", "tests", "benchmarks")


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


def test_ranges_begin_and_end_with_a_rule() -> None:
    rules = defined()
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for area, first, last in RANGE.findall(path.read_text()):
                assert f"{area}-{first}" in rules, path
                assert f"{area}-{last}" in rules, path
