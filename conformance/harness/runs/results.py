"""Outcomes of cases. Five different things that are never mixed: a failed case speaks about the
kubelet, an error about the harness, a skip about what the pair lacks, disabled about the user."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from conformance.registry import Case


class Outcome(Enum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    DISABLED = "disabled"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Result:
    """One case, run or not.

    `case_s`: time inside the case (virtual in a virtual run, else real). `real_s`: wall time.
    `detail`: why, for everything but PASSED. `trace`: the recorded calls. `warning`: something of
    ours that did not change the outcome, for example a pod left behind in the runtime.
    """

    case: Case
    outcome: Outcome
    detail: str = ""
    case_s: float = 0.0
    real_s: float = 0.0
    trace: tuple[str, ...] = ()
    warning: str = ""
