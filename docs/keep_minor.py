"""Keeps what kubelets of several minor versions did, for the table of docs/verified.md.

`python docs/keep_minor.py KUBELET FILE...` takes the result files of one kubelet
(`kubelet-conformance run --area AREA --results FILE`) into docs/minors.json, each area in the place
of its last run; docs/render_verified.py makes the table of it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

RECORD: Final = Path(__file__).parent / "minors.json"
OLDER: Final = "or newer, this one is"
"""What stands in the reason of a case that is skipped for its `since`."""
KNOWN: Final = "known bug"

Record = dict[str, Any]
"""Kubelet -> `date` of its last run and `areas`: per area `real_s`, its wall time, the numbers of
its MUST cases that `passed`, were skipped as `older` or for another reason (`skipped`), `known`,
case -> bug of those that failed as expected, and `failed`, case -> outcome of the others."""


def add_run(record: Record, kubelet: str, run: Mapping[str, Any]) -> None:
    """Take a run of whole areas in. Raises KeyError for a result file without levels."""
    kept = record.setdefault(kubelet, {"date": "", "areas": {}})
    kept["date"] = max(kept["date"], run["date"])
    whole_s = sum(times["real_s"] for times in run["areas"].values())
    for area, times in run["areas"].items():
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


def _outcome(told: Mapping[str, str]) -> str:
    return "older" if OLDER in told.get("detail", "") else told["outcome"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kubelet", help="its version, 1.33.13")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="its result files")
    parser.add_argument("--record", type=Path, default=RECORD, help="what is kept")
    given = parser.parse_args(arguments)
    record: Record = json.loads(given.record.read_text()) if given.record.exists() else {}
    for file in given.files:
        add_run(record, given.kubelet, json.loads(file.read_text()))
    given.record.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
