"""The results of a run as a JSON file (`kubelet-conformance run --results FILE`).

One object:

- `kubelet`, `runtime`, `time`, `jobs`, `latency`, `long`, `level`: as chosen; `whole`: all cases of
  the level ran
- `seed`: the seed, of a run with one
- `seeds`: in a run with several (`--seeds`) instead, per seed how many cases had which outcome:
  `{"3": {"passed": 544, "failed": 1}}`
- `date`: UTC, YYYY-MM-DD; `real_s`: wall time of the whole run; `load`: how many processes ran or
  wanted to run on the machine on average in the last five minutes of it
- `areas`: per area `case_s`, the time inside its cases (virtual in a virtual run), and `real_s`
- `cases`: per case ID `area`, `level`, `outcome` as in `Outcome`, and `detail`, the reason unless
  it passed; with several seeds the worst outcome, its reason with the first such seed, and `seeds`,
  per outcome the seeds that had it: `{"passed": [1, 2], "failed": [3]}`

docs/render_rules.py takes such files in; the numbers of README.md and docs/verified.md come from
there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from conformance.harness.runs.case_run import Outcome, Result
from conformance.harness.runs.choice import Choice
from conformance.registry import Selection
from conformance.summary import seeds_in

WORST_FIRST: Final = (
    *(Outcome.ERROR, Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.KNOWN_BUG),
    *(Outcome.PASSED, Outcome.SKIPPED, Outcome.DISABLED),
)


def document(
    results: Sequence[Result],
    choice: Choice,
    selection: Selection,
    *,
    real_s: float,
    load: float,
    now: datetime,
) -> dict[str, Any]:
    """The content of the file, see above. Times are rounded to milliseconds."""
    areas: dict[str, dict[str, float]] = {}
    for result in results:
        of_area = areas.setdefault(result.case.area, {"case_s": 0.0, "real_s": 0.0})
        of_area["case_s"] = round(of_area["case_s"] + result.case_s, 3)
        of_area["real_s"] = round(of_area["real_s"] + result.real_s, 3)
    return {
        "kubelet": choice.kubelet,
        "runtime": choice.runtime,
        "time": choice.time,
        "jobs": choice.jobs,
        "latency": choice.latency,
        **_seeds(results, choice),
        "level": selection.level.name.lower(),
        "whole": selection.is_whole,
        "long": choice.long,
        "date": f"{now:%Y-%m-%d}",
        "real_s": round(real_s, 3),
        "load": round(load, 1),
        "areas": areas,
        "cases": _cases(results),
    }


def _seeds(results: Sequence[Result], choice: Choice) -> dict[str, Any]:
    seeds = seeds_in(results)
    if len(seeds) < 2:
        return {"seed": choice.seed}
    counts = {
        str(seed): dict(Counter(r.outcome.value for r in results if r.seed == seed))
        for seed in seeds
    }
    return {"seeds": counts}


def _cases(results: Sequence[Result]) -> dict[str, dict[str, Any]]:
    by_case: dict[str, list[Result]] = {}
    for result in results:
        by_case.setdefault(result.case.id, []).append(result)
    several = len(seeds_in(results)) > 1
    return {case_id: _case(found, several=several) for case_id, found in by_case.items()}


def _case(found: Sequence[Result], *, several: bool) -> dict[str, Any]:
    """What the file says about a case with these results, one for each seed."""
    worst = min(found, key=lambda result: WORST_FIRST.index(result.outcome))
    told: dict[str, Any] = {
        "area": worst.case.area,
        "level": worst.case.level.name.lower(),
        "outcome": worst.outcome.value,
    }
    if worst.detail:
        told["detail"] = worst.detail
    if several:
        told["seeds"] = {
            outcome.value: seeds
            for outcome in Outcome
            if (seeds := [r.seed for r in found if r.outcome is outcome])
        }
    return told


def write(path: Path, content: dict[str, Any]) -> None:
    """Write the content to the file. Raises OSError."""
    path.write_text(json.dumps(content, indent=1) + "\n")
