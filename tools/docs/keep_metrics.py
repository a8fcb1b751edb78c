"""Keeps what a kubelet shows at /metrics, for docs/metrics.md: results/metrics.json.

`python tools/docs/keep_metrics.py KUBELET LIST` starts that program with the case in
tools/docs/metrics_case.py (as root, see docs/conformance.md), and reads the list of all metrics
that Kubernetes keeps in its source of the same version,
test/instrumentation/documentation/documentation-list.yaml. Texts of neither are kept.
tools/docs/render_metrics.py makes the page.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from prometheus_client.parser import text_string_to_metric_families

KEPT: Final = Path(__file__).parents[2] / "results" / "metrics.json"
CASE: Final = Path(__file__).with_name("metrics_case.py")
PAGES: Final = ("start", "pods", "end")
OF_HISTOGRAMS: Final = re.compile(r"_(bucket|sum|count)$")
OWN: Final = ("kubelet_", "process_")
Row = dict[str, Any]


def shown(page: str, also: Collection[str] = ()) -> dict[str, Row]:
    """The kubelet's metrics of a page, and those of these names: name -> type, labels, and bounds
    of a histogram."""
    found: dict[str, Row] = {}
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE))
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            base = OF_HISTOGRAMS.sub("", sample.name)
            name = base if types.get(base) == "histogram" else sample.name
            if name not in types:  # the library gives all counters this ending
                name = name.removesuffix("_total")
            if name not in types or not (name in also or name.startswith(OWN)):
                continue  # of the Go program, or of a library
            row = found.setdefault(name, {"type": types[name], "labels": set(), "bounds": set()})
            row["labels"] |= sample.labels.keys() - {"le"}
            if "le" in sample.labels and sample.labels["le"] != "+Inf":
                row["bounds"].add(float(sample.labels["le"]))
    return {name: _plain(row) for name, row in sorted(found.items())}


def _plain(row: Row) -> Row:
    row = {**row, "labels": sorted(row["labels"]), "bounds": sorted(row["bounds"])}
    return {key: value for key, value in row.items() if value or key != "bounds"}


def listed(documentation: str) -> Iterator[tuple[str, Row]]:
    """The kubelet's metrics of /metrics in Kubernetes' list."""
    for entry in yaml.safe_load(documentation):
        places = entry.get("componentEndpoints", ())
        if {"component": "kubelet", "endpoint": "/metrics"} not in places:
            continue
        parts = (entry.get("namespace"), entry.get("subsystem"), entry["name"])
        kind = entry["type"].lower()
        row: Row = {
            # a custom collector does not say what it makes; the kubelet's make gauges
            "type": "gauge" if kind == "custom" else kind,
            "labels": sorted(entry.get("labels") or ()),
            "stability": entry["stabilityLevel"],
        }
        if entry.get("buckets"):
            row["bounds"] = [float(bound) for bound in entry["buckets"]]
        yield "_".join(part for part in parts if part), row


def pages_of(kubelet: str) -> dict[str, str]:
    """The pages that the case records of that kubelet. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(
            [
                *(sys.executable, "-m", "kubelet_conformance.cli", "run", str(CASE)),
                *("--kubelet", kubelet, "--runtime", "fake-socket"),
            ],
            check=True,
            env={**os.environ, "METRICS_DIR": directory},
        )
        return {name: Path(directory, f"{name}.prom").read_text() for name in PAGES}


def kept(pages: dict[str, str], documentation: str, version: str) -> dict[str, Any]:
    """What results/metrics.json holds; `first`: the page on which a metric is first seen."""
    metrics: dict[str, Row] = {name: {**row, "first": None} for name, row in listed(documentation)}
    names = tuple(metrics)
    for page in PAGES:
        for name, row in shown(pages[page], names).items():
            known = metrics.get(name) or {"stability": None, "first": None}
            metrics[name] = {**known, **row, "first": known["first"] or page}
    return {"kubelet": version, "metrics": dict(sorted(metrics.items()))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("kubelet", help="path of a kubelet program")
    parser.add_argument("list", type=Path, help="Kubernetes' documentation-list.yaml")
    args = parser.parse_args()
    told = subprocess.run([args.kubelet, "--version"], check=True, capture_output=True, text=True)
    version = told.stdout.split()[-1].removeprefix("v")
    data = kept(pages_of(args.kubelet), args.list.read_text(encoding="utf-8"), version)
    KEPT.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
