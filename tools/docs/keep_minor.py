"""Keeps what kubelets of several minor versions did, for the tables of docs/kubelets.md.

`python tools/docs/keep_minor.py KUBELET FILE...` takes the result files of one kubelet
(`kubelet-conformance run --area AREA --results FILE`) into results/minors.json, each area in the
place of its last run; those of the fixtures (`--area bugs`) go into results/fixtures.json, each
fixture in the place of its last run. tools/docs/render_verified.py makes the tables of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kubelet_conformance.results_file import document, read

KEPT: Final = Path(__file__).parents[2] / "results"
BUGS: Final = "bugs"
"""The area of the fixtures."""
OLDER: Final = "or newer, this one is"
"""What stands in the reason of a case that is skipped for its `since`."""
KNOWN: Final = "known bug"

Titles = Mapping[str, str]
Record = dict[str, Any]
"""Kubelet -> `date` of its last run and `areas`: per area `real_s`, its wall time, the numbers of
its MUST cases that `passed`, were skipped as `older` or for another reason (`skipped`), `known`,
case -> bug of those that failed as expected, and `failed`, case -> outcome of the others."""


def add_run(record: Record, kubelet: str, run: Mapping[str, Any]) -> None:
    """Take a run of whole areas in. Raises KeyError for a result file without levels."""
    areas = {area: times for area, times in run["areas"].items() if area != BUGS}
    if not areas:
        return
    kept = record.setdefault(kubelet, {"date": "", "areas": {}})
    kept["date"] = max(kept["date"], run["date"])
    whole_s = sum(times["real_s"] for times in areas.values())
    for area, times in areas.items():
        told = [(name, of) for name, of in run["cases"].items() if of["area"] == area]
        must = {name: _outcome(of) for name, of in told if of["level"] == "must"}
        counted = Counter(must.values())
        share = times["real_s"] / whole_s if whole_s else 0.0
        kept["areas"][area] = {
            "real_s": round(run["real_s"] * share, 1),
            **{each: counted[each] for each in ("passed", "older", "skipped")},
            "known": {
                name: of["detail"].splitlines()[0] for name, of in told if must.get(name) == KNOWN
            },
            "failed": {
                name: outcome
                for name, outcome in must.items()
                if outcome not in ("passed", "older", "skipped", "disabled", KNOWN)
            },
        }
    kept["areas"] = dict(sorted(kept["areas"].items()))


def add_fixtures(record: Record, kubelet: str, run: Mapping[str, Any], titles: Titles) -> None:
    """Take the fixtures of a run in: per kubelet `date` and `fixtures`, ID -> `title`, `outcome`
    and, unless it passed, `detail`, the first line of the reason."""
    for name, told in run["cases"].items():
        if told["area"] == BUGS:
            kept = record.setdefault(kubelet, {"date": "", "fixtures": {}})
            kept["date"] = max(kept["date"], run["date"])
            detail = told.get("detail", "").partition("\n")[0]
            kept["fixtures"][name] = {
                "title": titles[name],
                "outcome": told["outcome"],
                **({"detail": detail} if detail else {}),
            }


def _outcome(told: Mapping[str, str]) -> str:
    return "older" if OLDER in told.get("detail", "") else told["outcome"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kubelet", help="its version, 1.33.13")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="its result files")
    parser.add_argument("--kept", type=Path, default=KEPT, help="the folder of the kept files")
    given = parser.parse_args(arguments)
    areas, fixtures = (_Kept(given.kept / name) for name in ("minors.json", "fixtures.json"))
    for file in given.files:
        run = read(file)
        numbers = document(run)
        add_run(areas.record, given.kubelet, numbers)
        titles = {case.id: case.title for case in run.cases}
        add_fixtures(fixtures.record, given.kubelet, numbers, titles)
    for kept in (areas, fixtures):
        kept.write()
    return 0


class _Kept:
    """A record in its file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.record: Record = json.loads(file.read_text()) if file.exists() else {}

    def write(self) -> None:
        self._file.write_text(json.dumps(self.record, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
