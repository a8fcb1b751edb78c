"""How a machine of random operations on two sides is run: examples, one after another, until there
were so many operations. What the CRI's machine and that of the API server share."""

from __future__ import annotations

import os
from typing import Any, Final, Protocol

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test

STEPS: Final = 50
"""How many operations an example has at most."""


class Compared(Protocol):
    """Two sides that do the same operations."""

    operations: int
    """How many they have done."""
    mismatch: str
    """The first difference that has no reason; "": none."""


def first_seed() -> int:
    """The seed of the first example (REFKUBELET_SEED)."""
    return int(os.environ.get("REFKUBELET_SEED", "0"))


def operations(default: int) -> int:
    """How many operations are wanted (REFKUBELET_OPERATIONS)."""
    return int(os.environ.get("REFKUBELET_OPERATIONS", str(default)))


def drive(machine: Any, compared: Compared, wanted: int, *, steps: int = STEPS) -> None:
    """Run examples until there were so many operations; the first mismatch fails."""
    number = first_seed()
    while compared.operations < wanted:
        left = wanted - compared.operations
        limits = settings(
            max_examples=max(1, left // steps),
            stateful_step_count=min(steps, max(2, left)),
            deadline=None,
            database=None,
            phases=[Phase.generate],
            verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
        )
        try:
            run_state_machine_as_test(seed(number)(machine), settings=limits)
        except Exception:
            if not compared.mismatch:
                raise
        if compared.mismatch:
            text = f"{compared.mismatch}\nrepeat with REFKUBELET_SEED={number}"
            pytest.fail(text, pytrace=False)
        number += 1
