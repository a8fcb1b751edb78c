"""Puts mutants back where they belong after the lines around them have changed.

python tests/mutants/refit.py [--check]

A patch fits where the lines that it keeps and removes stand exactly once. When a refactoring has
changed what it keeps, and what it removes still stands once (with some of the lines beside it), the
patch is written anew with the lines that are there now. Names those that only a person can mend,
and ends with 1 if there are any; `--check` writes nothing.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))  # also where PYTHONSAFEPATH is set

from mutant_patches import HOME, Hunk, Mutant, MutantError, applied, read

TREE: Final = HOME.parents[1]


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
            yield Hunk(hunk.file, old, hunk.new[top : len(hunk.new) - end])


def refitted(hunks: tuple[Hunk, ...], text: str) -> str:
    """The module's text with the hunks applied where they belong now. Raises MutantError."""
    for hunk in hunks:
        for smaller in contexts(hunk):
            try:
                text = applied([smaller], text)
            except MutantError:
                continue
            break
        else:
            raise MutantError(f"{hunk.file}: the lines that change are not there, or not once")
    return text


def rewritten(mutant: Mutant, head: str, tree: Path = TREE) -> str:
    """The patch file of a mutant, with the lines that are there now. Raises MutantError,
    OSError."""
    files = dict.fromkeys(hunk.file for hunk in mutant.hunks)
    diff = ""
    for file in files:
        text = (tree / file).read_text()
        changed = refitted(tuple(hunk for hunk in mutant.hunks if hunk.file == file), text)
        lines = text.splitlines(keepends=True), changed.splitlines(keepends=True)
        diff += "".join(difflib.unified_diff(*lines, f"a/{file}", f"b/{file}"))
    return f"{head}\n\n{diff}"


def fits(mutant: Mutant, tree: Path = TREE) -> bool:
    """Whether all of its hunks fit as they are."""
    try:
        for file in {hunk.file for hunk in mutant.hunks}:
            of_file = [hunk for hunk in mutant.hunks if hunk.file == file]
            applied(of_file, (tree / file).read_text())
    except (MutantError, OSError):
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description="Put mutants back where they belong.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    moved = lost = 0
    for file in sorted(HOME.glob("*/*.patch")):
        mutant = read(file)
        if fits(mutant):
            continue
        try:
            text = rewritten(mutant, file.read_text().partition("\n\n")[0])
        except (MutantError, OSError) as error:
            lost += 1
            print(f"{mutant.name}: {error}")
            continue
        moved += 1
        if not check:
            file.write_text(text)
    print(f"{moved} put back, {lost} to be mended by hand")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
