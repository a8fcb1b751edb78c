"""`kubelet-conformance explain`: what a rule says, the functions that carry it out and the cases
that hold a kubelet to it; what a case checks, and the text of its rules; and where there is
something about the words of a question."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from kubelet_conformance.packaged import STORIES
from kubelet_conformance.registry import RULE, Case
from kubelet_conformance.rule_places import Place, closest, home_of, product_places
from kubelet_conformance.rule_texts import MARKS, RuleText
from kubelet_conformance.word_search import Thing, clause_about, found_by

WIDEST: Final = 100
MOST_FUNCTIONS: Final = 12
LONGEST_ANSWER: Final = 180
_NOTHING_MORE: Final = re.compile(r"(?:\s+-|\s*\|\s*-?)+$")
"""Cells in which nothing is, at the end of a row, and what is left of an entry of a list."""


class UnknownName(ValueError):
    """Neither a rule nor a case has this name, and nothing has these words; the text says which
    names are near."""


def explained(words: Sequence[str], rules: Mapping[str, RuleText], cases: Sequence[Case]) -> str:
    """The text about a rule (`LIFE-143`), a clause (`LIFE-143.2`) or a case (`stop-minimum`); else
    what is about these words, the best first. Raises UnknownName."""
    name = " ".join(words)
    case = next((case for case in cases if case.id == name), None)
    if case is not None:
        return "\n".join(_case_lines(case, rules))
    rule_id = name.upper()
    rule = rules.get(rule_id.partition(".")[0]) if RULE.match(rule_id) else None
    if rule is None and not RULE.match(rule_id) and (answers := found_by(words, rules, cases)):
        return "\n".join(_answer_lines(answers, words))
    if rule is None:
        near = get_close_matches(name, [case.id for case in cases], n=3)
        near += get_close_matches(rule_id, list(rules), n=3)
        hint = f"; near it: {', '.join(near)}" if near else ""
        raise UnknownName(f"explain {name}: no rule and no case has this name{hint}")
    clause = rule_id.partition(".")[2]
    if clause and int(clause) not in rule.clauses():
        have = ", ".join(f".{number}" for number in rule.clauses()) or "none"
        raise UnknownName(f"explain {name}: {rule.id} has no such clause; it has {have}")
    return "\n".join(_rule_lines(rule, clause, cases))


def _rule_lines(rule: RuleText, clause: str, cases: Sequence[Case]) -> list[str]:
    citing = [
        case for case in cases if any(_is_part(cited, rule.id, clause) for cited in case.rules)
    ]
    cited_id = f"{rule.id}.{clause}" if clause else rule.id
    lines = [f"{cited_id} ({rule.level or 'no level'})  docs/{rule.anchor}, line {rule.line}", ""]
    lines += _text_lines(rule, {int(clause)} if clause else set())
    lines += _code_lines(rule.id, clause)
    if not citing:
        return [*lines, "", "No case holds a kubelet to it."]
    lines += ["", "cases:"]
    for case in citing:
        cited = ", ".join(rule_id for rule_id in case.rules if _is_part(rule_id, rule.id, clause))
        lines += [f"  {case.area}/{case.id} ({cited})", *_wrapped(case.title, "      ")]
    level = max(case.level for case in citing).name.lower()
    switch = "" if level == "must" else f" --level {level}"
    return [*lines, "", f"run them:  kubelet-conformance run --rule {rule.id}{switch}"]


def _code_lines(rule: str, clause: str) -> list[str]:
    """The functions that carry a rule out; of a clause those that name it, if there are any."""
    cited = product_places(rule.partition("-")[0])
    places = closest(cited.get(f"{rule}.{clause}", []) or cited.get(rule, []))
    lines = ["", "code:"] if places else []
    for place in places[:MOST_FUNCTIONS]:
        lines += [f"  {_named(place)}", *_wrapped(place.first, "      ")]
    if len(places) > MOST_FUNCTIONS:
        lines.append(f"  and {len(places) - MOST_FUNCTIONS} more")
    return lines


def _named(place: Place) -> str:
    """`refkubelet.pleg.compute: compute_events  refkubelet/pleg/compute.py:30`; the file as seen
    from here, if it is below."""
    package = place.path.partition("/")[0]
    file = os.path.join(home_of(package) or "", place.path)
    here = os.path.relpath(file)
    shown = file if here.startswith(os.pardir) else here
    return f"{place.module}{f': {place.name}' if place.name else ''}  {shown}:{place.line}"


def _answer_lines(answers: Sequence[Thing], question: Sequence[str]) -> Iterator[str]:
    """What a question may be about, and how to go on."""
    for thing in answers:
        if isinstance(thing, RuleText):
            yield f"{thing.id} ({thing.level})  docs/{thing.anchor}"
            text = clause_about(thing, question)
        elif isinstance(thing, Case):
            page = f"  docs/stories/{thing.id}.md" if thing.area == STORIES else ""
            yield f"{thing.area}/{thing.id}{page}"
            text = thing.title
        else:
            yield _named(thing)
            text = thing.first
        yield from _wrapped(textwrap.shorten(text, LONGEST_ANSWER, placeholder=" ..."), "    ")
    yield ""
    yield "more of a rule or a case:  kubelet-conformance explain NAME"


def _is_part(cited: str, rule: str, clause: str) -> bool:
    """Whether what a case cites is the rule, or says something of the clause.

    >>> _is_part("A-1.2", "A-1", ""), _is_part("A-1", "A-1", "2"), _is_part("A-1.3", "A-1", "2")
    (True, True, False)
    """
    head, _, number = cited.partition(".")
    return head == rule and (not clause or not number or number == clause)


def _text_lines(rule: RuleText, only: Iterable[int], indent: str = "  ") -> list[str]:
    """What the rule says, a paragraph for each clause; of all clauses where none is chosen."""
    chosen = set(only)
    intro, clauses = rule.said(), rule.clauses()
    lines = _wrapped(intro, indent) if intro and not intro.startswith("|") else []
    for number, text in clauses.items():
        if not chosen or number in chosen:
            lines += _wrapped(f".{number}  {text}", indent, indent + "    ")
    return lines


def _case_lines(case: Case, rules: Mapping[str, RuleText]) -> list[str]:
    lines = [f"{case.area}/{case.id} ({case.level.name})", ""]
    for paragraph in (inspect.getdoc(case.body) or case.title).split("\n\n"):
        lines += [*_wrapped(paragraph, "  "), ""]
    cited: dict[str, set[int]] = {}
    for cited_rule in case.rules:
        head, _, clause = cited_rule.partition(".")
        cited.setdefault(head, set()).update({int(clause)} if clause else ())
    for head, clauses in cited.items():
        if (rule := rules.get(head)) is not None:
            lines += [f"{head} ({rule.level})  docs/{rule.anchor}", *_text_lines(rule, clauses), ""]
    if case.needs:
        lines.append(f"needs:     {'; '.join(sorted(need.value for need in case.needs))}")
    if case.since:
        lines.append("since:     Kubernetes {}.{}".format(*case.since))
    lines += [f"known bug: {bug}" for bug in case.bugs]
    lines.append(
        f"code:      {case.file or case.module}{f', line {case.line}' if case.line else ''}"
    )
    lines.append(f"run it:    kubelet-conformance run {case.file or f'--id {case.id}'}")
    return lines


def _wrapped(text: str, indent: str, further: str = "") -> list[str]:
    """The text at the width of the terminal, without Markdown's marks; rows of tables and entries
    of lists stay lines."""
    width = min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST)
    lines: list[str] = []
    for part in _parts(text):
        lines += textwrap.wrap(
            " ".join(part.split()),
            width,
            initial_indent=indent if not lines else further or indent,
            subsequent_indent=further or indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def _parts(text: str) -> Iterator[str]:
    r"""The paragraphs, rows and entries of a text.

    >>> list(_parts("**It** is *so*: `a*b`\n| a | - |\n|---|---|\n- all of cpu.*"))
    ['It is so: `a*b`', 'a', '- all of cpu.*']
    """
    unmarked = MARKS.sub(lambda mark: mark["bold"] or mark["em"] or mark[0], text)
    for part in re.split(r"\n\s*(?=\||- )", unmarked):
        if set(part) - set("|-: \n"):
            yield _NOTHING_MORE.sub("", part.strip().removeprefix("|").strip())
