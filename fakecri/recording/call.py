"""One recorded CRI call: what was asked and answered, and when.

Messages are kept as bytes and parsed at the first look.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from google.protobuf.message import Message
from msgspec import Struct

from fakecri.behaviors.matching import Subject
from fakecri.recording.plain import plain

DISTURBED: ContextVar[list[str] | None] = ContextVar("DISTURBED", default=None)
"""A list that `CallLog` puts here; fault rules of a proxy add the methods that they acted on."""


class Kept(Struct, eq=False):
    """A message as bytes; parsed when it is first looked at."""

    kind: type[Message]
    data: bytes
    parsed: Message | None = None

    def message(self) -> Message:
        if self.parsed is None:
            self.parsed = self.kind.FromString(self.data)
        return self.parsed


class Question(Kept, eq=False):
    """A request, shared by all calls with an equal one; equal answers in a row share their bytes,
    too.

    `named`: the id that it names; `subject`: what it is about, if it names none; else None, since
    what an id belongs to may become known later.
    """

    named: str = ""
    subject: Subject | None = None
    answer: Kept | None = None


class Call(Struct, eq=False):
    """One call that the runtime got."""

    seq: int
    """Its number, from 1 on, in order of arrival."""
    method: str
    """The bare name of the RPC."""
    subject: Subject
    """Pod, container and image that it is about."""
    started_s: float
    """When it arrived, seconds on the recorder's monotonic clock."""
    deadline_s: float | None
    """The caller's time limit at arrival, in seconds; None: none."""
    shown_s: float
    """`started_s` as texts have it: since the recorder was made."""
    _question: Question
    ended_s: float | None = None
    """When it was answered, on the same clock; None: it still runs."""
    error: tuple[str, str] | None = None
    """Name of the gRPC code and text of its failure; None: it succeeded or still runs."""
    messages: int = 0
    """How many messages a stream has sent."""
    disturbed: bool = False
    """A rule of a proxy acted on it: its outcome is not the runtime's own."""
    _response: Kept | None = None

    @property
    def request(self) -> Any:
        """The request message; credentials are masked. Do not change it."""
        return self._question.message()

    @property
    def response(self) -> Any:
        """The answer, None for an error, a stream, or a call still running. Do not change it."""
        return None if self._response is None else self._response.message()

    @property
    def succeeded(self) -> bool:
        """Whether it was answered without an error; a call that still runs has not been."""
        return self.ended_s is not None and self.error is None

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

    def __repr__(self) -> str:
        return f"<Call {str(self).strip()}>"

    def __str__(self) -> str:
        place = "/".join(part for part in (self.pod or self.uid, self.container) if part)
        attempt = f"#{self.attempt}" if self.attempt is not None else ""
        end = "running" if self.ended_s is None else f"{self.ended_s - self.started_s:.3f} s"
        outcome = "" if self.error is None else f" -> {self.error[0]}: {self.error[1]}"
        about = f" {place}{attempt}" if place else f" {self.image}" if self.image else ""
        return f"{self.shown_s:10.3f} s  {self.method}{about} ({end}){outcome}"
