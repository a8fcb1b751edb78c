"""Keeps what a run of the suite said of a kubelet and a runtime: results/conformance.json.

`python tools/docs/keep_conformance.py FILE --kubelet NAME --runtime NAME` takes the outcome of a
`kubelet-conformance run ... --results FILE` in. tools/docs/render_verified.py makes tables of it,
and the pages of rules say of each rule where it was seen.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kubelet_conformance.results_file import document, read

KEPT: Final = Path(__file__).parents[2] / "results" / "conformance.json"


def add_run(
    results: list[dict[str, Any]], added: dict[str, Any], kubelet: str, runtime: str
) -> None:
    """Take the cases of a run into the record of that pair, each in the place of its last outcome:
    a run of a few cases says nothing about the others."""
    record: dict[str, Any] = {"cases": {}, "date": added["date"]}
    for run in results:
        if (run["kubelet"], run["runtime"]) == (kubelet, runtime):
            record = run
            results.remove(run)
            break
    cases = {area: dict(of) for area, of in record["cases"].items()}
    for case, told in added["cases"].items():
        cases.setdefault(told["area"], {})[case] = told["outcome"]
    new = {
        "kubelet": kubelet,
        "runtime": runtime,
        "date": max(added["date"], record["date"]),
        "cases": {area: dict(sorted(of.items())) for area, of in sorted(cases.items())},
    }
    whole = _whole(added) or record.get("whole")
    results.append(new | ({"whole": whole} if whole else {}))
    results.sort(key=lambda r: (r["kubelet"], r["runtime"]))


def _whole(added: dict[str, Any]) -> dict[str, Any] | None:
    """Of a run of all MUST cases: what it took, for the table of the README."""
    if not added["whole"] or added["level"] != "must":
        return None
    counted: dict[str, Counter[str]] = {}
    for told in added["cases"].values():
        counted.setdefault(told["area"], Counter())[told["outcome"]] += 1
    return {
        "date": added["date"],
        "real_s": added["real_s"],
        "areas": {
            area: times | {"outcomes": dict(counted[area])}
            for area, times in sorted(added["areas"].items())
        },
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="the results of the run")
    parser.add_argument("--kubelet", default="refkubelet", help="name and version")
    parser.add_argument("--runtime", default="fakecri", help="name and version")
    given = parser.parse_args(arguments)
    results = json.loads(KEPT.read_text())
    add_run(results, document(read(given.file)), given.kubelet, given.runtime)
    KEPT.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
