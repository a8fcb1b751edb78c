"""Writes the tables of docs/verified.md from docs/verified.json, between the markers.

`python docs/render_verified.py` rewrites the file; with `--check` it says whether the file is
current (exit code 1: it is not). The JSON file is kept by `tox -e verified`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
BEGIN: Final = "<!-- begin: {name}, made by docs/render_verified.py -->\n"
END: Final = "<!-- end: {name} -->\n"


def runs_table(runs: Mapping[str, Any]) -> str:
    """One line per containerd version: when, on what, with what result."""
    lines = [
        (
            run["containerd"],
            run["runc"],
            run["date"],
            run["host"],
            f"{run['contract']['passed']} passed, {run['contract']['failed']} failed",
            f"{run['machine']['operations']:,} from seed {run['machine']['seed']}",
            "**yes**" if run["machine"]["mismatch"] else "none",
        )
        for _, run in _by_version(runs)
    ]
    heads = ("containerd", "runc", "run on", "host", "contract tests", "random operations")
    return _table((*heads, "differences outside the table below"), lines)


def differences_table(runs: Mapping[str, Any]) -> str:
    """One line per difference, with the number of times each version showed it."""
    versions = [version for version, _ in _by_version(runs)]
    times: dict[tuple[str, str, str], dict[str, int]] = {}
    for version, run in _by_version(runs):
        for row in run["differences"]:
            key = (row["method"], row["what"], row["reason"])
            times.setdefault(key, {})[version] = row["times"]
    lines = [
        (
            "any" if method == "*" else f"`{method}`",
            what,
            *(f"{seen[version]:,}" if version in seen else "" for version in versions),
            reason,
        )
        for (method, what, reason), seen in sorted(times.items())
    ]
    return _table(("method", "difference", *versions, "reason"), lines)


TABLES: Final = {"runs": runs_table, "differences": differences_table}


def _by_version(runs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(runs.items(), key=lambda item: [int(part) for part in item[0].split(".")])


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in r)} |\n" for r in rows
    )


def rendered(text: str, runs: Mapping[str, Any]) -> str:
    """`text` with fresh tables. Raises ValueError naming a marker that is not there once."""
    for name, make in TABLES.items():
        begin, end = BEGIN.format(name=name), END.format(name=name)
        for marker in (begin, end):
            if text.count(marker) != 1:
                raise ValueError(f"wanted the line once: {marker.strip()}")
        before, _, rest = text.partition(begin)
        text = before + begin + make(runs) + end + rest.partition(end)[2]
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: current or rewritten; 1: `--check` found it old; 2: it cannot be made."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--page", type=Path, default=HERE / "verified.md")
    parser.add_argument("--results", type=Path, default=HERE / "verified.json")
    given = parser.parse_args(arguments)
    try:
        old = given.page.read_text()
        new = rendered(old, json.loads(given.results.read_text()))
    except (OSError, ValueError, KeyError) as error:
        print(f"error: {given.page} from {given.results}: {error!r}", file=sys.stderr)
        return 2
    if given.check and new != old:
        print(f"{given.page} is not what {given.results} says: run {__file__}", file=sys.stderr)
        return 1
    if new != old:
        given.page.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
