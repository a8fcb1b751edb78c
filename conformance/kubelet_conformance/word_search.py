"""Stories, rules, cases and functions by the words of a question, the best first."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from kubelet_conformance.packaged import STORIES
from kubelet_conformance.registry import Case
from kubelet_conformance.rule_places import Place, product_definitions
from kubelet_conformance.rule_texts import RuleText

MOST: Final = 10
"""So many answers at most."""
STORY_COUNTS: Final = 2.5
"""The best story, which answers a question from its beginning, counts so many times as much."""
NAME_COUNTS: Final = 3
"""A word in a name counts as much as this many in a text."""
CITING_CASES: Final = 3
"""What so many cases of a rule say counts for the rule, too: it leads to them."""
SATURATION: Final = 1.2
"""How soon further occurrences of a word count less (k1 of the ranking function BM25)."""
LENGTH: Final = 0.6
"""How much the length of a text counts against it (b of BM25)."""
EMPTY: Final = re.compile(
    r"(?:an?|and|are|as|at|be|by|can|comes?|do(?:es)?|for|from|gets?|happens?|has|have|how|i|if|in|"
    r"into|is|its?|my|no|not|of|on|one|or|so|than|that|the|then|there|this|to|was|what|when|where|"
    r"which|who|why|will|with)"
)
"""Words of a question that say nothing of its subject."""
ENDINGS: Final = re.compile(r"(?:ies|ing|ed|es|(?<!s)s|y|e)$")
WORD: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
"""`killReason`, `kill_reason` and `kill-reason` are two words."""


Thing = RuleText | Case | Place


@cache
def stem(word: str) -> str:
    """What the forms of a word begin with.

    >>> [stem(word) for word in ("evicted", "probes", "Retries", "is", "disk")]
    ['evict', 'prob', 'retr', 'is', 'disk']
    """
    shorter = ENDINGS.sub("", word.lower())
    return shorter if len(shorter) >= 3 else word.lower()


def asked_for(question: Iterable[str]) -> list[str]:
    """The stems of the words that count; of a word with a hyphen, which is a name, it is all.

    >>> asked_for(["What happens when", "a liveness probe fails?"]), asked_for(["stop-minimun"])
    (['liveness', 'prob', 'fail'], ['stop-minimun'])
    """
    words = [word.strip("?!.,:;") for part in question for word in part.lower().split()]
    stems = [
        word if "-" in word else stem(word) for word in words if word and not EMPTY.fullmatch(word)
    ]
    return list(dict.fromkeys(stems))


def found_by(
    question: Sequence[str], rules: Mapping[str, RuleText], cases: Sequence[Case]
) -> list[Thing]:
    """The rules, cases and functions that have most of the words of a question, and those words
    that few others have; none if no word is anywhere."""
    stems = asked_for(question)
    functions = [place for place in product_definitions(stems) if place.is_function and place.first]
    things: list[Thing] = [*rules.values(), *cases, *functions]
    scores = _scores(stems, [_said(thing) for thing in things])
    stories = [i for i, t in enumerate(things) if isinstance(t, Case) and t.area == STORIES]
    if stories:
        scores[max(stories, key=lambda i: scores[i])] *= STORY_COUNTS
    of_rule: dict[str, list[float]] = {rule: [] for rule in rules}
    for case, score in zip(cases, scores[len(rules) :], strict=False):
        for rule in {cited.partition(".")[0] for cited in case.rules} & of_rule.keys():
            of_rule[rule].append(score)
    for i, of_cases in enumerate(of_rule.values()):
        scores[i] += sum(sorted(of_cases)[-CITING_CASES:]) / CITING_CASES
    ranked = sorted(range(len(things)), key=lambda i: -scores[i])
    return [things[i] for i in ranked[:MOST] if scores[i] > 0]


def _said(thing: Thing) -> tuple[str, str]:
    """Its name and its text."""
    if isinstance(thing, RuleText):
        return thing.id, thing.text
    return (thing.id, thing.title) if isinstance(thing, Case) else (thing.name, thing.first)


def _scores(stems: Sequence[str], texts: Sequence[tuple[str, str]]) -> list[float]:
    """How well each text, which has a name, fits (BM25)."""
    counts = [
        [NAME_COUNTS * _occurrences(stem, name) + _occurrences(stem, text) for stem in stems]
        for name, text in texts
    ]
    having = [1 + sum(bool(count[i]) for count in counts) for i in range(len(stems))]
    weights = [math.log(1 + len(texts) / number) for number in having]
    usual = 1 + sum(len(text) for _, text in texts) / max(1, len(texts))
    scores = []
    for count, (_, text) in zip(counts, texts, strict=True):
        slow = SATURATION * (1 - LENGTH + LENGTH * len(text) / usual)
        parts = zip(weights, count, strict=True)
        scores.append(sum(weight * number / (number + slow) for weight, number in parts))
    return scores


def _occurrences(stem: str, text: str) -> int:
    """
    >>> _occurrences("kill", "killReason, not skilled"), _occurrences("back-off", "Back-off ends")
    (1, 1)
    """
    if "-" in stem or stem not in text.lower():
        return text.lower().count(stem)
    return sum(word.lower().startswith(stem) for word in WORD.findall(text))


def clause_about(rule: RuleText, question: Sequence[str]) -> str:
    """The clause with most of the words of a question, or what the rule says before all."""
    stems = asked_for(question)
    clauses = {"": rule.said(), **{f".{n} ": said for n, said in rule.clauses().items()}}
    number, said = max(
        clauses.items(), key=lambda item: sum(stem in item[1].lower() for stem in stems)
    )
    return " ".join(f"{number}{said}".replace("**", "").split()).lstrip("—) ")
