"""Which cases are asked about a mutant, and in which order. Pure.

First those that cite one of its rules: all of them, because the link from a clause to its cases is
made here. Then, until one of them fails: cases that noticed it in the last kept run, cases of its
area, all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mutant_patches import Mutant

from conformance.registry import Case


@dataclass(frozen=True, slots=True)
class Question:
    """One case to run."""

    case: str
    enough: bool = False
    """It is not run where an earlier one has noticed the mutant."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to ask about a mutant, in this order."""

    mutant: Mutant
    questions: tuple[Question, ...]


def rule_of(clause: str) -> str:
    """The rule of a clause.

    >>> rule_of("BACK-003.2"), rule_of("BACK-003")
    ('BACK-003', 'BACK-003')
    """
    return clause.partition(".")[0]


def plan_of(
    mutant: Mutant, cases: Sequence[Case], kept: Mapping[str, Iterable[str]], *, whole: bool = True
) -> Plan:
    """The plan for one mutant. `kept`: by mutant, the cases that noticed it before. `whole=False`
    and a mutant that is said to survive: no others than those that cite its rules and its area."""
    rules = {rule_of(clause) for clause in mutant.rules}
    citing = [case.id for case in cases if rules & {rule_of(cited) for cited in case.rules}]
    others = list(kept.get(mutant.name, ()))
    others += [case.id for case in cases if case.area == mutant.area]
    if whole and not mutant.survives:
        others += [case.id for case in cases]
    questions = [Question(case) for case in dict.fromkeys(citing)]
    questions += [Question(case, True) for case in dict.fromkeys(others) if case not in citing]
    return Plan(mutant, tuple(questions))
