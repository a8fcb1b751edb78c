"""Wrong kubelets that only a law notices: their cases pass without laws."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from kubelet_conformance.harness.runs import case_run
from kubelet_conformance.harness.runs.case_run import Outcome
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.registry import load_cases
from kubeobjects.structs import replace
from refkubelet import kubelet  # noqa: F401 - so that no import happens while something is wrong
from refkubelet.status import normalize

CASES = {case.id: case for case in load_cases()}
_stamped, _stamp_times = normalize._stamped, normalize.stamp_times


def time_goes_with_the_generation(condition: Any, old: Any, now: Any) -> Any:
    """Conditions get another lastTransitionTime when the pod was changed."""
    same = old is not None and old.observedGeneration == condition.observedGeneration
    return _stamped(condition, old if same else None, now)


def start_goes_with_the_phase(status: Any, previous: Any, now: Any) -> Any:
    """startTime is that of the last change of the phase."""
    stamped = _stamp_times(status, previous, now)
    moved = previous is not None and previous.phase != status.phase
    return replace(stamped, startTime=now) if moved else stamped


@pytest.mark.parametrize(
    ("module", "name", "wrong", "case_id", "law"),
    [
        (
            *(normalize, "_stamped", time_goes_with_the_generation),
            *("backoff-new-resources", "transitions-have-times"),
        ),
        (
            *(normalize, "stamp_times", start_goes_with_the_phase),
            *("address-kept", "start-time-kept"),
        ),
    ],
)
def test_a_law_notices_what_the_case_does_not(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, wrong: Any, case_id: str, law: str
) -> None:
    for user in _users(name, getattr(module, name)):
        monkeypatch.setattr(user, name, wrong)
    result = run_virtual_case(CASES[case_id], Choice())
    assert result.outcome is Outcome.FAILED
    assert result.detail.startswith(f"law {law} "), result.detail
    monkeypatch.setattr(case_run, "LAWS", ())
    assert run_virtual_case(CASES[case_id], Choice()).outcome is Outcome.PASSED


def _users(name: str, right: Any) -> list[Any]:
    """The modules that have the function."""
    return [
        module
        for key, module in sys.modules.items()
        if key.startswith("refkubelet.") and vars(module).get(name) is right
    ]
