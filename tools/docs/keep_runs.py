"""Keeps what several runs of one thing did, for the tables of docs/verified.md.

`python tools/docs/keep_runs.py seeds FILE...` takes result files of runs with many seeds
(`kubelet-conformance run --seeds 1:20 --latency X --results FILE`) into results/seeds.json, each in
the place of the last run with that latency. `python tools/docs/keep_runs.py repeats "kubelet
1.36.2" FILE...` takes runs of the same cases into results/repeats.json: how long each took beside
what load, and which cases had another outcome in one of them. tools/docs/render_verified.py makes
the tables.
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
Run = Mapping[str, Any]
"""A result file in numbers, see `document` in conformance/kubelet_conformance/results_file.py."""


def seeds_of(run: Run) -> dict[str, Any]:
    """What is kept of a run with several seeds; `failed`: case -> its first reason.

    Raises KeyError for a run with one seed.
    """
    counts = [Counter(outcomes) for outcomes in run["seeds"].values()]
    return {
        "seeds": [int(seed) for seed in run["seeds"]],
        "level": run["level"],
        "cases": max(counted.total() for counted in counts),
        "outcomes": dict(sum(counts, Counter())),
        "failed": {
            name: _reason(told.get("detail", ""))
            for name, told in run["cases"].items()
            if told["outcome"] not in ("passed", "skipped", "disabled")
        },
        **{what: run[what] for what in ("date", "real_s", "load")},
    }


def _reason(detail: str) -> str:
    """The reason of a failure; of an error only its last line, which says what was raised.

    >>> _reason("Traceback (most recent call last):\\n  File ...\\nKeyError: 'web'")
    "KeyError: 'web'"
    """
    return detail.splitlines()[-1] if detail.startswith("Traceback") else detail


def repeats_of(runs: Sequence[Run]) -> dict[str, Any]:
    """What is kept of runs of the same cases; `differ`: case -> its outcome in each run."""
    outcomes = [{name: told["outcome"] for name, told in run["cases"].items()} for run in runs]
    names = sorted({name for run in outcomes for name in run})
    each = {name: [run.get(name, "not run") for run in outcomes] for name in names}
    return {
        "runs": [
            {
                **{what: run[what] for what in ("date", "real_s", "load", "jobs")},
                "outcomes": dict(Counter(run_outcomes.values())),
            }
            for run, run_outcomes in zip(runs, outcomes, strict=True)
        ],
        "must": sum(
            told["level"] == "must" and told["outcome"] != "skipped"
            for told in runs[0]["cases"].values()
        ),
        "differ": {name: found for name, found in each.items() if len(set(found)) > 1},
        "failed": sorted(name for name, found in each.items() if set(found) == {"failed"}),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kept", type=Path, default=KEPT, help="the folder of the kept files")
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in ("seeds", "repeats"):
        of_kind = kinds.add_parser(kind)
        if kind == "repeats":
            of_kind.add_argument(
                "title", help="of the line, such as 'kubelet 1.36.2, level detail'"
            )
        of_kind.add_argument("files", nargs="+", type=Path, metavar="FILE", help="result files")
    given = parser.parse_args(arguments)
    runs = [document(read(file)) for file in given.files]
    record_file = given.kept / f"{given.kind}.json"
    record = json.loads(record_file.read_text()) if record_file.exists() else {}
    if given.kind == "seeds":
        record.update({f"{run['latency']:g}": seeds_of(run) for run in runs})
    else:
        record[given.title] = repeats_of(runs)
    record_file.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
