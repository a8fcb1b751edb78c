"""Expectations of a case, with failures that show what was expected, what was seen and what
happened last.

`ExpectationFailed` is the only way a case fails; every other exception is an error of the harness.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Protocol, SupportsIndex, TypeVar, overload

from kubelet_conformance.harness.limits import Span

T = TypeVar("T")


class ExpectationFailed(AssertionError):
    """The kubelet under test did not do what the case expects.

    `shows_bug`: this is what a kubelet with the bug of the case does not do; False of what only
    prepares, and of other expectations.
    """

    def __init__(self, text: str, *, shows_bug: bool = True) -> None:
        super().__init__(text)
        self.shows_bug = shows_bug


class Witness(Protocol):
    """The part of a node that expectations need."""

    @property
    def slack_s(self) -> float:
        """How many seconds measuring may add to an upper bound."""

    def report(self) -> list[str]:
        """What happened last, as lines below the text of a failure."""


class Seen(list[T]):
    """Observations in order, `what` in words. An index beyond the end means that something was not
    observed often enough, so it raises ExpectationFailed instead of IndexError."""

    def __init__(self, items: Iterable[T], node: Witness, what: str) -> None:
        super().__init__(items)
        self._node = node
        self._what = what

    @overload
    def __getitem__(self, index: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> T | list[T]:
        if not isinstance(index, slice) and not -len(self) <= int(index) < len(self):
            number = int(index) + 1 if int(index) >= 0 else -int(index)
            raise failure(self._node, f"at least {number} of {self._what}", f"{len(self)}")
        return super().__getitem__(index)


def expect(node: Witness, holds: object, expected: str, seen: object = "") -> None:
    """Fail unless `holds` is true. The failure says `expected`, a phrase, and `seen`, what was
    observed instead. Raises: ExpectationFailed."""
    if not holds:
        raise failure(node, expected, seen)


def expect_equal(node: Witness, seen: object, wanted: object, what: str) -> None:
    """Fail unless both are equal. `what`: a phrase for the observed value. Raises:
    ExpectationFailed."""
    expect(node, seen == wanted, f"{what} = {wanted!r}", repr(seen))


def expect_order(node: Witness, seen: Sequence[str], wanted: Iterable[str], what: str) -> None:
    """Fail unless `seen` contains the entries of `wanted` in this order; other entries may be
    between them. Raises: ExpectationFailed."""
    position = 0
    for entry in wanted:
        try:
            position = seen.index(entry, position) + 1
        except ValueError:
            listed = "\n    ".join(seen) or "(nothing)"
            order = ", ".join(wanted)
            raise failure(
                node, f"{what}: {order}; missing from here on: {entry}", f"\n    {listed}"
            ) from None


def expect_spans(node: Witness, times_s: Sequence[float], spans: Sequence[Span], what: str) -> None:
    """Fail unless the gaps between successive `times_s` are in `spans`, one by one. A gap may be
    longer by the `slack_s` of the run and shorter by 0.01 s. Raises: ExpectationFailed."""
    gaps = [later - earlier for earlier, later in pairwise(times_s)]
    for number, span in enumerate(spans):
        gap = gaps[number] if number < len(gaps) else None
        late = min(span.high_s + node.slack_s, span.top_s)
        if gap is None or not span.low_s - 0.01 <= gap <= late:
            listed = ", ".join(f"{gap:.2f}" for gap in gaps)
            expected = f"{what}: gap {number + 1} in {span}"
            raise failure(node, expected, f"gaps {listed or '(none)'} s")


def failure(node: Witness, expected: str, seen: object) -> ExpectationFailed:
    """The exception for a failed expectation, with the report of what happened last."""
    lines = [f"expected: {expected}", f"seen:     {seen}", *node.report()]
    return ExpectationFailed("\n".join(lines))
