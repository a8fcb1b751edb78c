"""Notes what a condition looked at, for the message when a case has waited for it in vain.

A case waits for a condition that is a plain function of the node. When it waits in vain, the
condition is called once more, and every observation it makes is noted with its answer:
`phase('web') = 'Pending'`. Taking notes never changes an answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

from kubelet_conformance.harness.observing.words import describe, write_name

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

LONGEST: Final = 300
MOST: Final = 4
"""How many entries of a list are shown, the last ones."""
_NOTES: Final[ContextVar[list[str] | None]] = ContextVar("notes of a condition", default=None)


def looked_at(question: Callable[Concatenate[S, P], R], /) -> Callable[Concatenate[S, P], R]:
    """Decorates a method that observes the node: while `seen_by` asks a condition, calls of the
    method are noted with arguments and answers, as `api.phase('web') = 'Pending'` (`api.` is the
    `facet` of its class). Observations that the method itself makes are not noted."""

    @wraps(question)
    def ask(self: S, /, *args: P.args, **named: P.kwargs) -> R:
        notes = _NOTES.get()
        if notes is None:
            return question(self, *args, **named)
        token = _NOTES.set(None)
        try:
            answer = question(self, *args, **named)
        finally:
            _NOTES.reset(token)
        words = [repr(a) for a in args] + [f"{name}={value!r}" for name, value in named.items()]
        called = f"{getattr(self, 'facet', '')}{question.__name__}"
        notes.append(f"{called}({', '.join(words)}) = {shortly(answer)}")
        return answer

    return ask


def seen_by(condition: Callable[[], object]) -> str:
    """What the condition looks at now, one observation per line; its own answer if it makes no
    observation that is noted."""
    notes: list[str] = []
    token = _NOTES.set(notes)
    try:
        answer = condition()
    finally:
        _NOTES.reset(token)
    lines = list(dict.fromkeys(notes)) or [f"the condition is {shortly(answer)}"]
    return "\n          ".join(lines)


def shortly(value: object) -> str:
    """The value on one line: calls by their names, events by their messages, pods by their
    containers' states, everything else as it is written, cut.

    >>> shortly("Pending"), shortly([]), shortly({"ready": False})
    ("'Pending'", '[]', '{"ready": false}')
    """
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        last = [_entry(v) for v in value[-MOST:]]
        more = f"{len(value)}, the last of them " if len(value) > MOST else ""
        return f"{more}[{_cut(', '.join(last))}]"
    return _cut(_entry(value))


def _entry(value: object) -> str:
    """One value on one line, in full length."""
    if isinstance(value, Mapping):
        if "reason" in value and "involvedObject" in value:
            return f"{value['reason']}: {value.get('message')}"
        if "metadata" in value and "status" in value:
            return describe(value["status"] or {})
        return json.dumps(value, default=str)
    if hasattr(value, "method") and hasattr(value, "path"):
        return f"{value.method} {value.path}"
    if hasattr(value, "method") and hasattr(value, "attempt"):
        return write_name(value)
    return f"{value:.2f}" if isinstance(value, float) else repr(value)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
