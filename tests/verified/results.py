"""What a verified run found, as results/verified.json keeps it: one entry per containerd version.

`tools/docs/render_verified.py` makes the tables of docs/verified.md of it. What must never happen
here: a run of a part of the tests takes the place of a whole one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import differences as table


@dataclass(frozen=True, slots=True)
class Machine:
    """What the machine of random operations did."""

    operations: int
    seed: int
    used: Mapping[table.AnyRow, int]
    """How often each row of the table of differences was needed."""
    mismatch: str = ""


@dataclass(slots=True)
class Results:
    """One run, while it goes on."""

    containerd: str = ""
    runc: str = ""
    expected: int = 0
    """Contract tests on the real runtime that this run was to do."""
    passed: int = 0
    failed: int = 0
    machine: Machine | None = None
    facts: dict[str, str] = field(default_factory=dict)
    """Date, kernel and whatever else is worth keeping."""

    @property
    def whole(self) -> bool:
        """All contract tests and the machine have run to an end, good or bad."""
        done = self.passed + self.failed
        return bool(self.containerd) and 0 < self.expected == done and self.machine is not None

    def entry(self) -> dict[str, Any]:
        """For the file."""
        assert self.machine is not None
        rows = sorted(self.machine.used.items(), key=lambda item: (item[0].method, str(item[0])))
        return {
            "containerd": self.containerd,
            "runc": self.runc,
            **self.facts,
            "contract": {"passed": self.passed, "failed": self.failed},
            "machine": {
                "operations": self.machine.operations,
                "seed": self.machine.seed,
                "mismatch": self.machine.mismatch,
            },
            "differences": [
                {"method": row.method, "what": str(row), "times": times, "reason": row.reason}
                for row, times in rows
            ],
        }


def save(path: Path, results: Results) -> bool:
    """Put a whole run into the file, in the place of the last one of that version.

    Returns False, and writes nothing, for a run of parts.
    """
    if not results.whole:
        return False
    kept = json.loads(path.read_text()) if path.exists() else {}
    minor = re.search(r"\d+\.\d+", results.containerd)
    kept[minor[0] if minor else results.containerd] = results.entry()
    path.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
    return True
