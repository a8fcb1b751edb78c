"""Every CRI call that passed, with request, answer and times; questions and assertions over them.

Answers are kept as bytes and parsed at the first look: a kubelet lists the same hundred
containers every second, and equal answers share their bytes. What must never happen here: a
password is kept (CRI-097), memory grows without bound, or a recorded message changes later.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from google.protobuf.message import Message

from fakecri.behaviors.matching import Subject
from fakecri.recording.call import Call, Kept, Question
from fakecri.recording.call_index import CallIndex
from fakecri.recording.questions import (
    ASKED,
    Query,
    Slack,
    check_series,
    distance,
    query,
    query_of_step,
)
from fakecri.recording.subjects import ABOUT_ALL, NAMING_CALLS, SubjectBook, named_by
from kubeobjects.arguments import arguments_told, called_often, tells_arguments

DEFAULT_CAPACITY: Final = 100_000
MASK: Final = "***"
_SECRETS: Final = ("password", "auth", "identity_token", "registry_token")
_SHOWN_CALLS: Final = 12
_SHARED_QUESTIONS: Final = 256


@arguments_told
class Recorder:
    """Keeps the last `capacity` calls and answers questions about them.

    Times are given by the caller, in seconds on a monotonic clock. Questions take `pod` (a name, a
    pattern such as `web*`, or a UID), `container`, `image`, `attempt`, `since_s` and `until_s`
    (calls at these very times count), and `where` (a predicate over the call).
    """

    def __init__(self, capacity: int = DEFAULT_CAPACITY, *, t0_s: float = 0.0) -> None:
        """`t0_s`: the time now; texts count from it. If the clock starts anew, as a virtual one
        does when its loop begins, times are shown as they are."""
        self._t0_s = t0_s
        self._calls: deque[Call] = deque(maxlen=capacity)
        self._index = CallIndex(self._calls)
        self._subjects = SubjectBook(from_lists=True)
        self._seq = 0
        self.totals: Counter[str] = Counter()
        """How many calls of each method there have been, forgotten ones included."""
        self._questions: dict[tuple[str, bytes], Question] = {}

    @property
    def t0_s(self) -> float:
        """When the recorder was made, on the clock of its calls."""
        return self._t0_s

    @called_often
    def begin(self, method: str, request: Message, now_s: float, deadline_s: float | None) -> Call:
        """Record that a call has arrived; `finish` records its end."""
        self._seq = seq = self._seq + 1
        self.totals[method] += 1
        if now_s < self._t0_s:
            self._t0_s = 0.0
        data = request.SerializeToString()
        question = self._questions.get((method, data)) or self._new_question(method, request, data)
        subject = question.subject
        if subject is None:
            subject = self._subjects.subject_of(method, request, question.named)
            if subject is ABOUT_ALL:
                question.subject = subject
        shown_s = now_s - self._t0_s
        call = Call(seq, method, subject, now_s, deadline_s, shown_s, question)
        self._calls.append(call)
        return call

    def _new_question(self, method: str, request: Message, data: bytes) -> Question:
        """The question for a request that has not come before, which is `data` as bytes; its
        credentials are removed first."""
        if method == "PullImage":
            data = _masked(request).SerializeToString()
            if (question := self._questions.get((method, data))) is not None:
                return question
        if len(self._questions) >= _SHARED_QUESTIONS:
            self._questions.clear()
        question = Question(type(request), data, named=named_by(request))
        self._questions[method, data] = question
        return question

    @called_often
    def finish(
        self,
        call: Call,
        ended_s: float,
        response: Message | None = None,
        *,
        error: tuple[str, str] | None = None,
    ) -> None:
        """Record that a call has ended: with a response, with an error (name of the code, text),
        or, for a stream, with neither."""
        call.ended_s, call.error = ended_s, error
        if response is None:
            return
        question, data = call._question, response.SerializeToString()
        last = question.answer
        new = last is None or last.data != data
        if new or call.method in NAMING_CALLS:
            self._subjects.learn(call.method, call.subject, question.named, response)
        if new:
            question.answer = Kept(type(response), data)
        call._response = question.answer

    @called_often
    def finish_bytes(self, call: Call, ended_s: float, kind: type[Message], data: bytes) -> None:
        """Record that a call has ended with a response of type `kind`, given as bytes."""
        question = call._question
        answer = question.answer
        if answer is None or answer.data != data:
            response = kind.FromString(data)
            self._subjects.learn(call.method, call.subject, question.named, response)
            answer = question.answer = Kept(kind, data)
        call.ended_s, call._response = ended_s, answer

    def subject_of_id(self, identity: str) -> Subject:
        """The pod, container and image that an id belongs to, as far as recorded calls tell."""
        return self._subjects.by_id(identity)

    def clear(self) -> None:
        """Forget all calls. What ids belong to stays known."""
        self._calls.clear()

    def select(self, wanted: Query) -> list[Call]:
        """The calls that fit, in order of arrival."""
        calls = self._index.candidates(wanted)
        return calls if wanted.of_any else [c for c in calls if not wanted.differences(c)]

    def last(self, number: int = _SHOWN_CALLS) -> list[Call]:
        """The last calls, so many at most, in order of arrival."""
        newest_first = list(islice(reversed(self._calls), number))
        return newest_first[::-1]

    def explain(self, wanted: Query) -> str:
        """A text for a failed assertion: the call that comes nearest to `wanted`, and the last
        calls."""
        best: tuple[int, Call, list[str]] | None = None
        for call in self._calls:
            differences = wanted.differences(call)
            if differences and (best is None or distance(wanted, call, differences) <= best[0]):
                best = (distance(wanted, call, differences), call, differences)
        lines = []
        if best is not None:
            lines.append(f"nearest miss:\n  {best[1]}\n    {'; '.join(best[2])}")
        last_calls = "\n".join(f"  {call}" for call in self.last()) or "  (none)"
        return "\n".join([*lines, f"last calls:\n{last_calls}"])

    def to_jsonl(self, *, t0_s: float = 0.0) -> str:
        """All calls as JSON lines in the form of the recorded kubelet runs (protobuf JSON with
        the field names of the .proto); times are seconds after `t0_s`."""
        rows = (call.to_dict(t0_s=t0_s) for call in self._calls)
        return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)

    @tells_arguments(*ASKED)
    def calls(self, method: str | None = None, **which: Any) -> list[Call]:
        """The recorded calls that fit, in order of arrival."""
        return self.select(query(method, **which))

    @tells_arguments(*ASKED)
    def count(self, method: str | None = None, **which: Any) -> int:
        """How many calls fit."""
        return len(self.calls(method, **which))

    @tells_arguments(*ASKED)
    def times_s(self, method: str | None = None, **which: Any) -> list[float]:
        """When the fitting calls arrived, seconds on the monotonic clock."""
        return [call.started_s for call in self.calls(method, **which)]

    @tells_arguments(*ASKED)
    def assert_called(
        self, method: str, *, times: int | None = None, at_least: int = 1, **which: Any
    ) -> list[Call]:
        """Assert that exactly `times` calls fit, or `at_least` so many; by default one or more.
        Returns them; raises AssertionError with the nearest miss and the last calls."""
        __tracebackhide__ = True
        target = query(method, **which)
        hits = self.select(target)
        if len(hits) == times or (times is None and len(hits) >= at_least):
            return hits
        number = f"{times}" if times is not None else f"at least {at_least}"
        lines = "".join(f"\n  {call}" for call in hits[-_SHOWN_CALLS:])
        raise AssertionError(
            f"expected {number} x {target}, got {len(hits)}{lines}\n{self.explain(target)}"
        )

    @tells_arguments(*ASKED)
    def assert_not_called(self, method: str, **which: Any) -> None:
        """Assert that no call fits. Raises AssertionError with the calls that do."""
        __tracebackhide__ = True
        hits = self.calls(method, **which)
        if hits:
            lines = "\n".join(f"  {call}" for call in hits[-_SHOWN_CALLS:])
            raise AssertionError(f"expected no {query(method, **which)}, got {len(hits)}:\n{lines}")

    def assert_order(self, steps: Iterable[str | Sequence[str] | Mapping[str, Any]]) -> None:
        """Assert that the steps happened in this order; other calls may lie between them.

        A step is a method, `(method, container)`, or a mapping with the arguments of `calls`.
        Raises AssertionError, which names the first step that is missing.
        """
        __tracebackhide__ = True
        if isinstance(steps, str):
            raise TypeError(f"steps: wanted a list of methods, got the text {steps!r}")
        calls = iter(self.select(Query()))
        in_order: list[Call] = []
        for number, step in enumerate(steps):
            step_query = query_of_step(step)
            for call in calls:
                if not step_query.differences(call):
                    in_order.append(call)
                    break
            else:
                raise AssertionError(self._order_failure(number, step_query, in_order))

    def _order_failure(self, number: int, wanted: Query, done: list[Call]) -> str:
        lines = "".join(f"\n  {call}" for call in done) or "\n  (nothing)"
        earlier = [call for call in self.select(wanted) if call not in done]
        hint = f"\nit came too early: \n  {earlier[-1]}" if earlier else ""
        return (
            f"step {number + 1}, {wanted}, did not come after the steps before it:{lines}{hint}\n"
            f"{self.explain(wanted)}"
        )

    @tells_arguments(*ASKED)
    def assert_series(
        self, method: str, expected_s: Sequence[float], *, slack_s: Slack = 1.0, **which: Any
    ) -> None:
        """Assert that the calls that fit came with the spacing of `expected_s`, see `check_series`.
        Raises AssertionError."""
        __tracebackhide__ = True
        try:
            check_series(self.times_s(method, **which), expected_s, slack_s)
        except AssertionError as error:
            asked_query = query(method, **which)
            raise AssertionError(f"{asked_query}: {error}\n{self.explain(asked_query)}") from None


def _masked(request: Message) -> Message:
    if not request.HasField("auth"):
        return request
    copy = type(request)()
    copy.CopyFrom(request)
    for name in _SECRETS:
        auth: Any = copy.auth  # type: ignore[attr-defined]
        if getattr(auth, name):
            setattr(auth, name, MASK)
    return copy
