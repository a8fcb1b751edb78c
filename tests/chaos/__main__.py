"""`python tests/chaos --seeds 1:2000 --jobs 2`: runs chaos from seeds, and prints what was wrong in
which run with the line that repeats it. `--between`: probes while syncs take their time; `--given`:
what pods have alone, over restarts with other configurations."""

from __future__ import annotations

import argparse
import logging
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing import Pool  # noqa: TID251 (each run has a loop of its own)
from pathlib import Path
from typing import Final

sys.path[:0] = [str(Path(__file__).parents[1] / "worlds"), str(Path(__file__).parents[2])]

from between_case import run_between  # noqa: E402
from chaos_run import run_seed  # noqa: E402 (it works on tests/worlds)
from given_run import run_given  # noqa: E402

from kubelet_conformance.harness.runs.garbage import collect_less  # noqa: E402
from kubelet_conformance.harness.runs.seeds import seeds_of  # noqa: E402
from simclock import RealClock  # noqa: E402

KINDS: Final[Mapping[str, Callable[[int], list[str]]]] = {
    "": run_seed,
    "--between": run_between,
    "--given": lambda seed: run_given(seed).wrong,
}
"""By option: what runs a seed and tells what was wrong."""


def _run(seed: int, *, kind: str) -> tuple[int, list[str]]:
    try:
        return seed, KINDS[kind](seed)
    except Exception:
        return seed, [traceback.format_exc()]


def _begin() -> None:
    """Prepare a process for runs: nothing is logged, garbage seldom looked for."""
    logging.getLogger().addHandler(logging.NullHandler())
    collect_less()


def main() -> int:
    """The exit code: 0 when nothing was wrong, else 1."""
    parser = argparse.ArgumentParser(prog="python tests/chaos", description=__doc__)
    parser.add_argument("--seeds", type=seeds_of, default=seeds_of("1:100"), help="7, or 1:2000")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    for kind in filter(None, KINDS):
        parser.add_argument(kind, dest="kind", action="store_const", const=kind, default="")
    wanted = parser.parse_args()
    clock, failed = RealClock(), 0
    began_s = clock.monotonic_s()
    runs = partial(_run, kind=wanted.kind)
    with Pool(wanted.jobs, initializer=_begin) as pool:
        for done, (seed, wrong) in enumerate(pool.imap(runs, wanted.seeds), start=1):
            if done % 100 == 0:
                print(f"{done} done, {failed} with violations", file=sys.stderr, flush=True)
            if wrong:
                failed += 1
                print(f"seed {seed}:", *wrong, sep="\n  ")
                words = f"{wanted.kind} --seeds {seed}".strip()
                print(f"  repeat: python tests/chaos {words}", flush=True)
    took_s = clock.monotonic_s() - began_s
    print(f"{len(wanted.seeds)} seeds, {failed} with violations, {took_s:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
