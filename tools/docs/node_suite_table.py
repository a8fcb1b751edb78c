"""The tables of Kubernetes' own node suite on two kubelets, for tools/docs/render_verified.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from markdown_tables import duration, table

Choice = Mapping[str, Any]
"""Of results/node-suite.json: `kubelets`, name -> run, and `reasons`, part of a name -> text."""


def node_suite_table(record: Mapping[str, Choice]) -> str:
    """For each choice of specs: a folder a line, then those that did not pass on some kubelet."""
    if not record:
        return "No run is recorded.\n"
    return "\n".join(_choice(title, choice) for title, choice in record.items())


def _choice(title: str, choice: Choice) -> str:
    runs = choice["kubelets"]
    folders = sorted({area.rpartition("/")[0] for run in runs.values() for area in run["areas"]})
    lines = [
        (folder or "all", *(_told(run["areas"], folder) for run in runs.values()))
        for folder in (*folders, "")
    ]
    parts = [table((title, *runs), lines)]
    filters = sorted({run["label_filter"] for run in runs.values()})
    parts.append(f"Label filter: `{'`, `'.join(filters)}`.\n")
    for name, run in runs.items():
        again = [f"{spec} ({_given(choice, spec)})" for spec in run["passed_again"]]
        parts.append(
            f"{name}: {_size(run['areas']):,} specs, {run['procs']} processes, "
            f"{duration(run['real_s'])}, {run['date']}. "
            f"Failed in the whole run and passed when repeated: {'; '.join(again) or 'none'}.\n"
        )
    rows = _not_passed(choice)
    if rows:
        parts.append(table(("spec", *runs, "reason"), rows))
    return "\n".join(parts)


def _told(areas: Mapping[str, Mapping[str, int]], folder: str) -> str:
    """The sums of a folder; "": of all."""
    sums = Counter[str]()
    for area, counts in areas.items():
        if folder in ("", area.rpartition("/")[0]):
            sums.update(counts)
    return ", ".join(f"{sums[what]} {what}" for what in ("passed", "failed", "skipped"))


def _size(areas: Mapping[str, Mapping[str, int]]) -> int:
    """How many specs a run had."""
    return sum(sum(counts.values()) for counts in areas.values())


def _given(choice: Choice, spec: str) -> str:
    """The reason that was given by hand; "" if none was."""
    return next((why for text, why in choice["reasons"].items() if text in spec), "")


def _not_passed(choice: Choice) -> list[tuple[str, ...]]:
    """Those that end otherwise on another kubelet first."""
    runs = choice["kubelets"].values()
    names = sorted({name for run in runs for name in run["not_passed"]})
    rows = []
    for name in names:
        told = [run["not_passed"].get(name, {"outcome": "passed", "reason": ""}) for run in runs]
        outcomes = [each["outcome"] for each in told]
        seen = next(
            each["reason"] for each in told if each["reason"] or each["outcome"] != "passed"
        )
        row = (name, *outcomes, _given(choice, name) or f"`{seen.replace('`', chr(39))}`")
        rows.append((len(set(outcomes)) == 1, row))
    return [row for _, row in sorted(rows)]
