"""How many worlds of chaos (tests/chaos) one processor sees in an hour."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path

from measure import Row

TESTS = Path(__file__).parents[1] / "tests"
HOUR_S = 3600.0


def rows(worlds: int = 5) -> list[Row]:
    """One row, of the worlds of the first seeds."""
    sys.path[:0] = [str(TESTS / "chaos"), str(TESTS / "worlds"), str(TESTS.parent)]
    run_seed = import_module("chaos_run").run_seed
    import_module("kubelet_conformance.harness.runs.garbage").collect_less()  # as tests/chaos does
    run_seed(0)  # imports the rest
    began_s = time.process_time()
    wrong = [seed for seed in range(1, worlds + 1) if run_seed(seed)]
    each_s = (time.process_time() - began_s) / worlds
    assert not wrong, f"seeds with violations: {wrong}"
    what = "worlds of chaos an hour and processor"
    return [Row(what, HOUR_S / each_s, "worlds", remark=f"{each_s * 1000:.0f} ms of CPU each")]


if __name__ == "__main__":
    for row in rows():
        print(row)
