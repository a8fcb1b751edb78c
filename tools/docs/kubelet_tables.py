"""The tables of kubelets.md: suite areas and fixtures of bugs on kubelets of several versions.

Made from minors.json and fixtures.json, which tools/docs/keep_minor.py keeps;
tools/docs/render_verified.py writes them between the markers of the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from markdown_tables import by_version, duration, table

NO_RUN: Final = "No run is recorded.\n"
SHOWN: Final = "known bug"
WORDS: Final = {SHOWN: "red", "passed": "green", "skipped": "", "disabled": ""}
"""Outcome -> the word in the table; others are told as they are, in bold."""


def minors_table(record: Mapping[str, Any]) -> str:
    """One line per kubelet version, then its known bugs and the other cases that it did not
    pass."""
    if not record:
        return NO_RUN
    lines, below = [], []
    for kubelet, run in by_version(record):
        areas = run["areas"].values()
        failed = [name for of in areas for name in of["failed"]]
        known = [f"{name}: {bug}" for of in areas for name, bug in of["known"].items()]
        sums = {what: sum(of[what] for of in areas) for what in ("passed", "older", "skipped")}
        numbers = (sums["passed"], len(failed), len(known), sums["older"], sums["skipped"])
        size = f"{sum(numbers):,}"
        wall = duration(sum(of["real_s"] for of in areas))
        lines.append(
            (kubelet, ", ".join(run["areas"]), size, *map(str, numbers), wall, run["date"])
        )
        if known:
            below.append(f"Known bugs of {kubelet}:\n\n" + "".join(f"- {bug}\n" for bug in known))
        if failed:
            below.append(f"{kubelet} did not pass {', '.join(failed)}.\n")
    heads = ("kubelet", "areas", "MUST cases of the suite then", "passed", "failed", "known bugs")
    made = table((*heads, "skipped, it is older", "skipped", "wall time", "run on"), lines)
    return "\n".join([made, *below])


def fixtures_table(record: Mapping[str, Any]) -> str:
    """One line per fixture, one column per kubelet version: red where the bug was shown, green
    where the fixture passed. Below: which fixtures turned from red to green, which are red on the
    newest kubelet, and what else did not pass, with its reason."""
    if not record:
        return NO_RUN
    runs = by_version(record)
    titles = {name: told["title"] for _, run in runs for name, told in run["fixtures"].items()}
    lines = []
    for name in sorted(titles, key=_in_order):
        words = (_word(run["fixtures"].get(name)) for _, run in runs)
        lines.append((f"[{name}](../fixtures/bugs/{name}.yaml)", titles[name], *words))
    dates = ", ".join(
        f"{version} on {run['date']} ({len(run['fixtures'])} fixtures)" for version, run in runs
    )
    parts = [
        table(("fixture", "bug", *(version for version, _ in runs)), lines),
        f"Run: {dates}.\n",
        _turned(runs),
        _open(*runs[-1]),
        *_others(runs),
    ]
    return "\n".join(parts)


def turned_green(runs: Sequence[tuple[str, Any]]) -> dict[str, tuple[str, str]]:
    """Fixture -> the newest of these kubelets that showed its bug, and the first after it that
    passed it."""
    found: dict[str, tuple[str, str]] = {}
    for name in sorted({name for _, run in runs for name in run["fixtures"]}, key=_in_order):
        seen = [(version, run["fixtures"].get(name, {}).get("outcome")) for version, run in runs]
        red = [place for place, (_, outcome) in enumerate(seen) if outcome == SHOWN]
        after = seen[red[-1] + 1 :] if red else []
        green = next((version for version, outcome in after if outcome == "passed"), None)
        if green is not None:
            found[name] = (seen[red[-1]][0], green)
    return found


def _turned(runs: Sequence[tuple[str, Any]]) -> str:
    pairs = turned_green(runs)
    told = ", ".join(f"{name} ({red} to {green})" for name, (red, green) in pairs.items())
    return f"Red on one kubelet and green on a newer one ({len(pairs)}): {told or 'none'}.\n"


def _open(version: str, run: Mapping[str, Any]) -> str:
    names = [name for name, told in run["fixtures"].items() if told["outcome"] == SHOWN]
    listed = ", ".join(sorted(names, key=_in_order)) or "none"
    return f"Red on {version}, the newest here ({len(names)}): {listed}.\n"


def _others(runs: Sequence[tuple[str, Any]]) -> list[str]:
    """What is neither red nor green nor left out."""
    found = [
        f"- {name} on {version}: {told['detail']}\n"
        for version, run in runs
        for name, told in run["fixtures"].items()
        if told["outcome"] not in WORDS
    ]
    return ["Not as expected:\n\n" + "".join(found)] if found else []


def _word(told: Mapping[str, str] | None) -> str:
    outcome = told["outcome"] if told else "skipped"
    return WORDS.get(outcome, f"**{outcome}**")


def _in_order(name: str) -> tuple[bool, int, str]:
    """Upstream's numbers first, by number, then names."""
    number = name.partition("-")[0]
    return (not number.isdigit(), int(number) if number.isdigit() else 0, name)
