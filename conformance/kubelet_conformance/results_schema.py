"""The shape of a result file (`kubelet-conformance run --results FILE`). Pure.

A file is JSON lines, and can be read while the run goes on and after it was killed. Each line is an
object with a `kind`:

- `run`: the first line, what was chosen and where
- `runtime`: product and version of a real runtime, once it has told them
- `case`: one case and how it ended, for each seed
- `trace`: what happened in a case, behind its line (`--traces failed`: of those that did not pass)
- `end`: the last line; a run that was killed has none
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from kubelet_conformance.traces.entries import Trace

FORMAT: Final = 1
"""Counts up when readers of older files cannot read newer ones."""

Verdict = Literal["passed", "failed", "known bug", "inconclusive", "skipped", "disabled", "error"]
WORST_FIRST: Final = (
    "error", "failed", "inconclusive", "known bug", "passed", "skipped", "disabled",
)  # fmt: skip
LevelName = Literal["must", "should", "detail"]


class Product(Struct, omit_defaults=True, frozen=True):
    """A kubelet or a runtime."""

    name: Annotated[str, Meta(description="refkubelet, kubelet, fakecri, containerd, ...")]
    version: Annotated[str, Meta(description="empty: it is not known")] = ""
    chosen: Annotated[str, Meta(description="as it was chosen: --kubelet, --runtime")] = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


class Host(Struct, omit_defaults=True, frozen=True):
    """The machine of the run."""

    system: str = ""
    kernel: str = ""
    machine: Annotated[str, Meta(description="x86_64, aarch64")] = ""
    processors: Annotated[int, Meta(description="that the run may use")] = 0
    memory_bytes: int = 0
    cgroups: Annotated[int | None, Meta(description="version; none: no groups can be made")] = None
    root: Annotated[bool, Meta(description="whether it ran as root")] = False
    python: str = ""


class RunHead(Struct, tag_field="kind", tag="run", omit_defaults=True, frozen=True, kw_only=True):
    """What was chosen, and where it ran."""

    format: Annotated[int, Meta(description="counts up when older readers cannot read it")]
    suite: Annotated[str, Meta(description="version of kubelet-conformance")]
    kubelet: Product
    runtime: Product
    began: Annotated[str, Meta(description="UTC: 2026-01-31T12:00:00Z")]
    time: Annotated[
        Literal["virtual", "real", "jump", "faster"],
        Meta(description="how the kubelet's time passes"),
    ]
    seeds: Annotated[tuple[int, ...], Meta(description="of a virtual run; else none")] = ()
    latency: Annotated[
        float | None, Meta(description="factor on how long calls take in a virtual run")
    ] = None
    speed: Annotated[float | None, Meta(description="of a run with --speed")] = None
    level: LevelName = "must"
    whole: Annotated[bool, Meta(description="whether all cases of the level were chosen")] = True
    chosen: Annotated[
        tuple[str, ...], Meta(description="what all parts were chosen by: area backoff, ...")
    ] = ()
    shard: Annotated[str, Meta(description="which part of the cases: 2/5")] = ""
    kubelet_flags: Annotated[tuple[str, ...], Meta(description="--kubelet-flag")] = ()
    kubelet_config: Annotated[str, Meta(description="file of --kubelet-config")] = ""
    jobs: int = 1
    long: bool = False
    host: Host = Host()
    load: Annotated[float, Meta(description="processes that ran or wanted to, at the start")] = 0.0


class RuntimeTold(Struct, tag_field="kind", tag="runtime", frozen=True):
    """What a real runtime says it is."""

    runtime: Product


class CaseLine(Struct, tag_field="kind", tag="case", omit_defaults=True, frozen=True, kw_only=True):
    """One case, and how it ended with one seed."""

    id: str
    area: str
    title: str
    level: LevelName
    rules: Annotated[
        tuple[str, ...], Meta(description="clauses (BACK-003.2) and whole rules, as it cites them")
    ]
    verdict: Verdict
    seed: Annotated[int | None, Meta(description="none in a real run")] = None
    reason: Annotated[str, Meta(description="why, in one line; empty: it passed")] = ""
    expected: str = ""
    seen: str = ""
    messages: Annotated[
        str, Meta(description="the whole text of a failure, with the last calls and events")
    ] = ""
    log: Annotated[
        tuple[str, ...],
        Meta(
            description="of a case that did not pass: what the kubelet's log says of its pods as "
            "warnings and errors, then its last lines"
        ),
    ] = ()
    warning: Annotated[str, Meta(description="a problem that did not change the verdict")] = ""
    shared: Annotated[
        bool, Meta(description="whether it shared its kubelet with others when it ended so")
    ] = False
    case_s: Annotated[float, Meta(description="inside the case, virtual in a virtual run")] = 0.0
    real_s: Annotated[float, Meta(description="wall time, with set-up and clean-up")] = 0.0
    file: Annotated[str, Meta(description="where a case of one's own is from")] = ""
    repeat: Annotated[str, Meta(description="the command that runs it again; of what failed")] = ""


class TraceLine(Struct, tag_field="kind", tag="trace", omit_defaults=True, frozen=True):
    """What happened in the case of that ID, with that seed."""

    case: str
    trace: Trace
    seed: int | None = None


class RunEnd(Struct, tag_field="kind", tag="end", frozen=True):
    """The whole run."""

    real_s: Annotated[float, Meta(description="wall time of it all")]
    load: Annotated[float, Meta(description="processes that ran or wanted to, in the last minutes")]
    complete: Annotated[
        bool, Meta(description="whether all chosen cases have a line: the run was not stopped")
    ] = True
    chosen: Annotated[
        int, Meta(description="how many cases all parts have together; 0: it is not told")
    ] = 0


Line = RunHead | RuntimeTold | CaseLine | TraceLine | RunEnd
KINDS: Final = {
    kind.__struct_config__.tag: kind for kind in (RunHead, RuntimeTold, CaseLine, TraceLine, RunEnd)
}


def told(text: str) -> tuple[str, str, str]:
    """Reason in one line, `expected` and `seen` of the text of a failure.

    >>> told("expected: a start\\nseen:     none\\nat:       3 s")
    ('expected a start, seen none', 'a start', 'none')
    >>> told("needs a disk")
    ('needs a disk', '', '')
    """
    expected, seen = _part(text, "expected:"), _part(text, "seen:")
    if not expected:
        return text.strip().partition("\n")[0], "", ""
    first = "; ".join(" ".join(line.split()) for line in seen.splitlines()) or "nothing"
    return f"expected {' '.join(expected.split())}, seen {first}", expected, seen


_AFTER: Final = ("expected:", "seen:", "at:", "last calls:", "last events:", "last statuses:")


def _part(text: str, head: str) -> str:
    """What stands behind that word at the beginning of a line, up to the next such word."""
    part_lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith(_AFTER):
            if inside:
                break
            inside = line.startswith(head)
            line = line.removeprefix(head)
        if inside:
            part_lines.append(line.strip())
    return "\n".join(part_lines).strip()


def schema() -> dict[str, Any]:
    """The JSON schema (2020-12) of one line of a result file."""
    (reference,), definitions = msgspec.json.schema_components(
        [Line], ref_template="#/$defs/{name}"
    )
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of a result file of kubelet-conformance",
    }
    # Through JSON, since defaults are still Python's.
    whole = msgspec.json.encode({**head, **reference, "$defs": definitions})
    document: dict[str, Any] = msgspec.json.decode(whole)
    return document
