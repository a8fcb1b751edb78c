"""The calls of a recorder by method, pod and time, for questions that are about a few of them.

A test asks after each of its steps, so a question must not look through all that was called before.
The index is made by the first question, and each further one takes in what has come since: calls of
which nobody asks cost nothing.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

from fakecri.recording.call import Call
from fakecri.recording.questions import Query
from fakecri.recording.subjects import ABOUT_ALL


class CallIndex:
    """An index of `calls`, a list that grows at its end and shrinks at its beginning."""

    def __init__(self, calls: deque[Call]) -> None:
        self._calls = calls
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._by_method: dict[str, list[Call]] = {}
        self._by_pod: dict[str, list[Call]] = {}  # by its name and by its UID
        self._last = 0
        self._indexed = 0
        self._newest_s = float("-inf")
        self._in_order = True  # of their times; a clock may begin anew

    def candidates(self, wanted: Query) -> list[Call]:
        """The calls that may fit, in order of arrival: all that fit are among them, and all are of
        the wanted method."""
        self._catch_up()
        choices: list[deque[Call] | list[Call]] = [self._calls]
        if wanted.method is not None:
            choices.append(self._by_method.get(wanted.method, []))
        field, name = wanted.match.handle
        if field == "pod":
            choices.append(self._by_pod.get(name, []))
        found = self._newest(min(choices, key=len), wanted.since_s)
        return [call for call in found if wanted.method in (None, call.method)]

    def _newest(self, calls: deque[Call] | list[Call], since_s: float) -> list[Call]:
        """Those of these calls that are neither forgotten nor from before that time."""
        since_s = since_s if self._in_order else float("-inf")
        oldest = self._calls[0].seq if self._calls else 0
        if calls and calls[0].started_s >= since_s and calls[0].seq >= oldest:
            return list(calls)
        found = []
        for call in reversed(calls):
            if call.started_s < since_s or call.seq < oldest:
                break
            found.append(call)
        found.reverse()
        return found

    def _catch_up(self) -> None:
        """Take in the calls that have come since. What is forgotten by now goes when there is more
        of it than of the rest."""
        if not self._calls:
            self._begin_anew()
            return
        if self._indexed > 2 * len(self._calls):
            self._begin_anew()
        newest = self._calls[-1].seq
        new = list(islice(reversed(self._calls), newest - self._last))
        newest_s = self._newest_s
        for call in reversed(new):
            self._by_method.setdefault(call.method, []).append(call)
            if call.subject is not ABOUT_ALL:  # as that of most calls is
                for name in {call.subject.pod, call.subject.uid}:
                    self._by_pod.setdefault(name, []).append(call)
            if call.started_s < newest_s:
                self._in_order = False
            newest_s = call.started_s
        self._newest_s = newest_s
        self._last = newest
        self._indexed += len(new)
