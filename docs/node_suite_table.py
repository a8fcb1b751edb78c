"""The tables of Kubernetes' own node suite on two kubelets, for docs/render_verified.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markdown_tables import duration, table

Choice = Mapping[str, Any]
"""Of docs/node-suite.json: `kubelets`, name -> its run, and `reasons`, part of a name -> text."""


def node_suite_table(record: Mapping[str, Choice]) -> str:
    """For each choice of specs: an area a line, then those that did not pass on some kubelet."""
    if not record:
        return "No run is recorded.\n"
    return "\n".join(_choice(title, choice) for title, choice in record.items())


def _choice(title: str, choice: Choice) -> str:
    runs = choice["kubelets"]
    areas = sorted({area for run in runs.values() for area in run["areas"]})
    lines = [
        (area, *(_told(run["areas"].get(area, {})) for run in runs.values())) for area in areas
    ]
    totals = [_sum(run["areas"]) for run in runs.values()]
    lines.append(("all", *(_told(total) for total in totals)))
    parts = [table((title, *runs), lines)]
    for name, run in runs.items():
        parts.append(
            f"{name}: label filter `{run['label_filter']}`, {run['procs']} processes, "
            f"{duration(run['real_s'])}, {run['date']}. Failed in the whole run and passed alone: "
            f"{len(run['passed_alone'])}.\n"
        )
    rows = _not_passed(choice)
    if rows:
        parts.append(table(("spec", *runs, "reason"), rows))
    return "\n".join(parts)


def _told(counts: Mapping[str, int]) -> str:
    words = [f"{counts[what]} {what}" for what in ("passed", "failed", "skipped") if what in counts]
    return ", ".join(words) or "not run"


def _sum(areas: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    found = {}
    for what in ("passed", "failed", "skipped"):
        found[what] = sum(counts.get(what, 0) for counts in areas.values())
    return found


def _not_passed(choice: Choice) -> list[tuple[str, ...]]:
    """Those that end otherwise on another kubelet first."""
    runs = choice["kubelets"].values()
    names = sorted({name for run in runs for name in run["not_passed"]})
    rows = []
    for name in names:
        told = [run["not_passed"].get(name, {"outcome": "passed", "reason": ""}) for run in runs]
        outcomes = [each["outcome"] for each in told]
        given = [why for text, why in choice["reasons"].items() if text in name]
        seen = next(
            each["reason"] for each in told if each["reason"] or each["outcome"] != "passed"
        )
        row = (name, *outcomes, given[0] if given else f"`{seen.replace('`', chr(39))}`")
        rows.append((len(set(outcomes)) == 1, row))
    return [row for _, row in sorted(rows)]
