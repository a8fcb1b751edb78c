"""The page of a run, and of a recording. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

from kubelet_conformance.report.html import facts, marked, page, table, timeline, trace_script
from kubelet_conformance.report.tables import (
    HEADS,
    NOT_PASSED,
    RAN,
    cases_in_words,
    duration,
    summary_rows,
)
from kubelet_conformance.results_schema import WORST_FIRST, CaseLine, Product, RunEnd, RunHead

Traces = Callable[[CaseLine], bytes | None]
"""The JSON of a case's trace; None where it was not kept."""


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
        f"{how_it_ended(cases, end)}: {head.kubelet} on {runtime}",
        run_facts(head, runtime, end, cases),
        "<h2>Summary</h2>",
        table(HEADS, summary_rows(cases), "passed of those that ran, by area and level"),
        "<h2>Cases</h2>",
        _filters(cases),
        *case_parts,
        *scripts,
    )


def how_it_ended(cases: Sequence[CaseLine], end: RunEnd | None) -> str:
    """The verdict on a run, which begins the title of its page: `2 failed, 1 error of 9 cases`."""
    counts = Counter(case.verdict for case in cases)
    bad = [f"{counts[word]} {word}" for word in WORST_FIRST if word in NOT_PASSED and counts[word]]
    ran = sum(counts[word] for word in RAN)
    ended = f"{', '.join(bad)} of {cases_in_words(ran)}" if bad else f"{ran} passed"
    sign = "\u2717" if counts["failed"] or counts["error"] else "\u2713"
    return f"{sign} {ended}" if end and end.complete else f"{sign} {ended}, not all have run"


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
            ("its flags", " ".join(head.kubelet_flags)),
            ("its configuration", head.kubelet_config),
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
    return "".join([*parts, _texts(case), "</div></details>"])


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
        text = marked(rules.get(rule, "(its text is not known to this version)"))
        parts.append(f'<div class="rule"><strong>{escape(named)}</strong> {text}</div>')
    return "".join(parts)


def _outcome(case: CaseLine) -> str:
    """What was expected and seen, and how to repeat it."""
    parts = []
    if case.expected:
        pairs = [("expected", case.expected), ("seen", case.seen)]
        parts.append(f"<h3>Expected and seen</h3>{facts(pairs)}")
    elif case.reason:
        parts.append(f"<h3>Why</h3><p>{escape(case.reason)}</p>")
    if case.warning:
        parts.append(f"<p>Warning: {escape(case.warning)}</p>")
    if case.repeat:
        parts.append(f"<p>Again: <code>{escape(case.repeat)}</code></p>")
    return "".join(parts)


def _texts(case: CaseLine) -> str:
    """The lines of the kubelet's log, and the whole text of a failure."""
    texts = {"The kubelet's log": "\n".join(case.log), "The whole text": case.messages}
    return "".join(
        f'<h3>{escape(head, quote=False)}</h3><pre tabindex="0" aria-label="{escape(head)}">'
        f"{escape(text)}</pre>"
        for head, text in texts.items()
        if text
    )


def show_page(title: str, trace: bytes) -> str:
    """The page of one recording."""
    return page(title, timeline("trace-0", now=True), trace_script("trace-0", trace))
