"""What unfolds below each rule of docs/spec when the site is built: the code, the tests and the
cases that cite it, for each clause what noticed that it was broken, and where it was seen.

The pages in the tree have the rules alone, so there is no copy that can be old.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markdown_tables import table
from rules_in_tree import Found, parts
from source_pages import link

from kubelet_conformance.rule_places import Place, closest
from kubelet_conformance.rule_texts import DEFINED, RuleText, rules_in

NO_TEXT: Final = re.compile(r"\s*(\||```|$)")
"""Lines that no text can be added to."""


@dataclass(frozen=True, slots=True)
class Run:
    """A kept run of the suite or of contract tests: what was run on what, and how each ended."""

    subject: str
    """`kubelet 1.36.2 on containerd 1.6.20`."""
    date: str
    outcomes: Mapping[str, str]

    def count(self, *outcomes: str) -> int:
        return sum(outcome in outcomes for outcome in self.outcomes.values())

    def seen(self, names: Iterable[str]) -> str:
        """How many of these cases or tests passed, of those that were run; "" where none was."""
        ran = [self.outcomes[name] for name in names if self.outcomes.get(name) in RAN]
        return f"{self.subject}: {ran.count('passed')} of {len(ran)}" if ran else ""


RAN: Final = ("passed", "failed", "error")


def runs_of(kept: Sequence[Mapping[str, Any]]) -> list[Run]:
    """The runs of results/conformance.json."""
    return [
        Run(
            f"{run['kubelet']} on {run['runtime']}",
            run["date"],
            {case: outcome for area in run["cases"].values() for case, outcome in area.items()},
        )
        for run in kept
    ]


def contracts_of(kept: Mapping[str, Mapping[str, Any]], tree: Found) -> list[Run]:
    """The runs of results/verified.json in which every contract test passed on the real thing."""
    runs = []
    for version, run in kept.items():
        kind = "api" if version == "apiserver" else "cri"
        subject = (
            f"kube-apiserver {run['version']}"
            if kind == "api"
            else f"containerd {run['containerd']}"
        )
        tests = {str(place) for places in tree.tests.values() for place in places}
        of_kind = [test for test in tests if test.startswith(f"tests/verified/test_{kind}_")]
        if not run["contract"]["failed"]:
            subject = f"contract tests on {subject}"
            runs.append(Run(subject, run["date"], dict.fromkeys(of_kind, "passed")))
    return runs


def unfolded(markdown: str, source: str, tree: Found, runs: Sequence[Run]) -> str:
    """The page `source` (`spec/probes.md`) with an anchor at each rule and what unfolds behind its
    text, or behind its first line where the text ends with a table."""
    lines = markdown.splitlines()
    for rule in rules_in(posixpath.basename(source).removesuffix(".md"), markdown):
        inside = f" {fold(rule, source, tree, runs)}"
        bold = f"**{rule.id}**"
        start = rule.line - 1
        first = lines[start].index(bold)
        following = DEFINED.search(lines[start], first + len(bold))
        last = start + rule.text.count("\n")
        if following:
            at = following.start()
            lines[start] = f"{lines[start][:at].rstrip()}{inside} {lines[start][at:]}"
        elif lines[start].startswith("|"):
            lines[start] = f"{lines[start].rstrip().removesuffix('|').rstrip()}{inside} |"
        else:
            last = start if NO_TEXT.match(lines[last]) else last
            lines[last] += inside
        lines[start] = lines[start].replace(bold, f'<a id="{rule.id.lower()}"></a>{bold}', 1)
    return "\n".join(lines) + "\n"


def fold(rule: RuleText, source: str, tree: Found, runs: Sequence[Run]) -> str:
    """What unfolds below a rule, on one line, for lists and tables alike."""
    of_rule = _Part(rule.id, tree)
    if not (of_rule.code or of_rule.tests or of_rule.cases):
        why = posixpath.relpath("gaps.md", posixpath.dirname(source))
        return "*not yet*" + (f" ([why]({why}))" if rule.level == "MUST" else "")
    rows = [("Code", of_rule.shown_code(source))]
    rows += [("Tests", of_rule.shown_tests()), ("Cases", of_rule.shown_cases())]
    for clause in (part for part in parts(rule) if part != rule.id):
        part = _Part(clause, tree)
        shown = (part.shown_code(source), part.shown_cases(short=True), part.shown_tests())
        rows.append((clause.removeprefix(rule.id), "; ".join(text for text in shown if text)))
    names = [*of_rule.cases, *map(str, of_rule.tests)]
    rows.append(("Seen", "; ".join(filter(None, (run.seen(names) for run in runs)))))
    inside = "".join(f"<br>**{head}** {text}" for head, text in rows if text)
    # The search finds the text of the rule; what cites it would be three quarters of its index.
    return (
        '<details class="quote" data-search-exclude>'
        f"<summary>{of_rule.summary()}</summary>{inside}</details>"
    )


class _Part:
    """What is known of a rule or a clause; what noticed that it was broken is bold."""

    def __init__(self, part: str, tree: Found) -> None:
        self._places = tree.case_places
        self._proved = tree.proved.get(part, [])
        self.code = closest(tree.code.get(part, []))
        noticed = [one for one in self._proved if one in tree.case_places]
        self.cases = list(dict.fromkeys([*noticed, *tree.cases.get(part, [])]))
        self.tests = tree.tests.get(part, [])
        cited = {str(place) for place in self.tests}
        self._further = [one for one in self._proved if one not in {*self.cases, *cited}]

    def summary(self) -> str:
        """How much there is: `2 functions, 4 tests, 11 cases`."""
        counts = {
            "place in the code": len(self.code),
            "test": len(self.tests),
            "case": len(self.cases),
        }
        return ", ".join(_counted(number, what) for what, number in counts.items() if number)

    def shown_code(self, source: str) -> str:
        return ", ".join(link(place, source) for place in self.code)

    def shown_tests(self) -> str:
        ordered = sorted(self.tests, key=lambda place: str(place) not in self._proved)
        shown = [self._bold(_test(place), str(place)) for place in ordered]
        return ", ".join([*shown, *(f"**`{one}`**" for one in self._further)])

    def shown_cases(self, *, short: bool = False) -> str:
        """`short`: without the files that they are in."""
        places = {
            case: self._places[case].removeprefix("conformance/kubelet_conformance/cases/")
            for case in self.cases
        }
        return ", ".join(
            self._bold(case, case) + ("" if short else f" (`{place}`)")
            for case, place in places.items()
        )

    def _bold(self, text: str, name: str) -> str:
        return f"**{text}**" if name in self._proved else text


def _counted(number: int, what: str) -> str:
    """
    >>> _counted(1, "case"), _counted(2, "place in the code")
    ('1 case', '2 places in the code')
    """
    noun, _, rest = what.partition(" ")
    return f"{number} {noun}{'s' if number > 1 else ''} {rest}".rstrip()


def _test(place: Place) -> str:
    return f"`{place.path.removeprefix('tests/')}:{place.line} {place.name}`"


def overview(tree: Found, runs: Sequence[Run]) -> str:
    """The tables of docs/rules.md: how much is held, page by page, and the kept runs."""
    rows = [
        _held(page, [rule for rule in tree.rules if rule.page == page], tree)
        for page in dict.fromkeys(rule.page for rule in tree.rules)
    ]
    sums = [str(sum(int(row[column]) for row in rows)) for column in range(1, 6)]
    heads = (
        "page",
        "rules",
        "MUST",
        "with a test or a case",
        "things they say",
        "proved by a case or a contract test",
    )
    kept = [
        (
            run.subject,
            run.date,
            str(len(run.outcomes)),
            str(run.count("passed")),
            str(run.count("failed", "error")),
            str(run.count("skipped")),
        )
        for run in runs
    ]
    return (
        table(heads, [*rows, ("all", *sums)])
        + "\n"
        + table(("run", "date", "cases", "passed", "failed", "skipped"), kept)
    )


def _held(page: str, rules: Sequence[RuleText], tree: Found) -> Sequence[str]:
    must = [rule for rule in rules if rule.level == "MUST"]
    said = [part for rule in must for part in parts(rule)]
    tested = sum(rule.id in tree.tests or rule.id in tree.cases for rule in must)
    proved = sum(any(map(tree.proves, tree.proved.get(part, ()))) for part in said)
    numbers = (len(rules), len(must), tested, len(said), proved)
    return (f"[{page}](spec/{page}.md)", *(str(number) for number in numbers))
