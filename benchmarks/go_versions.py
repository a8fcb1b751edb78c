"""Which versions of Go build programs that live in jumping time: tries each, keeps what was seen.

python benchmarks/go_versions.py [--results FILE] GO...

GO: commands of Go toolchains. Each builds `tests/simclock/timewarp/sleeper.go` and runs it
for an hour of sleep, through all ways to wait, and through 600 ticks of 100 ms. `--results` adds a
line for each version to FILE; docs/timewarp.md shows them. Exit code 1 if one did not do what it
should.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from simclock import RealClock

SOURCE: Final = Path(__file__).parent.parent / "tests" / "simclock" / "timewarp" / "sleeper.go"
HOUR_S: Final = 3600.0
TICKS: Final = 600
CLOSE_S: Final = 0.1
WAYS: Final = {
    "sleep": 10,
    "deadline": 15,
    "func": 25,
    "ticker": 30,
    "context": 35,
    "after": 60,
}
"""What the program says in each way to wait -> when, in its own seconds."""
Lines = list[tuple[float, str]]


def wrong_ways(lines: Lines) -> str:
    """What was late or missing; "" when every way to wait ended in time. Pure."""
    wanted = list(WAYS.items())
    if [word for _, word in lines] != list(WAYS):
        return f"said {[word for _, word in lines]}; wanted {list(WAYS)}"
    late = [
        f"{word} at {seen_s:g} s instead of {wanted_s} s"
        for (seen_s, word), (_, wanted_s) in zip(lines, wanted, strict=True)
        if not wanted_s <= seen_s < wanted_s + CLOSE_S
    ]
    return ", ".join(late)


def tried(go: str, directory: str) -> dict[str, Any]:
    """What was seen of one version. Raises CalledProcessError when it does not build."""
    version = _told([go, "env", "GOVERSION"]).strip()
    program = f"{directory}/sleeper-{version}"
    _told([go, "build", "-o", program, str(SOURCE)])
    clock = RealClock()
    began_s = clock.monotonic_s()
    (slept_s, _), *_ = _lines(program, "sleep", f"{HOUR_S:g}")
    real_s = clock.monotonic_s() - began_s
    late_s = slept_s - HOUR_S
    wrong = wrong_ways(_lines(program, "ways"))
    if not 0 <= late_s < CLOSE_S:
        wrong = f"an hour of sleep took {slept_s:g} s"
    mean_s, worst_s = map(float, _warped(program, "ticks", str(TICKS)).split())
    return {
        "version": version,
        "date": f"{clock.now():%Y-%m-%d}",
        "machine": f"{platform.machine()}, Linux {platform.release()}",
        "hour_real_s": round(real_s, 2),
        "hour_late_ms": round(late_s * 1000),
        "tick_late_ms": round(mean_s * 1000, 1),
        "tick_worst_ms": round(worst_s * 1000, 1),
        "wrong": wrong,
    }


def _lines(program: str, *words: str) -> Lines:
    told = (line.split(" ", 1) for line in _warped(program, *words).splitlines())
    return [(float(at), what) for at, what in told]


def _warped(program: str, *words: str) -> str:
    return _told([sys.executable, "-m", "simclock.timewarp", "--", program, *words])


def _told(command: list[str]) -> str:
    environment = {**os.environ, "GO111MODULE": "off", "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    return subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description="Try versions of Go in jumping time.")
    parser.add_argument("go", nargs="+", metavar="GO", help="the command of a Go toolchain")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep what was seen")
    arguments = parser.parse_args()
    kept = {}
    if arguments.results and arguments.results.exists():
        kept = json.loads(arguments.results.read_text())
    bad = 0
    for go in arguments.go:
        with tempfile.TemporaryDirectory() as directory:
            seen = tried(go, directory)
        print(seen, flush=True)
        bad += bool(seen["wrong"])
        kept[seen.pop("version")] = seen
        if arguments.results:
            arguments.results.write_text(json.dumps(kept, indent=1) + "\n")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
