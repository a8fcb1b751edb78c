"""What containers write: lines, and the text that a CRI log file has for each of them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from fakecri.core.file_work import BYTES_OF_LOGS
from simtime import format_rfc3339


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line a container wrote."""

    time_ns: int
    stream: str
    text: str
    whole: bool = True  # False: it ends without a newline (CRI-103)


def log_text(line: LogLine) -> str:
    """The line as a CRI log file has it (CRI-101, CRI-102: pieces of 16384 bytes; CRI-103).

    >>> log_text(LogLine(1_500_000_000_100_000_000, "stdout", "hi"))
    '2017-07-14T02:40:00.1Z stdout F hi\\n'
    """
    stamp = format_rfc3339(line.time_ns, digits=9).rstrip("Z").rstrip("0").rstrip(".") + "Z"
    data = line.text.encode()
    pieces = [data[i : i + 16384] for i in range(0, len(data), 16384)] or [b""]
    marks = ["P"] * (len(pieces) - 1) + ["F" if line.whole else "P"]
    rows = zip(marks, pieces, strict=True)
    texts = ((mark, piece.decode(errors=BYTES_OF_LOGS)) for mark, piece in rows)
    return "".join(f"{stamp} {line.stream} {mark} {text}\n" for mark, text in texts)
