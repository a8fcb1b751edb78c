"""The tables of single specs of Kubernetes' own node suite, for tools/docs/render_verified.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from markdown_tables import duration, table

Told = Mapping[str, Any]
"""Of a spec on one kubelet: `area`, `outcomes` (outcome -> how often) and perhaps a `reason`."""
NOT_RUN: Final = "not run"


def node_specs_table(record: Mapping[str, Any]) -> str:
    """A file of specs a line with its sums for each kubelet, then the specs that failed on one of
    them or were skipped by some of them only. What all skip has a number, for the host's sake."""
    runs = record.get("kubelets", {})
    if not runs:
        return "No run is recorded.\n"
    areas = sorted({told["area"] for run in runs.values() for told in run["specs"].values()})
    lines = [
        (area or "all", *(_sums(run["specs"], area) for run in runs.values()))
        for area in (*areas, "")
    ]
    parts = [table(("specs", *runs), lines)]
    parts.extend(
        f"{name}: {duration(run['real_s'])}, {', '.join(run['dates'])}.\n"
        for name, run in runs.items()
    )
    rows = _not_passed(record)
    every = [_skipped_by_all(runs, area) for area in areas]
    named = "; ".join(f"{many} of {area}" for area, many in zip(areas, every, strict=True) if many)
    parts.append(f"Skipped on each, and in no line below: {named or 'none'}.\n")
    if rows:
        parts.append(table(("spec", *runs, "reason"), rows))
    return "\n".join(parts)


def _sums(specs: Mapping[str, Told], area: str) -> str:
    """Of an area ("": of all), by the worst that a spec ever did."""
    worst = [_worst(told) for told in specs.values() if area in ("", told["area"])]
    if not worst:
        return NOT_RUN
    return ", ".join(f"{worst.count(what)} {what}" for what in ("passed", "failed", "skipped"))


def _skipped_by_all(runs: Mapping[str, Any], area: str) -> int:
    asked: dict[str, set[str]] = {}
    for run in runs.values():
        for name, told in run["specs"].items():
            if told["area"] == area:
                asked.setdefault(name, set()).add(_worst(told))
    return sum(outcomes == {"skipped"} for outcomes in asked.values())


def _worst(told: Told) -> str:
    return next(what for what in ("failed", "skipped", "passed") if what in told["outcomes"])


def _not_passed(record: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Those that end otherwise on another kubelet first."""
    runs = [run["specs"] for run in record["kubelets"].values()]
    rows = []
    for name in sorted({name for specs in runs for name in specs}):
        each = [specs.get(name) for specs in runs]
        cells = [_outcome(told) for told in each]
        if set(cells) - {NOT_RUN} not in ({"passed"}, {"skipped"}):
            rows.append((name, *cells, _reason(record["reasons"], name, each)))
    return sorted(rows, key=lambda row: (len(set(row[1:-1]) - {NOT_RUN}) == 1, row))


def _outcome(told: Told | None) -> str:
    """`passed`, or `failed 1 of 3` where it was not always the same."""
    if told is None:
        return NOT_RUN
    worst = _worst(told)
    times, all_times = told["outcomes"][worst], sum(told["outcomes"].values())
    return worst if times == all_times else f"{worst} {times} of {all_times}"


def _reason(reasons: Mapping[str, str], name: str, each: Sequence[Told | None]) -> str:
    """The one that was given by hand, or the first line of a failure."""
    given = next((why for text, why in reasons.items() if text in name), "")
    seen = next((told["reason"] for told in each if told and told.get("reason")), "")
    return given or f"`{seen.replace('`', chr(39))}`"
