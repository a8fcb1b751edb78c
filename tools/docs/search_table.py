"""The table of search.md: known bugs, planted, and after how many drawn worlds a law was broken.

Made from search-known.json, which tests/mutants/search_mutants.py keeps;
tools/docs/render_verified.py writes it between the markers of the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markdown_tables import table

PAGE = "../fixtures/bugs"


def known_bugs_table(record: Mapping[str, Any]) -> str:
    """One line per wrong kubelet, those found first; above it how many there are."""
    if not record:
        return "No run is recorded.\n"
    found = sorted((row["seed"], name) for name, row in record.items() if row["seed"] is not None)
    missed = sorted(name for name, row in record.items() if row["seed"] is None)
    lines = []
    for name in (*(name for _, name in found), *missed):
        row = record[name]
        fixtures = ", ".join(f"[{each}]({PAGE}/{each}.yaml)" for each in row["fixtures"])
        seed = "" if row["seed"] is None else str(row["seed"])
        laws = ", ".join(f"`{law}`" for law in row["laws"]) or f"none in {row['worlds']} worlds"
        lines.append((fixtures, seed, laws, row["date"]))
    share = f"{len(found)} of {len(record)} ({len(found) / len(record):.0%}) were found.\n"
    return f"{share}\n{table(('fixture', 'worlds', 'laws', 'run on'), lines)}"
