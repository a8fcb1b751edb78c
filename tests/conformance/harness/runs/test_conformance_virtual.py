"""A virtual run is a function of its seed: equal traces under different hash seeds."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.registry import load_cases
case = next(c for c in load_cases() if c.id == sys.argv[1])
result = run_virtual_case(case, Choice(seed=int(sys.argv[2]), latency=1, traces="all"))
print(result.outcome.value)
print("\\n".join(result.trace))
"""


def trace(case: str, *, seed: int, hash_seed: int) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, case, str(seed)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
    )
    return done.stdout


@pytest.mark.parametrize("case", ["sidecar-stops-last", "backoff-series", "api-delete"])
def test_one_seed_gives_one_trace(case: str) -> None:
    first, second = (trace(case, seed=3, hash_seed=n) for n in (1, 2))
    assert first.startswith("passed\n")
    for number, (a, b) in enumerate(zip(first.splitlines(), second.splitlines(), strict=False)):
        assert a == b, f"first difference in line {number}"
    assert first == second


def test_another_seed_gives_another_trace() -> None:
    assert trace("backoff-series", seed=3, hash_seed=1) != trace(
        "backoff-series", seed=4, hash_seed=1
    )
