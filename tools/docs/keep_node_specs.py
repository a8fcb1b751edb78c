"""Keeps single specs of Kubernetes' own node suite on several kubelets, for docs/verified.md.

`python tools/docs/keep_node_specs.py keep KUBELET FILE...` takes ginkgo's JSON reports of one
kubelet (`ginkgo --json-report=FILE ... e2e_node.test`) into results/node-specs.json, in the place
of what was kept of that kubelet. The reports may be of different specs, as the serial and
disruptive ones are run in several lots; a spec that is in more than one of them was repeated, and
each outcome counts. One that was cut off has none. `python tools/docs/keep_node_specs.py because
TEXT WHY` says why specs whose name has TEXT in it did not pass; tools/docs/render_verified.py makes
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

sys.path.insert(0, str(Path(__file__).parent))  # those beside it, also with PYTHONSAFEPATH

from keep_node_suite import Report, specs_of

KEPT: Final = Path(__file__).parents[2] / "results"
CUT_OFF: Final = ("interrupted", "aborted")
"""States of a spec whose run somebody ended: it has no outcome."""
Record = dict[str, Any]
"""Of results/node-specs.json: `kubelets`, name -> what `run_of` keeps; `reasons`, part of a name of
a spec -> text."""


def run_of(reports: Sequence[Report]) -> dict[str, Any]:
    """What is kept of one kubelet's reports; `specs`: spec -> its `area`, how often it had which of
    the `outcomes`, and the first `reason` of one that was not a pass."""
    suites = [suite for report in reports for suite in report]
    specs: dict[str, dict[str, Any]] = {}
    for report in reports:
        for name, told in specs_of([_without_cut_off(suite) for suite in report]).items():
            kept = specs.setdefault(name, {"area": told["area"], "outcomes": Counter()})
            kept["outcomes"][told["outcome"]] += 1
            if "reason" in told:
                kept.setdefault("reason", told["reason"])
    return {
        "dates": sorted({suite["StartTime"][:10] for suite in suites}),
        "real_s": round(sum(suite["RunTime"] for suite in suites) / 1e9),
        "specs": dict(sorted(specs.items())),
    }


def _without_cut_off(suite: Mapping[str, Any]) -> Mapping[str, Any]:
    whole = [spec for spec in suite.get("SpecReports") or [] if spec["State"] not in CUT_OFF]
    return {**suite, "SpecReports": whole}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: kept; 2: a reason for a spec that always passed, or is not there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kept", type=Path, default=KEPT, help="the folder of the kept file")
    commands = parser.add_subparsers(dest="command", required=True)
    keep = commands.add_parser("keep")
    keep.add_argument("kubelet", help="whose runs these are, such as 'kubelet 1.36.2'")
    keep.add_argument("files", nargs="+", type=Path, metavar="FILE", help="ginkgo's JSON reports")
    because = commands.add_parser("because")
    because.add_argument("text", help="a part of the names of the specs")
    because.add_argument("why", help="in one sentence")
    given = parser.parse_args(arguments)
    record_file = given.kept / "node-specs.json"
    record: Record = json.loads(record_file.read_text()) if record_file.exists() else {}
    record = {"kubelets": {}, "reasons": {}, **record}
    if given.command == "keep":
        reports = [json.loads(file.read_text()) for file in given.files]
        record["kubelets"][given.kubelet] = run_of(reports)
    else:
        if not _explains_something(record["kubelets"], given.text):
            print(f"error: no kept spec that did not pass has {given.text!r}", file=sys.stderr)
            return 2
        record["reasons"][given.text] = given.why
    record_file.write_text(json.dumps(record, indent=1) + "\n")
    return 0


def _explains_something(kubelets: Mapping[str, Any], text: str) -> bool:
    return any(
        text in name and set(told["outcomes"]) != {"passed"}
        for run in kubelets.values()
        for name, told in run["specs"].items()
    )


if __name__ == "__main__":
    sys.exit(main())
