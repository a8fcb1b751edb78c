"""Two runs side by side: which verdicts and which calls differ. Reads result files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kubelet_conformance.report.compare import Pair, Slack, compared, first_of
from kubelet_conformance.results_run import RunFile
from kubelet_conformance.results_schema import CaseLine


class CaseDifference(Struct, frozen=True):
    """One case in both runs."""

    id: str
    a: CaseLine
    b: CaseLine
    pairs: tuple[Pair, ...] = ()
    """The calls side by side, if any differs."""
    without: str = ""
    """The file that has no trace of it: its calls are not compared."""

    @property
    def both(self) -> tuple[CaseLine, CaseLine]:
        return self.a, self.b

    @property
    def verdicts_differ(self) -> bool:
        return self.a.verdict != self.b.verdict


def differences(a: RunFile, b: RunFile, slack: Slack) -> Iterator[CaseDifference]:
    """The cases that both runs have, in the order of the first, those alike left out. Of a run with
    several seeds the worst result is taken. Raises ResultsError."""
    of_a, of_b = a.worst(), b.worst()
    for name, case in of_a.items():
        other = of_b.get(name)
        if other is None:
            continue
        trace, other_trace = a.trace(case), b.trace(other)
        if trace is None or other_trace is None:
            without = a.path.name if trace is None else b.path.name
            yield CaseDifference(name, case, other, without=without)
            continue
        pairs = compared(trace, other_trace, slack)
        differing = tuple(pairs) if first_of(pairs) else ()
        if differing or case.verdict != other.verdict:
            yield CaseDifference(name, case, other, differing)


def lines(a: RunFile, b: RunFile, found: Sequence[CaseDifference]) -> Iterator[str]:
    """What differs, in words: the first call that differs of each case, then the verdicts."""
    yield f"A  {a.title}  ({a.path})"
    yield f"B  {b.title}  ({b.path})"
    with_calls = [difference for difference in found if difference.pairs]
    for difference in with_calls:
        yield from _first_lines(difference)
    for difference in found:
        if difference.verdicts_differ:
            yield f"{difference.id}: verdict {difference.b.verdict}, in A {difference.a.verdict}"
            for side, case in (("A", difference.a), ("B", difference.b)):
                if case.reason:
                    yield f"    {side}  {case.reason}"
    yield from _missing(a, b)
    verdicts = sum(difference.verdicts_differ for difference in found)
    yield f"{len(with_calls)} cases with other calls, {verdicts} with another verdict"
    without = [difference for difference in found if difference.without]
    if without:
        files = ", ".join(sorted({difference.without for difference in without}))
        yield (
            f"the calls of {len(without)} cases were not compared: {files} has no traces of them; "
            "--traces all keeps them"
        )


def _first_lines(one: CaseDifference) -> Iterator[str]:
    first = first_of(one.pairs)
    assert first is not None
    yield f"{one.id}: {first.pod or 'the node'}: {first.differs}"
    for side, step in (("A", first.a), ("B", first.b)):
        step_line = "(no such call)" if step is None else f"{step.entry.at_s:10.3f} s  {step.name}"
        yield f"    {side}  {step_line}"


def _missing(a: RunFile, b: RunFile) -> Iterator[str]:
    """The cases that only one of the runs has."""
    of_a, of_b = a.worst().keys(), b.worst().keys()
    for side, only in (("A", of_a - of_b), ("B", of_b - of_a)):
        if only:
            named = ", ".join(sorted(only)[:5]) + (" ..." if len(only) > 5 else "")
            yield f"only in {side}: {len(only)} cases ({named})"
