"""`kubelet-conformance explain`: what a rule says and which cases hold a kubelet to it; what a case
checks, and the text of its rules."""

from __future__ import annotations

import inspect
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from conformance.registry import RULE, Case
from conformance.rule_texts import RuleText

WIDEST: Final = 100


class UnknownName(ValueError):
    """Neither a rule nor a case has this name; the text says which are near."""


def explained(name: str, rules: Mapping[str, RuleText], cases: Sequence[Case]) -> str:
    """The text about a rule (`LIFE-143`), a clause (`LIFE-143.2`) or a case (`stop-minimum`).
    Raises UnknownName."""
    case = next((case for case in cases if case.id == name), None)
    if case is not None:
        return "\n".join(_case_lines(case, rules))
    wanted = name.upper()
    rule = rules.get(wanted.partition(".")[0]) if RULE.match(wanted) else None
    if rule is None:
        near = get_close_matches(name, [case.id for case in cases], n=3)
        near += get_close_matches(wanted, list(rules), n=3)
        hint = f"; near it: {', '.join(near)}" if near else ""
        raise UnknownName(f"explain {name}: no rule and no case has this name{hint}")
    clause = wanted.partition(".")[2]
    if clause and int(clause) not in rule.clauses():
        have = ", ".join(f".{number}" for number in rule.clauses()) or "none"
        raise UnknownName(f"explain {name}: {rule.id} has no such clause; it has {have}")
    return "\n".join(_rule_lines(rule, clause, cases))


def _rule_lines(rule: RuleText, clause: str, cases: Sequence[Case]) -> list[str]:
    citing = [
        case for case in cases if any(_is_part(cited, rule.id, clause) for cited in case.rules)
    ]
    wanted = f"{rule.id}.{clause}" if clause else rule.id
    lines = [f"{wanted} ({rule.level or 'no level'})  docs/{rule.anchor}, line {rule.line}", ""]
    lines += _text_lines(rule, {int(clause)} if clause else set())
    if not citing:
        return [*lines, "", "No case holds a kubelet to it."]
    lines += ["", "cases:"]
    for case in citing:
        cited = ", ".join(one for one in case.rules if _is_part(one, rule.id, clause))
        lines += [f"  {case.area}/{case.id} ({cited})", *_wrapped(case.title, "      ")]
    level = max(case.level for case in citing).name.lower()
    switch = "" if level == "must" else f" --level {level}"
    return [*lines, "", f"run them:  kubelet-conformance run --rule {rule.id}{switch}"]


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
    said, clauses = rule.said(), rule.clauses()
    lines = _wrapped(said, indent) if said and not said.startswith("|") else []
    for number, text in clauses.items():
        if not chosen or number in chosen:
            lines += _wrapped(f".{number}  {text}", indent, indent + "    ")
    return lines


def _case_lines(case: Case, rules: Mapping[str, RuleText]) -> list[str]:
    lines = [f"{case.area}/{case.id} ({case.level.name})", ""]
    for paragraph in (inspect.getdoc(case.body) or case.title).split("\n\n"):
        lines += [*_wrapped(paragraph, "  "), ""]
    cited: dict[str, set[int]] = {}
    for one in case.rules:
        head, _, clause = one.partition(".")
        cited.setdefault(head, set()).update({int(clause)} if clause else ())
    for head, clauses in cited.items():
        if (rule := rules.get(head)) is not None:
            lines += [f"{head} ({rule.level})  docs/{rule.anchor}", *_text_lines(rule, clauses), ""]
    if case.needs:
        lines.append(f"needs:     {'; '.join(sorted(one.value for one in case.needs))}")
    if case.since:
        lines.append("since:     Kubernetes {}.{}".format(*case.since))
    lines += [f"known bug: {bug}" for bug in case.bugs]
    lines.append(
        f"code:      {case.file or case.module}{f', line {case.line}' if case.line else ''}"
    )
    lines.append(f"run it:    kubelet-conformance run {case.file or f'--id {case.id}'}")
    return lines


def _wrapped(text: str, indent: str, further: str = "") -> list[str]:
    """The text at the width of the terminal, without Markdown's bold; rows of tables stay lines."""
    width = min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST)
    lines: list[str] = []
    for part in text.replace("**", "").split("\n|"):
        lines += textwrap.wrap(
            " ".join(part.split()),
            width,
            initial_indent=indent if not lines else further or indent,
            subsequent_indent=further or indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines
