"""Which cases are asked about a mutant, and in which order. Pure.

First the fixtures that it names, and the cases that cite one of its rules: all of them, because the
link from a clause to its cases is made here; then, until one of them fails, those that noticed it
in the last kept run. Where none of these notices it, the others that reach what it changes: those
of its area, then all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mutant_patches import Mutant

from conformance.registry import Case

MOST: Final = 200
"""So many cases are asked in the second round. What nearly all cases execute and none of so many
notices would be found by chance only."""


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
    anew: bool = False
    """Import it in any case, rather than exchange functions."""


def rule_of(clause: str) -> str:
    """The rule of a clause.

    >>> rule_of("BACK-003.2"), rule_of("BACK-003")
    ('BACK-003', 'BACK-003')
    """
    return clause.partition(".")[0]


def first_plan(mutant: Mutant, cases: Sequence[Case], kept: Mapping[str, Iterable[str]]) -> Plan:
    """The plan for every mutant. `kept`: by mutant, the cases that noticed it before."""
    rules = {rule_of(clause) for clause in mutant.rules}
    citing = [case.id for case in cases if rules & {rule_of(cited) for cited in case.rules}]
    questions = [Question(case) for case in dict.fromkeys([*mutant.fixtures, *citing])]
    asked = {question.case for question in questions}
    questions += [Question(case, True) for case in kept.get(mutant.name, ()) if case not in asked]
    return Plan(mutant, tuple(questions))


def second_plan(first: Plan, cases: Sequence[Case], reaching: Collection[str] | None) -> Plan:
    """The plan for a mutant that was not noticed with the first one: it is imported, and cases of
    its area are asked, then those about rules of the same family, then others, as far as they reach
    it, MOST at the most. `reaching=None`: which ones do is not known, and no others than those of
    its area are asked. A mutant that is said to survive is asked about in its area only."""
    mutant = first.mutant
    asked = {question.case for question in first.questions}
    pages = {rule[:3] for rule in mutant.rules}
    wanted = [case for case in cases if case.area == mutant.area]
    if reaching is not None and not mutant.survives:
        near = [case for case in cases if any(rule[:3] in pages for rule in case.rules)]
        wanted += [*near, *cases]
    names = dict.fromkeys(case.id for case in wanted if reaching is None or case.id in reaching)
    again = [q.case for q in first.questions if reaching is None or q.case in reaching]
    later = [name for name in names if name not in asked][:MOST]
    return Plan(mutant, tuple(Question(name, True) for name in [*again, *later]), anew=True)
