"""What a run against a real kube-apiserver found, as it is kept in results/verified.json under
`apiserver`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import api_differences as table


@dataclass(slots=True)
class ApiResults:
    """One run, while it goes on."""

    version: str = ""
    """The server's; "": none was met."""
    expected: int = 0
    """Contract tests on the real server that this run was to do."""
    passed: int = 0
    failed: int = 0
    operations: int = 0
    seed: int = 0
    mismatch: str = ""
    used: Mapping[table.AnyRow, int] = field(default_factory=dict)
    """How often each row of the table of differences was needed."""

    @property
    def whole(self) -> bool:
        """All contract tests and the machine have run to an end, good or bad."""
        done = self.passed + self.failed
        return bool(self.version) and 0 < self.expected == done and self.operations > 0

    def entry(self, facts: Mapping[str, str]) -> dict[str, Any]:
        """For the file."""
        rows = sorted(self.used.items(), key=lambda item: (item[0].method, str(item[0])))
        machine = {"operations": self.operations, "seed": self.seed, "mismatch": self.mismatch}
        return {
            "version": self.version,
            **facts,
            "contract": {"passed": self.passed, "failed": self.failed},
            "machine": machine,
            "differences": [
                {"method": row.method, "what": str(row), "times": times, "reason": row.reason}
                for row, times in rows
            ],
        }


def save_api(path: Path, results: ApiResults, facts: Mapping[str, str]) -> bool:
    """Put a whole run into the file; False, and nothing is written, for a run of parts."""
    if not results.whole:
        return False
    kept = json.loads(path.read_text()) if path.exists() else {}
    kept["apiserver"] = results.entry(facts)
    path.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
    return True
