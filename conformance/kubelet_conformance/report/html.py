"""Pieces of HTML, and the page around them: one file that needs no other. Pure."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Final

from kubelet_conformance.rule_texts import MARKS

SCRIPTS: Final = ("timeline.js", "page.js")
NUMBERS: Final = frozenset("0123456789-/.")
TABLE: Final = '<table tabindex="0">'
"""Where there is little room it is moved, by the keyboard too."""
_TABLE: Final = re.compile(r"(?:^\|.*\n?)+", re.MULTILINE)
_CELLS: Final = re.compile(r"\|(?=(?:[^`]*`[^`]*`)*[^`]*$)")
"""What divides the cells of a row; inside of code it is a letter like others."""


def page(title: str, *parts: str, scripts: bool = True) -> str:
    """The whole page; `parts` are HTML. Without `scripts` it has none."""
    code = "\n".join(_own(name) for name in SCRIPTS) if scripts else ""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>{escape(title)}</title>",
            f"<style>{_own('style.css')}</style>",
            "</head>",
            "<body>",
            "<main>",
            f"<h1>{escape(title)}</h1>",
            *parts,
            "</main>",
            f"<script>{code}</script>" if code else "",
            "</body>",
            "</html>\n",
        ]
    )


def _own(name: str) -> str:
    return (files("kubelet_conformance.report") / "page" / name).read_text(encoding="utf-8")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table; the cells are text, those that are numbers stand to the right. The first cell of a
    row is its heading."""
    caption_html = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in heads)
    body = "".join(f"<tr>{_row(row)}</tr>" for row in rows)
    return f"{TABLE}{caption_html}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(cells: Sequence[str]) -> str:
    first, *further = cells
    kinds = ('<td class="number">' if set(cell) <= NUMBERS else "<td>" for cell in further)
    rest = "".join(f"{kind}{escape(cell)}</td>" for kind, cell in zip(kinds, further, strict=True))
    return f'<th scope="row">{escape(first)}</th>{rest}'


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and what they are; those that are nothing are left out."""
    entries = (f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs if value)
    return f'<dl class="facts">{"".join(entries)}</dl>'


def marked(text: str) -> str:
    """Markdown of a rule as HTML: code, what is bold or stressed, and tables.

    >>> marked("**.1** `a < b` of *all* cpu.*")
    '<b>.1</b> <code>a &lt; b</code> of <em>all</em> cpu.*'
    """
    parts = []
    place = 0
    for rows in _TABLE.finditer(text):
        cells = [_CELLS.split(row.strip().strip("|")) for row in rows[0].splitlines()]
        made = "".join(
            f"<tr>{''.join(f'<td>{_inline(cell.strip())}</td>' for cell in row)}</tr>"
            for row in cells
            if set("".join(row)) - set("-: ")
        )
        parts += [_inline(text[place : rows.start()].rstrip()), f"<table>{made}</table>"]
        place = rows.end()
    return "".join([*parts, _inline(text[place:].strip())])


def _inline(text: str) -> str:
    return MARKS.sub(_mark, escape(text, quote=False))


def _mark(mark: re.Match[str]) -> str:
    tag = {"code": "code", "bold": "b", "em": "em"}[str(mark.lastgroup)]
    inside = mark[str(mark.lastgroup)]
    return f"<{tag}>{inside if tag == 'code' else MARKS.sub(_mark, inside)}</{tag}>"


def packed(json: bytes) -> str:
    """Deflated JSON in base64, as the scripts unpack it: a tenth of the size, and a case that is
    not opened costs nothing."""
    return base64.b64encode(zlib.compress(json, 6)).decode()


def trace_script(identity: str, json: bytes) -> str:
    """The element that holds a trace."""
    return f'<script type="application/octet-stream" id="{identity}">{packed(json)}</script>'


def timeline(
    identity: str, *, now: bool = False, at_s: float | None = None, controls: str = ""
) -> str:
    """The place of the timeline of that trace; `now`: drawn when the page is opened. `at_s`: a
    moment to mark, and to jump to. `controls`: the element that takes its fields and buttons, in
    place of the timeline itself; `none`: those of its neighbour move it, too."""
    moment = "" if at_s is None else f' data-at="{at_s}"'
    above = f' data-controls="{controls}"' if controls else ""
    kind = "timeline now" if now else "timeline"
    return f'<div class="{kind}" data-trace="{identity}"{moment}{above}></div>'
