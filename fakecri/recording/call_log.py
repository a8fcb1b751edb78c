"""Writes every CRI call that passes to a file, one JSON line a call.

The lines have the fields of the recorded kubelet runs: `t_start`, `t_end` (seconds since the
start), `method`, `deadline_s` (null: none), `request`, and `response` or `error` {code, message}.
A stream writes one line a message and a last one with their number. What must never happen here:
a call fails or changes because it is written down, or a password is written (CRI-097).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TextIO

import grpc
from google.protobuf.message import Message

from fakecri.cri.services import CriTarget
from fakecri.recording.call import DISTURBED
from fakecri.recording.plain import plain
from simclock import Clock


class CallLog:
    """A `CriTarget` that passes calls on to `target` and appends them to `path`.

    Times count from `t0_s` of the clock (None: now). Raises OSError if the file cannot be opened.
    Existing lines stay.
    """

    def __init__(
        self, target: CriTarget, path: Path, clock: Clock, *, t0_s: float | None = None
    ) -> None:
        self._target = target
        self._clock = clock
        self._start_s = clock.monotonic_s() if t0_s is None else t0_s
        self._file: TextIO = path.open("a", encoding="utf-8", buffering=1)

    async def call(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> Message:
        row = self._row(method, request, timeout_s)
        rules: list[str] = []
        token = DISTURBED.set(rules)
        try:
            answer = await self._target.call(method, request, timeout_s=timeout_s)
        except BaseException as error:
            self._write(row, **_mark(rules), error=_error(error))
            raise
        finally:
            DISTURBED.reset(token)
        self._write(row, **_mark(rules), response=plain(answer))
        return answer

    async def stream(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> AsyncIterator[Message]:
        row = self._row(method, request, timeout_s)
        count = 0
        try:
            async for answer in self._target.stream(method, request, timeout_s=timeout_s):
                count += 1
                self._write(row, response=plain(answer))
                yield answer
        except BaseException as error:
            self._write(row, messages=count, error=_error(error))
            raise
        self._write(row, messages=count)

    def close(self) -> None:
        """Close the file. Calls that are still under way are not written."""
        self._file.close()

    def _row(self, method: str, request: Message, timeout_s: float | None) -> dict[str, Any]:
        return {
            "t_start": self._now_s(),
            "method": method,
            "deadline_s": None if timeout_s is None else round(timeout_s, 3),
            "request": _masked(plain(request)),
        }

    def _write(self, row: dict[str, Any], **outcome: Any) -> None:
        if not self._file.closed:
            line = {"t_start": row["t_start"], "t_end": self._now_s(), **row, **outcome}
            self._file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def _now_s(self) -> float:
        return round(self._clock.monotonic_s() - self._start_s, 4)


def _mark(rules: list[str]) -> dict[str, bool]:
    """The field that marks a call on which rules of a proxy acted."""
    return {"disturbed": True} if rules else {}


def _masked(request: dict[str, Any]) -> dict[str, Any]:
    """The request without the credentials of a pull."""
    if "auth" in request:
        request["auth"] = dict.fromkeys(request["auth"], "***")
    return request


def _error(error: BaseException) -> dict[str, str]:
    if isinstance(error, grpc.RpcError) and callable(getattr(error, "code", None)):
        return {"code": error.code().name, "message": error.details() or ""}
    return {"code": "CANCELLED", "message": f"the caller went away ({type(error).__name__})"}
