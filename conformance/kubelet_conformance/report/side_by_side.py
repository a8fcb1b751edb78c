"""The pages of runs side by side: many as a table, two with their calls. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby
from typing import Final

from kubelet_conformance.report.compare import Pair, Step, first_of
from kubelet_conformance.report.differences import CaseDifference
from kubelet_conformance.report.html import TABLE, facts, page, table, timeline, trace_script
from kubelet_conformance.report.pages import verdict
from kubelet_conformance.report.tables import Column, cases_in_words, differing, matrix

NEAR: Final = 2
"""Calls that are shown before and behind one that differs."""
LEAST_FOLDED: Final = 4
"""So many calls alike are worth a line that unfolds."""


def matrix_page(columns: Sequence[Column]) -> str:
    """Products x areas, and the cases that did not end alike."""
    heads, rows = matrix(columns)
    case_heads, case_rows = differing(columns)
    parts = [table(heads, rows, "passed of those that ran")]
    if case_rows:
        parts += ["<h2>Cases that did not end alike</h2>", table(case_heads, case_rows)]
    return page("Kubelets and runtimes side by side", *parts, scripts=False)


def diff_page(
    *,
    names: tuple[tuple[str, str], tuple[str, str]],
    found: Sequence[CaseDifference],
    traces: Callable[[CaseDifference], tuple[bytes, bytes]],
) -> str:
    """Two runs side by side. `names`: of each its products and its file; `found`: what differs;
    `traces`: the JSON of both traces of a case.

    The page begins with the first difference: of the cases whose verdicts differ the first, else of
    those whose calls do.
    """
    verdicts = [one for one in found if one.verdicts_differ]
    cases = sorted((one for one in found if one.pairs), key=lambda one: not one.verdicts_differ)
    scripts = []
    shown = []
    for number, one in enumerate(cases):
        for side, json in zip("ab", traces(one), strict=True):
            scripts.append(trace_script(f"trace-{side}{number}", json))
        shown.append(_case_of_both(one, number))
    table_of_verdicts = table(
        ["case", "A", "B", "why"],
        [(one.id, one.a.verdict, one.b.verdict, one.b.reason or one.a.reason) for one in verdicts],
    )
    products = (f"{product} ({file})" for product, file in names)
    parts = [facts(zip("AB", products, strict=True))]
    if shown:
        parts += ["<h2>The first difference</h2>", shown[0]]
    if verdicts:
        parts += ["<h2>Verdicts that differ</h2>", table_of_verdicts]
    if shown[1:]:
        parts += ["<h2>Further cases whose calls differ</h2>", *shown[1:]]
    files = " and ".join(file for _, file in names)
    return page(f"{_what_differs(len(verdicts), len(cases))}: {files}", *parts, *scripts)


def _what_differs(verdicts: int, calls: int) -> str:
    """
    >>> _what_differs(1, 2), _what_differs(0, 0)
    ('\u2260 1 verdict, calls of 2 cases', '= No difference')
    """
    words = [f"{verdicts} verdict{'' if verdicts == 1 else 's'}"] if verdicts else []
    words += [f"calls of {cases_in_words(calls)}"] if calls else []
    return f"\u2260 {', '.join(words)}" if words else "= No difference"


def _case_of_both(one: CaseDifference, number: int) -> str:
    """A case in both runs: what differs first, the timelines, and all calls. The first is open."""
    first = first_of(one.pairs)
    assert first is not None
    verdicts = " \u2192 ".join(verdict(case.verdict) for case in one.both)
    if not one.verdicts_differ:
        verdicts = verdict(one.a.verdict)
    reasons = [
        (f"{side} {case.verdict}", case.reason) for side, case in zip("AB", one.both, strict=True)
    ]
    steps = [
        (side, _step(step) or "(no such call)") for side, step in zip("AB", first.both, strict=True)
    ]
    places = (f"controls-{number}", "none")
    timelines = "".join(
        f"<section><h3>{side}</h3>"
        f"{timeline(f'trace-{side.lower()}{number}', at_s=first.at_s_of(step), controls=controls)}"
        "</section>"
        for side, step, controls in zip("AB", first.both, places, strict=True)
    )
    opened = "" if number else " open"
    return (
        f'<details class="case" id="{escape(one.id)}"{opened}><summary>{verdicts} '
        f"<code>{escape(one.id)}</code> {escape(_said(first))}</summary>"
        f'<div class="inside">{facts([*steps, *reasons])}<div id="controls-{number}"></div>'
        f'<div class="sides">{timelines}</div>{_calls(one.pairs)}</div></details>'
    )


def _said(pair: Pair) -> str:
    return f"{pair.pod or 'the node'}: {pair.differs}"


def _calls(pairs: Sequence[Pair]) -> str:
    """The calls of both sides in one table; the first that differs is marked. Many that are alike
    are folded up, but for those next to one that differs."""
    heads = "".join(f'<th scope="col">{word}</th>' for word in ("pod", "A", "B", "differs in"))
    bodies: list[str] = []
    first = first_of(pairs)
    for differ, group in groupby(pairs, key=lambda pair: bool(pair.differs)):
        rows = [_row_of(pair, first=pair is first) for pair in group]
        before = NEAR if bodies else 0  # the first have nothing before them
        folded = rows[before:-NEAR]
        if differ or len(folded) < LEAST_FOLDED:
            bodies.append("".join(rows))
            continue
        button = f'<button type="button" class="unfold">{len(folded)} calls alike</button>'
        bodies.append(
            f'{"".join(rows[:before])}<tr><td colspan="4">{button}</td></tr></tbody>'
            f"<tbody hidden>{''.join(folded)}</tbody><tbody>{''.join(rows[-NEAR:])}"
        )
    return f"{TABLE}<thead><tr>{heads}</tr></thead><tbody>{''.join(bodies)}</tbody></table>"


def _row_of(pair: Pair, *, first: bool) -> str:
    kind = ("differs first" if first else "differs") if pair.differs else ""
    cells = (pair.pod, _step(pair.a), _step(pair.b), pair.differs)
    return f'<tr class="{kind}">{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>'


def _step(step: Step | None) -> str:
    return "" if step is None else f"{step.entry.at_s:.3f} s  {step.name}"
