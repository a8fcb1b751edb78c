"""The page of a run, of a recording, and of runs side by side. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Final

from kubelet_conformance.report.compare import Pair, Step
from kubelet_conformance.report.html import facts, page, table, timeline, trace_script
from kubelet_conformance.report.tables import (
    HEADS,
    RAN,
    Column,
    differing,
    duration,
    matrix,
    summary_rows,
)
from kubelet_conformance.results_schema import WORST_FIRST, CaseLine, Product, RunEnd, RunHead

Traces = Callable[[CaseLine], bytes | None]
"""The JSON of a case's trace; None where it was not kept."""
_CODE: Final = re.compile(r"`([^`]*)`")
_BOLD: Final = re.compile(r"\*\*([^*]+)\*\*")


def run_page(
    *,
    head: RunHead,
    runtime: Product,
    end: RunEnd | None,
    cases: Sequence[CaseLine],
    traces: Traces,
    rules: Mapping[str, str],
) -> str:
    """The page of a run. `rules`: rule -> its text, Markdown."""
    ordered = sorted(cases, key=lambda case: (WORST_FIRST.index(case.verdict), case.area, case.id))
    scripts: list[str] = []
    case_parts = []
    for number, case in enumerate(ordered):
        trace = traces(case)
        identity = f"trace-{number}" if trace is not None else ""
        if trace is not None:
            scripts.append(trace_script(identity, trace))
        case_parts.append(_case(case, rules, identity, several=len(head.seeds) > 1))
    return page(
        f"{head.kubelet} on {runtime}",
        run_facts(head, runtime, end, cases),
        "<h2>Summary</h2>",
        table(HEADS, summary_rows(cases), "passed of those that ran, by area and level"),
        "<h2>Cases</h2>",
        _filters(cases),
        *case_parts,
        *scripts,
    )


def run_facts(
    head: RunHead, runtime: Product, end: RunEnd | None, cases: Sequence[CaseLine]
) -> str:
    """What was run where, as a list."""
    host = head.host
    machine = f"{host.system} {host.kernel} {host.machine}, {host.processors} processors, "
    machine += f"{host.memory_bytes / 1024**3:.1f} GiB, cgroup v{host.cgroups or '-'}"
    took = "it was not ended"
    if end is not None:
        took = f"{duration(end.real_s)} at a load of {end.load:.1f}"
        took += "" if end.complete else ", stopped before all cases had run"
    seeds = ", ".join(map(str, head.seeds))
    return facts(
        [
            ("kubelet", f"{head.kubelet} ({head.kubelet.chosen})"),
            ("runtime", f"{runtime} ({head.runtime.chosen})"),
            ("suite", head.suite),
            ("began", head.began),
            ("time", head.time),
            ("seeds" if len(head.seeds) > 1 else "seed", seeds),
            ("latency", "" if head.latency is None else f"{head.latency:g}"),
            ("level", head.level),
            ("part", head.shard),
            ("machine", machine if host.system else ""),
            ("real time", took),
            ("cases", f"{len(cases)}, {sum(case.verdict in RAN for case in cases)} of them ran"),
        ]
    )


def _filters(cases: Sequence[CaseLine]) -> str:
    """The form that chooses cases."""
    areas = _options("all areas", sorted({case.area for case in cases}))
    present = {case.verdict for case in cases}
    verdicts = _options("all verdicts", [verdict for verdict in WORST_FIRST if verdict in present])
    return (
        '<form id="choose" role="search" aria-label="cases">'
        f'<label>area <select name="area">{areas}</select></label>'
        f'<label>verdict <select name="verdict">{verdicts}</select></label>'
        '<label>rule <input name="rule" size="12" placeholder="BACK-001"></label>'
        '<label>text <input name="text" type="search" size="24"></label>'
        '<output id="count"></output></form>'
    )


def _options(none: str, values: Iterable[str]) -> str:
    options = (f'<option value="{escape(value)}">{escape(value)}</option>' for value in values)
    return f'<option value="">{escape(none)}</option>{"".join(options)}'


def _case(case: CaseLine, rules: Mapping[str, str], trace: str, *, several: bool) -> str:
    """One case, closed."""
    name = f"{case.id}-seed-{case.seed}" if several else case.id
    seed = f" seed {case.seed}" if several else ""
    took = f'<span class="took">{escape(duration(case.case_s))}{escape(seed)}</span>'
    cited = " ".join(case.rules).lower()
    data = f'data-area="{case.area}" data-verdict="{case.verdict}" data-rules="{cited}"'
    parts = [
        f'<details class="case" id="{escape(name)}" {data}><summary>{verdict(case.verdict)} '
        f"<code>{escape(case.id)}</code> {escape(case.title)} {took}</summary>",
        '<div class="inside">',
        _rules(case, rules),
        _outcome(case),
    ]
    if trace:
        parts += ["<h3>What happened</h3>", timeline(trace)]
    elif case.verdict in RAN:
        parts.append("<p>What happened was not kept (<code>--traces all</code> keeps it).</p>")
    return "".join([*parts, "</div></details>"])


def verdict(word: str) -> str:
    """A verdict with its sign, so that colour is not needed."""
    sign = {"passed": "\u2713", "failed": "\u2717", "error": "!", "known bug": "\u2717"}
    text = f"{sign.get(word, chr(183))} {word}"
    return f'<span class="verdict {word.replace(" ", "-")}">{escape(text)}</span>'


def _rules(case: CaseLine, rules: Mapping[str, str]) -> str:
    """The rules that the case cites, each with its text."""
    parts = [f"<h3>Rules ({escape(case.level.upper())})</h3>"]
    for rule in dict.fromkeys(cited.partition(".")[0] for cited in case.rules):
        clauses = [c.partition(".")[2] for c in case.rules if c.startswith(f"{rule}.")]
        named = f"{rule}, clause {', '.join(clauses)}" if clauses else rule
        text = _marked(rules.get(rule, "(its text is not known to this version)"))
        parts.append(f'<p class="rule"><strong>{escape(named)}</strong> {text}</p>')
    return "".join(parts)


def _marked(text: str) -> str:
    """The text of a rule as HTML: code and clause numbers.

    >>> _marked("**.1** `a < b`")
    '<b>.1</b> <code>a &lt; b</code>'
    """
    return _BOLD.sub(r"<b>\1</b>", _CODE.sub(r"<code>\1</code>", escape(text, quote=False)))


def _outcome(case: CaseLine) -> str:
    """What was expected and seen, and how to repeat it."""
    parts = []
    if case.expected:
        pairs = [("expected", case.expected), ("seen", case.seen)]
        parts.append(f"<h3>Expected and seen</h3>{facts(pairs)}")
    elif case.reason:
        parts.append(f"<h3>Why</h3><p>{escape(case.reason)}</p>")
    if case.messages:
        whole_text = f'<pre tabindex="0" aria-label="the whole text">{escape(case.messages)}</pre>'
        parts.append(f"<h3>The whole text</h3>{whole_text}")
    if case.warning:
        parts.append(f"<p>Warning: {escape(case.warning)}</p>")
    if case.repeat:
        parts.append(f"<p>Again: <code>{escape(case.repeat)}</code></p>")
    return "".join(parts)


def show_page(title: str, trace: bytes) -> str:
    """The page of one recording."""
    return page(title, timeline("trace-0", now=True), trace_script("trace-0", trace))


# -- runs side by side ---------------------------------------------------------------------------


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
    names: tuple[str, str],
    verdicts: Sequence[tuple[str, str, str]],
    cases: Sequence[tuple[str, Sequence[Pair]]],
    traces: Callable[[str], tuple[bytes, bytes]],
) -> str:
    """Two runs side by side. `verdicts`: case, verdict in A, verdict in B, where they differ;
    `cases`: those whose calls differ; `traces`: the JSON of both traces of a case."""
    a, b = names
    parts = [facts([("A", a), ("B", b)]), "<h2>Verdicts that differ</h2>"]
    parts.append(table(["case", "A", "B"], verdicts) if verdicts else "<p>None.</p>")
    parts.append("<h2>Calls that differ</h2>" + ("" if cases else "<p>None.</p>"))
    scripts = []
    for number, (name, pairs) in enumerate(cases):
        for side, json in zip("ab", traces(name), strict=True):
            scripts.append(trace_script(f"trace-{side}{number}", json))
        opened = " open" if number == 0 else ""
        sides = "".join(
            f"<section><h3>{side.upper()}</h3>{timeline(f'trace-{side}{number}')}</section>"
            for side in "ab"
        )
        parts.append(
            f'<details class="case" id="{escape(name)}"{opened}><summary><code>{escape(name)}'
            f'</code> {escape(_first(pairs))}</summary><div class="inside">{_calls(pairs)}'
            f'<div class="sides">{sides}</div></div></details>'
        )
    return page(f"{a} and {b}", *parts, *scripts)


def _first(pairs: Sequence[Pair]) -> str:
    return next((f"{pair.pod}: {pair.differs}" for pair in pairs if pair.differs), "")


def _calls(pairs: Sequence[Pair]) -> str:
    """The calls of both sides in one table; the first that differs is marked."""
    rows = []
    differed = False
    for pair in pairs:
        kind = ("differs" if differed else "differs first") if pair.differs else ""
        differed = differed or bool(pair.differs)
        cells = (pair.pod, _step(pair.a), _step(pair.b), pair.differs)
        row = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(f'<tr class="{kind}">{row}</tr>')
    heads = "".join(f'<th scope="col">{word}</th>' for word in ("pod", "A", "B", "differs in"))
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _step(step: Step | None) -> str:
    return "" if step is None else f"{step.entry.at_s:.3f} s  {step.name}"
