"""All benchmarks, one table. Exit code 1 when a wanted number is missed by more than noise.

python benchmarks/run.py [--quick]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # also where PYTHONSAFEPATH is set

import crash_loop
import cri_calls
import pod_starts
import start_up
from measure import NOISE, Row


def all_rows(*, quick: bool) -> Iterator[Row]:
    """The rows of every module, best of fewer and smaller runs when `quick`."""
    yield from crash_loop.rows(runs=3 if quick else 20)
    yield from pod_starts.rows(runs=1 if quick else 3)
    yield from start_up.rows(runs=2 if quick else 5)
    yield from cri_calls.rows(number=20 if quick else 200)


def main() -> int:
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(description="Measure, and compare with what is wanted.")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: coarser numbers")
    arguments = parser.parse_args()
    table = Table("benchmark", "value", "wanted", "", "remark", title="best of several runs")
    failed = False
    for row in all_rows(quick=arguments.quick):
        failed = failed or row.failed
        value = f"{row.value:.1f} {row.unit}"
        table.add_row(row.what, value, row.wanted, row.verdict, row.remark)
    Console().print(table)
    if failed:
        print(f"a number is {NOISE:g} times what is wanted, or worse", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
