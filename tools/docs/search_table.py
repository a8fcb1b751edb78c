"""The tables of search.md: known bugs, planted, and after how many drawn worlds a law was broken;
and what campaigns said.

Made from search-known.json, which tests/mutants/search_mutants.py keeps, and search.json, which
keep_search.py keeps; tools/docs/render_verified.py writes them between the markers of the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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


def campaigns_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line per campaign, with what each excuse swallowed."""
    if not rows:
        return "No campaign is recorded.\n"
    lines = []
    for row in rows:
        verdicts = Counter(row["verdicts"])
        beside = f", beside {row['beside']}" if row["beside"] else ""
        excuses = ", ".join(f"{name} {count}" for name, count in row["excuses"].items())
        first, last = row["seeds"]
        lines.append(
            (
                f"{row['kubelet']}{beside}",
                row["size"],
                f"{first}-{last}",
                str(row["worlds"]),
                str(verdicts["holds"]),
                f"{verdicts['excused']}{f' ({excuses})' if excuses else ''}",
                str(verdicts["broken"] + verdicts["error"]),
                f"{row['world_h']:g}",
                f"{row['cpu_h']:g}" if row["cpu_h"] else "",
                row["date"],
            )
        )
    heads = ("kubelet", "size", "seeds", "worlds", "hold", "excused (breaches)", "broken")
    return table((*heads, "hours of theirs", "CPU hours", "run on"), lines)
