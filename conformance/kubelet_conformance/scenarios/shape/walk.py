"""Finds the expectations and conditions of a scenario, and how long it lasts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from kubelet_conformance.scenarios.shape.conditions import Condition, Expectation, Monitor
from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubeobjects.strict.reader import Placed, Strict


def expectations_of(scenario: Scenario) -> Iterator[Expectation]:
    """Everything that is waited for or expected, in order."""
    for step in scenario.steps:
        for expectation in (step.wait, step.expect):
            if expectation is not UNSET:
                yield expectation
    yield from scenario.expect


def conditions_of(scenario: Scenario) -> Iterator[Condition]:
    """All conditions, also those inside others."""
    for expectation in all_wanted(scenario):
        yield from parts_of(expectation)


def all_wanted(scenario: Scenario) -> Sequence[Expectation | Monitor]:
    """Everything that is expected at some time, or never."""
    return [*expectations_of(scenario), *scenario.never]


def shows_bug(scenario: Scenario, failed: Expectation | Monitor) -> bool:
    """Whether a failure there is the bug of the scenario: those entries that say so with `bug`, or,
    where none does, all that is expected; what is only waited for is not."""
    everything = all_wanted(scenario)
    of_bug = [expectation for expectation in everything if expectation.bug]
    if not of_bug:
        waits = [step.wait for step in scenario.steps if step.wait is not UNSET]
        of_bug = [e for e in everything if not any(e is wait for wait in waits)]
    return any(e is failed for e in of_bug)


def parts_of(wanted: Condition) -> Iterator[Condition]:
    """The conditions that an expectation consists of: itself, or those in it, at any depth."""
    if wanted.kind:
        yield wanted
    for word in ("all_of", "any_of"):
        several = getattr(wanted, word, UNSET)
        for one in () if several is UNSET else several:
            yield from parts_of(one)
    never = getattr(wanted, "never", UNSET)
    if never is not UNSET:
        yield never


def placed_in(what: Any) -> Iterator[Placed]:
    """All structs in it that know their places, itself among them."""
    if isinstance(what, Strict):
        if isinstance(what, Placed):
            yield what
        for value in what.given().values():
            yield from placed_in(value)
    elif isinstance(what, Mapping | tuple):
        for value in what.values() if isinstance(what, Mapping) else what:
            yield from placed_in(value)


def lasts_s(scenario: Scenario) -> float:
    """The seconds that a run may take: all that pass in any case, and the longest wait."""
    passing = sum(step.advance for step in scenario.steps if step.advance is not UNSET)
    passing += sum(expectation.during for expectation in expectations_of(scenario))
    waits = [w.within for w in expectations_of(scenario) if w.within is not UNSET]
    calm_s = 0.0 if scenario.calm is UNSET else scenario.calm
    return float(passing + calm_s + max(waits, default=0.0))
