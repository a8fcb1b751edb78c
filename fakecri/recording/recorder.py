"""Every CRI call that passed, with request, answer and times; questions and assertions over them.

Answers are kept as bytes and parsed when somebody looks: a kubelet lists the same hundred
containers every second, and equal answers share their bytes. What must never happen here: a
password is kept (CRI-097), memory grows without bound, or a recorded message changes later.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, Final, TypeAlias

from google.protobuf.message import Message

from fakecri.behaviors.matching import Match, Subject
from fakecri.cri.services import require_method
from fakecri.recording.plain import plain
from fakecri.recording.subjects import ABOUT_ALL, NAMING_CALLS, SubjectBook

DEFAULT_CAPACITY: Final = 100_000
MASK: Final = "***"
_SECRETS: Final = ("password", "auth", "identity_token", "registry_token")
_SHOWN_CALLS: Final = 12
_SHARED_QUESTIONS: Final = 256

DISTURBED: ContextVar[list[str] | None] = ContextVar("DISTURBED", default=None)
"""A list that the log of calls puts here gets the methods on which the rules of a proxy acted."""

Slack: TypeAlias = float | Callable[[float], tuple[float, float]]
"""How much later than expected is fine: seconds, or gap -> (smallest, largest) gap."""


@dataclass(slots=True)
class _Kept:
    """A message as bytes, parsed at the first look."""

    kind: type[Message]
    data: bytes
    parsed: Message | None = None

    def message(self) -> Message:
        if self.parsed is None:
            self.parsed = self.kind.FromString(self.data)
        return self.parsed


@dataclass(slots=True)
class _Question:
    """A request as often as it came: equal requests, and answers equal to the last, share bytes.

    `subject` is set if the request names no id, so that it is always about the same."""

    request: _Kept
    subject: Subject | None = None
    answer: _Kept | None = None


@dataclass(slots=True)
class Call:
    """One call. Times: seconds on the monotonic clock of the recorder.

    `deadline_s` is the caller's time limit at arrival, None for none. `ended_s` is None while the
    call runs; then there is a `response` or an `error` (code name, text). `messages` counts what
    a stream has sent.
    """

    seq: int
    method: str
    subject: Subject
    started_s: float
    deadline_s: float | None
    shown_s: float
    """`started_s` as texts have it: since the recorder was made."""
    _question: _Question = field(repr=False)
    ended_s: float | None = None
    error: tuple[str, str] | None = None
    messages: int = 0
    disturbed: bool = False
    """A rule of a proxy acted on it: what came of it is not the runtime's own."""
    _response: _Kept | None = field(repr=False, default=None)

    @property
    def request(self) -> Any:
        """The request message; credentials are masked. Do not change it."""
        return self._question.request.message()

    @property
    def response(self) -> Any:
        """The answer, None for an error, a stream, or a call still running. Do not change it."""
        return None if self._response is None else self._response.message()

    @property
    def pod(self) -> str:
        return self.subject.pod

    @property
    def namespace(self) -> str:
        return self.subject.namespace

    @property
    def uid(self) -> str:
        return self.subject.uid

    @property
    def container(self) -> str:
        return self.subject.container

    @property
    def image(self) -> str:
        return self.subject.image

    @property
    def attempt(self) -> int | None:
        return self.subject.attempt

    def to_dict(self, *, t0_s: float = 0.0) -> dict[str, Any]:
        """The row of the recorded kubelet runs: times are seconds after `t0_s`."""
        row: dict[str, Any] = {
            "t_start": round(self.started_s - t0_s, 4),
            "t_end": None if self.ended_s is None else round(self.ended_s - t0_s, 4),
            "method": self.method,
            "deadline_s": None if self.deadline_s is None else round(self.deadline_s, 3),
            "request": plain(self.request),
        }
        if self.disturbed:
            row["disturbed"] = True
        if self.error is not None:
            row["error"] = {"code": self.error[0], "message": self.error[1]}
        elif self._response is not None:
            row["response"] = plain(self.response)
        else:
            row["messages"] = self.messages
        return row

    def __str__(self) -> str:
        who = "/".join(part for part in (self.pod or self.uid, self.container) if part)
        attempt = f"#{self.attempt}" if self.attempt is not None else ""
        end = "running" if self.ended_s is None else f"{self.ended_s - self.started_s:.3f} s"
        outcome = "" if self.error is None else f" -> {self.error[0]}: {self.error[1]}"
        about = f" {who}{attempt}" if who else f" {self.image}" if self.image else ""
        return f"{self.shown_s:10.3f} s  {self.method}{about} ({end}){outcome}"


ANYTHING: Final = Match()


@dataclass(frozen=True, slots=True)
class Query:
    """Which calls are meant; open fields match all."""

    method: str | None = None
    match: Match = ANYTHING
    since_s: float = float("-inf")
    where: Callable[[Call], bool] | None = None
    until_s: float = float("inf")

    def differences(self, call: Call) -> list[str]:
        """What keeps `call` from fitting; [] = it fits."""
        found = self.match.differences(call.subject)
        if self.method is not None and call.method != self.method:
            found.insert(0, f"method: wanted {self.method}, got {call.method}")
        if not self.since_s <= call.started_s <= self.until_s:
            found.append(self._other_time(call))
        if not found and self.where is not None and not self.where(call):
            found.append("the predicate `where` said no")
        return found

    def _other_time(self, call: Call) -> str:
        """All in seconds as texts have them."""
        early = call.started_s < self.since_s
        bound_s = (self.since_s if early else self.until_s) - call.started_s + call.shown_s
        side = "later" if early else "before"
        return f"time: wanted {bound_s:.3f} s or {side}, got {call.shown_s:.3f} s"

    def __str__(self) -> str:
        return f"{self.method or 'any call'} ({self.match})"


def query(
    method: str | None = None,
    *,
    pod: str | None = None,
    container: str | None = None,
    image: str | None = None,
    attempt: int | None = None,
    since_s: float = float("-inf"),
    until_s: float = float("inf"),
    where: Callable[[Call], bool] | None = None,
) -> Query:
    """A `Query` from the arguments that all questions take. Raises: ValueError for a method that
    CRI does not have: no such call would be no surprise."""
    if method is not None:
        require_method(method)
    return Query(method, Match(pod, container, image, attempt), since_s, where, until_s)


class Recorder:
    """Keeps the last `capacity` calls. Times are given by the caller, monotonic seconds.

    Questions take `pod` (a name, a pattern `web*`, or a UID), `container`, `image`, `attempt`,
    `since_s` and `until_s` (both count), and `where` (a predicate over the call).
    """

    def __init__(self, capacity: int = DEFAULT_CAPACITY, *, t0_s: float = 0.0) -> None:
        """`t0_s`: now; texts count from it. A clock that starts anew, as a virtual one does when
        its loop begins, has its own zero."""
        self._t0_s = t0_s
        self._calls: deque[Call] = deque(maxlen=capacity)
        self._subjects = SubjectBook(from_lists=True)
        self._seq = 0
        self.totals: Counter[str] = Counter()
        """How many calls of each method there ever were, also those that are kept no longer."""
        self._questions: dict[tuple[str, bytes], _Question] = {}

    @property
    def t0_s(self) -> float:
        """When the recorder was made, on the clock of its calls."""
        return self._t0_s

    def begin(self, method: str, request: Message, now_s: float, deadline_s: float | None) -> Call:
        """Write down that a call has arrived; `finish` ends it."""
        self._seq += 1
        self.totals[method] += 1
        if now_s < self._t0_s:
            self._t0_s = 0.0
        data = request.SerializeToString()
        question = self._questions.get((method, data)) or self._new_question(method, request)
        subject = question.subject
        if subject is None:
            subject = self._subjects.subject_of(method, request)
            if subject is ABOUT_ALL:
                question.subject = subject
        shown_s = now_s - self._t0_s
        call = Call(self._seq, method, subject, now_s, deadline_s, shown_s, question)
        self._calls.append(call)
        return call

    def _new_question(self, method: str, request: Message) -> _Question:
        """Requests with credentials are kept without them, and under that name."""
        shown = _masked(request) if method == "PullImage" else request
        data = shown.SerializeToString()
        known = self._questions.get((method, data))
        if known is None:
            if len(self._questions) >= _SHARED_QUESTIONS:
                self._questions.clear()
            known = self._questions[method, data] = _Question(_Kept(type(request), data))
        return known

    def finish(
        self,
        call: Call,
        ended_s: float,
        response: Message | None = None,
        *,
        error: tuple[str, str] | None = None,
    ) -> None:
        """The call has ended: with a response, with an error (code name, text), or, if it was a
        stream, with neither."""
        call.ended_s, call.error = ended_s, error
        if response is None:
            return
        question, data = call._question, response.SerializeToString()
        last = question.answer
        new = last is None or last.data != data
        if new or call.method in NAMING_CALLS:
            self._subjects.learn(call.method, call.request, response)
        if new:
            question.answer = _Kept(type(response), data)
        call._response = question.answer

    def finish_bytes(self, call: Call, ended_s: float, kind: type[Message], data: bytes) -> None:
        """The call has ended with a response of that kind, given as bytes."""
        answer = call._question.answer
        if answer is None or answer.data != data:
            self._subjects.learn(call.method, call.request, kind.FromString(data))
            answer = call._question.answer = _Kept(kind, data)
        call.ended_s, call._response = ended_s, answer

    def subject_of_id(self, identity: str) -> Subject:
        """What an id is about, as far as the passed calls tell."""
        return self._subjects.by_id(identity)

    def clear(self) -> None:
        """Forget all calls; what ids belong to stays known."""
        self._calls.clear()

    def select(self, wanted: Query) -> list[Call]:
        """The calls that fit, in order of arrival."""
        calls: Iterable[Call] = self._calls
        if wanted.method is not None:  # leaves few of many, and costs least
            calls = [call for call in calls if call.method == wanted.method]
        return [call for call in calls if not wanted.differences(call)]

    def last(self, number: int = _SHOWN_CALLS) -> list[Call]:
        return list(self._calls)[-number:]

    def explain(self, wanted: Query) -> str:
        """For a failed assertion: the call that comes nearest to `wanted`, and the last calls."""
        best: tuple[int, Call, list[str]] | None = None
        for call in self._calls:
            found = wanted.differences(call)
            if found and (best is None or _rank(wanted, call, found) <= best[0]):
                best = (_rank(wanted, call, found), call, found)
        lines = []
        if best is not None:
            lines.append(f"nearest miss:\n  {best[1]}\n    {'; '.join(best[2])}")
        shown = "\n".join(f"  {call}" for call in self.last()) or "  (none)"
        return "\n".join([*lines, f"last calls:\n{shown}"])

    def to_jsonl(self, *, t0_s: float = 0.0) -> str:
        """All calls as JSON lines in the form of the recorded kubelet runs (protobuf JSON with
        the field names of the .proto); times are seconds after `t0_s`."""
        rows = (call.to_dict(t0_s=t0_s) for call in self._calls)
        return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)

    def calls(self, method: str | None = None, **which: Any) -> list[Call]:
        """The recorded calls that fit, in order of arrival."""
        return self.select(query(method, **which))

    def count(self, method: str | None = None, **which: Any) -> int:
        """How many calls fit."""
        return len(self.calls(method, **which))

    def times_s(self, method: str | None = None, **which: Any) -> list[float]:
        """When the fitting calls arrived, seconds on the monotonic clock."""
        return [call.started_s for call in self.calls(method, **which)]

    def assert_called(
        self, method: str, *, times: int | None = None, at_least: int = 1, **which: Any
    ) -> list[Call]:
        """Exactly `times` calls fit (or `at_least`). Returns them; raises AssertionError."""
        __tracebackhide__ = True
        wanted = query(method, **which)
        found = self.select(wanted)
        if len(found) == times or (times is None and len(found) >= at_least):
            return found
        number = f"{times}" if times is not None else f"at least {at_least}"
        seen = "".join(f"\n  {call}" for call in found[-_SHOWN_CALLS:])
        raise AssertionError(
            f"expected {number} x {wanted}, got {len(found)}{seen}\n{self.explain(wanted)}"
        )

    def assert_not_called(self, method: str, **which: Any) -> None:
        """No call fits. Raises AssertionError that shows those that do."""
        __tracebackhide__ = True
        found = self.calls(method, **which)
        if found:
            seen = "\n".join(f"  {call}" for call in found[-_SHOWN_CALLS:])
            raise AssertionError(f"expected no {query(method, **which)}, got {len(found)}:\n{seen}")

    def assert_order(self, steps: Iterable[str | Sequence[str] | Mapping[str, Any]]) -> None:
        """The steps happened in this order; other calls may lie between them.

        A step is a method, `(method, container)`, or a mapping of the arguments of `calls`.
        Raises AssertionError that names the first step that is missing.
        """
        __tracebackhide__ = True
        if isinstance(steps, str):
            raise TypeError(f"steps: wanted a list of methods, got the text {steps!r}")
        calls = iter(self.select(Query()))
        done: list[Call] = []
        for number, step in enumerate(steps):
            wanted = _step(step)
            for call in calls:
                if not wanted.differences(call):
                    done.append(call)
                    break
            else:
                raise AssertionError(self._order_failure(number, wanted, done))

    def _order_failure(self, number: int, wanted: Query, done: list[Call]) -> str:
        seen = "".join(f"\n  {call}" for call in done) or "\n  (nothing)"
        earlier = [call for call in self.select(wanted) if call not in done]
        hint = f"\nit came too early: \n  {earlier[-1]}" if earlier else ""
        return (
            f"step {number + 1}, {wanted}, did not come after the steps before it:{seen}{hint}\n"
            f"{self.explain(wanted)}"
        )

    def assert_series(
        self, method: str, expected_s: Sequence[float], *, slack_s: Slack = 1.0, **which: Any
    ) -> None:
        """The fitting calls came with the spacing of `expected_s` (see `check_series`)."""
        __tracebackhide__ = True
        try:
            check_series(self.times_s(method, **which), expected_s, slack_s)
        except AssertionError as error:
            wanted = query(method, **which)
            raise AssertionError(f"{wanted}: {error}\n{self.explain(wanted)}") from None


def check_series(times_s: Sequence[float], expected_s: Sequence[float], slack: Slack) -> None:
    """The times have the spacing of `expected_s` (both count from their first entry).

    Each gap must lie in [expected, expected + slack], or in what `slack(expected gap)` gives.
    Raises AssertionError with all gaps.

    >>> check_series([5.0, 5.2, 16.0], [0, 0, 10], slack=1.0)
    """
    __tracebackhide__ = True
    gaps = [b - a for a, b in pairwise(times_s)]
    wanted = [b - a for a, b in pairwise(expected_s)]
    lines, wrong = [], len(times_s) != len(expected_s)
    for number, (gap, expected) in enumerate(zip(gaps, wanted, strict=False), start=1):
        low, high = slack(expected) if callable(slack) else (expected, expected + slack)
        fits = low - 1e-6 <= gap <= high + 1e-6
        wrong = wrong or not fits
        mark = " " if fits else "X"
        lines.append(f"{mark} gap {number}: {gap:.3f} s, wanted {low:.3f} to {high:.3f} s")
    if wrong:
        numbers = f"expected {len(expected_s)} times, got {len(times_s)}"
        raise AssertionError("\n".join([numbers, *lines]))


def _step(step: str | Sequence[str] | Mapping[str, Any]) -> Query:
    if isinstance(step, str):
        return query(step)
    if isinstance(step, Mapping):
        return query(**step)
    if len(step) != 2:
        raise ValueError(f"a step is a method or (method, container), got {step!r}")
    method, container = step
    return query(method, container=container)


def _rank(wanted: Query, call: Call, differences: list[str]) -> int:
    """Smaller is nearer; the right method counts more than everything else."""
    other_method = wanted.method is not None and call.method != wanted.method
    return len(differences) + (len(fields(Match)) if other_method else 0)


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
