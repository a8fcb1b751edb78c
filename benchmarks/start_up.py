"""How long it takes to import the fake, and to print `--help`, in fresh interpreters."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import entry_points

from measure import Row

IMPORT_MS = 150
HELP_MS = 100
PROJECT = ("refkubelet", "fakecri", "fakeapi", "kubelet-conformance")


def best_ms(command: Sequence[str], runs: int) -> float:
    """The real time of a command, the best of `runs` runs. Raises: CalledProcessError if it
    fails."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return min(times) * 1000


def rows(runs: int = 5) -> list[Row]:
    """Rows for imports (the time of an interpreter that does nothing is subtracted) and for
    `--help` of each command (nothing is subtracted)."""
    empty_ms = best_ms([sys.executable, "-c", "pass"], runs)
    found = []
    for code, limit in (("import fakecri", IMPORT_MS), ("from fakecri import FakeCRI", None)):
        import_ms = best_ms([sys.executable, "-c", code], runs) - empty_ms
        found.append(
            Row(
                what=code,
                value=import_ms,
                unit="ms",
                limit=limit,
                remark=f"python alone {empty_ms:.0f} ms",
            )
        )
    for script in entry_points(group="console_scripts"):
        if script.name not in PROJECT:
            continue
        module, function = script.value.split(":")
        code = f"import sys, {module} as m; sys.exit(m.{function}(['--help']))"
        help_ms = best_ms([sys.executable, "-c", code], runs)
        found.append(Row(f"{script.name} --help", help_ms, "ms", HELP_MS))
    return found


if __name__ == "__main__":
    for row in rows():
        print(row)
