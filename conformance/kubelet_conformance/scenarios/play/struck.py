"""What a world has met: which faults struck calls of which methods, and which calls were under way
when a kubelet was killed or stopped.

`struck_in` and `trace_of` are pure; `NOTED` takes what they tell of the scenario that is played,
where somebody has put a `Noted` there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final

from msgspec import UNSET, Struct, field

from kubelet_conformance.harness.node import Node
from kubelet_conformance.laws.history import Planned
from kubelet_conformance.scenarios.shape.faults import FAKE_ONLY
from kubelet_conformance.scenarios.shape.scenario import Scenario


class Noted(Struct):
    """What the last scenario has met."""

    struck: set[str] = field(default_factory=set)
    trace: str = ""
    """A digest of its calls (`trace_of`)."""


NOTED: ContextVar[Noted | None] = ContextVar("NOTED", default=None)
WORDS: Final[Mapping[str, str]] = {
    "fails": "failing",
    "hangs": "hanging",
    "delays": "slow",
    "answers_late": "late",
    "loses_answer": "lost",
    "fails_halfway": "half",
}
"""The verb of a fault -> what it does to a call, in a word."""
ENDS: Final[Mapping[str, str]] = {"kill": "killed in", "stop": "stopped in"}
"""What is done to a kubelet -> the word for that."""
_OF_THE_RUN: Final = re.compile(
    rb"conformance-[a-z0-9_]{8}|(?:(?<=/pod)|(?<![0-9a-f]))[0-9a-f]{32}(?![0-9a-f])"
)
NO_CALL: Final = "no call"
STREAM: Final = "GetContainerEvents"
"""A call that is always under way."""


def struck_in(
    calls: Iterable[Any], planned: Iterable[Planned], verbs: Mapping[str, Sequence[str]]
) -> set[str]:
    """What the calls have met. `verbs`: method -> the verbs of the faults that were for it.

    Of several faults for one method those are told that may have been it.
    """
    kept = [call for call in calls if call.method != STREAM]
    told = {f"{WORDS.get(verb, verb)} {call.method}" for call, verb in _faults(kept, verbs)}
    for each in planned:
        if each.kind in ENDS:
            under_way = {call.method for call in kept if _is_under_way(call, each.at_s)}
            told |= {f"{ENDS[each.kind]} {method}" for method in under_way or {NO_CALL}}
    return told


def _faults(calls: Iterable[Any], verbs: Mapping[str, Sequence[str]]) -> Iterator[tuple[Any, str]]:
    for call in calls:
        for verb in verbs.get(call.method, ()):
            failed = call.error is not None
            if verb in FAKE_ONLY:
                if failed and not call.disturbed:
                    yield call, verb
            elif call.disturbed and (failed or verb not in ("fails", "loses_answer")):
                yield call, verb


def _is_under_way(call: Any, at_s: float) -> bool:
    """Whether it was not answered yet; one that has begun in this moment has been broken off."""
    ended_s = call.ended_s
    if call.started_s < at_s and (ended_s is None or at_s < ended_s):
        return True
    now = call.started_s <= at_s and (ended_s is None or at_s <= ended_s)
    return bool(now and call.error is not None)


def verbs_of(scenario: Scenario) -> dict[str, list[str]]:
    """Method -> the verbs of the faults that are for it."""
    verbs: dict[str, list[str]] = {}
    faults = [
        fault
        for step in scenario.steps
        for fault in (step.fault, step.csi_fault)
        if fault is not UNSET
    ]
    for fault in (*scenario.programmed.faults, *faults):
        if fault.action not in verbs.setdefault(fault.on, []):
            verbs[fault.on].append(fault.action)
    return verbs


def trace_of(calls: Iterable[Any], time_s: Callable[[Any], float]) -> str:
    """A digest of calls, their moments, requests and errors: equal for equal runs. `time_s`: the
    moment of a call since the begin. The directory of a run has a name of its own, and static pods
    have UIDs that are made from it: they count by the order in which they come."""
    digest, names = hashlib.sha256(), dict[bytes, bytes]()

    def numbered(match: re.Match[bytes]) -> bytes:
        return names.setdefault(match[0], b"%d" % len(names))

    for call in calls:
        text = f"{time_s(call):.6f} {call.method} {call.error} ".encode()
        text += call.request.SerializeToString(deterministic=True)
        digest.update(_OF_THE_RUN.sub(numbered, text))
    return digest.hexdigest()[:16]


def note(scenario: Scenario, node: Node) -> None:
    """Tell what the scenario has met on its node, where somebody wants to know."""
    noted = NOTED.get()
    if noted is not None:
        calls = [*node.calls(), *node.plugins.driver_calls()]
        noted.struck = struck_in(calls, node.planned, verbs_of(scenario))
        noted.trace = trace_of(calls, node.time_s)
