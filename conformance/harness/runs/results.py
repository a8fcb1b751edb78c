"""The outcomes of cases, five different things that are never mixed: a failed case says something
about the kubelet, an error about the harness, a skip about what the pair lacks, a disabled case
about the user's choice."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from conformance.registry import Case


class Outcome(Enum):
    """How a case ended, or why it did not run."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    DISABLED = "disabled"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one case, run or not."""

    case: Case
    outcome: Outcome
    detail: str = ""
    """Why it ended so; "" for PASSED."""
    case_s: float = 0.0
    """Seconds inside the case, virtual in a virtual run."""
    real_s: float = 0.0
    """Seconds of wall time, set-up and clean-up included."""
    trace: tuple[str, ...] = ()
    """The recorded calls, one line each."""
    warning: str = ""
    """A problem of the harness that did not change the outcome, for example a pod left behind in
    the runtime."""
