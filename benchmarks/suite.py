"""What a case of the suite costs in virtual time: all of them, in two processes."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import time
from collections.abc import Sequence

from measure import Row

JOBS = 2
COUNT = re.compile(r"^(\d[\d,]*) passed", re.MULTILINE)


def rows(words: Sequence[str] = ()) -> list[Row]:
    """Real time and processor time by case. `words`: more of the command's, such as an area."""
    command = [*(sys.executable, "-m", "kubelet_conformance.cli", "run", "-q", "--jobs", str(JOBS))]
    began, used_s = time.perf_counter(), _cpu_s()
    ended = subprocess.run([*command, *words], check=True, capture_output=True, text=True)
    real_s, cpu_s = time.perf_counter() - began, _cpu_s() - used_s
    cases = count(ended.stdout)
    what, remark = "virtual suite, two jobs: a case", f"{cases:,} cases in {real_s:.1f} s"
    return [
        Row(f"{what}, real time", real_s / cases * 1000, "ms", remark=remark),
        Row(f"{what}, processor time", cpu_s / cases * 1000, "ms", remark=f"{cpu_s:.1f} s in all"),
    ]


def count(told: str) -> int:
    """How many cases the summary says have passed. Raises: ValueError if it does not."""
    found = COUNT.search(told)
    if found is None:
        raise ValueError(f"no case has passed: {told[-500:]}")
    return int(found[1].replace(",", ""))


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    for row in rows():
        print(row)
