"""Which cases are asked about a mutant, and in which order. Pure.

First the fixtures that it names, all of them; then, until one fails, the cases that noticed it in
the last kept run and those that cite one of its rules. Where the links from clauses to cases are to
be made, all that cite them are asked. Where none of these notices it, the others that reach what it
changes: those of its area, then all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mutant_tables import Mutant

from kubelet_conformance.registry import Case

MOST: Final = 200
"""So many cases are asked in the second round. What nearly all cases execute and none of so many
notices would be found by chance only."""


CASE_WITHIN_S: Final = 20.0
"""The longest cases take two."""


@dataclass(frozen=True)
class Question:
    """One case to run."""

    case: str
    enough: bool = False
    """It is not run where an earlier one has noticed the mutant."""
    within_s: float = CASE_WITHIN_S
    """Seconds of processor time; with more of them the mutant hangs."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to ask about a mutant, in this order."""

    mutant: Any
    """With the method `texts`: of a table, or drawn by lot."""
    questions: tuple[Question, ...]
    anew: bool = False
    """Import it in any case, rather than exchange functions."""


def rule_of(clause: str) -> str:
    """The rule of a clause.

    >>> rule_of("BACK-003.2"), rule_of("BACK-003")
    ('BACK-003', 'BACK-003')
    """
    return clause.partition(".")[0]


def first_plan(
    mutant: Mutant, cases: Sequence[Case], kept: Mapping[str, Iterable[str]], *, links: bool = True
) -> Plan:
    """The plan for every mutant. `kept`: by mutant, the cases that noticed it before. `links`: all
    cases that cite its rules are asked, also where an earlier one has noticed it; otherwise those
    of `kept` come first, and one that notices it is enough."""
    rules = {rule_of(clause) for clause in mutant.rules}
    citing = [case.id for case in cases if rules & {rule_of(cited) for cited in case.rules}]
    before = kept.get(mutant.name, ())
    always = list(dict.fromkeys([*mutant.fixtures, *(citing if links else ())]))
    enough = dict.fromkeys([*before, *citing])
    questions = [Question(case) for case in always]
    questions += [Question(case, True) for case in enough if case not in always]
    return Plan(mutant, tuple(questions))


def second_plan(first: Plan, cases: Sequence[Case], reaching: Collection[str] | None) -> Plan:
    """The plan for a mutant that was not noticed with the first one: it is imported, and cases of
    its area are asked, then those about rules of the same family, then others, as far as they reach
    it, MOST at the most. `reaching=None`: which ones do is not known, and no others than those of
    its area are asked. A mutant that is said to survive is asked about in its area only; one that a
    law must notice, of all that reach it."""
    mutant = first.mutant
    asked = {question.case for question in first.questions}
    pages = {rule[:3] for rule in mutant.rules}
    wanted = [case for case in cases if case.area == mutant.area]
    if reaching is not None and not mutant.survives:
        near = [case for case in cases if any(rule[:3] in pages for rule in case.rules)]
        wanted += [*near, *cases]
    names = dict.fromkeys(case.id for case in wanted if reaching is None or case.id in reaching)
    again = [q.case for q in first.questions if reaching is None or q.case in reaching]
    most = None if mutant.laws else MOST
    later = [name for name in names if name not in asked][:most]
    return Plan(mutant, tuple(Question(name, True) for name in [*again, *later]), anew=True)
