"""Runs the benchmarks and prints one table. Exit code 1 if a number is beyond its limit, else 0.

python benchmarks/run.py [--quick] [--only NAME ...] [--results FILE]

`--results` writes the rows of the benchmarks that ran into FILE, unless the run was `--quick`;
docs/verified.md shows them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))  # also where PYTHONSAFEPATH is set

from measure import Row

from simclock import RealClock

HOME: Final = Path(__file__).parent
FAKE: Final = ("simclock", "fakecri", "protos")
KUBELET: Final = (*FAKE, "refkubelet")
JUMPING: Final = (
    *FAKE,
    "fakekubeapi",
    "simclock/timewarp",
    "conformance/kubelet_conformance/harness",
)
SUITE: Final = (*KUBELET, "fakekubeapi", "conformance")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A module of this folder, how its `rows` is called, and the code that its numbers are of."""

    measures: tuple[str, ...]
    """Folders of the project: what changes there may change the numbers."""
    full: Mapping[str, Any]
    """The arguments of `rows` in a full run."""
    quick: Mapping[str, Any]
    """Those in a quick one."""


BENCHMARKS: Final[Mapping[str, Benchmark]] = {
    "crash_loop": Benchmark(KUBELET, {"runs": 80}, {"runs": 3}),
    "relist": Benchmark(KUBELET, {"rounds": 100}, {"rounds": 20}),
    "pod_starts": Benchmark(KUBELET, {"runs": 3}, {"runs": 1}),
    "start_up": Benchmark(SUITE, {"runs": 15}, {"runs": 5}),
    "plugin_start": Benchmark(FAKE, {"tests": 20}, {"tests": 5}),
    "cri_calls": Benchmark(FAKE, {"number": 200}, {"number": 20}),
    "real_containerd": Benchmark(FAKE, {"rounds": 10}, {"rounds": 3}),
    "scaling": Benchmark(FAKE, {"rounds": 100}, {"rounds": 15}),
    "memory": Benchmark(FAKE, {"runs": 3}, {"runs": 1}),
    "eviction_day": Benchmark((*KUBELET, "fakekubeapi"), {"hours": 24.0}, {"hours": 1.0}),
    "growth": Benchmark(
        (*KUBELET, "fakekubeapi", "kubeobjects", "conformance"),
        {"runs": 3},
        {"runs": 1, "names": ("containers", "log", "questions", "own-watches", "results")},
    ),
    "jumping_time": Benchmark(JUMPING, {}, {"kubelet": ""}),
    "idle_pods": Benchmark(KUBELET, {}, {"duration_s": 10.0}),
    "soak": Benchmark(FAKE, {"duration_s": 60.0}, {"duration_s": 20.0}),
    "suite": Benchmark(SUITE, {}, {"words": ("--area", "pleg")}),
    "search_worlds": Benchmark(SUITE, {"worlds": 40}, {"worlds": 5}),
    "side_by_side": Benchmark(
        SUITE, {}, {"only": ("lives", "unchanged_relist", "requests"), "few": True}
    ),
}


def measured(name: str, *, quick: bool) -> list[Row]:
    """Run one benchmark; returns its rows."""
    benchmark = BENCHMARKS[name]
    rows: Callable[..., Iterable[Row]] = import_module(name).rows
    return list(rows(**(benchmark.quick if quick else benchmark.full)))


def commit_of(tree: Path, folders: Sequence[str] = ()) -> str:
    """The last commit there that touched the folders (none: any); "" outside a git repository."""
    command = ("git", "-C", str(tree), "log", "-1", "--format=%H", "--", *folders)
    try:
        head = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:  # no git
        return ""
    return head.stdout.strip() if head.returncode == 0 else ""


def keep(name: str, rows: Sequence[Row], file: Path) -> None:
    """Write the rows of a benchmark into the JSON file, in place of those of its last run, with the
    commit that last changed what they measure."""
    record = json.loads(file.read_text()) if file.exists() else {}
    record[name] = {
        "date": f"{RealClock().now():%Y-%m-%d}",
        "commit": commit_of(HOME.parent, BENCHMARKS[name].measures),
        "machine": f"{os.cpu_count()} CPUs, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}",
        "rows": [
            {
                "what": row.what,
                "wanted": row.wanted,
                "measured": row.measured,
                "verdict": row.verdict,
                "remark": row.remark,
            }
            for row in rows
        ],
    }
    file.write_text(json.dumps(record, indent=1) + "\n")


def main() -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(description="Measure, and compare with what is wanted.")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: coarser numbers")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS))
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep the rows")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.only:
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        seen = measured(name, quick=arguments.quick)
        if arguments.results and not arguments.quick:
            keep(name, seen, arguments.results)
        rows += seen
    return tell(rows)


def tell(rows: Sequence[Row]) -> int:
    """Print a table of the rows and which missed their limits; returns the exit code."""
    from rich.console import Console
    from rich.table import Table

    table = Table("benchmark", "wanted", "measured", "", "remark", title="best of several runs")
    for row in rows:
        table.add_row(row.what, row.wanted, row.measured, row.verdict, row.remark)
    wide = None if sys.stdout.isatty() else 160  # without a terminal, rich assumes 80 columns
    Console(width=wide).print(table)
    missed = [row.what for row in rows if row.missed]
    for what in missed:
        print(f"missed: {what}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
