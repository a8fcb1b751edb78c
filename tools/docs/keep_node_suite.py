"""Keeps what Kubernetes' own node suite said of two kubelets, for the tables of docs/verified.md.

`python tools/docs/keep_node_suite.py keep TITLE KUBELET FILE...` takes ginkgo's JSON reports of one
kubelet (`ginkgo --json-report=FILE ... e2e_node.test`) into results/node-suite.json: the first is
the whole run, a spec in a later one was run once more and has its outcome from there. `python
tools/docs/keep_node_suite.py because TITLE TEXT WHY` says why specs whose name has TEXT in it did
not pass; tools/docs/render_verified.py makes the tables.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

KEPT: Final = Path(__file__).parents[2] / "results"
OUTCOMES: Final = {"passed": "passed", "skipped": "skipped"}
"""States of ginkgo; all others (failed, panicked, timedout, interrupted, aborted) are failures."""
Report = Sequence[Mapping[str, Any]]
"""A JSON report of ginkgo: a list of suites."""


def specs_of(report: Report) -> dict[str, dict[str, str]]:
    """Spec -> `area`, `outcome` and, unless it passed, the first line of the `reason`; only those
    that ran, also as far as a skip in their body."""
    found = {}
    for spec in _its(report):
        outcome = OUTCOMES.get(spec["State"], "failed")
        if spec["State"] == "pending" or (outcome == "skipped" and not spec.get("RunTime")):
            continue
        name = " ".join([*(spec.get("ContainerHierarchyTexts") or []), spec["LeafNodeText"]])
        place = spec["LeafNodeLocation"]["FileName"].rpartition("/test/")[2]
        told = {"area": place.removesuffix(".go").removesuffix("_test"), "outcome": outcome}
        if outcome != "passed":
            told["reason"] = first_line(spec.get("Failure", {}).get("Message", ""))
        found[name] = told
    return found


def _its(report: Report) -> Iterator[Mapping[str, Any]]:
    for suite in report:
        for spec in suite.get("SpecReports") or []:
            if spec.get("LeafNodeType") == "It":
                yield spec


def first_line(message: str) -> str:
    """Of a failure, without what is the machine's: absolute paths lose their folders."""
    line = next((line.strip() for line in message.splitlines() if line.strip()), "")
    return re.sub(r"(?<![\w.:/])/(?:[\w.+-]+/)+(?=[\w.+-])", "", line)[:200]


def kept(reports: Sequence[Report]) -> dict[str, Any]:
    """What is kept of a whole run and of the specs that were run again."""
    whole, *again = (specs_of(report) for report in reports)
    latest = {**whole, **{name: told for run in again for name, told in run.items()}}
    areas: dict[str, Counter[str]] = {}
    for told in latest.values():
        areas.setdefault(told["area"], Counter())[told["outcome"]] += 1
    suite = reports[0][0]
    return {
        "date": suite["StartTime"][:10],
        "label_filter": suite["SuiteConfig"].get("LabelFilter", ""),
        "procs": suite["SuiteConfig"].get("ParallelTotal", 1),
        "real_s": round(suite["RunTime"] / 1e9),
        "areas": {area: dict(sorted(counts.items())) for area, counts in sorted(areas.items())},
        "not_passed": {
            name: {what: told[what] for what in ("outcome", "reason")}
            for name, told in sorted(latest.items())
            if told["outcome"] != "passed"
        },
        "passed_again": sorted(
            name
            for name, told in whole.items()
            if told["outcome"] == "failed" and latest[name]["outcome"] == "passed"
        ),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: kept; 2: a reason for a spec that passes, or is not there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kept", type=Path, default=KEPT, help="the folder of the kept files")
    commands = parser.add_subparsers(dest="command", required=True)
    keep = commands.add_parser("keep")
    keep.add_argument("title", help="of the choice of specs, such as NodeConformance")
    keep.add_argument("kubelet", help="whose run this is, such as 'kubelet 1.36.2'")
    keep.add_argument("files", nargs="+", type=Path, metavar="FILE", help="ginkgo's JSON reports")
    because = commands.add_parser("because")
    because.add_argument("title", help="of the choice of specs")
    because.add_argument("text", help="a part of the names of the specs")
    because.add_argument("why", help="in one sentence")
    given = parser.parse_args(arguments)
    record_file = given.kept / "node-suite.json"
    record = json.loads(record_file.read_text()) if record_file.exists() else {}
    choice = record.setdefault(given.title, {"kubelets": {}, "reasons": {}})
    if given.command == "keep":
        reports = [json.loads(file.read_text()) for file in given.files]
        choice["kubelets"][given.kubelet] = kept(reports)
    else:
        if not any(given.text in name for name in _not_passed(choice)):
            print(f"error: no kept spec that did not pass has {given.text!r}", file=sys.stderr)
            return 2
        choice["reasons"][given.text] = given.why
    record_file.write_text(json.dumps(record, indent=1) + "\n")
    return 0


def _not_passed(choice: Mapping[str, Any]) -> Iterator[str]:
    for run in choice["kubelets"].values():
        yield from run["not_passed"]
        yield from run["passed_again"]


if __name__ == "__main__":
    sys.exit(main())
