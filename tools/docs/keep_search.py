"""Keeps what campaigns of search said: results/search.json.

`python tools/docs/keep_search.py FILE --kubelet NAME` takes the lines of a `kubelet-conformance
search ... --results FILE` in, in place of an earlier campaign of that kubelet, size and first seed.
tools/docs/render_verified.py makes a table of it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from kubelet_conformance.search.campaign import Summary
from kubelet_conformance.search.records import Head, Met, read_lines

KEPT: Final = Path(__file__).parents[2] / "results" / "search.json"


def row_of(head: Head, lines: Iterable[Met], kubelet: str) -> dict[str, Any]:
    """What is kept of a campaign."""
    lines = sorted(lines, key=lambda line: line.seed)
    summary = Summary()
    for line in lines:
        summary.add(line)
    return {
        "kubelet": kubelet,
        "size": head.size,
        "beside": "refkubelet" if head.beside else "",
        "date": head.began[:10],
        "seeds": [lines[0].seed, lines[-1].seed],
        "worlds": summary.worlds,
        "verdicts": dict(sorted(summary.verdicts.items())),
        "laws": dict(sorted(summary.laws.items())),
        "excuses": dict(summary.excuses.most_common()),
        "world_h": round(summary.world_s / 3600, 1),
        "cpu_h": round(summary.cpu_s / 3600, 2),
    }


def take(kept: Iterable[dict[str, Any]], row: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows with this one, in order."""
    rows = {_key(each): each for each in (*kept, row)}
    return [rows[key] for key in sorted(rows)]


def _key(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["kubelet"], row["size"], row["seeds"][0]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="the results of the campaign")
    parser.add_argument("--kubelet", default="refkubelet", help="name and version")
    given = parser.parse_args(arguments)
    head, lines = read_lines(given.file)
    if not lines:
        parser.error(f"{given.file}: it has no world")
    rows = take(json.loads(KEPT.read_text()), row_of(head, lines, given.kubelet))
    KEPT.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
