"""The results of a run as a JSON file (`kubelet-conformance run --results FILE`).

One object:

- `kubelet`, `runtime`, `seed`, `long`, `level`: as chosen; `whole`: all cases of the level ran
- `date`: UTC, YYYY-MM-DD; `real_s`: wall time of the whole run
- `areas`: per area `case_s`, the time inside its cases (virtual in a virtual run), and `real_s`
- `cases`: per case ID `area`, `outcome` as in `Outcome`, and `detail`, the reason unless it passed

docs/render_rules.py takes such files in; the numbers of README.md and docs/verified.md come from
there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from conformance.harness.runs.case_run import Result
from conformance.harness.runs.choice import Choice
from conformance.registry import Selection


def document(
    results: Sequence[Result],
    choice: Choice,
    selection: Selection,
    *,
    real_s: float,
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
        "seed": choice.seed,
        "level": selection.level.name.lower(),
        "whole": not (selection.ids or selection.areas or selection.rules),
        "long": choice.long,
        "date": f"{now:%Y-%m-%d}",
        "real_s": round(real_s, 3),
        "areas": areas,
        "cases": {result.case.id: _case(result) for result in results},
    }


def _case(result: Result) -> dict[str, str]:
    told = {"area": result.case.area, "outcome": result.outcome.value}
    return told | ({"detail": result.detail} if result.detail else {})


def write(path: Path, content: dict[str, Any]) -> None:
    """Write the content to the file. Raises OSError."""
    path.write_text(json.dumps(content, indent=1) + "\n")
