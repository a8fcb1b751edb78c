"""What differs between two runs: verdicts, and the CRI calls of each case. Pure.

The calls of a pod are compared in their order: method, container and attempt, error, request, and
how long after the call before they came. Calls of different pods have no order among each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final, TypeAlias

from msgspec import Struct

from kubelet_conformance.traces.entries import Entry, Trace

IGNORED: Final = frozenset(
    {
        "io.kubernetes.container.hash",
        "kubernetes.io/config.seen",
        "kubernetes.io/config.hash",
        "auth",
    }
)
"""Fields of requests that are another in every run, or in every version."""


class Slack(Struct, frozen=True):
    """How much longer one of two waits may be before they differ: `factor` times as long and
    `more_s` seconds. The default is what two right kubelets may differ by in a back-off
    (BACK-011)."""

    factor: float = 1.5
    more_s: float = 1.0

    def differs(self, one_s: float, other_s: float) -> bool:
        """Whether the two are another wait.

        >>> [Slack().differs(10, other) for other in (5, 6, 16, 17)]
        [True, False, False, True]
        """
        low, high = sorted((one_s, other_s))
        return high > low * self.factor + self.more_s + 1e-9


class Step(Struct, frozen=True):
    """One call of a pod. `gap_s`: since the call of that pod before it; of the first one None."""

    entry: Entry
    gap_s: float | None

    @property
    def name(self) -> str:
        """`StartContainer main/1`, with the code of an error behind it."""
        attempt = "" if self.entry.attempt is None else f"/{self.entry.attempt}"
        whom = f" {self.entry.container}" if self.entry.container else ""
        failed = f" -> {self.entry.error.partition(':')[0]}" if self.entry.error else ""
        return f"{self.entry.what}{whom}{attempt}{failed}"


class Pair(Struct, frozen=True):
    """Two calls that stand side by side, one of which may be missing. `differs`: in what, "" when
    in nothing."""

    pod: str
    a: Step | None
    b: Step | None
    differs: str = ""

    @property
    def both(self) -> tuple[Step | None, Step | None]:
        """That of A and that of B."""
        return self.a, self.b

    @property
    def at_s(self) -> float:
        """When the earlier of them came."""
        return min(step.entry.at_s for step in self.both if step is not None)

    def at_s_of(self, step: Step | None) -> float:
        """When that one came; of one that is missing: when the other did."""
        return self.at_s if step is None else step.entry.at_s


def compared(a: Trace, b: Trace, slack: Slack | None = None) -> list[Pair]:
    """The calls of both traces side by side, in order of time."""
    of_a, of_b = steps(a.entries), steps(b.entries)
    ends = (a.end_s, b.end_s)
    pairs = [
        pair
        for pod in dict.fromkeys([*of_a, *of_b])
        for pair in _of_pod(pod, (of_a.get(pod, []), of_b.get(pod, [])), ends, slack or Slack())
    ]
    return sorted(pairs, key=lambda pair: pair.at_s)


def steps(entries: Iterable[Entry]) -> dict[str, list[Step]]:
    """The calls of each pod, in order."""
    by_pod: dict[str, list[Step]] = {}
    for entry in entries:
        if entry.kind == "call":
            before = by_pod.setdefault(entry.pod, [])
            gap_s = entry.at_s - before[-1].entry.at_s if before else None
            before.append(Step(entry, gap_s))
    return by_pod


def _of_pod(
    pod: str,
    both: tuple[Sequence[Step], Sequence[Step]],
    ends: tuple[float, float],
    slack: Slack,
) -> Iterator[Pair]:
    """The calls of one pod. `ends`: when A and B ended."""
    a, b = both
    for kind, a_from, a_to, b_from, b_to in _alignment([s.name for s in a], [s.name for s in b]):
        if kind == "equal":
            for step_of_a, other in zip(a[a_from:a_to], b[b_from:b_to], strict=True):
                yield Pair(pod, step_of_a, other, _difference(step_of_a, other, slack))
            continue
        for step in a[a_from:a_to]:
            yield Pair(pod, step, None, f"only in A: {step.name}{_waited(step, a, b, ends[1])}")
        for step in b[b_from:b_to]:
            yield Pair(pod, None, step, f"only in B: {step.name}{_waited(step, b, a, ends[0])}")


Opcode: TypeAlias = tuple[str, int, int, int, int]


def _alignment(a: Sequence[str], b: Sequence[str]) -> Iterator[Opcode]:
    """Which calls stand side by side, in the shape of `SequenceMatcher.get_opcodes`. What fits best
    is looked for, in a time that grows with the square of the number of calls, only between where
    the two begin to differ and from where on they are alike again."""
    shorter = min(len(a), len(b))
    begin = next((n for n in range(shorter) if a[n] != b[n]), shorter)
    most = shorter - begin
    alike = next((n for n in range(most) if a[-1 - n] != b[-1 - n]), most)
    a_end, b_end = len(a) - alike, len(b) - alike
    if begin:
        yield "equal", 0, begin, 0, begin
    matcher = SequenceMatcher(None, a[begin:a_end], b[begin:b_end], autojunk=False)
    for kind, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        yield kind, begin + a_from, begin + a_to, begin + b_from, begin + b_to
    if alike:
        yield "equal", a_end, len(a), b_end, len(b)


def _waited(step: Step, own: Sequence[Step], other: Sequence[Step], end_s: float) -> str:
    """Of the first call that only one side has, where the other side ended like that: how long that
    one had not made it. "" elsewhere."""
    if len(own) <= len(other) or step is not own[len(other)] or step.gap_s is None:
        return ""
    waited_s = end_s - other[-1].entry.at_s
    return f", after {step.gap_s:.1f} s; the other had not made it within {waited_s:.1f} s"


def _difference(a: Step, b: Step, slack: Slack) -> str:
    """What differs between two calls of one name."""
    if a.gap_s is not None and b.gap_s is not None and slack.differs(a.gap_s, b.gap_s):
        return f"{a.name}: {b.gap_s:.1f} s after the call before, in A {a.gap_s:.1f} s"
    difference = first_difference(a.entry.detail.get("request"), b.entry.detail.get("request"))
    return f"{a.name}: {difference}" if difference else ""


def first_difference(a: Any, b: Any, place: str = "") -> str:
    """The first field in which two requests differ; "" when in none.

    >>> first_difference({"timeout": 30, "x": 1}, {"timeout": 2, "x": 1})
    'timeout: 2, in A 30'
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in sorted({*a, *b} - IGNORED):
            inner = f"{place}.{key}" if place else str(key)
            if difference := first_difference(a.get(key), b.get(key), inner):
                return difference
        return ""
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        parts = (
            first_difference(item, other, f"{place}[{number}]")
            for number, (item, other) in enumerate(zip(a, b, strict=True))
        )
        return next((difference for difference in parts if difference), "")
    return "" if a == b else f"{place}: {_short(b)}, in A {_short(a)}"


def _short(value: Any) -> str:
    text = "not there" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def first_of(pairs: Iterable[Pair]) -> Pair | None:
    """The first pair that differs; None when none does."""
    return next((pair for pair in pairs if pair.differs), None)
