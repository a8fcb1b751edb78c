"""Writes the tables of README and of pages of docs from the result files, between markers.

`python tools/docs/render_verified.py` rewrites the pages; with `--check` it says whether they are
current (exit code 1: they are not). Each number has a command that makes its file: `tox -e
verified` keeps verified.json, `tools/docs/keep_conformance.py` conformance.json,
`tools/docs/keep_minor.py` minors.json and fixtures.json, `tools/docs/keep_runs.py` seeds.json and
repeats.json, `tools/docs/keep_node_suite.py` node-suite.json, `tools/docs/keep_node_specs.py`
node-specs.json, `tox -e bench` benchmarks.json, `benchmarks/go_versions.py --results`
go-versions.json, `tox -e mutants` mutants.json, `tox -e mutants-suite -- --keep`
suite-mutants.json, `tox -e search-known` search-known.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))  # those beside it, also with PYTHONSAFEPATH

from kubelet_tables import fixtures_table, minors_table
from markdown_tables import by_version, duration, table
from node_specs_table import node_specs_table
from node_suite_table import node_suite_table
from search_table import campaigns_table, known_bugs_table

ROOT: Final = Path(__file__).parents[2]
BEGIN: Final = "<!-- begin: {name}, made by tools/docs/render_verified.py -->\n"
END: Final = "<!-- end: {name} -->\n"


APISERVER: Final = "apiserver"


def _of_containerd(runs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: run for name, run in runs.items() if name != APISERVER}


def apiserver_table(runs: Mapping[str, Any]) -> str:
    """The last run against a kube-apiserver, then one line per difference that remains."""
    run = runs.get(APISERVER)
    if run is None:
        return "No run is recorded.\n"
    line = (
        run["version"],
        run["date"],
        run["host"],
        f"{run['contract']['passed']} passed, {run['contract']['failed']} failed",
        f"{run['machine']['operations']:,} from seed {run['machine']['seed']}",
        "**yes**" if run["machine"]["mismatch"] else "none",
    )
    heads = ("kube-apiserver", "run on", "host", "contract tests", "random operations")
    rows = [
        (f"`{row['method']}`", row["what"], f"{row['times']:,}", row["reason"])
        for row in run["differences"]
    ]
    differences = table(("operation", "difference", "times", "reason"), rows)
    return f"{table((*heads, 'differences outside the table below'), [line])}\n{differences}"


def runs_table(runs: Mapping[str, Any]) -> str:
    """One line per containerd version: when, on what, with what result."""
    runs = _of_containerd(runs)
    lines = [
        (
            run["containerd"],
            run["runc"],
            run["date"],
            run["host"],
            f"{run['contract']['passed']} passed, {run['contract']['failed']} failed",
            f"{run['machine']['operations']:,} from seed {run['machine']['seed']}",
            "**yes**" if run["machine"]["mismatch"] else "none",
        )
        for _, run in by_version(runs)
    ]
    heads = ("containerd", "runc", "run on", "host", "contract tests", "random operations")
    return table((*heads, "differences outside the table below"), lines)


def differences_table(runs: Mapping[str, Any]) -> str:
    """One line per difference, with the number of times each version showed it."""
    runs = _of_containerd(runs)
    versions = [version for version, _ in by_version(runs)]
    times: dict[tuple[str, str, str], dict[str, int]] = {}
    for version, run in by_version(runs):
        for row in run["differences"]:
            key = (row["method"], row["what"], row["reason"])
            times.setdefault(key, {})[version] = row["times"]
    lines = [
        (
            "any" if method == "*" else f"`{method}`",
            what,
            *(f"{seen[version]:,}" if version in seen else "" for version in versions),
            reason,
        )
        for (method, what, reason), seen in sorted(times.items())
    ]
    return table(("method", "difference", *versions, "reason"), lines)


# The suite


def areas_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """README.md: the last whole run of refkubelet on the fake runtime, an area a line. It has the
    cases of level MUST; below it how many there are of all levels, which other runs count."""
    run = next((r for r in runs if (r["kubelet"], r["runtime"]) == IN_VIRTUAL_TIME), None)
    if run is None or "whole" not in run:
        raise ValueError(f"no whole run of {' on '.join(IN_VIRTUAL_TIME)} is recorded")
    whole = run["whole"]
    lines, total, kubelet_s = [], Counter[str](), 0.0
    for area, seen in whole["areas"].items():
        lines.append((area, *_numbers(seen["outcomes"]), duration(seen["case_s"])))
        total.update(seen["outcomes"])
        kubelet_s += seen["case_s"]
    lines.append(("all", *_numbers(total), duration(kubelet_s)))
    heads = ("area", "passed", "failed", "skipped", "kubelet time")
    took = f"In {whole['real_s']:.0f} s of real time ({whole['date']})."
    levels = "These are the cases of level MUST; with SHOULD and DETAIL (`--level detail`)"
    return f"{table(heads, lines)}\n{took} {levels}\nthere are {_size(run['cases']):,}.\n"


GROWS: Final = """\
The suite grew between these runs, and some had a part of it: a run says nothing of cases that it
did not have.
"""


def pairs_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """docs/verified.md: every recorded pair of kubelet and runtime, an area a line. The suite
    grows, so each run says when it was and how many cases it had."""
    areas = sorted({area for run in runs for area in run["cases"]})
    heads = ("area", *(f"{run['kubelet']} on {run['runtime']}" for run in runs))
    counted = [{area: Counter(of.values()) for area, of in run["cases"].items()} for run in runs]
    sizes = [_size(run["cases"]) for run in runs]
    lines: list[tuple[str, ...]] = [
        ("*run on*", *(run["date"] for run in runs)),
        ("*cases in this run*", *(f"{size:,}" for size in sizes)),
    ]
    lines += [(area, *(_told(run.get(area, {})) for run in counted)) for area in areas]
    totals = [sum(run.values(), Counter[str]()) for run in counted]
    lines.append(("all", *(_told(total) for total in totals)))
    return f"{table(heads, lines)}\n{GROWS}"


def seeds_table(record: Mapping[str, Any]) -> str:
    """docs/verified.md: one line per latency, then what failed under some seed."""
    if not record:
        return "No run is recorded.\n"
    lines, failures = [], []
    for latency, run in sorted(record.items(), key=lambda item: float(item[0])):
        seeds, outcomes = run["seeds"], run["outcomes"]
        many = f"{min(seeds)} to {max(seeds)}" if len(seeds) > 1 else str(seeds[0])
        wall = f"{duration(run['real_s'])} at a load of {run['load']:g}"
        numbers = (f"{number:,}" for number in (run["cases"], outcomes.get("passed", 0)))
        failed = sum(outcomes.get(what, 0) for what in ("failed", "error", "inconclusive"))
        lines.append((latency, many, run["level"], *numbers, str(failed), wall, run["date"]))
        failures += [f"Latency {latency}, {name}: {why}\n" for name, why in run["failed"].items()]
    heads = ("latency", "seeds", "level", "cases a seed", "passed", "failed", "wall time", "run on")
    return "\n".join([table(heads, lines), *failures])


def repeats_table(record: Mapping[str, Any]) -> str:
    """docs/verified.md: one line per run, then which cases did not end the same way in all."""
    if not record:
        return "No run is recorded.\n"
    lines, remarks = [], []
    for title, kept in record.items():
        for run in kept["runs"]:
            told = (*_numbers(run["outcomes"]), duration(run["real_s"]), f"{run['load']:g}")
            lines.append((title, f"{sum(run['outcomes'].values()):,}", *told, run["date"]))
        failed = ", ".join(kept["failed"]) or "none"
        differ = [f"{name} ({', '.join(found)})" for name, found in kept["differ"].items()]
        remarks.append(
            f"{title}: {kept['must']} MUST cases ran; failed each time: {failed}; another outcome "
            f"in one of the runs: {', '.join(differ) or 'none'}.\n"
        )
    heads = ("what", "cases", "passed", "failed", "skipped", "wall time", "load", "run on")
    return "\n".join([table(heads, lines), *remarks])


def _size(cases: Mapping[str, Mapping[str, str]]) -> int:
    """How many cases a run had, of all areas."""
    return sum(map(len, cases.values()))


def _numbers(outcomes: Mapping[str, int]) -> tuple[str, str, str]:
    failed = outcomes.get("failed", 0) + outcomes.get("error", 0)
    return str(outcomes.get("passed", 0)), str(failed), str(outcomes.get("skipped", 0))


def _told(outcomes: Mapping[str, int]) -> str:
    passed, failed, skipped = _numbers(outcomes)
    return f"{passed} passed, {failed} failed, {skipped} skipped" if outcomes else "not run"


# Benchmarks and mutants


def benchmarks_table(record: Mapping[str, Any]) -> str:
    """One line per row of each benchmark's last run."""
    if not record:
        return "No run is recorded.\n"
    rows = [
        (row["what"], row["wanted"], row["measured"], row["verdict"], row["remark"], run["date"])
        for run in record.values()
        for row in run["rows"]
    ]
    made = table(("what", "wanted", "measured", "", "remark", "run on"), rows)
    machines = sorted({run["machine"] for run in record.values()})
    return f"{made}\nMachine: {'; '.join(machines)}.\n"


def go_table(record: Mapping[str, Any]) -> str:
    """One line per version of Go that was tried, the oldest first."""
    if not record:
        return "No run is recorded.\n"

    def age(version: str) -> tuple[int, ...]:
        return tuple(int(number) for number in version.removeprefix("go").split("."))

    lines = [
        (
            version,
            f"{seen['hour_late_ms']} ms late, took {seen['hour_real_s']:.1f} s",
            f"{seen['tick_late_ms']:g} ms, at most {seen['tick_worst_ms']:g} ms",
            seen["wrong"] or "all in time",
            f"{seen['machine']}, {seen['date']}",
        )
        for version, seen in sorted(record.items(), key=lambda item: age(item[0]))
    ]
    heads = ("built by", "an hour of sleep", "ticks of 100 ms: late", "six ways to wait", "seen on")
    return table(heads, lines)


def jumping_table(record: Mapping[str, Any]) -> str:
    """The last measurement of jumping time."""
    return benchmarks_table({k: run for k, run in record.items() if k == "jumping_time"})


def mutants_table(record: Mapping[str, Any]) -> str:
    """One line per module: how many of its mutants were tried, in a random order, and noticed."""
    if not record:
        return "No run is recorded.\n"
    whats = ("killed", "tried", "mutants")
    rows = [
        (f"`{module}`", *(f"{seen[what]:,}" for what in whats), seen["date"])
        for module, seen in sorted(record.items())
    ]
    sums = {what: sum(seen[what] for seen in record.values()) for what in whats}
    noticed = f"{sums['killed']:,} ({sums['killed'] / max(1, sums['tried']):.1%})"
    rows.append(("all of these", noticed, f"{sums['tried']:,}", f"{sums['mutants']:,}", ""))
    return table(("module", "noticed", "tried", "mutants", "run on"), rows)


def wrong_kubelets_table(record: Mapping[str, Any]) -> str:
    """One line per area: how many wrong kubelets a case notices, and how many of the others say why
    none can; of wrong runtimes, which are no matter for cases, none."""
    record = {name: answer for name, answer in record.items() if not name.startswith("runtime/")}
    areas: dict[str, list[Mapping[str, Any]]] = {}
    for name, answer in record.items():
        areas.setdefault(name.partition("/")[0], []).append(answer)
    everything = {**dict(sorted(areas.items())), "all": list(record.values())}
    rows = []
    for area, answers in everything.items():
        noticed = sum(bool(answer["noticed"]) for answer in answers)
        explained = sum(bool(a["survives"]) for a in answers if not a["noticed"])
        share = f"{noticed} ({noticed / len(answers):.1%})" if answers else "0"
        rows.append((area, str(len(answers)), share, str(explained)))
    return table(("area", "wrong kubelets", "noticed", "not, and the reason is known"), rows)


@dataclass(frozen=True, slots=True)
class Table:
    """A place between two markers: on which page, from which file, made by what."""

    page: str
    results: str
    make: Callable[[Any], str]


IN_VIRTUAL_TIME: Final = ("refkubelet", "fakecri, virtual time")
TABLES: Final[Mapping[str, Table]] = {
    "suite": Table("README.md", "conformance.json", areas_table),
    "pairs": Table("docs/verified.md", "conformance.json", pairs_table),
    "minors": Table("docs/kubelets.md", "minors.json", minors_table),
    "fixtures": Table("docs/kubelets.md", "fixtures.json", fixtures_table),
    "seeds": Table("docs/verified.md", "seeds.json", seeds_table),
    "repeats": Table("docs/verified.md", "repeats.json", repeats_table),
    "node suite": Table("docs/verified.md", "node-suite.json", node_suite_table),
    "node specs": Table("docs/verified.md", "node-specs.json", node_specs_table),
    "runs": Table("docs/verified.md", "verified.json", runs_table),
    "differences": Table("docs/verified.md", "verified.json", differences_table),
    "apiserver": Table("docs/verified.md", "verified.json", apiserver_table),
    "benchmarks": Table("docs/verified.md", "benchmarks.json", benchmarks_table),
    "jumping time": Table("docs/timewarp.md", "benchmarks.json", jumping_table),
    "go versions": Table("docs/timewarp.md", "go-versions.json", go_table),
    "mutants": Table("docs/verified.md", "mutants.json", mutants_table),
    "campaigns": Table("docs/search.md", "search.json", campaigns_table),
    "known bugs": Table("docs/search.md", "search-known.json", known_bugs_table),
    "wrong kubelets": Table("docs/verified.md", "suite-mutants.json", wrong_kubelets_table),
}


def rendered(text: str, name: str, table: str) -> str:
    """`text` with that table. Raises ValueError naming a marker that is not there once."""
    begin, end = BEGIN.format(name=name), END.format(name=name)
    for marker in (begin, end):
        if text.count(marker) != 1:
            raise ValueError(f"wanted the line once: {marker.strip()}")
    before, _, rest = text.partition(begin)
    return before + begin + table + end + rest.partition(end)[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: current or rewritten; 1: `--check` found it old; 2: it cannot be made."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the folder of docs/ and results/")
    given = parser.parse_args(arguments)
    old: dict[Path, str] = {}
    new: dict[Path, str] = {}
    for name, place in TABLES.items():
        page, results = given.tree / place.page, given.tree / "results" / place.results
        try:
            text = old.setdefault(page, page.read_text())
            made = place.make(json.loads(results.read_text()))
            new[page] = rendered(new.get(page, text), name, made)
        except (OSError, ValueError, KeyError) as error:
            print(f"error: {name} of {page} from {results}: {error!r}", file=sys.stderr)
            return 2
    stale = [page for page, text in new.items() if text != old[page]]
    for page in stale:
        if given.check:
            print(f"{page} is not what its result files say: run {__file__}", file=sys.stderr)
        else:
            page.write_text(new[page])
    return 1 if given.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
