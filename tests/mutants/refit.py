"""Puts mutants back where they belong after the lines around them have changed or moved.

python tests/mutants/refit.py [--check]

A mutant fits where the lines that it keeps and removes stand exactly once in its function. Where
they do not, the place is looked for: with fewer of the lines that it keeps, in another function of
the file, then in another file. What is found once is written into the table. Names those that only
a person can mend, and ends with 1 if there are any; `--check` writes nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))  # also where PYTHONSAFEPATH is set

from mutant_tables import HOME, IN_TABLES, Hunk, Mutant, MutantError, holder, read, start_of, tables

TREE: Final = HOME.parents[1]
HEAD: Final = "# Wrong kubelets of the area {}; how to read it: tests/mutants/mutant_tables.py\n"


def contexts(hunk: Hunk) -> Iterator[Hunk]:
    """The hunk with fewer and fewer of the lines that it keeps at both ends, most first."""
    before = after = 0
    shorter = min(len(hunk.old), len(hunk.new))
    while before < shorter and hunk.old[before] == hunk.new[before]:
        before += 1
    while after < shorter - before and hunk.old[-1 - after] == hunk.new[-1 - after]:
        after += 1
    cuts = [(top, end) for top in range(before + 1) for end in range(after + 1)]
    for top, end in sorted(cuts, key=lambda cut: (sum(cut), max(cut))):
        old = hunk.old[top : len(hunk.old) - end]
        if any(line.strip() for line in old):
            yield replace(hunk, old=old, new=hunk.new[top : len(hunk.new) - end])


def refitted(hunk: Hunk, texts: Mapping[str, str]) -> Hunk:
    """The hunk where it belongs now. `texts`: those of all files. Raises MutantError."""
    for smaller in contexts(hunk):
        if fits(smaller, texts):
            return smaller
    for smaller in contexts(hunk):
        files = [hunk.file, *(file for file in texts if file != hunk.file)]
        for file in files:
            moved = replace(smaller, file=file, function="")
            if fits(moved, texts):
                text = texts[file]
                return replace(moved, function=holder(text, start_of(moved, text), moved))
    raise MutantError(
        f"{hunk.file}: {hunk.function}: the lines that change are not there, or not once"
    )


def fits(hunk: Hunk, texts: Mapping[str, str]) -> bool:
    """Whether it fits as it is."""
    try:
        start_of(hunk, texts[hunk.file])
    except (MutantError, KeyError):
        return False
    return True


def written(area: str, mutants: list[Mutant]) -> str:
    """The text of a table."""
    return HEAD.format(area) + "".join(f"\n{block(mutant)}\n" for mutant in mutants)


def block(mutant: Mutant) -> str:
    """A mutant in its table."""
    lines = [mutant.name.partition("/")[2], f"  Rule: {', '.join(mutant.rules)}"]
    lines.append(f"  Breaks: {mutant.breaks}")
    if mutant.survives:
        lines.append(f"  Survives: {mutant.survives}")
    if mutant.fixtures:
        lines.append(f"  Fixture: {', '.join(mutant.fixtures)}")
    if mutant.laws:
        lines.append(f"  Law: {', '.join(mutant.laws)}")
    for hunk in mutant.hunks:
        lines.append(f"  {hunk.file}: {hunk.function}".rstrip())
        lines += (f"    {line}".rstrip() for line in hunk.lines())
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Put mutants back where they belong.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    files = sorted(file for package in IN_TABLES for file in (TREE / package).rglob("*.py"))
    texts = {str(file.relative_to(TREE)): file.read_text() for file in files}
    moved = lost = 0
    for table in tables():
        mutants = []
        for mutant in read(table):
            try:
                hunks = tuple(h if fits(h, texts) else refitted(h, texts) for h in mutant.hunks)
            except MutantError as error:
                lost += 1
                print(f"{mutant.name}: {error}")
                hunks = mutant.hunks
            moved += hunks != mutant.hunks
            mutants.append(replace(mutant, hunks=hunks))
        if not check:
            table.write_text(written(table.stem, mutants))
    print(f"{moved} put back, {lost} to be mended by hand")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
