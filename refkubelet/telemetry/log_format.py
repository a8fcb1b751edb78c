"""How the log is written: as text, or as one JSON object a line (`--logging-format json`, or
`logging.format` of the KubeletConfiguration).

The JSON has the fields of the kubelet's: `ts` (milliseconds since 1970), `caller`, `msg`, `v` (how
talkative the kubelet must be to tell it), `logger`, for failures `err`, and `pod` (name, namespace,
UID) where a line is about one. Upstream: staging/src/k8s.io/component-base/logs/json.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Final

FORMATS: Final = ("text", "json")
TEXT: Final = "%(asctime)s %(levelname).1s %(name)s: %(message)s"


class JsonFormatter(logging.Formatter):
    """One JSON object for a record. Warnings and errors have no `v`, as upstream's errors."""

    def format(self, record: logging.LogRecord) -> str:
        """The object on one line; a traceback is part of `err`."""
        entry: dict[str, Any] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{record.module}.py:{record.lineno}",
            "logger": record.name,
            "msg": record.getMessage(),
        }
        if record.levelno < logging.WARNING:
            entry["v"] = 1 if record.levelno == logging.INFO else 2
        else:
            entry["level"] = record.levelname.lower()
        if record.exc_info and record.exc_info[1] is not None:
            entry["err"] = f"{record.exc_info[1]!r}\n{self.formatException(record.exc_info)}"
        if (pod := getattr(record, "pod", None)) is not None:
            entry["pod"] = pod
        return json.dumps(entry, ensure_ascii=False)


def log_to_stderr(verbosity: int, form: str) -> None:
    """Write the log to stderr; called again, otherwise from then on. `verbosity`: how often -v was
    given; `form`: one of FORMATS."""
    formatter = JsonFormatter() if form == "json" else logging.Formatter(TEXT)
    logging.basicConfig(level=logging.WARNING, handlers=[_STDERR])
    _STDERR.setFormatter(formatter)
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)]
    logging.getLogger("refkubelet").setLevel(level)


def verbosity_of(level: int) -> int:
    """How often -v would have been given for a level of the kubelet's log.

    >>> [verbosity_of(level) for level in (0, 1, 3, 4, 10)]
    [0, 1, 1, 2, 2]
    """
    return 0 if level <= 0 else 1 if level < 4 else 2


_STDERR: Final = logging.StreamHandler()
