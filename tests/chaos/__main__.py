"""`python tests/chaos --seeds 1:2000 --jobs 2`: runs chaos from seeds, and prints what was wrong in
which run with the line that repeats it. `--between`: probes while syncs take their time."""

from __future__ import annotations

import argparse
import logging
import sys
import traceback
from functools import partial
from multiprocessing import Pool  # noqa: TID251 (each run has a loop of its own)
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "worlds"), str(Path(__file__).parents[2])]

from between_case import run_between  # noqa: E402
from chaos_run import run_seed  # noqa: E402 (it works on tests/worlds)

from conformance.harness.runs.seeds import seeds_of  # noqa: E402
from simclock import RealClock  # noqa: E402


def _run(seed: int, *, between: bool) -> tuple[int, list[str]]:
    try:
        return seed, (run_between if between else run_seed)(seed)
    except Exception:
        return seed, [traceback.format_exc()]


def _quiet() -> None:
    logging.getLogger().addHandler(logging.NullHandler())


def main() -> int:
    """The exit code: 0 when nothing was wrong, else 1."""
    parser = argparse.ArgumentParser(prog="python tests/chaos", description=__doc__)
    parser.add_argument("--seeds", type=seeds_of, default=seeds_of("1:100"), help="7, or 1:2000")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--between", action="store_true", help="one pod, probes and slow syncs")
    wanted = parser.parse_args()
    run = partial(_run, between=wanted.between)
    clock, failed = RealClock(), 0
    began_s = clock.monotonic_s()
    with Pool(wanted.jobs, initializer=_quiet) as pool:
        for done, (seed, wrong) in enumerate(pool.imap(run, wanted.seeds), start=1):
            if done % 100 == 0:
                print(f"{done} done, {failed} with violations", file=sys.stderr, flush=True)
            if wrong:
                failed += 1
                print(f"seed {seed}:", *wrong, sep="\n  ")
                kind = "--between " if wanted.between else ""
                print(f"  repeat: python tests/chaos {kind}--seeds {seed}", flush=True)
    took_s = clock.monotonic_s() - began_s
    print(f"{len(wanted.seeds)} seeds, {failed} with violations, {took_s:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
