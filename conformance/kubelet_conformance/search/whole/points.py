"""What can be done to one call of a world, and to two. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import gcd, isqrt
from typing import Any, Final

from msgspec import Struct

from fakecri.calls.halfway import HALVES
from fakecri.csi.driver import METHODS as CSI_METHODS

DRIVER: Final = "disks.example"
"""The storage driver of small worlds."""
LONG_S: Final = 12.0
"""So much longer a slow call takes."""
READS: Final = ("List", "Image", "Version", "RuntimeConfig", "GetPlugin", "NodeGet", "Probe")
"""How the names of methods begin that only look."""
CHANGING: Final[Mapping[str, Mapping[str, Any]]] = {
    "failing": {"fails": {"code": "UNKNOWN", "message": "no", "times": 1}},
    "hanging": {"hangs": {"times": 1}},
    "slow": {"delays": {"delay_s": LONG_S, "times": 1}},
    "late": {"answers_late": {"after_s": LONG_S, "times": 1}},
    "lost": {"loses_answer": {"times": 1}},
    "half": {"fails_halfway": {"times": 1}},
    "killed before": {"answered": False},
    "killed after": {"answered": True},
}
"""What is done to a call that changes something -> the words of the step for that: the call
fails; waits until all is calm; takes longer; is answered late; has its effect and fails; breaks off
in the middle; the kubelet is killed before it has its effect, and after that."""
LOOKING: Final = ("failing", "hanging", "slow", "killed after")
"""What is done to a call that only looks: of the others each is like one of these."""
KILLS: Final = ("killed before", "killed after")


class Point(Struct, frozen=True, order=True):
    """One thing that is done to one call."""

    place: int
    """The number of the call among all calls of the world, from 0 on."""
    method: str
    nth: int
    """Its number among those of its method, from 1 on."""
    kind: str
    """One of CHANGING."""

    @property
    def word(self) -> str:
        """What is done to which method."""
        return f"{self.kind} {self.method}"

    def step(self, label: str) -> dict[str, Any]:
        """The step that does it; it ends, when all is calm, by its label."""
        which = {"on": self.method, "nth": self.nth, "maybe": True}
        if self.method in CSI_METHODS:
            which["driver"] = DRIVER
        if self.kind in KILLS:
            return {"dies_at": {**which, **CHANGING[self.kind]}}
        word = "csi_fault" if self.method in CSI_METHODS else "fault"
        return {word: {**which, **CHANGING[self.kind], "label": label}}


def points_of(methods: Iterable[str]) -> list[Point]:
    """All that can be done to one of these calls, in their order."""
    return list(_each(methods))


def _each(methods: Iterable[str]) -> Iterator[Point]:
    counts: Counter[str] = Counter()
    for place, method in enumerate(methods):
        counts[method] += 1
        for kind in _kinds(method):
            yield Point(place, method, counts[method], kind)


def _kinds(method: str) -> Iterable[str]:
    if (method.startswith(READS) and method != "PullImage") or method.endswith("Status"):
        return LOOKING
    return (kind for kind in CHANGING if kind != "half" or method in HALVES)


def count_of_pairs(points: int) -> int:
    """How many pairs there are of so many points."""
    return points * (points - 1) // 2


def pair_of(number: int, points: int) -> tuple[int, int]:
    """The pair of that number, from 0 on: each pair has one, and the first ones lie far from each
    other, so that a part of them is a fair one.

    >>> len({pair_of(number, 9) for number in range(36)})
    36
    """
    rank = number * _stride(count_of_pairs(points)) % count_of_pairs(points)
    later = (1 + isqrt(1 + 8 * rank)) // 2
    return rank - count_of_pairs(later), later


def _stride(count: int) -> int:
    """A number near the golden section of `count` that has no divisor in common with it."""
    stride = max(1, round(count * 0.618))
    while gcd(stride, count) != 1:
        stride += 1
    return stride
