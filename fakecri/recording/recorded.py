"""Reads recorded calls: the JSON lines of `--record`, of `to_jsonl` and of the control socket.

What must never happen here: a damaged line is skipped in silence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from fakecri.behaviors.matching import Subject
from fakecri.cri.services import METHODS
from fakecri.recording.plain import message_from
from fakecri.recording.subjects import SubjectBook, named_by


class RecordError(ValueError):
    """A record cannot be read; the text names the file and the line."""


class Exchange(Struct, frozen=True):
    """One unary call and how it ended. Times are seconds since the record began."""

    method: str
    subject: Subject
    request: Any
    response: Any  # None after an error
    error: tuple[str, str] | None
    start_s: float
    end_s: float
    disturbed: bool = False
    """A rule of a proxy acted on it."""


def read_record(path: Path) -> list[Exchange]:
    """The unary calls in a file in order of their start; calls that never ended are left out.
    Raises RecordError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RecordError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: no UTF-8 text (byte {error.start})") from None
    return list(exchanges(text.splitlines(), str(path)))


def exchanges(lines: Iterable[str], name: str = "record") -> Iterator[Exchange]:
    """The unary calls in these lines; `name`: what errors call the lines. Raises RecordError."""
    rows = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            row = _row(line, f"{name}:{number}")
            if row is not None:
                rows.append((f"{name}:{number}", row))
    book = SubjectBook(from_lists=True)
    for place, row in sorted(rows, key=lambda numbered: numbered[1]["t_start"]):
        yield _exchange(place, row, book)


def _row(line: str, place: str) -> dict[str, Any] | None:
    """The row of a unary call that ended; None for another. Raises RecordError."""
    try:
        row = json.loads(line)
    except ValueError as error:
        raise RecordError(f"{place}: no JSON: {error}") from None
    expected_form = "wanted an object with method, t_start, request and response or error"
    if not isinstance(row, dict):
        raise RecordError(f"{place}: {expected_form}, got {type(row).__name__}")
    for key, kind in (("method", str), ("t_start", int | float), ("request", dict)):
        if not isinstance(row.get(key), kind):
            raise RecordError(f"{place}: {expected_form}, got {key}: {row.get(key)!r}")
    if row["method"] not in METHODS:
        raise RecordError(f"{place}: method: CRI v1 has no method {row['method']!r}")
    if METHODS[row["method"]].streams or not isinstance(row.get("t_end"), int | float):
        return None
    return row if "response" in row or "error" in row else None


def _exchange(place: str, row: dict[str, Any], book: SubjectBook) -> Exchange:
    method = METHODS[row["method"]]
    try:
        request: Any = message_from(method.request_type, row["request"])
        answer: Any = None
        if "response" in row:
            answer = message_from(method.response_type, row["response"])
        failure = row.get("error")
        error = None if failure is None else (str(failure["code"]), str(failure["message"]))
    except (ValueError, TypeError, KeyError) as mistake:
        raise RecordError(f"{place}: {mistake}") from None
    named = named_by(request)
    subject = book.subject_of(method.name, request, named)
    if answer is not None:
        book.learn(method.name, subject, named, answer)
    return Exchange(
        method=method.name,
        subject=subject,
        request=request,
        response=answer,
        error=error,
        start_s=row["t_start"],
        end_s=row["t_end"],
        disturbed=row.get("disturbed") is True,
    )
