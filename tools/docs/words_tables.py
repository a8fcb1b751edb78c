"""Writes the tables of words in docs/: what containers do, what befalls calls, what else happens.

A page has a table between `<!-- words: behaviors -->` (`faults`, `actions`) and `<!-- /words -->`.
`python tools/docs/words_tables.py` rewrites them; with `--check` it says whether they are current.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from fakecri.rules.on import VERBS
from fakecri.words.actions import Action
from fakecri.words.behaviors import Behavior
from fakecri.words.word import Word, form, sentence

DOCS: Final = Path(__file__).parents[2] / "docs"
TABLES: Final[Mapping[str, Mapping[str, type[Word]]]] = {
    "behaviors": Behavior.known,
    "faults": VERBS,
    "actions": Action.known,
}
OF_ALL: Final = ("times",)
"""Fields that every fault has."""
PLACE: Final = re.compile(r"(<!-- words: (\w+) -->\n).*?(?=<!-- /words -->)", re.DOTALL)


def table(name: str) -> str:
    """The rows of a table, with its head."""
    return "".join(f"| {' | '.join(row)} |\n" for row in _rows(name))


def _rows(name: str) -> Iterator[tuple[str, str]]:
    yield name.rstrip("s").replace("behavior", "behaviour"), "what it does"
    yield "---", "---"
    for word in TABLES[name].values():
        yield f"`{form(word, *OF_ALL)}`", sentence(word)


def current(text: str) -> str:
    """A page with its tables as they are to be."""
    return PLACE.sub(lambda found: f"{found[1]}\n{table(found[2])}\n", text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: all are current or rewritten; 1: `--check` found an old one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    texts = {page: page.read_text() for page in sorted(DOCS.rglob("*.md"))}
    old = [page for page, text in texts.items() if current(text) != text]
    if not parser.parse_args(arguments).check:
        for page in old:
            page.write_text(current(texts[page]))
        return 0
    for page in old:
        print(f"{page}: rewrite it with: python tools/docs/{Path(__file__).name}")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
